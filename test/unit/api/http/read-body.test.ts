import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { ApiError } from '../../../../shared/errors.ts';
import { isAlone, releaseMemory } from '../../../../shared/runtime/collections.ts';
import { BodyServer, bodyHead, packers, textUntilEnd, zstd } from '../../../support/body-server.ts';

let server: BodyServer;
before(async () => {
  server = await BodyServer.start();
});
after(() => server.close());

describe('readBody', () => {
  it('readBody reads JSON bodies, small and in many chunks', async () => {
    assert.deepEqual((await server.post('{"a":1}', { 'content-type': 'application/json' })).body.text, '{"a":1}');
    const large = await server.post(new Uint8Array(5_000_000), { 'content-type': 'application/json' });
    assert.equal(large.body.bytes, 5_000_000);
    const chunked = await server.post(new Blob([new Uint8Array(2_000_000)]).stream(), {
      'content-type': 'application/json',
    });
    assert.equal(chunked.body.bytes, 2_000_000);
    assert.equal((await server.post(null)).body.bytes, 0);
  });

  it('readBody releases the pieces of a large body once they are joined, where Node can', async () => {
    const pieces: Buffer[] = [];
    const listen = (req: IncomingMessage) => req.on('data', (piece: Buffer) => pieces.push(piece));
    server.http.prependListener('request', listen);
    try {
      const text = 'abcdefgh'.repeat(100_000);
      const read = await server.post(text, { 'content-type': 'application/json' });
      assert.equal(read.body.bytes, text.length);
      assert.equal(read.body.text, text.slice(0, 100));
    } finally {
      server.http.off('request', listen);
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
    for (const type of types) assert.equal((await server.post('{}', { 'content-type': type })).status, 200, type);
    assert.equal((await server.post('{}')).status, 200);
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
      const { status, body } = await server.post('{}', { 'content-type': type });
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
      const { status, body } = await server.post(new Uint8Array(3_000_000), headers);
      assert.equal(status, 415, encoding);
      assert.match(body.error?.message ?? '', /uncompressed/);
    }
    assert.equal((await server.post('{}', { 'content-encoding': 'identity' })).status, 200);
  });

  for (const [encoding, pack] of Object.entries(packers)) {
    const headers = { 'content-encoding': encoding };

    it(`readBody unpacks ${encoding}, small and large, and counts the unpacked bytes`, async () => {
      for (const length of [2, 100_000, 3_000_000]) {
        let grown = 0;
        let looks = 0;
        server.bounds = {
          watch: {
            beforeLarge: async () => {
              looks++;
            },
            grow: (bytes) => {
              grown += bytes;
            },
          },
        };
        const { status, body } = await server.post(new Uint8Array(pack(Buffer.alloc(length, 'x'))), headers);
        server.bounds = {};
        assert.deepEqual([status, body.bytes, grown, looks], [200, length, length, length > 65_536 ? 1 : 0]);
      }
    });

    it(`readBody returns 400 to ${encoding} that is truncated or invalid`, async () => {
      const whole = pack(Buffer.from(JSON.stringify({ text: 'x'.repeat(1000) })));
      for (const broken of [whole.subarray(0, whole.length - 6), Buffer.from('{"a":1}')]) {
        const { status, body } = await server.post(new Uint8Array(broken), headers);
        assert.deepEqual([status, body.error?.code], [400, 'invalid_request_error']);
      }
    });
  }

  it('readBody stops quietly when the client disconnects in the middle', async () => {
    const connections = once(server.http, 'request');
    const socket = await server.open(`${bodyHead}content-length: 100\r\n\r\n{"a"`);
    await connections;
    socket.destroy();
    assert.equal(await server.ended, 'cancelled');
  });

  it('readBody returns 504 to a body that stalls, and closes the connection', async () => {
    server.bounds = { silenceMs: 300 };
    try {
      const socket = await server.open(`${bodyHead}content-length: 100\r\n\r\n{"a"`);
      const text = await textUntilEnd(socket);
      assert.equal(await server.ended, 'timeout');
      assert.match(text, /^HTTP\/1\.1 504 .*connection: close/is);
    } finally {
      server.bounds = {};
    }
  });

  it('readBody returns 504 to a body that arrives too slowly, byte by byte', async () => {
    server.bounds = { pace: { graceMs: 200, bytesPerSecond: 1000 } };
    try {
      const socket = await server.open(`${bodyHead}content-length: 100000\r\n\r\n`);
      const drip = setInterval(() => socket.write('x'), 20);
      const text = await textUntilEnd(socket);
      clearInterval(drip);
      assert.equal(await server.ended, 'timeout');
      assert.match(text, /^HTTP\/1\.1 504 .*connection: close/is);
    } finally {
      server.bounds = {};
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
    server.bounds = { watch };
    try {
      await server.post(new Uint8Array(60_000), { 'content-type': 'application/json' });
      assert.ok(!told.includes('large'), 'a small body is not asked for');
      told.length = 0;
      await server.post(new Uint8Array(70_000), { 'content-type': 'application/json' });
      assert.equal(told.shift(), 'large');
      assert.equal(sum(told), 70_000);
      told.length = 0;
      const chunked = new Blob([new Uint8Array(200_000)]).stream();
      assert.equal((await server.post(chunked, { 'content-type': 'application/json' })).body.bytes, 200_000);
      assert.equal(told.filter((one) => one === 'large').length, 1);
      assert.equal(sum(told), 200_000);
      refused = true;
      const answer = await server.post(new Blob([new Uint8Array(5_000_000)]).stream(), {
        'content-type': 'application/json',
      });
      assert.equal(answer.body.error?.code, 'insufficient_quota');
    } finally {
      server.bounds = {};
    }
  });
});

const sum = (parts: readonly (number | 'large')[]): number =>
  parts.reduce<number>((total, part) => total + (part === 'large' ? 0 : part), 0);
