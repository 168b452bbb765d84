import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { ApiError } from '../../shared/errors.ts';

/** The largest body that is read where no other limit is named, in bytes. */
export const largestBody = 20 * 1024 * 1024;

/** How long a body may stand still before its sender is given up. Node's `requestTimeout` bounds the whole. */
const silenceMs = 60_000;

export interface BodyBounds {
  /** How long the body may stand still, in ms. */
  readonly silenceMs?: number;
  /** The largest body that is read, in bytes. */
  readonly mostBytes?: number;
}

/** What is still taken in of a refused body, so that its sender reads the answer instead of a reset connection. */
const linger = { bytes: 64 * 1024 * 1024, ms: 30_000 };

/**
 * Reads a request's body. A missing Content-Type counts as JSON.
 * @throws ApiError 415 for what is not JSON or is compressed, 413 for more than 20 MiB (at once where Content-Length says
 * so), `timeout` for a body that stands still for a minute, `cancelled` when the caller leaves.
 */
export async function readBody(ctx: Context, bounds: BodyBounds = {}): Promise<Buffer> {
  const { req } = ctx;
  const whole: Required<BodyBounds> = { silenceMs, mostBytes: largestBody, ...bounds };
  const refusal = refuseByHeaders(req, whole.mostBytes);
  if (refusal) {
    discard(req);
    throw refusal;
  }
  try {
    return await collect(req, whole);
  } catch (error) {
    if (req.complete || req.destroyed) throw error;
    // The rest of a body that stood still may never come: the connection cannot be used again.
    if (error instanceof ApiError && error.code === 'timeout') ctx.res.shouldKeepAlive = false;
    else discard(req);
    throw error;
  }
}

function refuseByHeaders(req: IncomingMessage, mostBytes: number): ApiError | undefined {
  const type = req.headers['content-type'];
  // The first comparison is what nearly every client sends.
  if (type !== undefined && type !== 'application/json' && !isJson(type)) {
    return new ApiError(
      'unsupported_media_type',
      'Send the body as JSON in UTF-8, with Content-Type application/json.',
    );
  }
  if (isCompressed(req)) {
    return new ApiError('unsupported_media_type', 'Send the body uncompressed: Content-Encoding is not supported.');
  }
  return Number(req.headers['content-length'] ?? 0) > mostBytes ? tooLarge(mostBytes) : undefined;
}

/** Whether the body has a Content-Encoding, none of which is supported. */
export function isCompressed(req: IncomingMessage): boolean {
  const encoding = req.headers['content-encoding'];
  return encoding !== undefined && encoding.trim().toLowerCase() !== 'identity';
}

/** Whether a Content-Type is `application/json` or `application/…+json`, in UTF-8 where it names a charset. */
function isJson(type: string): boolean {
  const [mediaType = '', ...parameters] = type.toLowerCase().split(';');
  if (!/^application\/(json|[\w.-]+\+json)$/.test(mediaType.trim())) return false;
  return parameters.every((parameter) => !/^\s*charset=/.test(parameter) || /=\s*"?utf-?8"?\s*$/.test(parameter));
}

function tooLarge(mostBytes: number): ApiError {
  const kibibytes = mostBytes / 1024;
  const limit = kibibytes < 1024 ? `${kibibytes} KiB` : `${kibibytes / 1024} MiB`;
  return new ApiError('request_too_large', `The request body is too large: at most ${limit} are accepted.`);
}

function collect(req: IncomingMessage, { silenceMs, mostBytes }: Required<BodyBounds>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = (): void => {
      clearTimeout(timer);
      req.off('data', take).off('end', end).off('close', leave).off('error', leave);
    };
    const fail = (error: ApiError): void => {
      stop();
      reject(error);
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > mostBytes) {
        fail(tooLarge(mostBytes));
      } else {
        chunks.push(chunk);
        timer.refresh();
      }
    };
    const end = (): void => {
      stop();
      // A small body is one chunk, which needs no copy.
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size));
    };
    const leave = (): void => fail(new ApiError('cancelled', 'The client left before its request was complete.'));
    const late = (): void => fail(new ApiError('timeout', 'The request body did not arrive in time.'));
    const timer = setTimeout(late, silenceMs);
    // It left while its key was looked up: no event will tell of it any more.
    if (req.destroyed) leave();
    else req.on('data', take).on('end', end).on('close', leave).on('error', leave);
  });
}

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
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) cut();
  });
  req.on('error', () => undefined);
  req.once('close', () => clearTimeout(timer));
  // One that was piped somewhere stands still since.
  req.resume();
}
