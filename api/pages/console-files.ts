import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Middleware } from 'koa';
import { ApiError } from '../../shared/errors.ts';
import { methodNotAllowed } from '../pipeline/missing.ts';
import type { Context, State } from '../state.ts';
import { type KeptFile, keepFile, sendKeptFile } from './kept-file.ts';

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

const builtFolder = fileURLToPath(new URL('../../console/', import.meta.url));

/** Reads the built files, a few megabytes, by path below `/console/`. Undefined if not built (`folder` may hold the sources). */
function readFolder(folder: string): ReadonlyMap<string, KeptFile> | undefined {
  if (!existsSync(join(folder, 'index.html')) || !existsSync(join(folder, 'assets'))) return undefined;
  const files = new Map<string, KeptFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const path = file
      .slice(folder.length)
      .replace(/^[/\\]+/, '')
      .replaceAll('\\', '/');
    const mediaType = mediaTypes[entry.name.slice(entry.name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
    files.set(path, keepFile(readFileSync(file), mediaType, path.startsWith('assets/')));
  }
  return files;
}

/**
 * Serves the web console under `/console/`. Built files match by exact name, so that no path leads out of the folder. Any
 * other path, except the JSON's and the queues', is a page of the console, which its script renders.
 * @param folder of the built files
 */
export function consoleFiles(folder = builtFolder): Middleware<State> {
  const files = readFolder(folder);
  return async (ctx, next) => {
    if (!/^\/console(\/|$)/.test(ctx.path) || /^\/console\/(api|queues)(\/|$)/.test(ctx.path)) return next();
    ctx.state.endpoint = 'console';
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.set('allow', 'GET, HEAD');
      throw methodNotAllowed(ctx.method, 'GET, HEAD');
    }
    if (files === undefined) return tellNotBuilt(ctx);
    if (ctx.path === '/console') {
      ctx.redirect(`/console/${ctx.search}`);
      return;
    }
    const path = ctx.path.slice('/console/'.length);
    const file = files.get(path) ?? (path.startsWith('assets/') ? undefined : files.get('index.html'));
    if (file === undefined) throw new ApiError('not_found', `Unknown path: ${ctx.method} ${ctx.path}`);
    await sendKeptFile(ctx, file);
  };
}

function tellNotBuilt(ctx: Context): void {
  ctx.status = 404;
  ctx.type = 'text/plain; charset=utf-8';
  ctx.body = 'The console is not there: it was not built. `npm run build` builds it.\n';
}
