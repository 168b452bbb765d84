import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { eventually } from '../support/eventually.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
let client: OpenAI;
before(async () => {
  sandbox = await startSandbox({ journal: true });
  client = new OpenAI({ apiKey: 'any', baseURL: `${sandbox.url}/v1`, maxRetries: 0 });
});
after(() => sandbox.close());

const model = 'sandbox-responses';

interface Options {
  stream?: boolean;
  user?: string;
  [name: string]: unknown;
}

function open(fault: object | undefined, { input = 'WORDS:9', ...more }: Options = {}) {
  const upload = httpRequest(`${sandbox.url}/v1/responses`, { method: 'POST', agent: false });
  upload.on('error', () => {});
  upload.end(JSON.stringify({ model, input, ...more, sandbox: { fault } }));
  return upload;
}

/** The whole answer; rejects if the connection ends before the headers. */
async function ask(fault: object | undefined, more: Options = {}) {
  const [response] = (await once(open(fault, more), 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  response.on('data', (piece: Buffer) => pieces.push(piece));
  response.on('error', () => {});
  await new Promise((resolve) => response.once('close', resolve));
  const text = Buffer.concat(pieces).toString();
  return { status: response.statusCode, headers: response.headers, pieces, text, complete: response.complete };
}

/** The events of a stream that are JSON. */
function eventsOf(text: string): Record<string, unknown>[] {
  return text.split(/\r?\n\r?\n/).flatMap((block) => {
    const data = /^data: (.*?)\r?$/m.exec(block)?.[1];
    if (data === undefined) return [];
    try {
      return [JSON.parse(data) as Record<string, unknown>];
    } catch {
      return [];
    }
  });
}

function saidIn(text: string): string {
  return eventsOf(text)
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => delta)
    .join('');
}

/** The only call of a user, once it has ended. */
function endedCall(user: string): Promise<JournalEntry> {
  return eventually(async () => {
    const [entry] = await vendorCalls({ sandbox }, user);
    assert.ok(entry?.ended, 'the call is still open');
    return entry;
  });
}

describe('sandbox POST /v1/responses, speed', () => {
  it('sandbox responses write each token when it is due, hidden reasoning included, and the journal counts them', async () => {
    const started = performance.now();
    const response = await client.responses.create({
      model,
      input: 'WORDS:3@100',
      reasoning: { effort: 'minimal' },
      user: 'paced',
    });
    const tokens = Number(response.usage?.output_tokens);
    assert.ok(tokens > 3);
    assert.ok(performance.now() - started >= (tokens - 1) * 10 - 1);
    const entry = await endedCall('paced');
    assert.deepEqual([entry.tokens, entry.ended, entry.model, entry.stream], [tokens, 'completed', model, false]);
    const stream = await ask(undefined, {
      input: 'WORDS:9@20',
      stream: true,
      reasoning: { effort: 'minimal' },
      user: 's',
    });
    assert.ok(stream.pieces.length > 2);
    for (const piece of stream.pieces) assert.ok(piece.toString().endsWith('\n\n'));
    assert.equal((await endedCall('s')).tokens, tokens + 6);
  });
});

describe('sandbox POST /v1/responses, faults before the headers', () => {
  it('sandbox responses answer the faults error and rate_limit in the error shape', async () => {
    for (const stream of [true, false]) {
      const error = await ask({ kind: 'error', status: 503, retry_after: 1.5 }, { stream });
      assert.deepEqual([error.status, error.headers['retry-after-ms']], [503, '1500']);
      assert.equal(JSON.parse(error.text).error.type, 'server_error');
      const limit = await ask({ kind: 'rate_limit' }, { stream });
      assert.deepEqual([limit.status, limit.headers['retry-after']], [429, '1']);
    }
  });

  it('sandbox responses break the connection for reset, and stay silent until the client disconnects for silence', async () => {
    await assert.rejects(ask({ kind: 'reset' }), { code: 'ECONNRESET' });
    const call = open({ kind: 'silence' }, { user: 'silent' });
    await eventually(async () => assert.equal((await vendorCalls({ sandbox }, 'silent')).length, 1));
    call.destroy();
    assert.deepEqual((await endedCall('silent')).ended, 'client_closed');
  });
});

describe('sandbox POST /v1/responses, faults inside a stream', () => {
  const broken = (kind: string, more: object = {}, user = kind) =>
    ask({ kind, after_tokens: 3, ...more }, { stream: true, user });

  it('sandbox response streams end with a numbered error event for error and rate_limit', async () => {
    for (const kind of ['error', 'rate_limit']) {
      const { text, complete } = await broken(kind, { message: 'Broken on request.' });
      const events = eventsOf(text);
      const code = kind === 'error' ? null : 'rate_limit_exceeded';
      assert.deepEqual(events.at(-1), {
        ...{ type: 'error', sequence_number: events.length - 1 },
        ...{ code, message: 'Broken on request.', param: null },
      });
      assert.ok(complete);
      assert.equal(saidIn(text), 'word1 word2 word3');
    }
  });

  it('sandbox response streams end with response.failed for failed_event, which the official client reads', async () => {
    const asked = { model, input: 'WORDS:9', user: 'failing', stream: true } as const;
    const fault = { kind: 'failed_event', after_tokens: 3, code: 'rate_limit_exceeded', message: 'Too much.' };
    const stream = await client.responses.create(asked, { headers: { 'x-sandbox': JSON.stringify({ fault }) } });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, index) => index),
    );
    const last = events.at(-1);
    assert.ok(last?.type === 'response.failed');
    assert.equal(last.response.status, 'failed');
    assert.deepEqual(last.response.error, { code: 'rate_limit_exceeded', message: 'Too much.' });
    assert.equal(last.response.usage, null);
    const said = events.filter(({ type }) => type === 'response.output_text.delta');
    assert.equal(said.length, 3);
    const entry = await endedCall('failing');
    assert.deepEqual([entry.ended, entry.fault, entry.tokens], ['fault', 'failed_event', 3]);
  });

  it('sandbox response streams end cleanly without a last event for eof', async () => {
    const { text, complete } = await broken('eof');
    assert.ok(complete);
    assert.equal(saidIn(text), 'word1 word2 word3');
    assert.doesNotMatch(text, /response\.(completed|failed|incomplete)/);
  });

  it('sandbox response streams break the connection after the tokens for reset', async () => {
    const { text, complete } = await broken('reset');
    assert.equal(complete, false);
    assert.equal(saidIn(text), 'word1 word2 word3');
    const entry = await endedCall('reset');
    assert.deepEqual([entry.ended, entry.fault, entry.tokens], ['fault', 'reset', 3]);
  });

  it('sandbox response streams replace one token event by invalid JSON for malformed', async () => {
    const { text } = await broken('malformed');
    assert.match(text, /word3"[^\n]*\n\nevent: response\.output_text\.delta\ndata: [^\n]*"del\n\n/);
    assert.equal(saidIn(text), 'word1 word2 word3 word5 word6 word7 word8 word9');
    assert.equal(eventsOf(text).at(-1)?.type, 'response.completed');
  });

  it('sandbox response streams stop after the tokens and keep the connection for silence', async () => {
    const call = open({ kind: 'silence', after_tokens: 3 }, { stream: true, user: 'stopping' });
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of response) {
      text += piece;
      if (text.includes('word3')) break;
    }
    assert.doesNotMatch(text, /word4/);
    call.destroy();
    const entry = await endedCall('stopping');
    assert.deepEqual([entry.ended, entry.tokens], ['client_closed', 3]);
  });

  it('sandbox response streams send the same answer in many pieces for slow_bytes', async () => {
    const slow = await ask({ kind: 'slow_bytes' }, { stream: true, input: 'Reply with exactly: dřevo 木 🌲' });
    assert.equal(saidIn(slow.text), 'dřevo 木 🌲');
    assert.ok(slow.text.endsWith('\r\n\r\n'));
    assert.ok(slow.pieces.length > 500);
  });

  it('sandbox response streams make one token event exactly the requested size for large_event', async () => {
    const bytes = 1_000_000;
    const { text } = await broken('large_event', { bytes });
    const sizes = text.split(/(?<=\n\n)/).map((event) => Buffer.byteLength(event));
    assert.equal(sizes.filter((size) => size === bytes).length, 1);
    assert.match(saidIn(text), /^word1 word2 word3x+ word4 word5/);
  });
});

describe('sandbox POST /v1/responses, faults of held answers', () => {
  it('held sandbox responses are invalid JSON for malformed, and truncated for eof and reset', async () => {
    const malformed = await ask({ kind: 'malformed' });
    assert.ok(malformed.complete);
    assert.throws(() => JSON.parse(malformed.text), SyntaxError);
    for (const kind of ['eof', 'reset']) {
      const half = await ask({ kind, after_tokens: 2 });
      assert.equal(half.complete, false);
      assert.ok(half.pieces.length > 0);
    }
  });

  it('held sandbox responses have the status failed for failed_event', async () => {
    const { status, text } = await ask({ kind: 'failed_event', message: 'Broken on request.' }, { user: 'held' });
    const response = JSON.parse(text) as OpenAI.Responses.Response;
    assert.deepEqual([status, response.status, response.output], [200, 'failed', []]);
    assert.deepEqual(response.error, { code: 'server_error', message: 'Broken on request.' });
    assert.equal((await endedCall('held')).ended, 'fault');
  });

  it('held sandbox responses are correct for slow_bytes and large_event', async () => {
    const slow = JSON.parse((await ask({ kind: 'slow_bytes' })).text) as OpenAI.Responses.Response;
    assert.equal(slow.status, 'completed');
    const large = await ask({ kind: 'large_event', bytes: 500_000 });
    assert.ok(large.text.length > 490_000);
    assert.equal(JSON.parse(large.text).status, 'completed');
  });
});
