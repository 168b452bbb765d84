import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from '../state.ts';

/** A file that is kept in memory, and sent as often as it is asked for. */
export interface KeptFile {
  readonly content: Buffer;
  readonly mediaType: string;
  readonly hash: string;
  /** Its name has its content's hash in it, so that it never changes. */
  readonly isImmutable: boolean;
  /** Made when it is first asked for. */
  gzipped?: Promise<Buffer>;
}

const compress = promisify(gzip);

/** @param isImmutable whether its name changes with its content */
export function keepFile(content: Buffer, mediaType: string, isImmutable = false): KeptFile {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 22);
  return { content, mediaType, hash, isImmutable };
}

/** Sends a file, compressed where the client takes that, or 304 where it has it. */
export async function sendKeptFile(ctx: Context, file: KeptFile): Promise<void> {
  const isText = !/^(image\/(png|x-icon)|font\/)/.test(file.mediaType);
  const isGzipped = isText && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  ctx.status = 200;
  ctx.set({
    // What changes under the same name is asked for each time.
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: `"${file.hash}${isGzipped ? '-gzip' : ''}"`,
    ...(isText ? { vary: 'accept-encoding' } : {}),
    'x-content-type-options': 'nosniff',
  });
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  let content = file.content;
  if (isGzipped) {
    file.gzipped ??= compress(file.content);
    content = await file.gzipped;
    ctx.set('content-encoding', 'gzip');
  }
  ctx.type = file.mediaType;
  ctx.length = content.length;
  // Koa itself sends no body to HEAD.
  ctx.body = content;
}
