import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import zlib from 'node:zlib';
import { complaintOf } from './judge.ts';
import type { WireRequest } from './requests.ts';
import { type FuzzAnswer, send } from './send.ts';

const json = JSON.stringify({ object: 'list', text: 'größer'.repeat(100) });
/** Missing in the types of the oldest version of Node. */
const { zstdCompressSync } = zlib as unknown as { zstdCompressSync?: (data: string) => Buffer };

/** The bodies that the server sends, by path, with the value of `content-encoding`. */
const bodies: Readonly<Record<string, readonly [encoding: string, body: Buffer]>> = {
  '/gzip': ['gzip', zlib.gzipSync(json)],
  '/x-gzip': ['X-GZIP', zlib.gzipSync(json)],
  '/deflate': ['deflate', zlib.deflateSync(json)],
  '/br': ['br', zlib.brotliCompressSync(json)],
  '/twice': ['deflate, gzip', zlib.gzipSync(zlib.deflateSync(json))],
  '/identity': ['identity', Buffer.from(json)],
  ...(zstdCompressSync && { '/zstd': ['zstd', zstdCompressSync(json)] as const }),
  '/plain-as-gzip': ['gzip', Buffer.from(json)],
  '/half': ['gzip', zlib.gzipSync(json).subarray(0, 40)],
  '/empty': ['gzip', Buffer.alloc(0)],
  '/unknown': ['rot13', Buffer.from(json)],
  '/bomb': ['gzip', zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))],
};

describe('the answers that the fuzzer reads', () => {
  let server: Server;
  const agent = new Agent({ keepAlive: true });
  before(async () => {
    server = createServer((request, response) => {
      const [encoding, body] = bodies[request.url ?? ''] ?? ['identity', Buffer.alloc(0)];
      const status = Number(request.headers['x-status'] ?? 200);
      response.writeHead(status, { 'content-type': 'application/json', 'content-encoding': encoding });
      response.end(status === 304 ? undefined : body);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    agent.destroy();
    server?.close();
  });

  async function ask(
    path: string,
    changed: Partial<WireRequest> = {},
  ): Promise<FuzzAnswer & { complaint: string | undefined }> {
    const wire: WireRequest = { method: 'GET', path, headers: {}, body: Buffer.alloc(0), ...changed };
    const { port } = server.address() as AddressInfo;
    const answer = await send(`http://127.0.0.1:${port}`, wire, { agent, patienceMs: 10_000 });
    return { ...answer, complaint: complaintOf(wire, answer) };
  }

  test('the fuzzer judges the text of an encoded answer', async () => {
    const paths = [
      '/gzip',
      '/x-gzip',
      '/deflate',
      '/br',
      '/twice',
      '/identity',
      ...(zstdCompressSync ? ['/zstd'] : []),
    ];
    for (const path of paths) {
      const { text, isWhole, complaint } = await ask(path);
      assert.deepEqual([text, isWhole, complaint], [json, true, undefined], path);
    }
  });

  test('an answer that does not decode is not whole, and the complaint names its encoding', async () => {
    for (const path of ['/plain-as-gzip', '/half', '/empty', '/unknown', '/bomb']) {
      const { text, isWhole, complaint } = await ask(path);
      assert.deepEqual([text, isWhole], ['', false], path);
      const [encoding] = bodies[path] as readonly [string, Buffer];
      assert.match(complaint ?? '', new RegExp(`an answer with 200 does not decode as ${encoding}`), path);
    }
  });

  test('an answer without a body is whole, whatever encoding its head names', async () => {
    const ofHead = await ask('/gzip', { method: 'HEAD' });
    const unchanged = await ask('/gzip', { headers: { 'x-status': '304' } });
    for (const { text, isWhole } of [ofHead, unchanged]) assert.deepEqual([text, isWhole], ['', true]);
    assert.equal(ofHead.complaint, undefined);
  });
});
