import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import zlib, { gzipSync } from 'node:zlib';
import Koa from 'koa';
import { type BodyBounds, readBody } from '../../api/http/body/read-body.ts';
import type { State } from '../../api/state.ts';
import { ApiError } from '../../shared/errors.ts';
import { longKeepAliveMs } from './long-keep-alive.ts';

interface Answer {
  status: number;
  body: { bytes?: number; text?: string; error?: { code: string; message: string; type: string } };
}

/** A server without a gateway, which reads bodies with `readBody` and answers what it has read. */
export class BodyServer {
  /** What the next requests are read with, beside the usual. */
  bounds: BodyBounds = {};
  /** What the last request ended with on the server's side. */
  ended: Promise<string> = Promise.resolve('none');
  readonly http: Server;

  private constructor(use: ((app: Koa<State>) => void) | undefined) {
    const app = new Koa<State>();
    // Koa prints the sockets that callers break.
    app.silent = true;
    if (use === undefined) app.use((ctx) => this.#answer(ctx));
    else use(app);
    this.http = createServer({ keepAliveTimeout: longKeepAliveMs }, app.callback());
  }

  /** @param use what handles requests in place of `readBody` */
  static async start(use?: (app: Koa<State>) => void): Promise<BodyServer> {
    const made = new BodyServer(use);
    made.http.listen(0, '127.0.0.1');
    await once(made.http, 'listening');
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/v1/chat/completions`;
  }

  async post(body: RequestInit['body'], headers: Record<string, string> = {}): Promise<Answer> {
    // Without this a text body gets a Content-Type of its own.
    const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
    const init: RequestInit = { method: 'POST', headers, body: bytes ?? null };
    if (bytes instanceof ReadableStream) init.duplex = 'half';
    const response = await fetch(this.url, init);
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  }

  /** A connection that has sent this text. */
  async open(text: string): Promise<Socket> {
    const socket = connect(this.#port, '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    socket.write(text);
    return socket;
  }

  async close(): Promise<void> {
    this.http.closeAllConnections();
    this.http.close();
    await once(this.http, 'close');
  }

  get #port(): number {
    return (this.http.address() as AddressInfo).port;
  }

  async #answer(ctx: Koa.Context): Promise<void> {
    let end = (_code: string): void => undefined;
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    try {
      const body = await readBody(ctx, this.bounds);
      ctx.body = { bytes: body.length, text: body.subarray(0, 100).toString() };
      end('read');
    } catch (error) {
      assert(error instanceof ApiError);
      ctx.status = error.status;
      ctx.body = error.toWire();
      end(error.code);
    }
  }
}

export async function textUntilEnd(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

/** The start of a request with a JSON body; what says its length follows. */
export const bodyHead = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';

/** Where it is read: Node 20 has none, and that of Node 22 takes a stream that is cut off for a whole one. */
export const zstd =
  Number.parseInt(process.versions.node, 10) >= 24
    ? (zlib as unknown as { zstdCompressSync: (bytes: Buffer) => Buffer }).zstdCompressSync
    : undefined;

/** How a body may be packed, by `Content-Encoding`. */
export const packers: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  ...{ gzip: gzipSync, 'x-gzip': gzipSync, GZIP: gzipSync },
  ...(zstd && { zstd }),
};
