import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { ApiError } from '../../../shared/errors.ts';
import { encodingOf, refuseEncoding, unpackerOf } from './body-encoding.ts';

/** The largest body that is read where no other limit is named, in bytes. */
export const largestBody = 20 * 1024 * 1024;

/** How long a body may stand still before its sender is given up. Node's `requestTimeout` bounds the whole. */
const silenceMs = 60_000;

/** Bodies above so many bytes are looked at before they are read on (see `BodyWatch`). */
export const largeBytes = 64 * 1024;

/** How fast a body must come, once it has had its time for a slow beginning. */
export interface BodyPace {
  readonly graceMs: number;
  readonly bytesPerSecond: number;
}

/** Slower than any line that can be worked with. */
export const usualPace: BodyPace = { graceMs: 30_000, bytesPerSecond: 16 * 1024 };

/** Whether a body of which so much has come since `startedAt` is too slow. */
export function isTooSlow(bytes: number, startedAt: number, { graceMs, bytesPerSecond }: BodyPace): boolean {
  const due = ((Date.now() - startedAt - graceMs) / 1000) * bytesPerSecond;
  return due > 0 && bytes < due;
}

/** Who looks at a body while it comes. */
export interface BodyWatch {
  /** Called before a large body is read (on). @throws ApiError when it is not to be. */
  readonly beforeLarge: () => Promise<void>;
  /** Called with the bytes of each part. @throws ApiError when these are too many. */
  readonly grow: (bytes: number) => void;
}

export interface BodyBounds {
  /** How long the body may stand still, in ms. */
  readonly silenceMs?: number;
  /** The largest body that is read, in bytes. */
  readonly maxBytes?: number;
  readonly pace?: BodyPace;
  readonly watch?: BodyWatch | undefined;
}

type WholeBounds = Required<Omit<BodyBounds, 'watch'>> & Pick<BodyBounds, 'watch'>;

/**
 * What is still taken in of a refused body, so that its sender reads the answer instead of a reset connection; `bytesPerMs`
 * of all together. What is thrown away must not cost others: each 64 MiB that a process reads is one long collection of its
 * garbage.
 */
const linger = { bytes: 64 * 1024 * 1024, ms: 30_000, bytesPerMs: 32 * 1024, burstMs: 100 };

/**
 * Reads a request's body. A missing Content-Type counts as JSON.
 * @throws ApiError 400 for a broken Content-Encoding, 415 for what is not JSON, or encoded otherwise than by gzip or zstd, 413 for more than 20 MiB (at once where Content-Length says
 * so; unpacked it counts), `timeout` for a body that stands still for a minute or comes too slowly, `cancelled` when the caller leaves, and
 * what its watch throws.
 */
export async function readBody(ctx: Context, bounds: BodyBounds = {}): Promise<Buffer> {
  const { req } = ctx;
  const whole: WholeBounds = { silenceMs, maxBytes: largestBody, pace: usualPace, ...bounds };
  const refusal = refuseByHeaders(req, whole.maxBytes);
  if (refusal) {
    discard(req);
    throw refusal;
  }
  try {
    if (whole.watch !== undefined && Number(req.headers['content-length'] ?? 0) > largeBytes) {
      await whole.watch.beforeLarge();
    }
    return await collect(req, whole);
  } catch (error) {
    if (req.complete || req.destroyed) throw error;
    // The rest of a body that stood still may never come: the connection cannot be used again.
    if (error instanceof ApiError && error.code === 'timeout') ctx.res.shouldKeepAlive = false;
    else discard(req);
    throw error;
  }
}

function refuseByHeaders(req: IncomingMessage, maxBytes: number): ApiError | undefined {
  const type = req.headers['content-type'];
  // The first comparison is what nearly every client sends.
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

/** Whether a Content-Type is `application/json` or `application/…+json`, in UTF-8 where it names a charset. */
function isJson(type: string): boolean {
  const [mediaType = '', ...parameters] = type.toLowerCase().split(';');
  if (!/^application\/(json|[\w.-]+\+json)$/.test(mediaType.trim())) return false;
  return parameters.every((parameter) => !/^\s*charset=/.test(parameter) || /=\s*"?utf-?8"?\s*$/.test(parameter));
}

function tooLarge(maxBytes: number): ApiError {
  const kibibytes = maxBytes / 1024;
  const limit = kibibytes < 1024 ? `${kibibytes} KiB` : `${kibibytes / 1024} MiB`;
  return new ApiError('request_too_large', `The request body is too large: at most ${limit} are accepted.`);
}

function collect(req: IncomingMessage, { silenceMs, maxBytes, pace, watch }: WholeBounds): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const startedAt = Date.now();
    const encoding = encodingOf(req);
    // What is kept, and bounded, is what comes out of it; how fast it comes is what the caller sends.
    const unpacker = encoding === undefined ? undefined : unpackerOf(encoding);
    const source = unpacker ?? req;
    // One that says how long it is was looked at before.
    let isLarge = watch === undefined || (unpacker === undefined && req.headers['content-length'] !== undefined);
    let size = 0;
    let received = 0;
    const stop = (): void => {
      clearTimeout(timer);
      req.off('close', leave).off('error', leave).off('data', receive);
      source.off('data', take).off('end', end);
      if (unpacker === undefined) return;
      // No byte more is unpacked of one that is refused.
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
      chunks.push(chunk);
      timer.refresh();
      if (watch === undefined) return;
      try {
        watch.grow(chunk.length);
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
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size));
    };
    const leave = (): void => {
      // A request that was read to its end closes, too, before all of it is unpacked.
      if (unpacker !== undefined && req.readableEnded) return;
      fail(new ApiError('cancelled', 'The client left before its request was complete.'));
    };
    const broken = (): void => {
      fail(
        new ApiError(
          'invalid_request_error',
          `The body is not valid ${encoding}, which its Content-Encoding says it is.`,
        ),
      );
    };
    const late = (): void => fail(new ApiError('timeout', 'The request body did not arrive in time.'));
    const timer = setTimeout(late, silenceMs);
    // It left while its key was looked up: no event will tell of it any more.
    if (req.destroyed) {
      fail(new ApiError('cancelled', 'The client left before its request was complete.'));
      return;
    }
    req.on('close', leave).on('error', leave);
    source.on('data', take).on('end', end);
    // The listener for errors stays: what an unpacker still says when all is settled comes too late.
    if (unpacker !== undefined) req.on('data', receive).pipe(unpacker).on('error', broken);
  });
}

/** When what was thrown away so far may have come, at that pace (ms, as `performance.now`). */
let discardedUntil = 0;

/**
 * Takes in the rest of a refused body while the answer goes out, up to a limit; beyond it the connection is cut. Closing
 * at once would reset the connection, and a client still sending would see that reset in place of the answer.
 */
export function discard(req: IncomingMessage): void {
  let left = linger.bytes;
  const cut = (): void => {
    req.destroy();
  };
  const timer = setTimeout(cut, linger.ms);
  timer.unref();
  let pause: NodeJS.Timeout | undefined;
  req.on('data', ({ length }: Buffer) => {
    left -= length;
    if (left < 0) cut();
    const now = performance.now();
    discardedUntil = Math.max(discardedUntil, now - linger.burstMs) + length / linger.bytesPerMs;
    if (discardedUntil <= now) return;
    req.pause();
    pause = setTimeout(() => req.resume(), discardedUntil - now);
  });
  req.on('error', () => undefined);
  req.once('close', () => {
    clearTimeout(timer);
    clearTimeout(pause);
  });
  // One that was piped somewhere stands still since.
  req.resume();
}
