import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { textUntilEnd } from '../../support/body-server.ts';
import { eventually } from '../../support/eventually.ts';
import { type FormAnswer, FormServer, filePart, formHead, refused } from '../../support/form-server.ts';

let server: FormServer;
before(async () => {
  server = await FormServer.start();
});
after(() => server.close());

// Each sends tens of megabytes; what needs less is in test/unit.
describe('readForm of large forms', () => {
  afterEach(() => server.assertNothingLeft());

  it('readForm accepts a file of exactly 50 MiB, and returns 413 that fetch can read to a larger one', async () => {
    const largest = 50 * 1024 * 1024;
    const formOf = (bytes: number): FormData => {
      const form = new FormData();
      form.append('small', new Blob(['stored before']), 'small');
      form.append('image', new Blob([new Uint8Array(bytes)]), 'large.png');
      return form;
    };
    const taken = await server.post(formOf(largest));
    assert.equal(taken.files[1]?.bytes, largest);
    for (const { blob } of taken.files) await server.blobs.delete(blob);
    for (let round = 0; round < 3; round++) {
      assert.deepEqual(refused(await server.post(formOf(largest + 1))), [413, 'request_too_large']);
    }
  });

  it('readForm returns 413 to a form too large as a whole, at once when its length is declared', async () => {
    const parts = Buffer.concat([Buffer.from(filePart), Buffer.alloc(32_000_000), Buffer.from('\r\n')]);
    const body = Buffer.concat([parts, parts, Buffer.from('--b--')]);
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    assert.deepEqual(refused(await server.post(body, headers)), [413, 'request_too_large']);
    assert.deepEqual(refused(await server.post(new Blob([body]).stream(), headers)), [413, 'request_too_large']);
    const socket = await server.open(`${formHead}content-length: 400000000\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), /^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  it('readForm shows the rejection to a client that sends everything before it reads, and keeps its connection', async () => {
    const socket = await server.open(`${formHead}content-length: 20000000\r\n\r\n--b\r\nno form\r\n\r\n`);
    let left = 20_000_000 - '--b\r\nno form\r\n\r\n'.length;
    while (left > 0) {
      const block = Buffer.alloc(Math.min(left, 1_000_000), 'a');
      left -= block.length;
      if (!socket.write(block)) await once(socket, 'drain');
    }
    socket.write(`${formHead}connection: close\r\ncontent-length: 58\r\n\r\n`);
    socket.write('--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n--b--');
    const text = await textUntilEnd(socket);
    assert.match(text, /^HTTP\/1\.1 400 /);
    assert.match(text, /HTTP\/1\.1 200 OK.*\{"x":\["y"\]\}/s);
  });

  it('readForm slows the sender down when the disk is slow', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    async function* slowed(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        await released;
        yield chunk;
      }
    }
    server.storage = {
      putStream: (content: AsyncIterable<Uint8Array>) => server.blobs.putStream(slowed(content)),
    } as never;
    const connections = once(server.http, 'connection');
    const size = 40_000_000;
    const ending = '\r\n--b--';
    const length = filePart.length + size + ending.length;
    const socket = await server.open(`${formHead}connection: close\r\ncontent-length: ${length}\r\n\r\n${filePart}`);
    const [connection] = (await connections) as [Socket];
    socket.write(Buffer.alloc(size));
    socket.write(ending);
    let before = -1;
    await eventually(() => {
      const now = connection.bytesRead;
      const isStill = now === before && now > filePart.length;
      before = now;
      assert.ok(isStill, 'the server still reads');
    });
    assert.ok(before < 1_000_000, `the server took ${before} bytes of a file that it did not store`);
    release();
    const text = await textUntilEnd(socket);
    const { files } = JSON.parse(text.slice(text.indexOf('\r\n\r\n'))) as FormAnswer;
    assert.equal(files[0]?.bytes, size);
    await server.blobs.delete(files[0]?.blob ?? '');
  });
});
