import { pipeline } from 'node:stream/promises';
import type { Middleware } from 'koa';
import { type ByteRange, MissingBlobError } from '../../shared/blobs/blob-storage.ts';
import type { AccountBlobs, Blobs } from '../../shared/blobs/blobs.ts';
import { mediaTypeOf } from '../../shared/blobs/media-types.ts';
import { ApiError } from '../../shared/errors.ts';
import { stalledMs } from '../replies/client-connection.ts';
import type { Context, State } from '../state.ts';
import { readByteRange } from './byte-range.ts';
import type { ResultLinks } from './result-links.ts';

/**
 * `GET /results/{hour}/{name}?expires=…&signature=…`: streams a result file. The link suffices: no API key is needed.
 * @throws ApiError 403 for a forged link, 410 when it has expired or its file is gone, 416.
 */
export function readResult({
  blobs,
  resultLinks,
}: {
  readonly blobs: Blobs;
  readonly resultLinks: ResultLinks;
}): Middleware<State> {
  return async (ctx) => {
    ctx.state.endpoint = 'result';
    const file = `${ctx.params.hour}/${ctx.params.name}`;
    const { expires, signature } = ctx.query;
    const verdict =
      typeof expires === 'string' && typeof signature === 'string'
        ? resultLinks.verify(file, expires, signature)
        : 'forged';
    if (verdict === 'forged')
      throw new ApiError('permission_denied', 'This link is not valid: it was changed, or cut.');
    if (verdict === 'expired') throw expired();
    try {
      await sendFile(ctx, blobs.signed, file, Number(expires));
    } catch (error) {
      throw error instanceof MissingBlobError ? missingFile(ctx) : error;
    }
  };
}

function expired(): ApiError {
  return new ApiError('resume_expired', 'This file has expired and can no longer be read.');
}

/**
 * The error for a file that is gone before its time. Nobody deletes many of them, so the access log tells which requests met one:
 * an operator who has restored an older copy of the files finds there what it lacks.
 */
export function missingFile(ctx: Context): ApiError {
  ctx.state.facts.missing_file = true;
  return new ApiError('resume_expired', 'This file is no longer stored: it was deleted, or lost.');
}

/**
 * Sends a stored file, or the requested range of it.
 * @param blobs of the file's account, or those that a signed link may read
 * @param expires end of the file's lifetime, in seconds since 1970
 * @throws MissingBlobError; ApiError 416.
 */
export async function sendFile(
  ctx: Context,
  blobs: Pick<AccountBlobs, 'read' | 'size'>,
  file: string,
  expires: number,
): Promise<void> {
  const size = await blobs.size(file);
  const etag = `"${file.replace('/', '-')}"`;
  const range = askedRange(ctx, etag, size);
  const length = range === undefined ? size : range.last - range.first + 1;
  // Opened before the status is sent, so that a missing file can still change it.
  const opened = ctx.method === 'HEAD' || length === 0 ? undefined : await blobs.read(file, range);
  ctx.status = range === undefined ? 200 : 206;
  if (range !== undefined) ctx.set('content-range', `bytes ${range.first}-${range.last}/${size}`);
  ctx.set({
    'content-type': mediaTypeOf(file),
    'content-length': String(length),
    'accept-ranges': 'bytes',
    'cache-control': `private, max-age=${Math.max(0, expires - Math.floor(Date.now() / 1000))}`,
    etag,
    // Bytes made by a model under our own origin: a browser shows them but runs nothing.
    'content-disposition': 'inline',
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
  });
  ctx.respond = false;
  if (opened === undefined) {
    ctx.res.end();
    return;
  }
  ctx.res.setTimeout(stalledMs, () => ctx.res.destroy());
  try {
    await pipeline(opened.content, ctx.res);
  } catch (error) {
    // A client may disconnect at any time. Other failures are ours.
    throw ctx.res.closed ? new ApiError('cancelled', 'The client left before the file was complete.') : error;
  }
}

/** @throws ApiError 416, with the file's size in `Content-Range`. */
function askedRange(ctx: Context, etag: string, size: number): ByteRange | undefined {
  const condition = ctx.get('if-range');
  if (condition !== '' && condition !== etag) return undefined;
  const range = readByteRange(ctx.headers.range, size);
  if (range !== 'unsatisfiable') return range;
  ctx.set('content-range', `bytes */${size}`);
  throw new ApiError('range_not_satisfiable', `The file has ${size} bytes: the range asked for is not in it.`);
}
