import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { Middleware } from 'koa';
import type { Context, State } from '../state.ts';

/** Answers of fewer characters go as they are: compressing them costs more than it saves. */
export const minCompressed = 64 * 1024;

/** Longer ones would keep a thread for long, beside those that read files and check passwords. */
const maxCompressed = 16 * 1024 * 1024;

/** Answers that are compressed at a time in this process; more go as they are. The pool has four threads. */
const maxAtOnce = 2;

type Compress = (body: string) => Promise<Buffer>;

/** Not in the types of the oldest version of Node. */
interface ZstdModule {
  readonly zstdCompress?: (body: string, done: (error: Error | null, compressed: Buffer) => void) => void;
}

const { zstdCompress } = zlib as unknown as ZstdModule;
const gzip = promisify<string, zlib.ZlibOptions, Buffer>(zlib.gzip);
const compressors: Readonly<Record<string, Compress>> = {
  ...(zstdCompress && { zstd: promisify(zstdCompress) }),
  // Half the time of the usual level, for a few percent more bytes.
  gzip: (body) => gzip(body, { level: 4 }),
};

let running = 0;

/**
 * A large answer as its client wants it: compressed where `Accept-Encoding` takes that, else as it is. Only under `/v1`, where
 * the key is a header that no other site's page can send. What a cookie opens stays as it is: there a page could make the
 * browser ask, and learn from the length of the answers what stands in them beside its own words (BREACH).
 */
export async function compressed(ctx: Context, body: string): Promise<string | Buffer> {
  if (body.length < minCompressed || body.length > maxCompressed || !ctx.path.startsWith('/v1/')) return body;
  ctx.vary('accept-encoding');
  if (running >= maxAtOnce || ctx.headers['accept-encoding'] === undefined) return body;
  const encoding = ctx.acceptsEncodings(...Object.keys(compressors), 'identity');
  const compress = encoding === false ? undefined : compressors[encoding];
  if (encoding === false || compress === undefined) return body;
  running++;
  try {
    const shorter = await compress(body);
    ctx.set('content-encoding', encoding);
    return shorter;
  } finally {
    running--;
  }
}

/** Compresses what the router's paths return as one object: lists, jobs, responses. Streams, files and pages are none. */
export const compressObjects: Middleware<State> = async (ctx, next) => {
  await next();
  const { body } = ctx;
  if (ctx.respond === false || !ctx.path.startsWith('/v1/') || !isPlain(body)) return;
  ctx.body = await compressed(ctx, JSON.stringify(body));
};

function isPlain(body: unknown): body is object {
  return (
    typeof body === 'object' &&
    body !== null &&
    [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(body))
  );
}
