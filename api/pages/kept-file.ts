import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from '../state.ts';

/** A file in memory that is sent on each request. */
export interface KeptFile {
  readonly content: Buffer;
  readonly mediaType: string;
  readonly hash: string;
  /** Whether its name contains the hash of its content, so that it never changes. */
  readonly isImmutable: boolean;
  /** Made on first use. */
  gzipped?: Promise<Buffer>;
}

const compress = promisify(gzip);

/** @param isImmutable whether the name changes with the content */
export function keepFile(content: Buffer, mediaType: string, isImmutable = false): KeptFile {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 22);
  return { content, mediaType, hash, isImmutable };
}

/** Sends a file, gzipped if the client accepts that, or 304 if the client has it. */
export async function sendKeptFile(ctx: Context, file: KeptFile): Promise<void> {
  const isText = !/^(image\/(png|x-icon)|font\/)/.test(file.mediaType);
  const isGzipped = isText && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  ctx.status = 200;
  ctx.set({
    // Content that may change under its name is revalidated each time.
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
  // Koa sends no body for HEAD.
  ctx.body = content;
}
