import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { ApiError } from '../../../shared/errors.ts';

/** The maximum window (8 MiB) of a zstd stream, which is the limit of RFC 9659 for HTTP. */
const zstdWindowLog = 23;

/** The first version of Node whose zstd detects a truncated stream: Node 22 ends it like a complete one. */
const zstdNodeVersion = 24;

/** Parts of this module that Node 20 lacks. */
interface ZstdModule {
  readonly createZstdDecompress?: (options: object) => Transform;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

const { createZstdDecompress, constants } = zlib as unknown as ZstdModule;
const hasZstd = createZstdDecompress !== undefined && Number.parseInt(process.versions.node, 10) >= zstdNodeVersion;

/** Decompressors by Content-Encoding. `identity` needs none. */
const unpackers: Readonly<Record<string, (() => Transform) | undefined>> = {
  gzip: () => zlib.createGunzip(),
  'x-gzip': () => zlib.createGunzip(),
  ...(hasZstd && {
    zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax as number]: zstdWindowLog } }),
  }),
};

const offered = hasZstd ? 'gzip, zstd' : 'gzip';

/** The body's encoding in lower case, or undefined if it has none. */
export function encodingOf(req: IncomingMessage): string | undefined {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase();
  return encoding === undefined || encoding === 'identity' ? undefined : encoding;
}

/** The 415 for an unsupported encoding, which names the supported ones. */
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

/** Creates the stream that decompresses an encoding accepted by `refuseEncoding`. */
export function unpackerOf(encoding: string): Transform {
  return (unpackers[encoding] as () => Transform)();
}
