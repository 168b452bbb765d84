import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import type { Middleware } from 'koa';
import { type Connections, largeAnswer } from '../bounds/connections.ts';
import type { Context, State } from '../state.ts';

/** Shorter answers are not compressed: it costs more than it saves. */
export const minCompressed = 64 * 1024;

/** Longer ones would occupy a thread for long, in the pool that also reads files and checks passwords. */
const maxCompressed = 16 * 1024 * 1024;

/** Concurrent compressions in this process; further answers are sent as they are. The pool has four threads. */
const maxAtOnce = 2;

type Body = string | Buffer;
type Compress = (body: Body) => Promise<Buffer>;

/** Missing in the types of the oldest version of Node. */
interface ZstdModule {
  readonly zstdCompress?: (body: Body, done: (error: Error | null, compressed: Buffer) => void) => void;
  readonly createZstdCompress?: () => Transform;
}

const { zstdCompress, createZstdCompress } = zlib as unknown as ZstdModule;
/** Half the time of the default level, for a few percent more bytes. */
const gzipOptions: zlib.ZlibOptions = { level: 4 };
const gzip = promisify<Body, zlib.ZlibOptions, Buffer>(zlib.gzip);
const compressors: Readonly<Record<string, Compress>> = {
  ...(zstdCompress && { zstd: promisify(zstdCompress) }),
  gzip: (body) => gzip(body, gzipOptions),
};
const streams: Readonly<Record<string, () => Transform>> = {
  ...(createZstdCompress && { zstd: () => createZstdCompress() }),
  gzip: () => zlib.createGzip(gzipOptions),
};

let running = 0;
/** Apart from those: a client that reads slowly keeps one for long. */
let streaming = 0;

/**
 * Compresses a large answer if `Accept-Encoding` allows it. Only under `/v1`, where the key is a header that no other site's
 * page can send. Responses to cookies stay uncompressed: a page could make the browser request them, and learn from their
 * length what they contain beside text of its own (BREACH).
 */
export async function compressed(ctx: Context, body: Body): Promise<Body> {
  const encoding = encodingFor(ctx, body.length, running);
  const compress = encoding === undefined ? undefined : compressors[encoding];
  if (encoding === undefined || compress === undefined) return body;
  running++;
  try {
    const shorter = await compress(body);
    ctx.set('content-encoding', encoding);
    return shorter;
  } finally {
    running--;
  }
}

/** The same for an answer that is sent in pieces: compresses them, if it may; undefined if they are sent as they are. */
export function compressing(ctx: Context, bytes: number): Transform | undefined {
  const encoding = encodingFor(ctx, bytes, streaming);
  const stream = encoding === undefined ? undefined : streams[encoding]?.();
  if (encoding === undefined || stream === undefined) return undefined;
  streaming++;
  stream.once('close', () => {
    streaming--;
  });
  ctx.set('content-encoding', encoding);
  return stream;
}

/** The encoding in which an answer is compressed; undefined if it is not. */
function encodingFor(ctx: Context, bytes: number, atWork: number): string | undefined {
  if (bytes < minCompressed || bytes > maxCompressed || !ctx.path.startsWith('/v1/')) return undefined;
  ctx.vary('accept-encoding');
  if (atWork >= maxAtOnce || ctx.headers['accept-encoding'] === undefined) return undefined;
  const encoding = ctx.acceptsEncodings(...Object.keys(compressors), 'identity');
  return encoding === false ? undefined : encoding;
}

/** A body that is JSON already. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Writes and compresses objects returned by the router's paths: lists, jobs, responses. Streams, files and pages are not objects.
 * A stored answer may be megabytes, and reading it is free: it is announced like the answer itself.
 */
export function writeObjects({
  connections,
}: {
  readonly connections: Pick<Connections, 'expect'>;
}): Middleware<State> {
  return async (ctx, next) => {
    await next();
    const { body } = ctx;
    const isWritten = body instanceof WrittenJson;
    if (ctx.respond === false || !(isWritten || isPlain(body))) return;
    const sent = await compressed(ctx, isWritten ? body.text : JSON.stringify(body));
    if (sent.length > largeAnswer) connections.expect(sent.length);
    ctx.body = sent;
  };
}

function isPlain(body: unknown): body is object {
  return (
    typeof body === 'object' &&
    body !== null &&
    [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(body))
  );
}
