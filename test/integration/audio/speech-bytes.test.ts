import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { speechView } from '../../../api/endpoints/audio/speech-view.ts';
import { ByteReply, type ByteReplyOptions } from '../../../api/replies/byte-reply.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Frame } from '../../../shared/jobs/append.ts';

const bytes = speechView.bytes?.({ viewOptions: { format: 'wav', isFormatGiven: true, events: false } });
const stored = Buffer.from('the stored file');

function framesOf(pieces: readonly Uint8Array[], end: object): Frame[] {
  const deltas = pieces.map((piece, index) => ({
    seq: index + 1,
    type: 'delta' as const,
    text: JSON.stringify({ audio: Buffer.from(piece).toString('base64') }),
  }));
  return [...deltas, { seq: pieces.length + 1, type: 'end', text: JSON.stringify(end) }];
}

function errorFrame(seq: number): Frame {
  return { seq, type: 'error', text: JSON.stringify(new ApiError('stream_interrupted', 'Broken.').toData()) };
}

describe('ByteReply', () => {
  let arrived: (response: ServerResponse) => void = () => undefined;
  const server = createServer((_, response) => arrived(response));
  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  /** A client's request, and the answer that is to be given to it. */
  async function ask(options: Partial<ByteReplyOptions> = {}): Promise<{
    answer: ByteReply;
    response: Promise<IncomingMessage>;
    drained(): Promise<void>;
  }> {
    const atServer = new Promise<ServerResponse>((resolve) => {
      arrived = resolve;
    });
    const response = new Promise<IncomingMessage>((resolve, reject) => {
      get({ port: (server.address() as AddressInfo).port, agent: false }, resolve).on('error', reject);
    });
    response.catch(() => undefined);
    assert.ok(bytes);
    const answer = new ByteReply({
      headers: {},
      response: await atServer,
      bytes,
      startedAt: performance.now(),
      openFile: async (file) => {
        assert.equal(file, '2025010100/a.wav');
        return { content: Readable.from([stored.subarray(0, 3), stored.subarray(3)]), bytes: stored.length };
      },
      ...options,
    });
    const drained = (): Promise<void> =>
      new Promise((resolve) => {
        answer.onDrain = resolve;
      });
    return { answer, response, drained };
  }

  async function bodyOf(response: IncomingMessage): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    return Buffer.concat(parts);
  }

  it('ByteReply sends the same bytes however the frames are split and batched', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 3000 }), { minLength: 1, maxLength: 12 }),
        fc.array(fc.boolean(), { minLength: 13, maxLength: 13 }),
        async (pieces, flushes) => {
          const audio = Buffer.concat(pieces);
          fc.pre(audio.length > 0);
          const { answer, response } = await ask();
          framesOf(pieces, { usage: null }).forEach((frame, index) => {
            answer.frame(frame);
            if (flushes[index]) answer.flush();
          });
          answer.flush();
          assert.ok((await bodyOf(await response)).equals(audio));
          assert.equal((await response).headers['content-type'], 'audio/wav');
          assert.equal(await answer.ended, undefined);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('ByteReply sends no status before the first byte, so that an earlier error rejects', async () => {
    const { answer } = await ask();
    answer.frame(errorFrame(1));
    await assert.rejects(answer.opened, { code: 'stream_interrupted' });
    assert.equal(answer.isOpen, false);
  });

  it('ByteReply leaves a broken answer incomplete, after the bytes before the error', async () => {
    for (const isFlushed of [true, false]) {
      const { answer, response } = await ask();
      const [first] = framesOf([Buffer.from('abc')], {}) as [Frame];
      answer.frame(first);
      if (isFlushed) answer.flush();
      answer.frame(errorFrame(2));
      answer.flush();
      const parts: Buffer[] = [];
      await assert.rejects(async () => {
        for await (const part of await response) parts.push(part as Buffer);
      });
      assert.equal(Buffer.concat(parts).toString(), 'abc');
      assert.equal((await answer.ended)?.code, 'stream_interrupted');
    }
  });

  it('ByteReply sends the stored file when only the end frame is left, and fails with resume_expired without the file', async () => {
    const file = { file: '2025010100/a.wav', type: 'audio/wav', bytes: stored.length };
    const [end] = framesOf([], { usage: null, file }) as [Frame];
    const { answer, response } = await ask();
    answer.frame(end);
    answer.flush();
    assert.ok((await bodyOf(await response)).equals(stored));
    assert.equal((await response).headers['content-length'], String(stored.length));
    const gone = await ask({ openFile: () => Promise.reject(new Error('no such file')) });
    gone.answer.frame(end);
    await assert.rejects(gone.answer.opened, { code: 'resume_expired' });
    const nothing = await ask();
    nothing.answer.frame(framesOf([], { usage: null })[0] as Frame);
    await assert.rejects(nothing.answer.opened, { code: 'resume_expired' });
  });

  it('ByteReply leaves an abandoned response alone and closes a file that opens too late', async () => {
    const content = Readable.from([stored]);
    let open = (): void => undefined;
    const opening = new Promise<{ content: Readable; bytes: number }>((resolve) => {
      open = () => resolve({ content, bytes: stored.length });
    });
    const { answer } = await ask({ openFile: () => opening });
    const file = { file: '2025010100/a.wav', type: 'audio/wav', bytes: stored.length };
    answer.frame(framesOf([], { usage: null, file })[0] as Frame);
    answer.abandon();
    open();
    if (!content.closed) await once(content, 'close');
    assert.equal(answer.isOpen, false);
  });

  it('ByteReply reports backpressure while its client reads nothing, and drains when it reads again', async () => {
    const { answer, response, drained } = await ask();
    const piece = Buffer.alloc(32 * 1024, 7);
    let sent = 0;
    const send = (): boolean => {
      sent += 1;
      const text = JSON.stringify({ audio: piece.toString('base64') });
      answer.frame({ seq: sent, type: 'delta', text });
      return answer.flush();
    };
    while (send()) assert.ok(sent < 1000, 'it takes without end');
    const again = drained();
    const reading = bodyOf(await response);
    await again;
    answer.frame({ seq: sent + 1, type: 'end', text: '{"usage":null}' });
    assert.equal((await reading).length, sent * piece.length);
  });
});
