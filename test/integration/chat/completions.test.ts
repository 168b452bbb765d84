import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type OpenAI from 'openai';
import { assertErrorAnswer, completionErrorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { saidInCompletions } from '../../support/said-in-completion.ts';
import { sseEvents } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/completions';
const native = 'sandbox-instruct';
const overChat = 'sandbox-chat';

type Fields = Omit<OpenAI.CompletionCreateParamsNonStreaming, 'model' | 'stream'>;

let gateway: TestGateway;
let client: OpenAI;
before(async () => {
  gateway = await TestGateway.start({ configuration: oneAttempt });
  client = gateway.client();
});
after(() => gateway.stop());

const post = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
  gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers });

/** The chunks of a streamed answer. */
async function streamed(model: string, fields: Fields): Promise<OpenAI.Completion[]> {
  const chunks: OpenAI.Completion[] = [];
  for await (const chunk of await client.completions.create({ ...fields, model, stream: true })) chunks.push(chunk);
  return chunks;
}

const held = (model: string, fields: Fields): Promise<OpenAI.Completion> =>
  client.completions.create({ ...fields, model });

for (const model of [native, overChat]) {
  describe(`POST /v1/completions with ${model === native ? 'a native completions model' : 'a chat model'}`, () => {
    it(`POST /v1/completions with ${model} returns a text_completion of the requested model`, async () => {
      const prompt = 'Reply with exactly: Hello there';
      const { data, response } = await client.completions.create({ model, prompt }).withResponse();
      assert.equal(data.object, 'text_completion');
      assert.equal(data.model, model);
      assert.match(data.id, /^cmpl-[0-9a-f]{32}$/);
      assert.equal(response.headers.get('x-request-id'), data.id.replace('cmpl-', 'job_'));
      assert.deepEqual(data.choices, [{ text: 'Hello there', index: 0, logprobs: null, finish_reason: 'stop' }]);
      assert.ok(data.usage && data.usage.prompt_tokens > 0 && data.usage.completion_tokens === 2);
      assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + 2);
    });

    it(`POST /v1/completions with ${model} returns 16 tokens by default, and as many as max_tokens allows`, async () => {
      const { choices, usage } = await held(model, { prompt: 'WORDS:100' });
      assert.equal(choices[0]?.text.split(' ').length, 16);
      assert.equal(choices[0]?.finish_reason, 'length');
      assert.equal(usage?.completion_tokens, 16);
      const more = await held(model, { prompt: 'WORDS:100', max_tokens: 20 });
      assert.equal(more.choices[0]?.text.split(' ').length, 20);
    });

    it(`POST /v1/completions with ${model} streams chunks with one id, and the usage at the end on request`, async () => {
      const chunks = await streamed(model, { prompt: 'WORDS:5' });
      assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
      assert.ok(chunks.every((chunk) => chunk.object === 'text_completion' && chunk.model === model && !chunk.usage));
      assert.equal(chunks.map(({ choices }) => choices[0]?.text).join(''), 'word1 word2 word3 word4 word5');
      assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'stop');
      const counted = await streamed(model, { prompt: 'WORDS:5', stream_options: { include_usage: true } });
      const last = counted.pop();
      assert.deepEqual(last?.choices, []);
      assert.equal(last?.usage?.completion_tokens, 5);
      assert.ok(counted.every(({ usage }) => usage === null));
    });

    it(`POST /v1/completions with ${model} ends a stream with one [DONE] and gives each event an id`, async () => {
      const events = sseEvents(await (await post({ model, prompt: 'WORDS:3', stream: true })).text());
      assert.equal(events.filter(({ data }) => data === '[DONE]').length, 1);
      assert.equal(events.at(-1)?.data, '[DONE]');
      assert.equal(new Set(events.map(({ id }) => id)).size, events.length);
    });

    it(`POST /v1/completions with ${model} numbers the choices of several prompts as prompt times n plus choice`, async () => {
      const prompt = ['WORDS:3', 'Reply with exactly: second', 'one', 'two', 'three', 'four'];
      const fields = { prompt, n: 2, user: `several-${model}`, max_tokens: 100 };
      const whole = await held(model, fields);
      assert.deepEqual(
        whole.choices.map(({ index }) => index),
        Array.from({ length: 12 }, (_, index) => index),
      );
      for (const [at, each] of prompt.entries()) {
        const alone = await held(model, { ...fields, prompt: each, user: 'alone' });
        const texts = whole.choices.slice(at * 2, at * 2 + 2).map(({ text }) => text);
        assert.deepEqual(
          texts,
          alone.choices.map(({ text }) => text),
        );
      }
      assert.deepEqual(saidInCompletions(await streamed(model, fields)), saidInCompletions([whole]));
      const calls = await vendorCalls(gateway, fields.user);
      assert.equal(calls.length, model === native ? 2 : 12);
    });

    it(`POST /v1/completions with ${model} obeys stop, seed and echo`, async () => {
      const stopped = await held(model, { prompt: 'Count from 1 to 9', stop: [' 5'] });
      assert.deepEqual(stopped.choices[0], { text: '1 2 3 4', index: 0, logprobs: null, finish_reason: 'stop' });
      const seeds = await Promise.all(
        [7, 7, 8].map(async (seed) => (await held(model, { prompt: 'Hi', seed, max_tokens: 50 })).choices[0]?.text),
      );
      assert.equal(seeds[0], seeds[1]);
      assert.notEqual(seeds[0], seeds[2]);
      const fields = { prompt: ['Count from 1 to 3', 'Count from 2 to 3'], n: 2, echo: true };
      const echoed = await held(model, fields);
      assert.deepEqual(
        echoed.choices.map(({ text }) => text),
        ['Count from 1 to 31 2 3', 'Count from 1 to 31 2 3', 'Count from 2 to 32 3', 'Count from 2 to 32 3'],
      );
      assert.deepEqual(saidInCompletions(await streamed(model, fields)), saidInCompletions([echoed]));
    });

    it(`POST /v1/completions with ${model} returns logprobs in the shape of completions, held and streamed`, async () => {
      const fields = { prompt: 'é😀: WORDS:3', logprobs: 2 };
      const whole = await held(model, fields);
      const logprobs = whole.choices[0]?.logprobs;
      assert.deepEqual(logprobs?.tokens, ['word1', ' word2', ' word3']);
      // Characters from the start of the prompt, which has 12 of them.
      assert.deepEqual(
        logprobs?.text_offset,
        [12, 17, 23].map((offset) => offset - 1),
      );
      assert.equal(logprobs?.token_logprobs?.length, 3);
      for (const [at, top] of (logprobs?.top_logprobs ?? []).entries()) {
        const token = logprobs?.tokens?.[at] as string;
        assert.equal(Object.keys(top).length, 2);
        assert.equal(top[token], logprobs?.token_logprobs?.[at]);
      }
      assert.deepEqual(saidInCompletions(await streamed(model, fields)), saidInCompletions([whole]));
    });

    it(`POST /v1/completions with ${model} runs asynchronously, with the result and the events in its job`, async () => {
      const body = { model, prompt: 'WORDS:4' };
      const job = await finished(await post(body, { prefer: 'respond-async' }));
      assert.equal(job.endpoint, 'completions');
      assert.equal(job.result.object, 'text_completion');
      assert.equal(job.result.choices[0]?.text, 'word1 word2 word3 word4');
      const events = sseEvents(await (await gateway.fetch(`/v1/jobs/${job.id}/events`)).text());
      assert.deepEqual(JSON.parse(events[0]?.data ?? ''), job.result);
      assert.deepEqual(events.length, 2);
      const stream = await finished(await post({ ...body, stream: true }, { prefer: 'respond-async' }));
      assert.deepEqual(stream.result.choices, job.result.choices);
      const cmplId = stream.id.replace('job_', 'cmpl-');
      const chunks = sseEvents(await (await gateway.fetch(`/v1/jobs/${cmplId}/events`)).text());
      assert.equal(chunks.pop()?.data, '[DONE]');
      const said = saidInCompletions(chunks.map(({ data }) => JSON.parse(data)));
      assert.deepEqual(said, saidInCompletions([job.result]));
    });

    it(`POST /v1/completions with ${model} ends a broken stream with an error, not with [DONE]`, async () => {
      for (const [kind, code] of [
        ['reset', 'stream_interrupted'],
        ['eof', 'stream_interrupted'],
        ['malformed', 'stream_interrupted'],
        ['error', 'server_error'],
      ]) {
        const sandbox = { fault: { kind, after_tokens: 3 } };
        const response = await post({ model, prompt: 'WORDS:9', stream: true, sandbox });
        assert.equal(response.status, 200);
        const events = sseEvents(await response.text());
        assert.equal(completionErrorDetails(JSON.parse(events.at(-1)?.data ?? '')).code, code, kind);
        assert.ok(events.every(({ data }) => data !== '[DONE]'));
      }
      const early = { fault: { kind: 'error', status: 503 } };
      for (const stream of [true, false]) {
        const response = await post({ model, prompt: 'WORDS:9', stream, sandbox: early });
        await assertErrorAnswer(response, 503, 'service_unavailable');
      }
    });

    it(`POST /v1/completions with ${model} streams exactly the content of the held answer`, async () => {
      const prompt = fc.oneof(
        fc.string({ unit: 'binary', maxLength: 100 }).map((text) => `Reply with exactly: ${text}`),
        fc.integer({ min: 1, max: 60 }).map((words) => `WORDS:${words}`),
        fc.string({ unit: 'grapheme', maxLength: 60 }),
      );
      const fields = fc.record(
        {
          n: fc.integer({ min: 1, max: 3 }),
          seed: fc.nat(5),
          max_tokens: fc.integer({ min: 1, max: 40 }),
          stop: fc.constantFrom('word9', ['e', ' a']),
          extra: fc.constantFrom({ logprobs: 0 }, { logprobs: 3 }, { echo: true }),
        },
        { requiredKeys: [] },
      );
      const prompts = fc.oneof(prompt, fc.array(prompt, { minLength: 1, maxLength: 6 }));
      await fc.assert(
        fc.asyncProperty(prompts, fields, async (asked, { extra, ...more }) => {
          const whole = await held(model, { prompt: asked, ...more, ...extra });
          const options = { stream_options: { include_usage: true } };
          const chunks = await streamed(model, { prompt: asked, ...more, ...extra, ...options });
          assert.deepEqual(saidInCompletions(chunks), saidInCompletions([whole]));
          assert.equal(chunks.at(-1)?.usage?.total_tokens, whole.usage?.total_tokens);
        }),
        { numRuns: 20 },
      );
    });

    const refusals: [name: string, fields: object, param: string, message?: RegExp][] = [
      ['a missing prompt', { prompt: undefined }, 'prompt', /Missing required parameter/],
      ['a number as prompt', { prompt: 1 }, 'prompt'],
      ['an empty list of prompts', { prompt: [] }, 'prompt', /cannot be an empty array/],
      ['2,049 prompts', { prompt: Array.from({ length: 2049 }, () => 'x') }, 'prompt', /at most 2048 items/],
      ['an object among prompts', { prompt: ['a', {}] }, 'prompt[1]'],
      ['a token with a fraction', { prompt: [[1], [1, 1.5]] }, 'prompt[1][1]'],
      ['0 as n', { n: 0 }, 'n'],
      [
        'n above best_of',
        { n: 3, best_of: 2 },
        'best_of',
        /n' \(currently 3\) to be at most 'best_of' \(currently 2\)/,
      ],
      ['best_of in a stream', { best_of: 2, stream: true }, 'best_of', /cannot be streamed/],
      ['21 as best_of', { best_of: 21 }, 'best_of'],
      ['6 logprobs', { logprobs: 6 }, 'logprobs'],
      ['chat-style logprobs', { logprobs: true }, 'logprobs'],
      ['a negative max_tokens', { max_tokens: -1 }, 'max_tokens'],
      ['a temperature of 3', { temperature: 3 }, 'temperature'],
      ['a top_p of 2', { top_p: 2 }, 'top_p'],
      ['a penalty of 3', { presence_penalty: 3 }, 'presence_penalty'],
      ['a penalty that is a string', { frequency_penalty: '1' }, 'frequency_penalty'],
      ['a bias of 101', { logit_bias: { 5: 101 } }, 'logit_bias'],
      ['five stop sequences', { stop: ['1', '2', '3', '4', '5'] }, 'stop'],
      ['an echo that is a string', { echo: 'yes' }, 'echo'],
      ['a suffix that is a number', { suffix: 1 }, 'suffix'],
      ['a seed with a fraction', { seed: 1.5 }, 'seed'],
      ['stream options without a stream', { stream_options: { include_usage: true } }, 'stream_options'],
    ];
    it(`POST /v1/completions with ${model} returns 400 naming the invalid parameter`, async (t) => {
      for (const [name, fields, param, message] of refusals) {
        await t.test(`POST /v1/completions with ${model} refuses ${name}`, async () => {
          const error = await assertErrorAnswer(
            await post({ model, prompt: 'x', ...fields }),
            400,
            'invalid_request_error',
          );
          assert.match(error.param ?? '', new RegExp(`^${param.replaceAll(/[[\]]/g, '\\$&')}`));
          if (message) assert.match(error.message, message);
        });
      }
    });
  });
}

/** A job as `GET /v1/jobs/{id}` shows it, as far as it matters here. */
interface FinishedJob {
  readonly id: string;
  readonly status: string;
  readonly endpoint: string;
  readonly result: OpenAI.Completion;
}

/** The job that an asynchronous request became, once it has ended. */
async function finished(accepted: Response): Promise<FinishedJob> {
  assert.equal(accepted.status, 202);
  const { id } = (await accepted.json()) as FinishedJob;
  return await eventually(async () => {
    const job = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as FinishedJob;
    assert.equal(job.status, 'completed');
    return job;
  });
}

describe('POST /v1/completions with a native completions model only', () => {
  it('POST /v1/completions with a native model passes tokens, suffix, best_of, max_tokens 0 and echoed logprobs on', async () => {
    const tokens = await held(native, { prompt: [[1212, 318], [13]], echo: true, max_tokens: 0 });
    assert.deepEqual(
      tokens.choices.map(({ text, finish_reason: finish }) => [text, finish]),
      [
        ['1212 318', 'length'],
        ['13', 'length'],
      ],
    );
    assert.equal(tokens.usage?.prompt_tokens, 3);
    const long = await held(native, { prompt: Array.from({ length: 3000 }, () => 13), max_tokens: 1 });
    assert.equal(long.usage?.prompt_tokens, 3000);
    const inserted = await held(native, { prompt: 'Once', suffix: 'the end', max_tokens: 50 });
    assert.match(inserted.choices[0]?.text ?? '', /to stand before "the end"/);
    const all = await held(native, { prompt: 'Hello', n: 4, max_tokens: 50 });
    const best = await held(native, { prompt: 'Hello', n: 2, best_of: 4, max_tokens: 50 });
    assert.equal(best.choices.length, 2);
    assert.equal(best.usage?.completion_tokens, all.usage?.completion_tokens);
    assert.ok(best.choices.every(({ text }) => all.choices.some((choice) => choice.text === text)));
    const scored = await held(native, { prompt: 'a b', echo: true, logprobs: 0, max_tokens: 0 });
    assert.deepEqual(scored.choices[0]?.logprobs?.tokens, ['a', ' b']);
    assert.deepEqual(scored.choices[0]?.logprobs?.text_offset, [0, 1]);
    const nothing = await held(native, { prompt: null });
    assert.ok(nothing.choices[0]?.text);
  });

  it('POST /v1/completions with a native model passes unknown fields to the vendor', async () => {
    const response = await post({ model: native, prompt: 'x', something_new: 1 });
    const error = await assertErrorAnswer(response, 400, 'unknown_parameter');
    assert.equal(error.param, 'something_new');
  });

  it('POST /v1/chat/completions returns 400 for a native completions model, naming /v1/completions', async () => {
    const body = { model: native, messages: [{ role: 'user', content: 'x' }] };
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(body) });
    const error = await assertErrorAnswer(response, 400, 'invalid_request_error');
    assert.equal(error.param, 'model');
    assert.match(error.message, /use \/v1\/completions/);
  });
});

describe('POST /v1/completions with a chat model only', () => {
  it('POST /v1/completions with a chat model adds up the usage of all prompts', async () => {
    const one = await held(overChat, { prompt: 'WORDS:4' });
    const three = await held(overChat, { prompt: ['WORDS:4', 'WORDS:4', 'WORDS:4'] });
    assert.equal(three.usage?.prompt_tokens, 3 * (one.usage?.prompt_tokens ?? 0));
    assert.equal(three.usage?.completion_tokens, 12);
    assert.equal(three.usage?.completion_tokens_details?.reasoning_tokens, 0);
  });

  it('POST /v1/completions with a chat model omits the reasoning', async () => {
    const { choices } = await held('sandbox-reasoning', { prompt: 'Reply with exactly: yes', max_tokens: 200 });
    assert.deepEqual(choices, [{ text: 'yes', index: 0, logprobs: null, finish_reason: 'stop' }]);
  });

  it('POST /v1/completions with a chat model passes unknown fields to the vendor', async () => {
    const prompt = 'Write JSON';
    const { choices } = await held(overChat, {
      prompt,
      max_tokens: 90,
      response_format: { type: 'json_object' },
    } as Fields);
    assert.equal(typeof JSON.parse(choices[0]?.text ?? ''), 'object');
  });

  it('POST /v1/completions with a chat model returns the error of the prompt that failed', async () => {
    const sandbox = { fault: { kind: 'error', status: 503, times: 1, key: 'one prompt' } };
    const body = { model: overChat, prompt: ['a', 'b', 'c', 'd', 'e', 'f'], sandbox };
    await assertErrorAnswer(await post(body), 503, 'service_unavailable');
  });

  it('POST /v1/completions with a chat model ends every vendor call when the client disconnects', async () => {
    const user = 'left-completion';
    const leave = new AbortController();
    const prompt = Array.from({ length: 9 }, () => 'WORDS:100');
    const body = JSON.stringify({ model: overChat, prompt, user, sandbox: { first_token_ms: 60_000 } });
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

  const refusals: [name: string, fields: object, param: string][] = [
    ['null as prompt', { prompt: null }, 'prompt'],
    ['a prompt of tokens', { prompt: [1, 2] }, 'prompt'],
    ['prompts of tokens', { prompt: [[1, 2]] }, 'prompt'],
    ['a suffix', { suffix: 'the end' }, 'suffix'],
    ['best_of above n', { best_of: 2 }, 'best_of'],
    ['logprobs with echo', { echo: true, logprobs: 0 }, 'logprobs'],
    ['a max_tokens of 0', { max_tokens: 0 }, 'max_tokens'],
    ['messages', { messages: [{ role: 'user', content: 'x' }] }, 'messages'],
    ['tools', { tools: [] }, 'tools'],
    ['max_completion_tokens', { max_completion_tokens: 5 }, 'max_completion_tokens'],
  ];
  it('POST /v1/completions with a chat model returns 400 naming parameters that a chat cannot replace, and why', async (t) => {
    for (const [name, fields, param] of refusals) {
      await t.test(`POST /v1/completions with a chat model refuses ${name}`, async () => {
        const response = await post({ model: overChat, prompt: 'x', ...fields });
        const error = await assertErrorAnswer(response, 400, 'invalid_request_error');
        assert.equal(error.param, param);
        assert.match(error.message, /has no native completions/);
      });
    }
    const allowed = { prompt: 'x', suffix: '', best_of: 1, echo: false, logprobs: null, tools: null };
    assert.equal((await post({ model: overChat, ...allowed })).status, 200);
  });
});
