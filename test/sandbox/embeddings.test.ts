import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';

let sandbox: RunningSandbox;
before(async () => {
  sandbox = await startSandbox({ journal: true });
});
after(() => sandbox.close());

const model = 'sandbox-embedding';

/** What a call answers, as far as it matters here. */
interface Answer<Vector> {
  readonly data: { embedding: Vector }[];
  readonly usage: object;
  readonly error: { param: string | null; message: string };
}

async function read<Vector = number[]>(response: Response | Promise<Response>): Promise<Answer<Vector>> {
  return (await (await response).json()) as Answer<Vector>;
}

function ask(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${sandbox.url}/v1/embeddings`, { method: 'POST', headers, body: text });
}

async function embed(input: unknown, more: object = {}): Promise<number[][]> {
  const answer = await read(ask({ model, input, ...more }));
  return answer.data.map(({ embedding }) => embedding);
}

const journal = (testId: string): Promise<JournalEntry[]> => vendorCalls({ sandbox }, testId);

describe('sandbox POST /v1/embeddings', () => {
  it('sandbox POST /v1/embeddings returns a constant unit vector of the requested dimensions for any text', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.constantFrom(' ', '\u0000', '?!', '\ud83d\ude00', 'x'.repeat(5000)),
    );
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 3072 }), async (input, dimensions) => {
        const [vector, again] = await embed([input, input], { dimensions });
        assert.deepEqual(vector, again);
        assert.equal(vector?.length, dimensions);
        const length = Math.hypot(...(vector ?? []));
        assert.ok(Math.abs(length - 1) < 1e-5, `length ${length}`);
      }),
      { numRuns: 60 },
    );
    assert.equal((await embed('x'))[0]?.length, 256);
  });

  it('sandbox POST /v1/embeddings encodes base64 as little-endian 32-bit floats', async () => {
    const [plain] = await embed('a text', { dimensions: 7 });
    const answer = await read<string>(ask({ model, input: 'a text', dimensions: 7, encoding_format: 'base64' }));
    const bytes = Buffer.from(answer.data[0]?.embedding ?? '', 'base64');
    assert.equal(bytes.length, 28);
    assert.deepEqual(
      Array.from({ length: 7 }, (_, index) => bytes.readFloatLE(index * 4)),
      plain,
    );
  });

  it('sandbox POST /v1/embeddings counts texts like the chat, and token inputs one each', async () => {
    const usage = async (input: unknown) => (await read(ask({ model, input }))).usage;
    assert.deepEqual(await usage('one, two'), { prompt_tokens: 3, total_tokens: 3 });
    assert.deepEqual(await usage(['one, two', 'three']), { prompt_tokens: 4, total_tokens: 4 });
    assert.deepEqual(await usage([1, 2, 3, 4]), { prompt_tokens: 4, total_tokens: 4 });
    assert.deepEqual(await usage([[1, 2, 3], [4]]), { prompt_tokens: 4, total_tokens: 4 });
  });

  it('sandbox POST /v1/embeddings accepts 64 inputs and rejects 65', async () => {
    assert.equal((await embed(Array(64).fill('x'))).length, 64);
    const response = await ask({ model, input: Array(65).fill('x') });
    assert.equal(response.status, 400);
    assert.match((await read(response)).error.message, /at most 64 items, but has 65/);
  });

  it('sandbox POST /v1/embeddings returns an error naming the parameter at fault', async () => {
    const cases: [string | null, unknown][] = [
      [null, '{'],
      ['model', { input: 'x' }],
      ['model', { model: 'sandbox-chat', input: 'x' }],
      ['input', { model }],
      ['input', { model, input: '' }],
      ['input', { model, input: ['a', ''] }],
      ['input', { model, input: [] }],
      ['input[1]', { model, input: [[1], []] }],
      ['input', { model, input: [1, 'a'] }],
      ['dimensions', { model, input: 'x', dimensions: 3073 }],
      ['dimensions', { model, input: 'x', dimensions: 1.5 }],
      ['encoding_format', { model, input: 'x', encoding_format: 'hex' }],
      ['something', { model, input: 'x', something: 1 }],
      ['sandbox.fault.kind', { model, input: 'x', sandbox: { fault: { kind: 'no_done' } } }],
    ];
    for (const [param, body] of cases) {
      const response = await ask(body);
      const { error } = await read(response);
      assert.equal(response.status, param === 'model' && (body as { model?: string }).model ? 404 : 400);
      assert.equal(error.param, param, JSON.stringify(body));
    }
  });

  it('sandbox POST /v1/embeddings applies faults from the body or the header, and notes them in the journal', async () => {
    const status = async (fault: object) =>
      (await ask({ model, input: 'x', user: 'faults' }, { 'x-sandbox': JSON.stringify({ fault }) })).status;
    assert.equal(await status({ kind: 'error', status: 503 }), 503);
    assert.equal(await status({ kind: 'rate_limit' }), 429);
    await assert.rejects(status({ kind: 'reset' }));
    const broken = await ask({ model, input: 'x', user: 'faults', sandbox: { fault: { kind: 'malformed' } } });
    await assert.rejects(broken.json(), SyntaxError);
    await ask({ model, input: ['x', 'y', 'z'], user: 'faults' });
    const entries = await journal('faults');
    assert.deepEqual(
      entries.map(({ fault, tokens, model: called }) => [fault, tokens, called]),
      [
        ['error', 0, model],
        ['rate_limit', 0, model],
        ['reset', 0, model],
        ['malformed', 1, model],
        [null, 3, model],
      ],
    );
  });
});
