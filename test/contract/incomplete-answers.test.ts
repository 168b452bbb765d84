import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { SseAnswer } from '../../api/answers/sse.ts';
import type { Frame } from '../../shared/jobs/frames.ts';

const frames: readonly Frame[] = [
  { seq: 1, type: 'delta', text: 'first' },
  { seq: 2, type: 'delta', text: 'second ä' },
  { seq: 3, type: 'end', text: 'last' },
];

/** Sends the frames as one answer, each by itself, over a real connection. */
async function sendAnswer(prepare: (response: ServerResponse) => void): Promise<{ answer: SseAnswer; text: string }> {
  let answer: SseAnswer | undefined;
  const server = createServer((_request, response) => {
    prepare(response);
    answer = new SseAnswer({
      response,
      events: ({ text }) => [`data: ${text}`],
      view: { showsErrors: false },
      startedAt: performance.now(),
      isRunning: async () => true,
      onDrain: () => undefined,
    });
    for (const frame of frames) {
      answer.frame(frame);
      answer.flush();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const text = await response.text();
    assert.ok(answer);
    await answer.ended;
    return { answer, text };
  } finally {
    server.close();
  }
}

describe('a stream whose bytes are counted', () => {
  const whole = 'data: first\nid: 1.0\n\ndata: second ä\nid: 2.0\n\ndata: last\nid: 3.0\n\n';

  it('lacks none when the connection has written them all', async () => {
    const { answer, text } = await sendAnswer(() => undefined);
    assert.equal(text, whole);
    assert.equal(answer.bytes, Buffer.byteLength(whole));
    assert.equal(answer.missingBytes, 0);
  });

  it('lacks those of an event that never came to the connection', async () => {
    const { answer, text } = await sendAnswer((response) => {
      const write = response.write.bind(response);
      // Every write but this one reaches the connection.
      response.write = ((chunk: string) => chunk.includes('second') || write(chunk)) as typeof response.write;
    });
    assert.equal(text.includes('second'), false);
    assert.ok(answer.missingBytes > 0, `${answer.missingBytes} are missing`);
  });

  it('lacks all of them when nothing but the head was written', async () => {
    const { answer, text } = await sendAnswer((response) => {
      const end = response.end.bind(response);
      response.write = (() => true) as typeof response.write;
      response.end = ((_chunk: string, sent: () => void) => end(sent)) as typeof response.end;
    });
    assert.equal(text, '');
    assert.ok(answer.missingBytes >= Buffer.byteLength(whole) - 10, `${answer.missingBytes} are missing`);
  });
});
