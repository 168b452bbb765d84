import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, describe, it, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { transcriptionView } from '../../../../api/endpoints/audio/transcription-view.ts';
import { chatCompletions } from '../../../../api/endpoints/chat/chat-completions.ts';
import { imageView } from '../../../../api/endpoints/images/image-view.ts';
import { BlobFrame } from '../../../../api/replies/blob-frame.ts';
import { heldBody, releaseOnceSent, storedBody } from '../../../../api/replies/held-body.ts';
import type { View } from '../../../../api/replies/view.ts';
import type { Blobs } from '../../../../shared/blobs/blobs.ts';
import { formatImageEnd } from '../../../../shared/capabilities/image.ts';
import { createLogger } from '../../../../shared/runtime/log.ts';

/** More than the buffers of a connection take, so that a part of it waits for its reader. */
const bytes = 32 * 1024 * 1024;
const canRelease = Number.parseInt(process.versions.node, 10) >= 22;

describe('the memory of a held answer', () => {
  const memories: Buffer[] = [];
  const responses: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    const memory = Buffer.allocUnsafeSlow(bytes).fill(responses.length + 1);
    memories.push(memory);
    responses.push(response);
    releaseOnceSent(response, memory);
    response.end(memory);
  });
  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  after(() => server.close());

  async function ask(): Promise<{ index: number; answer: Response }> {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return { index: responses.length - 1, answer };
  }

  it('is released when the answer is sent, and every byte of it arrives', async () => {
    const { index, answer } = await ask();
    assert.equal(memories[index]?.byteLength, bytes, 'its reader has read nothing');
    const response = responses[index] as ServerResponse;
    const finished = once(response, 'finish');
    const received = Buffer.from(await answer.arrayBuffer());
    if (!response.writableFinished) await finished;
    assert.ok(received.equals(Buffer.alloc(bytes, index + 1)));
    assert.equal(memories[index]?.byteLength, canRelease ? 0 : bytes);
  });

  for (const side of ['client', 'server'] as const) {
    it(`stays when the ${side} destroys the connection before all of it is sent`, async () => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
      await once(socket, 'readable');
      const index = responses.length - 1;
      const response = responses[index] as ServerResponse;
      const closed = once(response, 'close');
      if (side === 'client') socket.destroy();
      else response.socket?.destroy();
      await closed;
      await nextTurn();
      assert.equal(memories[index]?.byteLength, bytes);
      socket.destroy();
    });
  }

  const job = { id: '1', model: 'm', createdAt: 0, link: () => '' };
  const frameOf = (end: string | Buffer) =>
    new BlobFrame({ seq: 1, type: 'end', text: '', isBlob: true }, Buffer.from(String(end)), 'blob');

  it('is the end frame, where the body lies in it', () => {
    const image = formatImageEnd({ created: 1, data: [{ b64_json: 'QUJD'.repeat(10_000) }] });
    const transcript = frameOf('{"text":"Hello."}');
    const json = { ...job, viewOptions: { format: 'json' } };
    for (const [view, viewed, frame] of [
      [imageView('image_generation'), { ...job, viewOptions: {} }, frameOf(image)],
      [transcriptionView as View, json, transcript],
    ] as const) {
      const { body, memory } = heldBody(view, viewed, [frame]);
      assert.ok(typeof body !== 'string' && body.buffer === frame.bytes.buffer);
      assert.equal(memory, frame.bytes);
    }
    assert.equal(String(transcript.bytes), '{"text":"Hello."}');
  });

  it('is not sent as a whole answer, where the answer has other frames, nor a transcript as text that is JSON', () => {
    const delta = { seq: 1, type: 'delta' as const, text: '{"choices":[{"index":0,"delta":{"content":"Hi"}}]}' };
    const streamed = { ...job, viewOptions: { includeUsage: false } };
    const { body } = heldBody(chatCompletions.view as View, streamed, [delta, frameOf('{"usage":null}')]);
    assert.match(String(body), /"content":"Hi"/);
    const text = { ...job, viewOptions: { format: 'text' } };
    assert.equal(heldBody(transcriptionView as View, text, [frameOf('{"text":"Hello."}')]).body, 'Hello.\n');
  });
});

test('a large body whose store hangs is sent from memory, and the file that it becomes later is deleted', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let store = (_id: string): void => undefined;
  const deleted: string[] = [];
  const ofAccount = {
    put: () =>
      new Promise<string>((resolve) => {
        store = resolve;
      }),
    delete: async (id: string) => void deleted.push(id),
  };
  const blobs = { of: () => ofAccount } as unknown as Blobs;
  const connections = { expect: () => undefined, taken: () => undefined, pieceBytes: 0 };
  const services = { blobs, connections, log: createLogger('silent', 'test').log };
  const body = Buffer.alloc(4 * 1024 * 1024);
  const stored = storedBody({ services, job: { id: '1', account: 'a' } }, { body, memory: body });
  t.mock.timers.tick(20_000);
  assert.equal(await stored, undefined);
  store('late');
  await nextTurn();
  assert.deepEqual(deleted, ['late']);
});
