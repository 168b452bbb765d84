import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { accountOfTag, makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

/** Bodies that two accounts send; a soak sends more. */
const bodies = process.env.SLUICE_SOAK ? 1000 : 30;

describe('X-Sluice-Cache', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2, configuration: oneAttempt });
  });
  after(() => gateway.stop());

  const ask = (
    body: object,
    { path = '/v1/chat/completions', ...headers }: Record<string, string> = {},
    api = 0,
  ): Promise<Response> =>
    gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'x-sluice-cache': '60', ...headers },
      url: gateway.apis[api]?.url as string,
    });
  const calls = async (user: string): Promise<number> => (await vendorCalls(gateway, user)).length;
  const resultOf = ({ headers }: Response): string | null => headers.get('x-sluice-cache');

  it('an identical request gets the cached answer on any instance, for nothing and without another call', async () => {
    const body = held('WORDS:5@200', { user: 'same' });
    const first = await ask(body);
    assert.equal(resultOf(first), 'miss');
    const answer = await first.json();
    for (const api of [0, 1]) {
      const again = await ask(body, {}, api);
      assert.equal(resultOf(again), 'hit');
      assert.equal(again.headers.get('x-sluice-cost'), '0');
      assert.match(again.headers.get('age') ?? '', /^\d+$/);
      assert.equal(again.headers.get('idempotent-replayed'), null);
      assert.deepEqual(await again.json(), answer);
    }
    assert.equal(await calls('same'), 1);
  });

  it('fields in another order, and whitespace, make no difference; any other value does', async () => {
    const one = { model: 'sandbox-chat', user: 'order', temperature: 0.5, messages: [{ role: 'user', content: 'Hi' }] };
    const { user, messages: _, ...rest } = one;
    assert.equal(resultOf(await ask(one)), 'miss');
    assert.equal(resultOf(await ask({ messages: [{ content: 'Hi', role: 'user' }], ...rest, user })), 'hit');
    assert.equal(resultOf(await ask({ ...one, temperature: 0.6 })), 'miss');
    assert.equal(resultOf(await ask({ ...one, user: 'order-2' })), 'miss');
  });

  it('a streamed miss serves held hits, and a held miss streamed ones, with the events of a stream', async () => {
    for (const [user, isFirstStreamed] of [
      ['streams-first', true],
      ['held-first', false],
    ] as const) {
      const [heldBody, streamedBody] = [held('WORDS:12@200', { user }), streamed('WORDS:12@200', { user })];
      const first = await (await ask(isFirstStreamed ? streamedBody : heldBody)).text();
      const heldHit = await ask(heldBody);
      const completion = (await heldHit.json()) as OpenAI.ChatCompletion;
      const streamedHit = await ask({ ...streamedBody, stream_options: { include_usage: true } });
      assert.match(streamedHit.headers.get('content-type') ?? '', /event-stream/);
      const events = sseEvents(await streamedHit.text());
      assert.deepEqual([resultOf(heldHit), resultOf(streamedHit)], ['hit', 'hit']);
      const text = completion.choices[0]?.message.content ?? '';
      assert.equal(text.split(' ').length, 12);
      assert.equal(textOf(events), text);
      assert.equal(events.at(-1)?.data, '[DONE]');
      const usages = events.slice(0, -1).map(({ data }) => (JSON.parse(data) as { usage?: object | null }).usage);
      assert.deepEqual(
        usages.findLast((usage) => usage != null),
        completion.usage,
      );
      assert.ok(first.includes(completion.id));
      assert.equal(await calls(user), 1);
    }
  });

  it('identical requests at the same time share one vendor call, streamed to each', async () => {
    const body = streamed('WORDS:20@20', { user: 'together' });
    const texts = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const response = await ask(body, {}, index % 2);
        assert.equal(response.status, 200);
        return textOf(sseEvents(await response.text()));
      }),
    );
    assert.equal(new Set(texts).size, 1);
    assert.equal(texts[0]?.split(' ').length, 20);
    assert.equal(await calls('together'), 1);
  });

  it('another account never gets the answer, and neither does another model or endpoint', async () => {
    const body = held('WORDS:3@200', { user: 'mine' });
    assert.equal(resultOf(await ask(body)), 'miss');
    for (const accountId of ['stranger', accountOfTag()]) {
      const authorization = `Bearer ${await makeApiKey(gateway, { accountId })}`;
      assert.equal(resultOf(await ask(body, { authorization })), 'miss');
    }
    assert.equal(resultOf(await ask({ ...body, model: 'sandbox-reasoning' })), 'miss');
    const message = { model: 'sandbox-chat', max_tokens: 100, messages: body.messages };
    assert.equal(resultOf(await ask(message, { path: '/v1/messages' })), 'miss');
    assert.equal(resultOf(await ask(message, { path: '/v1/messages' })), 'hit');
    assert.equal(await calls('mine'), 4);
  });

  it('each account of a Redis tag has its own answer of every body, however its fields are ordered', async () => {
    const neighbour = `Bearer ${await makeApiKey(gateway, { accountId: accountOfTag() })}`;
    const texts = ['Hi', 'hi', 'é', 'e\u0301', '\u{1f600}', '{"a":1}'];
    const ids = new Set<string>();
    for (let index = 0; index < bodies; index++) {
      const [content, required] = [
        `${texts[index % texts.length]} ${Math.floor(index / texts.length)}`,
        [`a${index % 5}`],
      ];
      const one = { b: { type: 'number', minimum: index / 8 }, [`a${index % 5}`]: { type: 'string' } };
      const other = Object.fromEntries(Object.entries(one).reverse());
      const bodyOf = (properties: object) =>
        held(content, { tools: [{ type: 'function', function: { name: 'f', parameters: { required, properties } } }] });
      for (const headers of [{}, { authorization: neighbour }]) {
        const miss = await ask(bodyOf(one), headers);
        const hit = await ask(Object.fromEntries(Object.entries(bodyOf(other)).reverse()), headers, 1);
        assert.deepEqual([resultOf(miss), resultOf(hit)], ['miss', 'hit'], content);
        const [made, cached] = [await miss.json(), await hit.json()] as { id: string }[];
        assert.deepEqual(made, cached);
        ids.add(made?.id ?? '');
      }
    }
    assert.equal(ids.size, 2 * bodies);
  });

  it('a hit costs nothing: a key without budget gets it, but no miss, and no limit per minute counts it', async () => {
    const body = held('WORDS:4@200', { user: 'free' });
    await (await ask(body)).text();
    const poor = `Bearer ${await makeApiKey(gateway, { budget: { amount: 0, period: 'month' } })}`;
    assert.equal(resultOf(await ask(body, { authorization: poor })), 'hit');
    await assertErrorAnswer(await ask(held('Another'), { authorization: poor }), 429, 'insufficient_quota');
    // Larger ones are refused before they are read, unless their answer may be cached.
    const large = (text: string): object => {
      const system = { role: 'system', content: text.repeat(100_000) };
      return { ...body, messages: [system, ...body.messages] };
    };
    assert.equal(resultOf(await ask(large('x'))), 'miss');
    const hit = await ask(large('x'), { authorization: poor });
    assert.deepEqual([hit.status, resultOf(hit)], [200, 'hit']);
    await assertErrorAnswer(await ask(large('y'), { authorization: poor }), 429, 'insufficient_quota');
    const slow = `Bearer ${await makeApiKey(gateway, { rpm: 1 })}`;
    for (let index = 0; index < 3; index++) assert.equal(resultOf(await ask(body, { authorization: slow })), 'hit');
    assert.equal(resultOf(await ask(held('One more'), { authorization: slow })), 'miss');
    await assertErrorAnswer(await ask(held('And more'), { authorization: slow }), 429, 'rate_limit_exceeded');
  });

  it('a key that was revoked gets no hit', async () => {
    const body = held('WORDS:4@200', { user: 'revoked' });
    await (await ask(body)).text();
    const key = await makeApiKey(gateway);
    const authorization = `Bearer ${key}`;
    assert.equal(resultOf(await ask(body, { authorization })), 'hit');
    await revokeKey(gateway, key);
    await assertErrorAnswer(await ask(body, { authorization }), 401, 'invalid_api_key');
  });

  it('a failed answer is not cached', async () => {
    const body = held('Hi', { user: 'fails', sandbox: { fault: { kind: 'error', status: 400 } } });
    for (let index = 0; index < 2; index++) assert.equal((await ask(body)).status, 400);
    assert.equal(await calls('fails'), 2);
  });

  it('an answer older than its caller wants is asked for again, and replaces the older one', async () => {
    const body = held('WORDS:3@200', { user: 'old' });
    await (await ask(body)).text();
    const again = async (seconds: string) => resultOf(await ask(body, { 'x-sluice-cache': seconds }));
    while ((await again('1')) === 'hit') await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await again('60'), 'hit');
    assert.equal(await calls('old'), 2);
  });

  it('requests that are not cached say so, and a wrong age returns 400', async () => {
    const response = { model: 'sandbox-chat', input: 'Hi' };
    assert.equal(resultOf(await ask(response, { path: '/v1/responses' })), 'bypass');
    assert.equal(resultOf(await ask(held('Hi'), { 'idempotency-key': 'mine' })), 'bypass');
    for (const age of ['0', '00', '000000'])
      assert.equal(resultOf(await ask(held('Hi'), { 'x-sluice-cache': age })), null);
    for (const age of ['-1', '1.5', 'yes', '604801', '99999999999']) {
      const error = await assertErrorAnswer(
        await ask(held('Hi'), { 'x-sluice-cache': age }),
        400,
        'invalid_request_error',
      );
      assert.equal(error.param, 'X-Sluice-Cache');
    }
  });

  it('hits, misses and bypasses are counted when they are answered, and requests without the header are not', async () => {
    const [path, url] = ['/v1/completions', gateway.apis[0]?.url as string];
    const body = { model: 'sandbox-chat', prompt: 'Hi', user: 'counted' };
    const plain = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), url });
    assert.equal(plain.status, 200, await plain.text());
    for (const headers of [{}, {}, {}, { 'idempotency-key': 'counted' }])
      await (await ask(body, { path, ...headers })).text();
    await eventually(async () => {
      const page = await MetricsPage.read(url);
      const count = (...labels: string[]) => page.sum('sluice_answer_cache_total', 'endpoint="completions"', ...labels);
      const counts = ['hit', 'miss', 'bypass'].map((result) => count(`result="${result}"`));
      assert.deepEqual([...counts, count()], [2, 1, 1, 4]);
    });
  });

  it('hits are in the usage of their account, key and model, beside its requests, and no failed ones', async () => {
    const accountId = 'hits';
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId })}`;
    const body = held('WORDS:3@200', { user: 'usage' });
    for (let index = 0; index < 4; index++) await (await ask(body, { authorization }, index % 2)).text();
    const failing = held('Hi', { user: 'shared', sandbox: { fault: { kind: 'error', status: 400 } } });
    await Promise.all([0, 1].map(async (api) => (await ask(failing, { authorization }, api)).text()));
    await eventually(async () => {
      const usage = await gateway.fetch('/v1/usage', { headers: { authorization } });
      const { data } = (await usage.json()) as { data: { results: Record<string, unknown>[] }[] };
      const [row, ...others] = data.flatMap(({ results }) => results);
      assert.deepEqual([row?.model, row?.cache_hits, others.length], ['sandbox-chat', 3, 0]);
      assert.ok(Number(row?.requests) >= 2 && Number(row?.cost) > 0, 'the jobs are counted, too');
    }, 20_000);
  });

  it('embeddings are cached', async () => {
    const body = { model: 'sandbox-embedding', input: 'cached text', user: 'embedded' };
    const path = '/v1/embeddings';
    const first = await ask(body, { path });
    const second = await ask(body, { path });
    assert.deepEqual([resultOf(first), resultOf(second)], ['miss', 'hit']);
    assert.deepEqual(await second.json(), await first.json());
  });
});
