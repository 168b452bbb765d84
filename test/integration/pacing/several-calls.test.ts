import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { JobRecords, jobIdOf, later } from '../../support/job-records.ts';
import { LimitedVendor } from '../../support/limited-vendor.ts';
import { sseEvents } from '../../support/sse-events.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody } from '../../vendors/recorded/recorded-openai.ts';

/** What a vendor is asked for: an input of embeddings, or a message. */
interface Asked {
  readonly model?: string;
  readonly input?: readonly string[];
  readonly messages?: readonly { readonly content: string }[];
  readonly stream?: boolean;
}

/** How long the answers of `narrow` are held back, in ms: calls that may run at a time do. */
const heldMs = 50;

/** A dollar for a million tokens, in billionths of a dollar. */
const tokenPrice = 1000;

describe('requests that take several calls of a vendor', () => {
  let vendor: FixtureVendor;
  /** Allows 60 calls a minute, one every second and one more at once, and answers later than it refuses. */
  let limited: LimitedVendor;
  let records: JobRecords;
  let gateway: TestGateway;
  /** The first text of each call that the vendor has answered, or refused. */
  const answered: string[] = [];
  const refused: string[] = [];
  /** Whose stream ends with an error. */
  let broken: string | undefined;
  /** Returns the status by which the vendor refuses a call; undefined: it answers. */
  let refusal: (text: string) => number | undefined;
  /** Returns whether a call is left without an answer. */
  let isSilent: (text: string) => boolean;
  /** Returns whether the vendor reports what a call took, as Gemini's older models do not. */
  let isCounted: (text: string) => boolean;
  /** What the vendor reports that each call of embeddings took; undefined: a token for each input. */
  let counts: object | undefined;
  /** Calls without one. */
  let silent: number;
  /** Calls of the vendor under way whose answers are held back, and the most at a time. */
  let [open, mostOpen] = [0, 0];

  before(async () => {
    vendor = await startFixtureVendor();
    limited = await LimitedVendor.start({ requests: 3, windowMs: 2000, callMs: 300 });
    vendor.answer((response, { body }) => {
      const asked = JSON.parse(body) as Asked;
      const { model, input, messages = [] } = asked;
      const text = input?.[0] ?? messages[0]?.content ?? '';
      if (isSilent(text)) {
        silent += 1;
        return;
      }
      const status = refusal(text);
      if (status !== undefined) {
        refused.push(text);
        sendJson(response, status, errorBody('not now', 'not_now'), { 'retry-after-ms': '20' });
        return;
      }
      if (model === 'narrow') {
        mostOpen = Math.max(mostOpen, ++open);
        setTimeout(() => {
          open -= 1;
          answer(response, text, asked);
        }, heldMs);
        return;
      }
      answer(response, text, asked);
    });
    const answer = (response: ServerResponse, text: string, { input, stream }: Asked): void => {
      answered.push(text);
      if (input === undefined) {
        const message = { role: 'assistant', content: `about ${text}` };
        const choice = { index: 0, logprobs: null, finish_reason: 'stop' };
        if (stream) {
          const chunk = { ...completion, object: 'chat.completion.chunk', choices: [{ ...choice, delta: message }] };
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          const end = text === broken ? errorBody('limit', 'rate_limit_exceeded') : '[DONE]';
          response.end(`data: ${JSON.stringify(chunk)}\n\ndata: ${end}\n\n`);
        } else {
          const usage = isCounted(text) ? completion.usage : undefined;
          sendJson(response, 200, JSON.stringify({ ...completion, choices: [{ ...choice, message }], usage }));
        }
        return;
      }
      const data = input.map((each, index) => ({ object: 'embedding', index, embedding: [Number(each)] }));
      const usage = counts ?? { prompt_tokens: input.length, total_tokens: input.length };
      sendJson(response, 200, JSON.stringify({ object: 'list', model: 'm', data, ...(isCounted(text) && { usage }) }));
    };
    const routes = [{ vendor: 'own', model: 'm' }];
    records = await JobRecords.start({
      configuration: {
        vendors: {
          own: { base_url: vendor.baseUrl, api_key: 'a-key' },
          narrow: {
            ...{ base_url: vendor.baseUrl, api_key: 'a-key' },
            model_limits: { narrow: { max_parallel_requests: 1 }, wide: { max_parallel_requests: 20 } },
          },
          limited: { base_url: limited.server.baseUrl, api_key: 'a-key', rpm: 60, max_parallel_requests: 1 },
        },
        models: {
          embedder: {
            ...{ capability: 'embedding', embedding: { dimensions: true, batch: 2 }, prices: { input: 1 }, routes },
          },
          // One call at a time, of a vendor that has no other limit.
          narrow: { capability: 'chat', routes: [{ vendor: 'narrow', model: 'narrow' }] },
          'narrow-embedder': {
            ...{ capability: 'embedding', embedding: { dimensions: true, batch: 2 } },
            routes: [{ vendor: 'narrow', model: 'narrow' }],
          },
          wide: { capability: 'chat', routes: [{ vendor: 'narrow', model: 'wide' }] },
          limited: { capability: 'chat', routes: [{ vendor: 'limited', model: 'm' }] },
          chatter: { capability: 'chat', prices: { input: 1, output: 1 }, routes },
          // Longer requests than any of the tests' prompts cost ten times as much.
          stepped: {
            capability: 'chat',
            prices: { input: 1, output: 1, request: 0.000003, above: [{ tokens: 3, input: 10, output: 10 }] },
            routes,
          },
        },
      },
    });
    gateway = records.gateway;
  });

  beforeEach(() => {
    answered.length = 0;
    refused.length = 0;
    broken = undefined;
    refusal = () => undefined;
    isSilent = () => false;
    isCounted = () => true;
    counts = undefined;
    silent = 0;
  });

  after(async () => {
    await records?.stop();
    await vendor?.close();
    await limited?.close();
  });

  const post = (path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) });

  /** Refuses a call so many times, once others were answered. */
  const refuseAfterFirst = (text: string, status: number, times: number) => (asked: string) =>
    asked === text && answered.length > 0 && refused.length < times ? status : undefined;

  const inOrder = (texts: readonly string[]): string[] => texts.toSorted((one, other) => Number(one) - Number(other));
  const input = Array.from({ length: 24 }, (_, index) => String(index));

  for (const status of [429, 500, 503]) {
    test(`embeddings of which the vendor refuses a call by ${status} repeat that call alone`, async () => {
      refusal = refuseAfterFirst('18', status, 2);
      const response = await post('/v1/embeddings', { model: 'embedder', input });
      const body = (await response.json()) as { data: { embedding: number[] }[]; usage: object };
      assert.equal(response.status, 200, JSON.stringify(body));
      assert.deepEqual(
        body.data.map(({ embedding }) => embedding),
        input.map((each) => [Number(each)]),
      );
      assert.deepEqual(body.usage, { prompt_tokens: 24, total_tokens: 24 });
      assert.deepEqual(refused, ['18', '18']);
      assert.deepEqual(
        inOrder(answered),
        input.filter((each) => Number(each) % 2 === 0),
      );
    });
  }

  for (const stream of [false, true]) {
    test(`a legacy completion of several prompts ${stream ? 'in a stream ' : ''}repeats the chat that was refused alone`, async () => {
      refusal = refuseAfterFirst('9', 429, 2);
      const prompt = input.slice(0, 12);
      const response = await post('/v1/completions', { model: 'chatter', prompt, stream });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      const bodies = stream
        ? sseEvents(text)
            .slice(0, -1)
            .map(({ data }) => data)
        : [text];
      const choices = bodies.flatMap(
        (body) => (JSON.parse(body) as { choices: { index: number; text: string }[] }).choices,
      );
      const texts = prompt.map((_, index) =>
        choices.map((choice) => (choice.index === index ? choice.text : '')).join(''),
      );
      assert.deepEqual(
        texts,
        prompt.map((each) => `about ${each}`),
      );
      assert.deepEqual(inOrder(answered), prompt);
    });
  }

  for (const [path, model, field, each, fee] of [
    ['/v1/embeddings', 'embedder', 'input', 2, 0],
    ['/v1/completions', 'chatter', 'prompt', 1, 0],
    ['/v1/completions', 'stepped', 'prompt', 1, 8 * 3000],
  ] as const) {
    test(`a request to ${path} of ${model} that is cancelled in the middle pays for none of what its vendor was not sent`, async () => {
      isSilent = (text) => Number(text) >= 4 * each;
      const texts = Array.from({ length: 100 }, (_, index) => String(index));
      const response = await records.post({ model, [field]: texts }, later, { path });
      const { id } = (await response.json()) as { id: string };
      await eventually(() => assert.equal(silent, 4));
      await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
      const { outcome, cost } = await eventually(() => records.ended(id.slice('job_'.length)));
      assert.deepEqual([outcome, answered.length, cost], ['cancelled', 4, 8 * each * tokenPrice + fee]);
    });
  }

  test('each call of a request counts against the requests a minute of its vendor, which refuses none and is asked nothing twice', async () => {
    const prompt = input.slice(0, 6);
    const response = await post('/v1/completions', { model: 'limited', prompt });
    assert.equal(response.status, 200, await response.text());
    assert.deepEqual([limited.refused.length, limited.prompts.toSorted()], [0, prompt]);
  });

  for (const [path, model, field] of [
    ['/v1/embeddings', 'narrow-embedder', 'input'],
    ['/v1/completions', 'narrow', 'prompt'],
  ] as const) {
    test(`a request to ${path} makes one call at a time where its vendor's calls at a time are limited`, async () => {
      mostOpen = 0;
      const response = await post(path, { model, [field]: input.slice(0, 8) });
      assert.equal(response.status, 200, await response.text());
      assert.deepEqual([mostOpen, answered.length], [1, field === 'input' ? 4 : 8]);
    });
  }

  test('a request makes calls beside each other while more than half of the calls at a time are free', async () => {
    // None of them is answered before four are there.
    isSilent = () => true;
    const response = await records.post({ model: 'wide', prompt: input.slice(0, 8) }, later, {
      path: '/v1/completions',
    });
    const { id } = (await response.json()) as { id: string };
    await eventually(() => assert.equal(silent, 4));
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    await eventually(() => records.ended(id.slice('job_'.length)));
    isSilent = () => false;
    const next = await post('/v1/completions', { model: 'wide', prompt: input.slice(0, 8) });
    assert.equal(next.status, 200, await next.text());
    assert.deepEqual(inOrder(answered), input.slice(0, 8));
  });

  test('a request that is cancelled between its calls, which it makes one after the other, pays for none that was not sent', async () => {
    isSilent = (text) => text === '2';
    const response = await records.post({ model: 'narrow', prompt: input }, later, { path: '/v1/completions' });
    const { id } = (await response.json()) as { id: string };
    await eventually(() => assert.equal(silent, 1));
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    const { outcome, input_tokens: read } = await eventually(() => records.ended(id.slice('job_'.length)));
    assert.deepEqual([outcome, answered, read], ['cancelled', ['0', '1'], 3]);
  });

  test('a chat whose answer has begun is not repeated: its choice would begin twice', async () => {
    broken = '9';
    const text = await (
      await post('/v1/completions', { model: 'chatter', prompt: input.slice(0, 12), stream: true })
    ).text();
    assert.match(sseEvents(text).at(-1)?.data ?? '', /"error"/);
    assert.equal(answered.filter((each) => each === broken).length, 1);
  });

  test('a call that the vendor refuses as invalid ends the request at once', async () => {
    refusal = refuseAfterFirst('18', 400, 100);
    const response = await post('/v1/embeddings', { model: 'embedder', input });
    assert.equal(response.status, 400);
    assert.deepEqual(refused, ['18']);
  });

  for (const [path, model, field, each, usage] of [
    ['/v1/embeddings', 'embedder', 'input', 2, { prompt_tokens: 2, completion_tokens: 0 }],
    ['/v1/completions', 'chatter', 'prompt', 1, completion.usage],
  ] as const) {
    test(`a request to ${path} of which the vendor refuses a call as invalid pays for the calls that it has answered`, async () => {
      // The fifth call begins once the first is answered.
      const last = String(4 * each);
      isSilent = (text) => text !== '0' && text !== last;
      refusal = (text) => (text === last ? 400 : undefined);
      const response = await post(path, { model, [field]: input.slice(0, 5 * each) });
      assert.equal(response.status, 400, await response.text());
      const { outcome, cost, input_tokens: read } = await records.ended(jobIdOf(response));
      const paid = (usage.prompt_tokens + usage.completion_tokens) * tokenPrice;
      assert.deepEqual([outcome, read, cost, answered], ['failed', usage.prompt_tokens, paid, ['0']]);
    });
  }

  test('embeddings of which the vendor refuses a call as invalid pay for those of the calls that it has answered, as counted here where it counts none', async () => {
    isCounted = () => false;
    // Those of the first call are many tokens, and have no answer yet.
    const inputs = ['word '.repeat(1000), ...input.slice(1, 10)];
    isSilent = (text) => text !== '2' && text !== '8';
    refusal = (text) => (text === '8' ? 400 : undefined);
    const response = await post('/v1/embeddings', { model: 'embedder', input: inputs });
    assert.equal(response.status, 400, await response.text());
    const { outcome, cost, usage } = await records.ended(jobIdOf(response));
    // Two inputs, each of a token.
    const counts = { prompt_tokens: 2, total_tokens: 2, estimated: true };
    assert.deepEqual([outcome, cost, JSON.parse(usage ?? 'null')], ['failed', 2 * tokenPrice, counts]);
  });

  for (const [path, model, field, each, usage] of [
    ['/v1/embeddings', 'embedder', 'input', 2, { prompt_tokens: 2, completion_tokens: 0 }],
    ['/v1/completions', 'chatter', 'prompt', 1, completion.usage],
  ] as const) {
    test(`a request to ${path} of which the vendor refuses a call as invalid pays what it has counted, and for the others of its answers as counted here`, async () => {
      const [counted, uncounted, last] = [0, each, 5 * each].map(String);
      isCounted = (text) => text === counted;
      // The sixth call begins once two are answered.
      isSilent = (text) => ![counted, uncounted, last].includes(text);
      refusal = (text) => (text === last ? 400 : undefined);
      const response = await post(path, { model, [field]: input.slice(0, 6 * each) });
      assert.equal(response.status, 400, await response.text());
      const { outcome, cost, input_tokens: read } = await records.ended(jobIdOf(response));
      const tokens = usage.prompt_tokens + usage.completion_tokens + each;
      assert.deepEqual([outcome, read, cost], ['failed', usage.prompt_tokens + each, tokens * tokenPrice]);
    });
  }

  test('what cannot be true of what a vendor has counted is counted here, where it refuses another call as invalid', async () => {
    for (const tokens of [0.5, 1e300, -1]) {
      counts = { prompt_tokens: tokens, total_tokens: tokens };
      isSilent = (text) => text !== '0' && text !== '8';
      refusal = (text) => (text === '8' ? 400 : undefined);
      const response = await post('/v1/embeddings', { model: 'embedder', input: input.slice(0, 10) });
      assert.equal(response.status, 400, await response.text());
      const { outcome, cost, attempts } = await records.ended(jobIdOf(response));
      assert.deepEqual([outcome, cost, attempts], ['failed', 2 * tokenPrice, 1], String(tokens));
    }
  });

  test('a call that the vendor refuses again and again ends the request', async () => {
    refusal = refuseAfterFirst('18', 503, 100);
    const response = await post('/v1/embeddings', { model: 'embedder', input });
    assert.equal(response.status, 503);
    assert.ok(refused.length >= 4, String(refused.length));
    // It is the vendor's failure.
    assert.equal((await records.ended(jobIdOf(response))).cost, 0);
  });
});
