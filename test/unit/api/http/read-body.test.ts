import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import zlib, { gzipSync } from 'node:zlib';
import Koa from 'koa';
import OpenAI from 'openai';
import { type BodyBounds, largestBody, readBody } from '../../../../api/http/body/read-body.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { isAlone, releaseMemory } from '../../../../shared/runtime/collections.ts';
import { heapInUse } from '../../../support/heap-in-use.ts';
import { longKeepAliveMs } from '../../../support/long-keep-alive.ts';

/** Where it is read: Node 20 has none, and that of Node 22 takes a stream that is cut off for a whole one. */
const zstd =
  Number.parseInt(process.versions.node, 10) >= 24
    ? (zlib as unknown as { zstdCompressSync: (bytes: Buffer) => Buffer }).zstdCompressSync
    : undefined;

let server: Server;
let url: string;
/** What the next requests are read with, beside the usual. */
let more: BodyBounds = {};
/** What the last request ended with on the server's side. */
let ended: Promise<string>;

before(async () => {
  const app = new Koa();
  // Koa prints the sockets that callers break.
  app.silent = true;
  app.use(async (ctx) => {
    let end = (_code: string): void => undefined;
    ended = new Promise((resolve) => {
      end = resolve;
    });
    try {
      const body = await readBody(ctx, more);
      ctx.body = { bytes: body.length, text: body.subarray(0, 100).toString() };
      end('read');
    } catch (error) {
      assert(error instanceof ApiError);
      ctx.status = error.status;
      ctx.body = error.toWire();
      end(error.code);
    }
  });
  server = createServer({ keepAliveTimeout: longKeepAliveMs }, app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`;
});

after(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

interface Answer {
  status: number;
  body: { bytes?: number; text?: string; error?: { code: string; message: string; type: string } };
}

async function post(body: RequestInit['body'], headers: Record<string, string> = {}): Promise<Answer> {
  // Without this a text body gets a Content-Type of its own.
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const init: RequestInit = { method: 'POST', headers, body: bytes ?? null };
  if (bytes instanceof ReadableStream) init.duplex = 'half';
  const response = await fetch(url, init);
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

/** A connection that has sent this text. */
async function open(text: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => undefined);
  socket.write(text);
  return socket;
}

const head = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n';

async function textUntilEnd(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

describe('readBody', () => {
  it('readBody reads JSON bodies, small and in many chunks', async () => {
    assert.deepEqual((await post('{"a":1}', { 'content-type': 'application/json' })).body.text, '{"a":1}');
    const large = await post(new Uint8Array(5_000_000), { 'content-type': 'application/json' });
    assert.equal(large.body.bytes, 5_000_000);
    const chunked = await post(new Blob([new Uint8Array(2_000_000)]).stream(), { 'content-type': 'application/json' });
    assert.equal(chunked.body.bytes, 2_000_000);
    assert.equal((await post(null)).body.bytes, 0);
  });

  it('readBody releases the pieces of a large body once they are joined, where Node can', async () => {
    const pieces: Buffer[] = [];
    const listen = (req: IncomingMessage) => req.on('data', (piece: Buffer) => pieces.push(piece));
    server.prependListener('request', listen);
    try {
      const text = 'abcdefgh'.repeat(100_000);
      const read = await post(text, { 'content-type': 'application/json' });
      assert.equal(read.body.bytes, text.length);
      assert.equal(read.body.text, text.slice(0, 100));
    } finally {
      server.off('request', listen);
    }
    const left = pieces.reduce((bytes, piece) => bytes + piece.byteLength, 0);
    assert.ok(pieces.length > 1);
    // Small pieces are left to the collection.
    if (Number.parseInt(process.versions.node, 10) >= 22) assert.ok(left < 100_000, `${left} bytes`);
    else assert.equal(left, 800_000);
  });

  it('releaseMemory leaves memory that other bytes lie in as it is', () => {
    const whole = Buffer.from(new ArrayBuffer(16_384)).fill(7);
    const part = whole.subarray(0, 8192);
    assert.equal(isAlone(part), false);
    releaseMemory(part);
    assert.ok(part.equals(Buffer.alloc(8192, 7)));
    assert.equal(whole.byteLength, 16_384);
  });

  it('readBody accepts every spelling of JSON in UTF-8, and a body without a content type', async () => {
    const types = ['application/json; charset=utf-8', 'Application/JSON;charset="UTF8"', 'application/vnd.api+json'];
    types.push('application/json ; version=1; charset=UTF-8', 'application/problem+json');
    for (const type of types) assert.equal((await post('{}', { 'content-type': type })).status, 200, type);
    assert.equal((await post('{}')).status, 200);
  });

  it('readBody returns 415 to other types, charsets and encodings, also for large bodies', async () => {
    const types = [
      'text/plain',
      'multipart/form-data; boundary=a',
      'application/json; charset=latin1',
      'json',
      'a/b+json',
    ];
    for (const type of [...types, 'application/jsonp', 'application/x-www-form-urlencoded']) {
      const { status, body } = await post('{}', { 'content-type': type });
      assert.deepEqual([status, body.error?.code], [415, 'unsupported_media_type'], type);
    }
    for (const encoding of [
      'deflate',
      'br',
      'identity, gzip',
      'gzip, gzip',
      'constructor',
      ...(zstd ? [] : ['zstd']),
    ]) {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
      const { status, body } = await post(new Uint8Array(3_000_000), headers);
      assert.equal(status, 415, encoding);
      assert.match(body.error?.message ?? '', /uncompressed/);
    }
    assert.equal((await post('{}', { 'content-encoding': 'identity' })).status, 200);
  });

  const packers = { gzip: gzipSync, 'x-gzip': gzipSync, GZIP: gzipSync, ...(zstd && { zstd }) };
  for (const [encoding, pack] of Object.entries(packers)) {
    const headers = { 'content-encoding': encoding };

    it(`readBody unpacks ${encoding}, small and large, and counts the unpacked bytes`, async () => {
      for (const length of [2, 100_000, 3_000_000]) {
        let grown = 0;
        let looks = 0;
        more = {
          watch: {
            beforeLarge: async () => {
              looks++;
            },
            grow: (bytes) => {
              grown += bytes;
            },
          },
        };
        const { status, body } = await post(new Uint8Array(pack(Buffer.alloc(length, 'x'))), headers);
        more = {};
        assert.deepEqual([status, body.bytes, grown, looks], [200, length, length, length > 65_536 ? 1 : 0]);
      }
    });

    it(`readBody stops unpacking ${encoding} at the limit, and when its watch throws`, async () => {
      const bomb = new Uint8Array(pack(Buffer.alloc(largestBody + 1)));
      assert.ok(bomb.length < 100_000);
      const { status, body } = await post(bomb, headers);
      assert.deepEqual([status, body.error?.code], [413, 'request_too_large']);
      assert.equal((await post(new Uint8Array(pack(Buffer.alloc(largestBody))), headers)).status, 200);
      let grown = 0;
      const grow = (bytes: number): void => {
        grown += bytes;
        if (grown > 1_000_000) throw new ApiError('rate_limit_exceeded', 'Too much.');
      };
      more = { watch: { beforeLarge: async () => undefined, grow } };
      const refused = await post(bomb, headers);
      more = {};
      assert.equal(refused.status, 429);
      assert.ok(grown < 1_500_000, `${grown} bytes were unpacked`);
    });

    it(`readBody returns 400 to ${encoding} that is truncated or invalid`, async () => {
      const whole = pack(Buffer.from(JSON.stringify({ text: 'x'.repeat(1000) })));
      for (const broken of [whole.subarray(0, whole.length - 6), Buffer.from('{"a":1}')]) {
        const { status, body } = await post(new Uint8Array(broken), headers);
        assert.deepEqual([status, body.error?.code], [400, 'invalid_request_error']);
      }
    });
  }

  it('readBody keeps a body whose every byte is a chunk of its own in little more memory than its bytes', async () => {
    const bytes = 1_000_000;
    const before = heapInUse();
    const socket = await open(`${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`);
    const chunks = '1\r\n \r\n'.repeat(10_000);
    for (let sent = 0; sent < bytes; sent += 10_000) {
      await new Promise<void>((resolve) => socket.write(chunks, () => resolve()));
    }
    const used = heapInUse() - before;
    socket.write('0\r\n\r\n');
    assert.match(await textUntilEnd(socket), /"bytes":1000000/);
    assert.ok(used < 20 * bytes, `${used} bytes`);
  });

  it('readBody accepts exactly 20 MiB, and no more', async () => {
    const headers = { 'content-type': 'application/json' };
    assert.equal((await post(new Uint8Array(largestBody), headers)).body.bytes, largestBody);
    assert.equal((await post(new Uint8Array(largestBody + 1), headers)).status, 413);
  });

  it('readBody returns 413 that fetch can read while it sends 30 MB, with a length and chunked', async () => {
    const headers = { 'content-type': 'application/json' };
    for (let round = 0; round < 3; round++) {
      for (const body of [new Uint8Array(30_000_000), new Blob([new Uint8Array(30_000_000)]).stream()]) {
        const answer = await post(body, headers);
        assert.deepEqual([answer.status, answer.body.error?.code], [413, 'request_too_large']);
      }
    }
  });

  it('readBody returns 413 that the official client shows', async () => {
    const client = new OpenAI({ apiKey: 'none', baseURL: url.replace('/chat/completions', ''), maxRetries: 0 });
    const content = 'a'.repeat(30_000_000);
    await assert.rejects(
      client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }] }),
      (error) => error instanceof OpenAI.APIError && error.status === 413 && error.code === 'request_too_large',
    );
  });

  it('readBody returns 413 to a client that sends everything before it reads, and keeps its connection', async () => {
    const socket = await open(`${head}content-length: 30000000\r\n\r\n`);
    for (let sent = 0; sent < 30_000_000; sent += 1_000_000) {
      if (!socket.write(Buffer.alloc(1_000_000, 'a'))) await once(socket, 'drain');
    }
    socket.write(`${head}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    const text = await textUntilEnd(socket);
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.match(text, /HTTP\/1\.1 200 OK.*"bytes":2/s);
  });

  it('readBody closes the connection of a rejected body that does not end', async () => {
    const socket = await open(`${head}content-length: 1000000000\r\n\r\n`);
    const cut = new Promise((resolve) => socket.once('close', resolve));
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 413 /);
    const block = Buffer.alloc(1_000_000);
    let sent = 0;
    const more = (): void => {
      while (!socket.destroyed && sent < 1_000_000_000) {
        sent += block.length;
        if (!socket.write(block)) return;
      }
    };
    socket.on('drain', more);
    more();
    await cut;
    assert.ok(sent < 200_000_000, `${sent} bytes went out`);
  });

  it('readBody discards all rejected bodies together at a limited rate, and then serves the next requests', async () => {
    const bytes = 40_000_000;
    const startedAt = performance.now();
    const senders = Array.from({ length: 2 }, async () => {
      const socket = await open(`${head}content-length: ${bytes}\r\n\r\n`);
      socket.write(Buffer.alloc(bytes));
      socket.write(`${head}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
      return await textUntilEnd(socket);
    });
    for (const text of await Promise.all(senders)) assert.match(text, /^HTTP\/1\.1 413 .*HTTP\/1\.1 200 /s);
    const ms = performance.now() - startedAt;
    // 80 MB at 32 MiB/s, but for what may come at once.
    assert.ok(ms > 2000, `${2 * bytes} bytes were taken within ${ms} ms`);
  });

  it('readBody stops quietly when the client disconnects in the middle', async () => {
    const connections = once(server, 'request');
    const socket = await open(`${head}content-length: 100\r\n\r\n{"a"`);
    await connections;
    socket.destroy();
    assert.equal(await ended, 'cancelled');
  });

  it('readBody returns 504 to a body that stalls, and closes the connection', async () => {
    more = { silenceMs: 300 };
    try {
      const socket = await open(`${head}content-length: 100\r\n\r\n{"a"`);
      const text = await textUntilEnd(socket);
      assert.equal(await ended, 'timeout');
      assert.match(text, /^HTTP\/1\.1 504 .*connection: close/is);
    } finally {
      more = {};
    }
  });

  it('readBody returns 504 to a body that arrives too slowly, byte by byte', async () => {
    more = { pace: { graceMs: 200, bytesPerSecond: 1000 } };
    try {
      const socket = await open(`${head}content-length: 100000\r\n\r\n`);
      const drip = setInterval(() => socket.write('x'), 20);
      const text = await textUntilEnd(socket);
      clearInterval(drip);
      assert.equal(await ended, 'timeout');
      assert.match(text, /^HTTP\/1\.1 504 .*connection: close/is);
    } finally {
      more = {};
    }
  });

  it('readBody asks its watch before it reads on in a large body, and reports all bytes to it', async () => {
    const told: (number | 'large')[] = [];
    const refusal = new ApiError('insufficient_quota', 'Nothing is left.');
    let refused = false;
    const watch = {
      beforeLarge: async () => {
        told.push('large');
        if (refused) throw refusal;
      },
      grow: (bytes: number) => told.push(bytes),
    };
    more = { watch };
    try {
      await post(new Uint8Array(60_000), { 'content-type': 'application/json' });
      assert.ok(!told.includes('large'), 'a small body is not asked for');
      told.length = 0;
      await post(new Uint8Array(70_000), { 'content-type': 'application/json' });
      assert.equal(told.shift(), 'large');
      assert.equal(sum(told), 70_000);
      told.length = 0;
      const chunked = new Blob([new Uint8Array(200_000)]).stream();
      assert.equal((await post(chunked, { 'content-type': 'application/json' })).body.bytes, 200_000);
      assert.equal(told.filter((one) => one === 'large').length, 1);
      assert.equal(sum(told), 200_000);
      refused = true;
      const answer = await post(new Blob([new Uint8Array(5_000_000)]).stream(), { 'content-type': 'application/json' });
      assert.equal(answer.body.error?.code, 'insufficient_quota');
    } finally {
      more = {};
    }
  });
});

const sum = (parts: readonly (number | 'large')[]): number =>
  parts.reduce<number>((total, part) => total + (part === 'large' ? 0 : part), 0);
