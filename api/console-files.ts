import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Middleware } from 'koa';
import { ApiError } from '../shared/errors.ts';
import type { Context, State } from './state.ts';

const mediaTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  txt: 'text/plain; charset=utf-8',
};

/** A built file, kept in memory: all of them are a few megabytes. */
interface ConsoleFile {
  readonly content: Buffer;
  readonly mediaType: string;
  readonly hash: string;
  /** Its name has its content's hash in it, so that it never changes. */
  readonly isImmutable: boolean;
  /** Made when it is first asked for. */
  gzipped?: Promise<Buffer>;
}

const compress = promisify(gzip);
const builtFolder = fileURLToPath(new URL('../console/', import.meta.url));

/** Reads what was built, by its path below `/console/`. Undefined: nothing was (from the source, `folder` is the sources'). */
function readFolder(folder: string): ReadonlyMap<string, ConsoleFile> | undefined {
  if (!existsSync(join(folder, 'index.html')) || !existsSync(join(folder, 'assets'))) return undefined;
  const files = new Map<string, ConsoleFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const path = file
      .slice(folder.length)
      .replace(/^[/\\]+/, '')
      .replaceAll('\\', '/');
    const content = readFileSync(file);
    files.set(path, {
      content,
      mediaType: mediaTypes[entry.name.slice(entry.name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
      hash: createHash('sha256').update(content).digest('base64url').slice(0, 22),
      isImmutable: path.startsWith('assets/'),
    });
  }
  return files;
}

/**
 * The web console's files under `/console/`: what was built, by exact name, so that no path leads out of it; any other path
 * but those of the JSON and the queues is a page of the console, which its script shows.
 * @param folder where they were built
 */
export function consoleFiles(folder = builtFolder): Middleware<State> {
  const files = readFolder(folder);
  return async (ctx, next) => {
    if (!/^\/console(\/|$)/.test(ctx.path) || /^\/console\/(api|queues)(\/|$)/.test(ctx.path)) return next();
    ctx.state.endpoint = 'console';
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.set('allow', 'GET, HEAD');
      throw new ApiError('method_not_allowed', 'This path does not answer that method.');
    }
    if (files === undefined) return tellNotBuilt(ctx);
    if (ctx.path === '/console') {
      ctx.redirect(`/console/${ctx.search}`);
      return;
    }
    const path = ctx.path.slice('/console/'.length);
    const file = files.get(path) ?? (path.startsWith('assets/') ? undefined : files.get('index.html'));
    if (file === undefined) throw new ApiError('not_found', `Unknown path: ${ctx.method} ${ctx.path}`);
    await sendFile(ctx, file);
  };
}

function tellNotBuilt(ctx: Context): void {
  ctx.status = 404;
  ctx.type = 'text/plain; charset=utf-8';
  ctx.body = 'The console is not there: it was not built. `npm run build` builds it.\n';
}

async function sendFile(ctx: Context, file: ConsoleFile): Promise<void> {
  const isText = !/^(image\/(png|x-icon)|font\/)/.test(file.mediaType);
  const isGzipped = isText && ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  ctx.status = 200;
  ctx.set({
    // The page itself names the files of today: it is asked for each time.
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
