import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import OpenAI from 'openai';
import { largestBody } from '../../../api/http/body/read-body.ts';
import { errors } from '../../../api/http/errors.ts';
import { ApiError } from '../../../shared/errors.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { BodyServer, bodyHead, packers, textUntilEnd } from '../../support/body-server.ts';
import { heapInUse } from '../../support/heap-in-use.ts';

let server: BodyServer;
before(async () => {
  server = await BodyServer.start();
});
after(() => server.close());
afterEach(() => {
  server.bounds = {};
});

let unread: BodyServer;
before(async () => {
  unread = await BodyServer.start((app) => {
    const parts = { log: createLogger('silent', 'test').log, refused: { note: () => undefined } };
    app.use(errors(parts as unknown as Parameters<typeof errors>[0]));
    app.use(() => {
      throw new ApiError('invalid_api_key', 'No such key.');
    });
  });
});
after(() => unread.close());

// Each sends tens of megabytes; what needs less is in test/unit.
describe('readBody of large bodies', () => {
  for (const [encoding, pack] of Object.entries(packers)) {
    const headers = { 'content-encoding': encoding };

    it(`readBody stops unpacking ${encoding} at the limit, and when its watch throws`, async () => {
      const bomb = new Uint8Array(pack(Buffer.alloc(largestBody + 1)));
      assert.ok(bomb.length < 100_000);
      const { status, body } = await server.post(bomb, headers);
      assert.deepEqual([status, body.error?.code], [413, 'request_too_large']);
      assert.equal((await server.post(new Uint8Array(pack(Buffer.alloc(largestBody))), headers)).status, 200);
      let grown = 0;
      const grow = (bytes: number): void => {
        grown += bytes;
        if (grown > 1_000_000) throw new ApiError('rate_limit_exceeded', 'Too much.');
      };
      server.bounds = { watch: { beforeLarge: async () => undefined, grow } };
      const refused = await server.post(bomb, headers);
      server.bounds = {};
      assert.equal(refused.status, 429);
      assert.ok(grown < 1_500_000, `${grown} bytes were unpacked`);
    });
  }

  it('readBody keeps a body whose every byte is a chunk of its own in little more memory than its bytes', async () => {
    const bytes = 1_000_000;
    const before = heapInUse();
    const socket = await server.open(`${bodyHead}connection: close\r\ntransfer-encoding: chunked\r\n\r\n`);
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
    assert.equal((await server.post(new Uint8Array(largestBody), headers)).body.bytes, largestBody);
    assert.equal((await server.post(new Uint8Array(largestBody + 1), headers)).status, 413);
  });

  it('readBody returns 413 that fetch can read while it sends 30 MB, with a length and chunked', async () => {
    const headers = { 'content-type': 'application/json' };
    for (let round = 0; round < 3; round++) {
      for (const body of [new Uint8Array(30_000_000), new Blob([new Uint8Array(30_000_000)]).stream()]) {
        const answer = await server.post(body, headers);
        assert.deepEqual([answer.status, answer.body.error?.code], [413, 'request_too_large']);
      }
    }
  });

  it('readBody returns 413 that the official client shows', async () => {
    const client = new OpenAI({ apiKey: 'none', baseURL: server.url.replace('/chat/completions', ''), maxRetries: 0 });
    const content = 'a'.repeat(30_000_000);
    await assert.rejects(
      client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }] }),
      (error) => error instanceof OpenAI.APIError && error.status === 413 && error.code === 'request_too_large',
    );
  });

  it('readBody returns 413 to a client that sends everything before it reads, and keeps its connection', async () => {
    const socket = await server.open(`${bodyHead}content-length: 30000000\r\n\r\n`);
    for (let sent = 0; sent < 30_000_000; sent += 1_000_000) {
      if (!socket.write(Buffer.alloc(1_000_000, 'a'))) await once(socket, 'drain');
    }
    socket.write(`${bodyHead}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    const text = await textUntilEnd(socket);
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.match(text, /HTTP\/1\.1 200 OK.*"bytes":2/s);
  });

  it('readBody closes the connection of a rejected body that does not end', async () => {
    const socket = await server.open(`${bodyHead}content-length: 1000000000\r\n\r\n`);
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

  for (const refusal of ['its length', 'its watch, after pieces of it have come']) {
    it(`readBody discards all bodies together at a limited rate that are refused for ${refusal}, and then serves the next requests`, async () => {
      const isWatched = refusal !== 'its length';
      const bytes = isWatched ? largestBody / 4 : 2 * largestBody;
      if (isWatched) server.bounds = { watch: { beforeLarge: refuseLate, grow: () => undefined } };
      await assertLimitedRate(server, 80 * mebibyte, bytes, isWatched ? 429 : 413);
    });
  }

  it('bodies that are refused unread, as for a wrong key, are discarded at a limited rate', async () => {
    await assertLimitedRate(unread, 80 * mebibyte, 2 * largestBody, 401);
  });
});

const mebibyte = 1024 * 1024;

let refused = 0;

/** Half of them later than the others: those use up the rate by then, so that these wait, and their responses are sent meanwhile. */
async function refuseLate(): Promise<void> {
  await delay(++refused <= 8 ? 50 : 300);
  throw new ApiError('rate_limit_exceeded', 'Not now.');
}

/** Sends so many bytes, in bodies of so many, and a small request behind each. */
async function assertLimitedRate(to: BodyServer, all: number, bytes: number, status: number): Promise<void> {
  const startedAt = performance.now();
  const senders = Array.from({ length: all / bytes }, async () => {
    // In one piece, so that what is there of a body when it is refused fills Node's buffer.
    const socket = await to.open(`${bodyHead}content-length: ${bytes}\r\n\r\n${'a'.repeat(bytes)}`);
    socket.write(`${bodyHead}connection: close\r\ncontent-length: 2\r\n\r\n{}`);
    return await textUntilEnd(socket);
  });
  for (const text of await Promise.all(senders)) {
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} .*HTTP/1\\.1 (200|${status}) `, 's'));
  }
  const ms = performance.now() - startedAt;
  // By 32 MiB/s, but for what may come at once.
  assert.ok(ms > 2000, `${all} bytes were taken within ${ms} ms`);
}
