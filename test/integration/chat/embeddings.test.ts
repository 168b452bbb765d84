import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { assertErrorAnswer, type ErrorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { sseEvents } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/embeddings';
const model = 'sandbox-embedding';

/** A list of embeddings, in floats or base64. */
interface Answer {
  readonly data: { index: number; embedding: number[] | string }[];
  readonly usage: object;
}

/** A job as `GET /v1/jobs/{id}` shows it, as far as it matters here. */
interface Job {
  readonly id: string;
  readonly status: string;
  readonly endpoint: string;
  readonly usage: object;
  readonly result: Answer;
}

function dot(one: readonly number[], other: readonly number[]): number {
  return one.reduce((sum, value, index) => sum + value * (other[index] as number), 0);
}

describe('POST /v1/embeddings', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start({ configuration: oneAttempt });
    client = gateway.client();
  });
  after(() => gateway.stop());

  const answerOf = async (response: Promise<Response>): Promise<Answer> => (await (await response).json()) as Answer;
  const post = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });

  it('POST /v1/embeddings returns a list with one embedding of unit length, and the usage', async () => {
    const { data: answer, response } = await client.embeddings
      .create({ model, input: 'The quick brown fox', encoding_format: 'float' })
      .withResponse();
    assert.match(response.headers.get('x-request-id') ?? '', /^job_[0-9a-f]{32}$/);
    const { data, ...rest } = answer;
    assert.deepEqual(rest, { object: 'list', model, usage: { prompt_tokens: 4, total_tokens: 4 } });
    assert.deepEqual(
      data.map(({ object, index, embedding }) => [object, index, embedding.length]),
      [['embedding', 0, 256]],
    );
    const vector = data[0]?.embedding ?? [];
    assert.ok(Math.abs(dot(vector, vector) - 1) < 1e-6);
  });

  it('POST /v1/embeddings returns the same numbers in base64 as in float', async () => {
    const input = ['one', 'two words', 'mañana 漢字 😀', ' '];
    const packed = await client.embeddings.create({ model, input });
    const plain = await client.embeddings.create({ model, input, encoding_format: 'float' });
    assert.deepEqual(
      packed.data.map(({ embedding }) => [...embedding]),
      plain.data.map(({ embedding }) => embedding),
    );
    const raw = await answerOf(post({ model, input, encoding_format: 'base64' }));
    assert.equal(typeof raw.data[3]?.embedding, 'string');
  });

  it('POST /v1/embeddings obeys dimensions', async () => {
    for (const dimensions of [1, 3, 1024]) {
      const answer = await client.embeddings.create({ model, input: ['a text', 'another'], dimensions });
      assert.ok(answer.data.every(({ embedding }) => embedding.length === dimensions));
    }
  });

  it('POST /v1/embeddings accepts a list of tokens as one input, and lists of tokens as several', async () => {
    const one = await client.embeddings.create({ model, input: [1212, 318, 257] });
    const two = await client.embeddings.create({ model, input: [[1212, 318, 257], [13]] });
    assert.equal(one.data.length, 1);
    assert.equal(two.data.length, 2);
    assert.deepEqual(two.data[0]?.embedding, one.data[0]?.embedding);
    assert.equal(two.usage.prompt_tokens, 4);
  });

  it('POST /v1/embeddings accepts one input of as many tokens as a model has, 8,191', async () => {
    const tokens = Array.from({ length: 8191 }, (_, index) => index);
    const { data, usage } = await client.embeddings.create({ model, input: tokens, dimensions: 8 });
    assert.equal(data.length, 1);
    assert.equal(usage.prompt_tokens, 8191);
  });

  it('POST /v1/embeddings places similar texts closest together', async () => {
    const input = [
      'How do I reset my password?',
      'I forgot my password, how can I reset it?',
      'The cat sat on the mat.',
      'A cat was sitting on a mat.',
      'Stock prices fell sharply on Tuesday.',
      'On Tuesday, the prices of stocks were falling.',
    ];
    const vectors = (await client.embeddings.create({ model, input })).data.map(({ embedding }) => embedding);
    for (const [index, vector] of vectors.entries()) {
      const nearness = vectors.map((other, at) => (at === index ? -1 : dot(vector, other)));
      assert.equal(nearness.indexOf(Math.max(...nearness)), index ^ 1, input[index]);
    }
  });

  it('POST /v1/embeddings splits 300 inputs into vendor calls of 64 and joins them in order', async () => {
    for (const encoding of ['float', 'base64'] as const) {
      const user = `split-${encoding}`;
      const input = Array.from({ length: 300 }, (_, index) => `text number ${index}`);
      const answer = await answerOf(post({ model, input, user, encoding_format: encoding }));
      assert.deepEqual(
        answer.data.map(({ index }) => index),
        input.map((_, index) => index),
      );
      assert.deepEqual(answer.usage, { prompt_tokens: 900, total_tokens: 900 });
      for (const index of [0, 63, 64, 65, 128, 255, 256, 299]) {
        const alone = await answerOf(post({ model, input: input[index], encoding_format: encoding }));
        assert.deepEqual(answer.data[index]?.embedding, alone.data[0]?.embedding, `input ${index}`);
      }
      const calls = await vendorCalls(gateway, user);
      assert.deepEqual(calls.map(({ tokens }) => tokens).sort(), [44, 64, 64, 64, 64]);
    }
  });

  it('POST /v1/embeddings accepts a body of a megabyte and 2,048 inputs', async () => {
    const input = Array.from({ length: 2048 }, (_, index) => `${index} ${'lorem ipsum '.repeat(50)}`);
    const answer = await client.embeddings.create({ model, input, dimensions: 8 });
    assert.equal(answer.data.length, 2048);
    assert.ok(answer.data.every(({ index }, at) => index === at));
  });

  it('POST /v1/embeddings passes unknown fields to the vendor, in one call and in several', async () => {
    for (const input of ['one', Array.from({ length: 70 }, () => 'many')]) {
      const error = await assertErrorAnswer(await post({ model, input, something_new: 1 }), 400, 'unknown_parameter');
      assert.equal(error.param, 'something_new');
    }
  });

  it('POST /v1/embeddings returns the error of the vendor call that failed', async () => {
    const input = Array.from({ length: 300 }, (_, index) => `text ${index}`);
    const fault = { kind: 'error', status: 503, times: 1, key: 'one of five' };
    await assertErrorAnswer(await post({ model, input, sandbox: { fault } }), 503, 'service_unavailable');
    const limit = { kind: 'rate_limit', retry_after: 7 };
    const limited = await post({ model, input: 'x', sandbox: { fault: limit } });
    // Those who are refused together are spread.
    const after = Number(limited.headers.get('retry-after'));
    assert.ok(after >= 7 && after <= 14, `${after} s`);
    await assertErrorAnswer(limited, 429, 'rate_limit_exceeded');
    for (const kind of ['malformed', 'eof', 'reset']) {
      await assertErrorAnswer(
        await post({ model, input: ['x', 'y'], sandbox: { fault: { kind } } }),
        500,
        'server_error',
      );
    }
  });

  it('POST /v1/embeddings ends every vendor call when the client disconnects', async () => {
    const user = 'left';
    const leave = new AbortController();
    const input = Array.from({ length: 300 }, (_, index) => `text ${index}`);
    const body = JSON.stringify({ model, input, user, sandbox: { first_token_ms: 60_000 } });
    const asked = gateway.fetch(path, { method: 'POST', body, signal: leave.signal });
    asked.catch(() => undefined);
    await eventually(async () => assert.equal((await vendorCalls(gateway, user)).length, 4));
    leave.abort();
    await assert.rejects(asked);
    await eventually(async () => {
      const calls = await vendorCalls(gateway, user);
      assert.ok(calls.length === 4 && calls.every(({ ended }) => ended === 'client_closed'), 'some go on');
    });
  });

  it('POST /v1/embeddings runs asynchronously, with the result in its job and the object and [DONE] as events', async () => {
    const input = Array.from({ length: 70 }, (_, index) => `text ${index}`);
    const accepted = await post({ model, input }, { prefer: 'respond-async' });
    assert.equal(accepted.status, 202);
    const { id } = (await accepted.json()) as Job;
    const job = await eventually(async () => {
      const found = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as Job;
      assert.equal(found.status, 'completed');
      return found;
    });
    assert.equal(job.endpoint, 'embeddings');
    assert.deepEqual(job.usage, { prompt_tokens: 140, total_tokens: 140 });
    const { data: _sync, ...whole } = await answerOf(post({ model, input }));
    const { data, ...rest } = job.result;
    assert.equal(data.length, 70);
    assert.deepEqual(rest, whole);
    const events = sseEvents(await (await gateway.fetch(`/v1/jobs/${id}/events`)).text());
    assert.deepEqual(events.length, 2);
    assert.deepEqual(JSON.parse(events[0]?.data ?? ''), job.result);
    assert.equal(events[1]?.data, '[DONE]');
  });

  const refusals: [name: string, fields: object, param: string, message?: RegExp][] = [
    ['a missing input', { input: undefined }, 'input', /Missing required parameter/],
    ['a null input', { input: null }, 'input'],
    ['a number as input', { input: 1 }, 'input', /expected a string or an array/],
    ['an empty string', { input: '' }, 'input', /input cannot be an empty string/],
    ['an empty string among others', { input: ['a', ''] }, 'input[1]', /input cannot be an empty string/],
    ['an empty list of inputs', { input: [] }, 'input', /input cannot be an empty array/],
    ['an empty list of tokens', { input: [[1], []] }, 'input[1]'],
    ['2,049 inputs', { input: Array.from({ length: 2049 }, () => 'x') }, 'input', /at most 2048 items, but got 2049/],
    ['2,049 lists of tokens', { input: Array.from({ length: 2049 }, () => [1]) }, 'input', /at most 2048 items/],
    ['a token after a text', { input: ['a', 1] }, 'input[1]'],
    ['a text after a token', { input: [1, 'a'] }, 'input[1]'],
    ['a token with a fraction', { input: [1.5] }, 'input[0]'],
    ['a negative token', { input: [[1], [-1]] }, 'input[1][0]'],
    ['an object as input', { input: [{}] }, 'input[0]'],
    ['0 as dimensions', { dimensions: 0 }, 'dimensions'],
    ['dimensions as text', { dimensions: '8' }, 'dimensions'],
    ['an unknown encoding', { encoding_format: 'hex' }, 'encoding_format', /'float', 'base64'/],
    ['a stream', { stream: true }, 'stream'],
    ['more dimensions than the vendor has', { dimensions: 100_000 }, 'dimensions'],
  ];
  for (const [name, fields, param, message] of refusals) {
    it(`POST /v1/embeddings returns 400 naming ${param} for ${name}`, async () => {
      const response = await post({ model, input: 'x', ...fields });
      const { error } = (await response.json()) as { error: ErrorDetails };
      assert.equal(response.status, 400, error.message);
      assert.equal(error.param, param);
      if (message) assert.match(error.message, message);
    });
  }

  it('POST /v1/embeddings returns 400 for a model of another capability', async () => {
    const error = await assertErrorAnswer(
      await post({ model: 'sandbox-chat', input: 'x' }),
      400,
      'invalid_request_error',
    );
    assert.equal(error.param, 'model');
  });
});

describe('POST /v1/embeddings with a model of fixed dimensions', () => {
  it('POST /v1/embeddings refuses dimensions for a model of fixed dimensions before anything is queued', async () => {
    // The key is never used: the request is refused before.
    const gateway = await TestGateway.start({ settings: { OPENAI_API_KEY: 'sk-none' }, workers: 0 });
    try {
      const body = JSON.stringify({ model: 'text-embedding-ada-002', input: 'x', dimensions: 8 });
      const response = await gateway.fetch(path, { method: 'POST', body });
      const error = await assertErrorAnswer(response, 400, 'invalid_request_error');
      assert.equal(error.param, 'dimensions');
      assert.match(error.message, /does not support specifying dimensions/);
    } finally {
      await gateway.stop();
    }
  });
});
