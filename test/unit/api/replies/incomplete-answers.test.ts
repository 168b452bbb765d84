import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { type EventPosition, pingMs, SseReply } from '../../../../api/replies/sse-reply.ts';
import { ApiError } from '../../../../shared/errors.ts';
import type { Frame } from '../../../../shared/jobs/append.ts';

const frames: readonly Frame[] = [
  { seq: 1, type: 'delta', text: 'first' },
  { seq: 2, type: 'delta', text: 'second ä' },
  { seq: 3, type: 'end', text: 'last' },
];

function sendFrames(answer: SseReply): void {
  for (const frame of frames) {
    answer.frame(frame);
    answer.flush();
  }
}

/**
 * Sends one answer over a real connection.
 * @param send what it consists of; left out: the frames, each by itself
 * @param resumeAfter the client's position
 */
async function sendAnswer(
  parse: (response: ServerResponse) => void,
  send: (answer: SseReply) => void = sendFrames,
  resumeAfter?: EventPosition,
): Promise<{ answer: SseReply; text: string }> {
  let answer: SseReply | undefined;
  const server = createServer((_request, response) => {
    parse(response);
    answer = new SseReply({
      response,
      headers: {},
      events: ({ text }) => [`data: ${text}`],
      view: { showsErrors: false },
      resumeAfter,
      startedAt: performance.now(),
      isRunning: async () => true,
    });
    send(answer);
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

describe('the byte count of an SSE reply', () => {
  const whole = 'data: first\nid: 1.0\n\ndata: second ä\nid: 2.0\n\ndata: last\nid: 3.0\n\n';

  it('an SSE reply misses no bytes when the connection has written all of them', async () => {
    const { answer, text } = await sendAnswer(() => undefined);
    assert.equal(text, whole);
    assert.equal(answer.bytes, Buffer.byteLength(whole));
    assert.equal(answer.missingBytes, 0);
  });

  it('an SSE reply counts the bytes of an event that never reached the connection as missing', async () => {
    const { answer, text } = await sendAnswer((response) => {
      const write = response.write.bind(response);
      // Every write but this one reaches the connection.
      response.write = ((chunk: string) => chunk.includes('second') || write(chunk)) as typeof response.write;
    });
    assert.equal(text.includes('second'), false);
    assert.ok(answer.missingBytes > 0, `${answer.missingBytes} are missing`);
  });

  it('an SSE reply counts all bytes as missing when only the head was written', async () => {
    const { answer, text } = await sendAnswer((response) => {
      const end = response.end.bind(response);
      response.write = (() => true) as typeof response.write;
      response.end = ((_chunk: string, sent: () => void) => end(sent)) as typeof response.end;
    });
    assert.equal(text, '');
    assert.ok(answer.missingBytes >= Buffer.byteLength(whole) - 10, `${answer.missingBytes} are missing`);
  });
});

describe('a silent SSE reply', () => {
  it('an SSE reply sends no ping after its end', async () => {
    const broken: Error[] = [];
    const { text } = await sendAnswer(
      (response) => response.on('error', (error) => broken.push(error)),
      (answer) => {
        answer.frame(frames[0] as Frame);
        answer.flush();
        answer.fail(new ApiError('timeout', 'It is late.'));
        answer.tick(Date.now() + pingMs);
      },
    );
    assert.deepEqual(broken, []);
    const error = '{"error":{"message":"It is late.","type":"server_error","param":null,"code":"timeout"}}';
    assert.equal(text, `data: first\nid: 1.0\n\ndata: ${error}\n\n`);
  });
});

describe('the error that ends an SSE reply', () => {
  const broken: readonly Frame[] = [
    ...frames.slice(0, 2),
    { seq: 3, type: 'error', text: '{"code":"stream_interrupted","message":"It broke off."}' },
  ];
  // The number of the error itself, and one of a frame that Redis has lost, with a whole frame's events and with one of them.
  for (const [seq, event] of [
    [3, 0],
    [3, Number.POSITIVE_INFINITY],
    [7, 2],
  ] as const) {
    it(`a client that resumes after ${seq}.${event} gets the error with the number 3`, async () => {
      const { text } = await sendAnswer(
        () => undefined,
        (answer) => {
          for (const frame of broken) answer.frame(frame);
        },
        { seq, event },
      );
      assert.match(
        text,
        /^data: \{"error":\{"message":"It broke off\.".*"code":"stream_interrupted"\}\}\nid: 3\.0\n\n$/,
      );
    });
  }
});
