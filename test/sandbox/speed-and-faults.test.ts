import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
before(async () => {
  sandbox = await startSandbox({ journal: true });
});
after(() => sandbox.close());

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  /** What arrived, piece by piece. */
  pieces: Buffer[];
  text: string;
  /** Whether the answer came to its end by the rules of HTTP. */
  complete: boolean;
}

let tests = 0;
const newTestId = () => {
  tests += 1;
  return `test-${tests}`;
};

function open(text: string, more: Record<string, unknown> = {}, headers: Record<string, string> = {}): ClientRequest {
  const upload = httpRequest(`${sandbox.url}/v1/chat/completions`, { method: 'POST', headers, agent: false });
  upload.on('error', () => {});
  upload.end(JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: text }], ...more }));
  return upload;
}

/** The whole answer; rejects if the connection ends before the headers. */
async function ask(text: string, more: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  const [response] = (await once(open(text, more, headers), 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  response.on('data', (piece: Buffer) => pieces.push(piece));
  response.on('error', () => {});
  await new Promise((resolve) => response.once('close', resolve));
  const answer: Answer = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    pieces,
    text: Buffer.concat(pieces).toString(),
    complete: response.complete,
  };
  return answer;
}

function contents(text: string): string {
  return [...text.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map((match) => JSON.parse(match[1] as string)).join('');
}

const journal = (testId: string): Promise<JournalEntry[]> => vendorCalls({ sandbox }, testId);

/** The only entry of a test, once its call has ended. */
async function ended(testId: string): Promise<JournalEntry> {
  for (;;) {
    const [entry] = await journal(testId);
    if (entry?.ended) return entry;
    await sleep(5);
  }
}

async function openCount(testId: string): Promise<number> {
  const response = await fetch(`${sandbox.url}/__open?test_id=${testId}`);
  return ((await response.json()) as { open: number }).open;
}

describe('speed of the sandbox', () => {
  it('sandbox chat writes each token when it is due, paced by the field, the header or the directive', async () => {
    const stream = { stream: true };
    const pace = { first_token_ms: 20, tokens_per_second: 50 };
    for (const answer of [
      await ask('WORDS:10', { ...stream, sandbox: pace }),
      await ask('WORDS:10', stream, { 'x-sandbox': JSON.stringify(pace) }),
      await ask('WORDS:10@50', stream),
    ]) {
      assert.equal(contents(answer.text), 'word1 word2 word3 word4 word5 word6 word7 word8 word9 word10');
      assert.ok(answer.pieces.length > 1);
      // An event is never split over two writes.
      for (const piece of answer.pieces) assert.ok(piece.toString().endsWith('\n\n'));
    }
    assert.equal((await ask('WORDS:10', stream)).pieces.length, 1);
  });

  it('sandbox options in the body override the header, member by member', async () => {
    const header = JSON.stringify({ first_token_ms: 3_000_000, fault: { kind: 'error', status: 503 } });
    const { status } = await ask('hi', { sandbox: { first_token_ms: 0 } }, { 'x-sandbox': header });
    assert.equal(status, 503);
  });
});

describe('faults before the headers', () => {
  it('sandbox fault error returns any status in the error shape, and rate_limit a 429 with retry-after', async () => {
    for (const stream of [true, false]) {
      const error = await ask('hi', { stream, sandbox: { fault: { kind: 'error', status: 503, retry_after: 1.5 } } });
      assert.equal(error.status, 503);
      assert.deepEqual([error.headers['retry-after'], error.headers['retry-after-ms']], ['2', '1500']);
      assert.equal(JSON.parse(error.text).error.type, 'server_error');
      const limit = await ask('hi', { stream, sandbox: { fault: { kind: 'rate_limit', code: 'insufficient_quota' } } });
      assert.deepEqual([limit.status, limit.headers['retry-after']], [429, '1']);
      assert.equal(JSON.parse(limit.text).error.code, 'insufficient_quota');
    }
  });

  it('sandbox fault reset breaks the connection', async () => {
    await assert.rejects(ask('hi', { sandbox: { fault: { kind: 'reset' } } }), { code: 'ECONNRESET' });
  });

  it('sandbox fault silence sends nothing until the client disconnects', async () => {
    const user = newTestId();
    const call = open('hi', { user, sandbox: { fault: { kind: 'silence' } } });
    while ((await openCount(user)) === 0) await sleep(5);
    call.destroy();
    const entry = await ended(user);
    assert.deepEqual([entry.ended, entry.fault, entry.tokens], ['client_closed', 'silence', 0]);
  });

  it('sandbox faults with times and key hit only the first requests of the key', async () => {
    const fault = { kind: 'error', status: 500, times: 2, key: newTestId() };
    const statuses: number[] = [];
    for (let turn = 0; turn < 4; turn += 1) statuses.push((await ask('hi', { sandbox: { fault } })).status);
    assert.deepEqual(statuses, [500, 500, 200, 200]);
    assert.equal((await ask('hi', { sandbox: { fault: { ...fault, key: newTestId() } } })).status, 500);
  });

  it('sandbox fault rate_limit lets the official client retry by retry-after', async () => {
    const client = new OpenAI({ apiKey: 'any', baseURL: sandbox.url, maxRetries: 2 });
    const sandboxOptions = { fault: { kind: 'rate_limit', retry_after: 0.01, times: 2, key: newTestId() } };
    const parameters = {
      model: 'sandbox-chat',
      messages: [{ role: 'user', content: 'Reply with exactly: ok' }],
    } as const;
    const body = { ...parameters, messages: [...parameters.messages], sandbox: sandboxOptions };
    assert.equal((await client.chat.completions.create(body)).choices[0]?.message.content, 'ok');
  });
});

describe('faults in the middle of a stream', () => {
  const stream = (kind: string, more: Record<string, unknown> = {}, user = newTestId()) =>
    ask('WORDS:9', { user, stream: true, sandbox: { fault: { kind, after_tokens: 3, ...more } } });

  it('sandbox faults error and rate_limit end a stream with an error event', async () => {
    for (const kind of ['error', 'rate_limit']) {
      const answer = await stream(kind);
      assert.equal(contents(answer.text), 'word1 word2 word3');
      assert.match(answer.text, /\n\ndata: \{"error":\{[^\n]*\}\}\n\n$/);
      assert.ok(answer.complete);
    }
  });

  it('sandbox fault eof ends a stream cleanly, without finish_reason and [DONE]', async () => {
    const answer = await stream('eof');
    assert.ok(answer.complete);
    assert.equal(contents(answer.text), 'word1 word2 word3');
    assert.doesNotMatch(answer.text, /\[DONE\]|"finish_reason":"/);
  });

  it('sandbox fault no_done omits only [DONE] from a stream', async () => {
    const answer = await stream('no_done');
    assert.match(answer.text, /"finish_reason":"stop"/);
    assert.doesNotMatch(answer.text, /\[DONE\]/);
    assert.match(contents(answer.text), /word9$/);
  });

  it("sandbox fault reset breaks a stream's connection after the tokens", async () => {
    const user = newTestId();
    const answer = await stream('reset', {}, user);
    assert.equal(answer.complete, false);
    assert.equal(contents(answer.text), 'word1 word2 word3');
    const entry = await ended(user);
    assert.deepEqual([entry.ended, entry.fault, entry.tokens], ['fault', 'reset', 3]);
  });

  it('sandbox fault malformed replaces one token event by invalid JSON', async () => {
    const answer = await stream('malformed');
    const events = answer.text.split('\n\n').filter((event) => event !== '' && event !== 'data: [DONE]');
    const broken = events.filter((event) => {
      try {
        JSON.parse(event.slice('data: '.length));
        return false;
      } catch {
        return true;
      }
    });
    assert.equal(broken.length, 1);
    assert.match(answer.text, /word3.*del\n\n.*word5.*\[DONE\]/s);
    assert.doesNotMatch(answer.text, /word4/);
  });

  it('sandbox fault silence stops a stream after the tokens and keeps the connection', async () => {
    const user = newTestId();
    const call = open('WORDS:9', { user, stream: true, sandbox: { fault: { kind: 'silence', after_tokens: 3 } } });
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of response) {
      text += piece;
      if (text.includes('word3')) break;
    }
    assert.doesNotMatch(text, /word4/);
    call.destroy();
    const entry = await ended(user);
    assert.deepEqual([entry.ended, entry.tokens], ['client_closed', 3]);
  });

  it('sandbox fault slow_bytes splits the same stream everywhere: in UTF-8 sequences and between CR and LF', async () => {
    const text = 'dřevo 木 🌲';
    const answer = await ask(`Reply with exactly: ${text}`, {
      stream: true,
      sandbox: { fault: { kind: 'slow_bytes' } },
    });
    assert.equal(contents(answer.text), text);
    assert.ok(answer.text.endsWith('data: [DONE]\r\n\r\n'));
    assert.ok(answer.pieces.some((piece) => (piece[0] as number) >= 0x80 && (piece[0] as number) < 0xc0));
    assert.ok(answer.pieces.some((piece) => piece[0] === 0x0a));
    assert.ok(answer.pieces.length > 200);
  });

  it('sandbox fault large_event makes one event of exactly the requested size', async () => {
    const bytes = 3_000_000;
    const user = newTestId();
    const answer = await stream('large_event', { bytes }, user);
    const sizes = answer.text.split(/(?<=\n\n)/).map((event) => Buffer.byteLength(event));
    assert.equal(sizes.filter((size) => size === bytes).length, 1);
    assert.equal(sizes.indexOf(bytes), 4);
    assert.match(contents(answer.text), /^word1 word2 word3x+ word4 word5/);
    assert.equal((await ended(user)).ended, 'completed');
  });
});

describe('faults of held answers', () => {
  const held = (kind: string, more: Record<string, unknown> = {}) =>
    ask('WORDS:9', { sandbox: { fault: { kind, ...more } } });

  it('sandbox fault malformed makes a held answer invalid JSON', async () => {
    const answer = await held('malformed');
    assert.ok(answer.complete);
    assert.equal(answer.status, 200);
    assert.throws(() => JSON.parse(answer.text), SyntaxError);
  });

  it('sandbox faults eof and reset after tokens truncate a held answer', async () => {
    for (const kind of ['eof', 'reset']) {
      const answer = await held(kind, { after_tokens: 2 });
      assert.equal(answer.complete, false);
      assert.ok(answer.pieces.length > 0);
    }
  });

  it('sandbox faults slow_bytes and large_event leave held answers correct', async () => {
    const slow = await held('slow_bytes');
    assert.ok(slow.pieces.length > 50);
    assert.match(JSON.parse(slow.text).choices[0].message.content, /word9$/);
    const large = await held('large_event', { bytes: 100_000 });
    assert.ok(JSON.parse(large.text).choices[0].message.content.length > 90_000);
  });
});

describe('the journal of the sandbox', () => {
  it('the sandbox journal notes how calls end, by metadata.test_id or user', async () => {
    const metadata = { test_id: newTestId() };
    await ask('WORDS:4', { metadata, user: 'somebody' });
    await ask('WORDS:5', { user: metadata.test_id, stream: true });
    const [held, streamed] = await journal(metadata.test_id);
    assert.deepEqual([held?.ended, held?.tokens, held?.stream, held?.model], ['completed', 4, false, 'sandbox-chat']);
    assert.deepEqual([streamed?.ended, streamed?.tokens, streamed?.stream], ['completed', 5, true]);
    assert.ok(held && streamed && streamed.sequence > held.sequence && (held.ended_at ?? 0) >= held.received_at);
  });

  it('the sandbox journal notes a client that disconnects, and the sandbox stops its work', async () => {
    const user = newTestId();
    const calls = [
      open('WORDS:1000@20', { user, stream: true }),
      open('hi', { user, sandbox: { first_token_ms: 600_000 } }),
      open('WORDS:500', { user, sandbox: { tokens_per_second: 1 } }),
      open('hi', { user, stream: true, sandbox: { first_token_ms: 600_000 } }),
    ];
    await once(calls[0] as ClientRequest, 'response');
    while ((await openCount(user)) < 4) await sleep(5);
    for (const call of calls) call.destroy();
    while ((await openCount(user)) > 0) await sleep(5);
    const entries = await journal(user);
    assert.deepEqual(new Set(entries.map((entry) => entry.ended)), new Set(['client_closed']));
    assert.ok((entries[0]?.tokens ?? 0) < 1000);
  });

  it('the sandbox waits for a client that reads slowly instead of holding the stream in memory', async () => {
    const user = newTestId();
    const call = open('WORDS:100000', { user, stream: true });
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    let before = -1;
    for (let now = 0; now !== before; [before, now] = [now, (await journal(user))[0]?.tokens ?? 0]) await sleep(50);
    assert.ok(before > 0 && before < 100_000);
    response.resume();
    await once(response, 'end');
    assert.equal((await ended(user)).tokens, 100_000);
  });

  it('the sandbox journal is empty when it is off, while open calls are still counted', async () => {
    const other = await startSandbox();
    try {
      await fetch(`${other.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'hi' }] }),
      });
      assert.equal(await (await fetch(`${other.url}/__journal`)).text(), '');
      assert.deepEqual(await (await fetch(`${other.url}/__open`)).json(), { open: 0 });
    } finally {
      await other.close();
    }
  });
});
