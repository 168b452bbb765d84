import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { gatedText } from '../../support/gated-vendor.ts';
import { jobIdOf } from '../../support/job-records.ts';
import { accountOfTag, makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { flightOf, heldText, SharedRequests, textOfStream } from '../../support/shared-requests.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';

const model = 'gated';

describe('X-Sluice-Single-Flight', () => {
  let shared: SharedRequests;
  before(async () => {
    shared = await SharedRequests.start();
  });
  after(() => shared?.stop());

  it('streamed and held requests share one vendor call on any instance, each with its own events, whichever is first', async () => {
    for (const isFirstStreamed of [true, false]) {
      const user = isFirstStreamed ? 'streams-first' : 'held-first';
      const bodies = { streamed: streamed('Hi', { model, user }), held: held('Hi', { model, user }) };
      const first = shared.ask(isFirstStreamed ? bodies.streamed : bodies.held);
      await shared.untilCalled(user);
      const others = await shared.join(bodies.held, 2, { api: 1 });
      const usage = { ...bodies.streamed, stream_options: { include_usage: true } };
      const [stream] = await shared.join(usage, 1, { api: 1 });
      shared.release(user);
      const answers = await Promise.all([first, ...others, stream as Promise<Response>]);
      assert.deepEqual(answers.map(flightOf), ['first', 'joined', 'joined', 'joined']);
      assert.equal(new Set(answers.map(jobIdOf)).size, 1);
      assert.deepEqual(
        answers.slice(1).map(({ headers }) => headers.get('x-sluice-cost')),
        ['0', '0', '0'],
      );
      const [made, one, other, events] = answers as [Response, Response, Response, Response];
      assert.equal(await (isFirstStreamed ? textOfStream(made) : heldText(made)), gatedText);
      const completion = (await one.json()) as OpenAI.ChatCompletion;
      assert.equal(completion.choices[0]?.message.content, gatedText);
      assert.deepEqual(await other.json(), completion);
      const all = sseEvents(await events.text());
      assert.equal(textOf(all), gatedText);
      assert.equal(all.at(-1)?.data, '[DONE]');
      const chunks = all.slice(0, -1).map(({ data }) => JSON.parse(data) as OpenAI.ChatCompletionChunk);
      assert.deepEqual(chunks.findLast((chunk) => chunk.usage != null)?.usage, completion.usage);
      assert.equal(shared.vendor.callsOf(user).length, 1);
    }
  });

  it('fields in another order are the same request; any other value, model or endpoint is another one', async () => {
    const user = 'order';
    const one = { model, user, stream: true, temperature: 0.5, messages: [{ role: 'user', content: 'Hi' }] };
    const { messages: _, ...rest } = one;
    const same = { messages: [{ content: 'Hi', role: 'user' }], ...rest };
    const others = [
      { ...one, temperature: 0.6 },
      { ...one, model: 'gated-too' },
    ];
    const first = await shared.open(one);
    const joined = await shared.open(same, { api: 1 });
    assert.deepEqual([flightOf(first.response), flightOf(joined.response)], ['first', 'joined']);
    for (const [index, body] of others.entries()) {
      const other = await shared.open(body);
      assert.equal(flightOf(other.response), 'first');
      assert.equal(shared.vendor.callsOf(user).length, 2 + index);
      other.leave();
    }
    shared.release(user);
    assert.deepEqual([await textOfStream(first.response), await textOfStream(joined.response)], [gatedText, gatedText]);
  });

  it('another account has its own call, even one whose names lie under the same Redis tag', async () => {
    const body = streamed('Hi', { model, user: 'mine' });
    const first = await shared.open(body);
    for (const [index, accountId] of ['stranger', accountOfTag()].entries()) {
      const other = await shared.open(body, { headers: await shared.bearer({ accountId }) });
      assert.equal(flightOf(other.response), 'first');
      assert.notEqual(jobIdOf(other.response), jobIdOf(first.response));
      assert.equal(shared.vendor.callsOf('mine').length, 2 + index);
    }
    shared.release('mine');
    assert.equal(await textOfStream(first.response), gatedText);
  });

  it('a key joins only what it could send itself: not another model, nor beyond its budget or limits, nor once revoked', async () => {
    const body = streamed('Hi', { model, user: 'rights' });
    const first = await shared.open(body);
    // One that joins all the same gets a stream that does not end by itself.
    const refused = async (headers: Record<string, string>, status: number, code: string, api = 0): Promise<void> => {
      const response = await shared.ask(body, { headers, api });
      assert.equal(response.status, status);
      await assertErrorAnswer(response, status, code);
    };
    const refusals = [
      [{ models: ['sandbox-*'] }, 403, 'permission_denied'],
      [{ capabilities: ['embedding'] }, 403, 'permission_denied'],
      [{ budget: { amount: 0, period: 'month' } }, 429, 'insufficient_quota'],
    ] as const;
    for (const [settings, status, code] of refusals) {
      await refused(await shared.bearer(settings), status, code, 1);
    }
    const slow = await shared.bearer({ rpm: 1 });
    const own = await shared.open(streamed('Hi', { model, user: 'slow' }), { headers: slow });
    await refused(slow, 429, 'rate_limit_exceeded');
    own.leave();
    const key = await makeApiKey(shared.gateway);
    const headers = { authorization: `Bearer ${key}` };
    const joined = await shared.open(body, { headers });
    await revokeKey(shared.gateway, key);
    await refused(headers, 401, 'invalid_api_key');
    shared.release('rights');
    assert.deepEqual([await textOfStream(first.response), await textOfStream(joined.response)], [gatedText, gatedText]);
    assert.equal(shared.vendor.callsOf('rights').length, 1);
  });

  it('a join counts against no limit, and a budget that suffices for one call is enough for all that share it', async () => {
    const body = streamed('Hi', { model, user: 'frugal', max_tokens: 100 });
    const headers = await shared.bearer({ rpm: 2, concurrency: 1, budget: { amount: 400_000, period: 'month' } });
    const open = await Promise.all([0, 1, 0, 1, 0].map((api) => shared.open(body, { headers, api })));
    assert.deepEqual(open.map(({ response }) => flightOf(response)).sort(), ['first', ...Array(4).fill('joined')]);
    shared.release('frugal');
    for (const { response } of open) assert.equal(await textOfStream(response), gatedText);
  });

  it('an answer that is shortened for its key’s budget is not shared', async () => {
    const body = streamed('Hi', { model, user: 'lowered', max_completion_tokens: undefined });
    const poor = await shared.bearer({ budget: { amount: 400_000, period: 'month' } });
    const lowered = await shared.open(body, { headers: poor });
    const rich = await shared.open(body);
    assert.notEqual(jobIdOf(lowered.response), jobIdOf(rich.response));
    assert.equal(shared.vendor.callsOf('lowered').length, 2);
    shared.release('lowered');
    for (const { response } of [lowered, rich]) assert.equal(await textOfStream(response), gatedText);
  });

  it('a failed job fails for all that share it, and the next request is a new one', async () => {
    const body = held('Hi', { model, user: 'fails' });
    const first = shared.ask(body);
    await shared.untilCalled('fails');
    const others = await shared.join(body, 2, { api: 1 });
    shared.vendor.callsOf('fails')[0]?.fail(500);
    for (const { status } of await Promise.all([first, ...others])) assert.equal(status, 500);
    const next = shared.ask(body);
    await shared.untilCalled('fails', 2);
    shared.release('fails');
    assert.equal(flightOf(await next), 'first');
  });

  it('an answer that breaks off breaks off for all that share it', async () => {
    const fault = { fault: { kind: 'reset', after_tokens: 3 }, tokens_per_second: 5 };
    const body = streamed('WORDS:20@5', { user: 'broken', sandbox: fault });
    const open = await Promise.all([0, 1, 0].map((api) => shared.ask(body, { api })));
    assert.deepEqual(open.map(flightOf).sort(), ['first', 'joined', 'joined']);
    const texts = await Promise.all(open.map((response) => response.text()));
    assert.equal(new Set(texts).size, 1);
    assert.match(texts[0] as string, /stream_interrupted|server_error/);
  });

  it('once the answer has ended, an identical request is a new one', async () => {
    const body = held('Hi', { model, user: 'ended' });
    for (const number of [1, 2]) {
      const answer = shared.ask(body);
      await shared.untilCalled('ended', number);
      shared.release('ended');
      const response = await answer;
      assert.equal(flightOf(response), 'first');
      assert.equal(await heldText(response), gatedText);
    }
    await eventually(async () => assert.deepEqual(await shared.records.redis.keys('*idempotency:shared-*'), []));
  });

  it('an ended job is not joined, though a worker of the release before has left its binding', async () => {
    const { redis } = shared.records;
    const body = held('Hi', { model, user: 'left-bound' });
    const first = shared.ask(body);
    await shared.untilCalled('left-bound');
    const [binding] = await redis.keys('*idempotency:shared-*');
    const bound = await redis.hgetall(binding as string);
    assert.ok((await redis.pttl(binding as string)) > 0);
    shared.release('left-bound');
    const id = jobIdOf(await first);
    await eventually(async () => assert.equal(await redis.exists(binding as string), 0));
    await redis.hset(binding as string, bound);
    const next = shared.ask(body, { api: 1 });
    await shared.untilCalled('left-bound', 2);
    shared.release('left-bound');
    const answer = await next;
    assert.deepEqual([flightOf(answer), await heldText(answer)], ['first', gatedText]);
    assert.notEqual(jobIdOf(answer), id);
    // Redis may lose a job, too, and not its binding.
    await redis.hset(binding as string, { ...bound, job: '0'.repeat(32) });
    const last = shared.ask(body);
    await shared.untilCalled('left-bound', 3);
    shared.release('left-bound');
    assert.equal(flightOf(await last), 'first');
  });

  it('a key can have it on, and a request turns it off; what is bound another way is not shared', async () => {
    const headers = { ...(await shared.bearer({ singleFlight: true })) };
    const plain = async (more: Record<string, string>): Promise<Record<string, string>> => ({ ...headers, ...more });
    const post = (body: object, more: Record<string, string> = {}) =>
      shared.records.post(body, { ...headers, ...more });
    const body = streamed('Hi', { model, user: 'by-key' });
    const answers = [await post(body), await post(body), await post(body, { 'x-sluice-single-flight': '0' })];
    assert.deepEqual(answers.map(flightOf), ['first', 'joined', null]);
    assert.equal(shared.vendor.callsOf('by-key').length, 2);
    shared.release('by-key');
    for (const response of answers) assert.equal(await textOfStream(response), gatedText);

    const quick = held('WORDS:2@200');
    const elses = [
      { 'idempotency-key': 'mine' },
      { 'x-sluice-cache': '60' },
      { prefer: 'wait=20' },
      { 'x-sluice-start-by': '20' },
    ];
    for (const more of elses) {
      assert.equal(flightOf(await shared.ask(quick, { headers: await plain(more) })), 'bypass');
      assert.equal(flightOf(await post(quick, more)), null);
    }
    const long = held('x'.repeat(300_000), { max_tokens: 2 });
    assert.equal(flightOf(await shared.ask(long)), 'bypass');
    const response = { model: 'sandbox-chat', input: 'Hi' };
    assert.equal(flightOf(await shared.ask(response, { path: '/v1/responses' })), 'bypass');
    for (const value of ['', 'yes', '2', '1, 1']) {
      const error = await assertErrorAnswer(
        await shared.ask(quick, { headers: { 'x-sluice-single-flight': value } }),
        400,
        'invalid_request_error',
      );
      assert.equal(error.param, 'X-Sluice-Single-Flight');
    }
  });
});
