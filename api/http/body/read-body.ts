import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import type { Context } from 'koa';
import { ApiError } from '../../../shared/errors.ts';
import { GatheredChunks, releaseMemory } from '../../../shared/runtime/collections.ts';
import { discardBody } from './discard-body.ts';

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

/** Whether the request's body is a form. */
export function isForm({ req }: Pick<Context, 'req'>): boolean {
  return /^\s*multipart\/form-data\s*(;|$)/i.test(req.headers['content-type'] ?? '');
}

/** The body's encoding in lower case, or undefined if it has none. */
export function encodingOf(req: IncomingMessage): string | undefined {
  const encoding = req.headers['content-encoding']?.trim().toLowerCase();
  return encoding === undefined || encoding === 'identity' ? undefined : encoding;
}

/** The 415 for an unsupported encoding, which names the supported ones. */
function refuseEncoding(encoding: string | undefined): ApiError | undefined {
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
function unpackerOf(encoding: string): Transform {
  return (unpackers[encoding] as () => Transform)();
}

/** Default maximum size of a body, in bytes. */
export const largestBody = 20 * 1024 * 1024;

/** How long a body may stall before it fails. Node's `requestTimeout` bounds the whole. */
const silenceMs = 60_000;

/** Larger bodies are checked before they are read further (see `BodyWatch`). */
export const largeBytes = 64 * 1024;

/** Minimum pace of a body, after a grace period for a slow start. */
export interface BodyPace {
  readonly graceMs: number;
  readonly bytesPerSecond: number;
}

/** Slower than any usable line. */
export const usualPace: BodyPace = { graceMs: 30_000, bytesPerSecond: 16 * 1024 };

/** Whether a body with `bytes` received since `startedAt`, in ms of `performance.now()`, is too slow. */
export function isTooSlow(bytes: number, startedAt: number, { graceMs, bytesPerSecond }: BodyPace): boolean {
  const due = ((performance.now() - startedAt - graceMs) / 1000) * bytesPerSecond;
  return due > 0 && bytes < due;
}

/** Hooks into a body while it arrives. */
export interface BodyWatch {
  /** Called before a large body is read (further). @throws ApiError to refuse it. */
  readonly beforeLarge: () => Promise<void>;
  /** Called with the bytes of each chunk. @throws ApiError when these are too many. */
  readonly grow: (bytes: number) => void;
}

export interface BodyBounds {
  /** How long the body may stall, in ms. */
  readonly silenceMs?: number;
  /** Maximum size of the body, in bytes. */
  readonly maxBytes?: number;
  readonly pace?: BodyPace;
  readonly watch?: BodyWatch | undefined;
}

type WholeBounds = Required<Omit<BodyBounds, 'watch'>> & Pick<BodyBounds, 'watch'>;

/**
 * Reads a request's body. A missing Content-Type counts as JSON.
 * @throws ApiError 400 for a broken Content-Encoding, 415 for a type other than JSON or an encoding other than gzip or zstd,
 * 413 for more than 20 MiB uncompressed (at once if Content-Length says so), `timeout` for a body that stalls for a minute
 * or comes too slowly, `cancelled` when the caller disconnects, and errors of its watch.
 */
export async function readBody(ctx: Context, bounds: BodyBounds = {}): Promise<Buffer> {
  const { req } = ctx;
  const whole: WholeBounds = { silenceMs, maxBytes: largestBody, pace: usualPace, ...bounds };
  const refusal = refuseByHeaders(req, whole.maxBytes);
  if (refusal) {
    discardBody(req);
    throw refusal;
  }
  try {
    if (whole.watch !== undefined && Number(req.headers['content-length'] ?? 0) > largeBytes) {
      await whole.watch.beforeLarge();
    }
    return await collect(req, whole);
  } catch (error) {
    if (req.complete || req.destroyed) throw error;
    // The rest of a stalled body may never come, so the connection cannot be reused.
    if (error instanceof ApiError && error.code === 'timeout') ctx.res.shouldKeepAlive = false;
    else discardBody(req);
    throw error;
  }
}

function refuseByHeaders(req: IncomingMessage, maxBytes: number): ApiError | undefined {
  const type = req.headers['content-type'];
  // The first comparison is a fast path for nearly every client.
  if (type !== undefined && type !== 'application/json' && !isJson(type)) {
    return new ApiError(
      'unsupported_media_type',
      'Send the body as JSON in UTF-8, with Content-Type application/json.',
    );
  }
  const refusal = refuseEncoding(encodingOf(req));
  if (refusal !== undefined) return refusal;
  return Number(req.headers['content-length'] ?? 0) > maxBytes ? tooLarge(maxBytes) : undefined;
}

/** Whether a Content-Type is `application/json` or `application/…+json`, in UTF-8 if it names a charset. */
function isJson(type: string): boolean {
  const [mediaType = '', ...parameters] = type.toLowerCase().split(';');
  if (!/^application\/(json|[\w.-]+\+json)$/.test(mediaType.trim())) return false;
  return parameters.every((parameter) => !/^\s*charset=/.test(parameter) || /=\s*"?utf-?8"?\s*$/.test(parameter));
}

/** The error of a request whose client has disconnected before all of it was read. */
export function leftEarly(): ApiError {
  return new ApiError('cancelled', 'The client left before its request was complete.');
}

/** The error of a request whose body stalls, or comes too slowly. */
export function bodyTooLate(): ApiError {
  return new ApiError('timeout', 'The request body did not arrive in time.');
}

function tooLarge(maxBytes: number): ApiError {
  const kibibytes = maxBytes / 1024;
  const limit = kibibytes < 1024 ? `${kibibytes} KiB` : `${kibibytes / 1024} MiB`;
  return new ApiError('request_too_large', `The request body is too large: at most ${limit} are accepted.`);
}

function collect(req: IncomingMessage, { silenceMs, maxBytes, pace, watch }: WholeBounds): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const encoding = encodingOf(req);
    // The size limit is for the unpacked data, the pace for what the caller sends.
    const unpacker = encoding === undefined ? undefined : unpackerOf(encoding);
    const source = unpacker ?? req;
    // An unpacker may keep the memory that it writes to.
    const chunks = new GatheredChunks(unpacker === undefined ? releaseMemory : undefined);
    // A body with a Content-Length was checked before.
    let isLarge = watch === undefined || (unpacker === undefined && req.headers['content-length'] !== undefined);
    let size = 0;
    let received = 0;
    const stop = (): void => {
      clearTimeout(timer);
      req.off('close', leave).off('error', leave).off('data', receive);
      source.off('data', take).off('end', end);
      if (unpacker === undefined) return;
      // A refused body is not unpacked further.
      req.unpipe(unpacker);
      unpacker.destroy();
    };
    const fail = (error: unknown): void => {
      stop();
      reject(error);
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > maxBytes) fail(tooLarge(maxBytes));
      else if (unpacker === undefined && isTooSlow(size, startedAt, pace)) late();
      else keep(chunk);
    };
    const receive = ({ length }: Buffer): void => {
      received += length;
      timer.refresh();
      if (isTooSlow(received, startedAt, pace)) late();
    };
    const keep = (chunk: Buffer): void => {
      // Released with those that it is joined with.
      const { length } = chunk;
      chunks.add(chunk);
      timer.refresh();
      if (watch === undefined) return;
      try {
        watch.grow(length);
      } catch (error) {
        fail(error);
        return;
      }
      if (isLarge || size <= largeBytes) return;
      isLarge = true;
      source.pause();
      watch.beforeLarge().then(() => source.resume(), fail);
    };
    const end = (): void => {
      stop();
      // A small body is one chunk, which needs no copy.
      resolve(chunks.bytes());
    };
    const leave = (): void => {
      // A request that was read to its end also closes, possibly before all of it is unpacked.
      if (unpacker !== undefined && req.readableEnded) return;
      fail(leftEarly());
    };
    const broken = (): void => {
      fail(
        new ApiError(
          'invalid_request_error',
          `The body is not valid ${encoding}, which its Content-Encoding says it is.`,
        ),
      );
    };
    const late = (): void => fail(bodyTooLate());
    const timer = setTimeout(late, silenceMs);
    // It disconnected during the key's look-up, so no event will follow.
    if (req.destroyed) {
      fail(leftEarly());
      return;
    }
    req.on('close', leave).on('error', leave);
    source.on('data', take).on('end', end);
    // The error listener stays attached, for late errors of an unpacker.
    if (unpacker !== undefined) req.on('data', receive).pipe(unpacker).on('error', broken);
  });
}
