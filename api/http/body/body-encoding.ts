import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { ApiError } from '../../../shared/errors.ts';

/** The largest window (8 MiB) that a zstd stream may ask for: what RFC 9659 lets HTTP use. */
const zstdWindowLog = 23;

/** The first version of Node whose zstd tells a stream that is cut off from a whole one: Node 22 ends both alike. */
const zstdNodeVersion = 24;

/** Parts of this module that Node 20 lacks. */
interface ZstdModule {
  readonly createZstdDecompress?: (options: object) => Transform;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

const { createZstdDecompress, constants } = zlib as unknown as ZstdModule;
const hasZstd = createZstdDecompress !== undefined && Number.parseInt(process.versions.node, 10) >= zstdNodeVersion;

/** What a Content-Encoding is read with; `identity` and none: nothing. */
const unpackers: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: () => zlib.createGunzip(),
  'x-gzip': () => zlib.createGunzip(),
  ...(hasZstd && {
    zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax as number]: zstdWindowLog } }),
  }),
};

const offered = hasZstd ? 'gzip, zstd' : 'gzip';

/** How a body is encoded, in lower case; undefined where it is not. */
export function encodingOf(req: IncomingMessage): string | undefined {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase();
  return encoding === undefined || encoding === 'identity' ? undefined : encoding;
}

/** The 415 for an encoding that is not read here, which says what is. */
export function refuseEncoding(encoding: string | undefined): ApiError | undefined {
  if (encoding === undefined || (Object.hasOwn(unpackers, encoding) && unpackers[encoding])) return undefined;
  const what =
    encoding === 'zstd'
      ? `Content-Encoding zstd needs a gateway on Node ${zstdNodeVersion} or newer`
      : 'This Content-Encoding is not supported';
  return new ApiError(
    'unsupported_media_type',
    `${what}: send the body uncompressed, or as ${offered.replace(', ', ' or ')}.`,
    {
      headers: { 'accept-encoding': offered },
    },
  );
}

/** The stream that unpacks a body of an encoding that `refuseEncoding` lets pass. */
export function unpackerOf(encoding: string): Transform {
  return (unpackers[encoding] as () => Transform)();
}
