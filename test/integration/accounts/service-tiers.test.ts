import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { readSse } from '../../support/sse-events.ts';
import { answerAsSaid, counts, type Said, saying, usage } from '../../support/tier-saying-vendor.ts';
import { type FixtureVendor, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** Nano-dollars of `gpt-5` in the catalogue, for a token; flex costs half, priority the double. */
const [input, output] = [1250, 10_000];
const standard = counts.prompt * input + counts.completion * output;
const factors = { default: 1, flex: 0.5, priority: 2 } as const;

const chat = { model: 'gpt-5', messages: [{ role: 'user', content: 'Who made Ruby?' }], max_tokens: 100 };
const credit = 1_000_000_000_000;

type Json = Record<string, unknown>;

/** Calls all of these, some at a time. */
async function each<Item>(items: readonly Item[], call: (item: Item) => Promise<void>): Promise<void> {
  const left = [...items];
  const work = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await call(item);
  };
  await Promise.all(Array.from({ length: 24 }, work));
}

describe('prices per service tier', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;
  let limited: string;

  before(async () => {
    vendor = await startFixtureVendor();
    const vendors = Object.fromEntries(
      ['openai', 'groq', 'gemini'].map((name) => [name, { base_url: vendor.baseUrl, api_key: `key-of-${name}-1234` }]),
    );
    const models = {
      own: {
        capability: 'chat' as const,
        prices: { input: 1, output: 2, tiers: { premium: { input: 3, output: 5 } } },
        routes: [{ vendor: 'openai', model: 'own' }],
      },
      repriced: {
        capability: 'chat' as const,
        routes: [{ vendor: 'openai', model: 'gpt-5', prices: { input: 9, output: 9 } }],
      },
      'gpt-5.2': { prices: { output: 20 } },
    };
    vendor.answer(answerAsSaid);
    records = await JobRecords.start({ configuration: { vendors, models, routing: { breaker: { calls: 10_000 } } } });
    limited = (await makeLimitedAccount(records.gateway, { credit })).key;
  });
  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  interface Outcome {
    readonly cost: number | null;
    readonly text: string;
    readonly id: string;
    readonly tier: unknown;
  }

  async function ask(body: Json, path = '/v1/chat/completions', key = limited): Promise<Outcome> {
    const response = await records.post(body, { authorization: `Bearer ${key}` }, { path });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const id = jobIdOf(response);
    const { cost, usage: recorded } = await records.ended(id);
    return { cost, text, id, tier: (JSON.parse(recorded ?? '{}') as Json).service_tier };
  }

  /** The tier that an answer names, the last one of a stream. */
  function shownIn(text: string): unknown {
    const events = text.startsWith('{') ? [text] : (text.match(/(?<=^data: )\{.*$/gm) ?? []);
    const named = events.flatMap((event): unknown[] => {
      const { service_tier: tier, response, message, usage: own } = JSON.parse(event) as Record<string, Json>;
      return [tier, response?.service_tier, (message?.usage as Json)?.service_tier, own?.service_tier];
    });
    return named.findLast((tier) => typeof tier === 'string');
  }

  /** A request on each endpoint, whose vendor says this. */
  function bodies(said: Said): readonly (readonly [path: string, body: Json])[] {
    const prompt = saying(said);
    const talk = { ...chat, messages: [{ role: 'user', content: prompt }] };
    return [
      ['/v1/chat/completions', talk],
      ['/v1/responses', { model: 'gpt-5', input: prompt, max_output_tokens: 100 }],
      ['/v1/completions', { model: 'gpt-5', prompt }],
      ['/v1/messages', talk],
    ];
  }

  /** A chat whose vendor says that it has used this tier. */
  const chatServedAt = (tier: string): Json => bodies({ service_tier: tier })[0]?.[1] ?? {};

  /** Every request, held and streamed, that asks for one of these tiers, and whose vendor says one of these. */
  function* cases(asked: readonly (string | undefined)[], all: readonly Said[]) {
    for (const said of all) {
      for (const [path, body] of bodies(said)) {
        for (const stream of [false, true]) {
          for (const tier of path === '/v1/messages' ? [undefined] : asked) {
            const name = `${path} ${stream} asks for ${tier}, gets ${JSON.stringify(said).slice(0, 60)}`;
            yield { path, name, tier, said, body: { ...body, stream, ...(tier && { service_tier: tier }) } };
          }
        }
      }
    }
  }

  test('an answer is charged by the service tier that its vendor says it has used, held and streamed, which stands in the answer and in the record', async () => {
    const tiers = ['default', 'flex', 'priority'] as const;
    const all = cases(
      [undefined, 'auto', 'flex', 'priority'],
      tiers.map((tier) => ({ service_tier: tier })),
    );
    const ofAnthropic: Json = { default: 'standard', flex: 'batch', priority: 'priority' };
    await each([...all], async ({ path, name, tier: asked, said, body }) => {
      const used = said.service_tier as keyof typeof factors;
      const { cost, text, tier } = await ask(body, path);
      assert.equal(cost, standard * factors[used], name);
      assert.equal(tier, asked === undefined && used === 'default' ? undefined : used, name);
      if (path === '/v1/completions') return;
      assert.equal(shownIn(text), path === '/v1/messages' ? ofAnthropic[used] : used, name);
    });
  });

  test('a vendor that says nothing, or what is no tier with a price, is paid the dearer of the standard and the requested tier', async () => {
    const words = ['', 'gold', 'scale', 'x'.repeat(20_000), 'constructor', '__proto__', 'a"b\u0000', '\u{1f600}'];
    const others: unknown[] = [null, 7, -1, true, [], ['priority'], {}, { toString: 1, valueOf: 1 }];
    const all = [{}, ...[...words, ...others].map((tier) => ({ service_tier: tier }))];
    const dearer: Record<string, number> = { priority: 2, auto: 2, fast: 2 };
    await each([...cases([undefined, 'flex', 'priority', 'auto', 'fast'], all)], async ({ path, name, tier, body }) => {
      assert.equal((await ask(body, path)).cost, standard * (dearer[`${tier}`] ?? 1), name);
    });
  });

  test('a limited account may use a service tier with a price, and is refused one without, before its vendor is called', async () => {
    const asked: readonly (readonly [model: string, tier: string, isPriced: boolean])[] = [
      ...(['flex', 'priority', 'fast'] as const).map((tier) => ['gpt-5', tier, true] as const),
      ...(['scale', 'ultrafast', 'platinum', '__proto__'] as const).map((tier) => ['gpt-5', tier, false] as const),
      ['gpt-5-nano', 'flex', true],
      ['gpt-5-nano', 'priority', false],
      ['gpt-4.1', 'flex', false],
      // The file: a tier of its own, prices without tiers, and changed prices, which those of the catalogue's tiers do not outlive.
      ['own', 'premium', true],
      ['own', 'priority', false],
      ['repriced', 'priority', false],
      ['gpt-5.2', 'flex', false],
    ];
    for (const [model, tier, isPriced] of asked) {
      // A response over a chat knows OpenAI's tiers alone.
      for (const [path, body] of bodies({ service_tier: 'flex' }).slice(0, model === 'own' ? 1 : 2)) {
        const before = vendor.requests.length;
        const response = await records.post(
          { ...body, model, service_tier: tier },
          { authorization: `Bearer ${limited}` },
          { path },
        );
        if (isPriced) {
          assert.equal(response.status, 200, await response.text());
          assert.equal(JSON.parse(vendor.requests.at(-1)?.body ?? '').service_tier, tier);
          continue;
        }
        const { param, message } = await assertErrorAnswer(response, 403, 'permission_denied');
        assert.deepEqual([param, vendor.requests.length], ['service_tier', before], `${model} ${tier}`);
        assert.match(message, /no price here/);
        const unlimited = await records.post({ ...body, model, service_tier: tier }, {}, { path });
        assert.equal(unlimited.status, 200, await unlimited.text());
      }
    }
    const own = { ...chatServedAt('premium'), model: 'own', service_tier: 'premium' };
    assert.equal((await ask(own)).cost, 20 * 3000 + 10 * 5000);
  });

  test('a request is held at the dearest tier that may serve it, and at least at the standard one', async () => {
    const held = async (tier?: string): Promise<number> => {
      const response = await records.post({ ...chat, ...(tier && { service_tier: tier }) }, { prefer: 'quote' });
      const { max_cost: most } = (await response.json()) as { max_cost: number };
      return Math.round(most * 1e9);
    };
    const [usual, flex, priority, auto] = [
      await held(),
      await held('flex'),
      await held('priority'),
      await held('auto'),
    ];
    // The field itself has bytes, which are tokens.
    assert.ok(flex >= usual && flex < usual * 1.1, `${flex} ${usual}`);
    assert.ok(priority >= 2 * usual && priority < 2.2 * usual, `${priority} ${usual}`);
    assert.ok(auto >= 2 * usual && auto < 2.2 * usual, `${auto} ${usual}`);
    const { key } = await makeLimitedAccount(records.gateway, { credit: Math.ceil(usual * 1.5) });
    const before = vendor.requests.length;
    const refused = await records.post({ ...chat, service_tier: 'priority' }, { authorization: `Bearer ${key}` });
    await assertErrorAnswer(refused, 429, 'insufficient_quota');
    assert.equal(vendor.requests.length, before, 'the vendor is not called');
    // The same balance pays for a cheaper tier.
    assert.equal((await ask({ ...chat, service_tier: 'flex' }, undefined, key)).cost, standard);
  });

  /** A stream that its vendor does not end. */
  function endless(said: Said): Json {
    return { ...chat, stream: true, messages: [{ role: 'user', content: saying(said) }], user: 'endless' };
  }

  test('a stream whose client disconnects is charged at the requested tier, or at the one that its vendor has named', async () => {
    const costOf = async (tier: string | undefined, said: Said): Promise<[number, unknown]> => {
      const leave = new AbortController();
      const response = await records.post(
        { ...endless(said), ...(tier && { service_tier: tier }) },
        { authorization: `Bearer ${limited}` },
        { signal: leave.signal },
      );
      for await (const _ of readSse(response)) break;
      leave.abort();
      const { outcome, cost, usage: recorded } = await records.ended(jobIdOf(response));
      const { prompt_tokens, completion_tokens, service_tier } = JSON.parse(recorded ?? '{}');
      assert.equal(outcome, 'cancelled');
      return [(cost as number) / (prompt_tokens * input + completion_tokens * output), service_tier];
    };
    assert.deepEqual(await costOf('priority', { service_tier: 'priority' }), [2, 'priority']);
    assert.deepEqual(await costOf('priority', {}), [2, 'priority']);
    assert.equal((await costOf('priority', { service_tier: 'default' }))[0], 2);
    assert.equal((await costOf('flex', {}))[0], 1);
    assert.equal((await costOf('flex', { service_tier: 'flex' }))[0], 0.5);
    assert.deepEqual(await costOf(undefined, { service_tier: 'priority' }), [2, 'priority']);
    assert.deepEqual(await costOf(undefined, {}), [1, undefined]);
  });

  test('an answer whose vendor reports no usage is charged by its tier, and the answers to several prompts by the dearer one', async () => {
    for (const stream of [false, true]) {
      const { id, cost } = await ask({ ...chatServedAt('priority'), stream, user: 'uncounted' });
      const { prompt_tokens: prompt, completion_tokens: completion } = JSON.parse(
        (await records.ended(id)).usage ?? '',
      );
      assert.equal(cost, 2 * (prompt * input + completion * output));
      const prompts = ['flex', 'priority'].map((tier) => saying({ service_tier: tier }));
      const two = await ask({ model: 'gpt-5', prompt: prompts, stream, service_tier: 'flex' }, '/v1/completions');
      assert.equal(two.cost, 2 * 2 * standard);
    }
  });

  test('GET /v1/jobs names the service tier of a job that asked for one, or whose vendor used another', async () => {
    const { id } = await ask({ ...chatServedAt('priority'), service_tier: 'priority' });
    const headers = { authorization: `Bearer ${limited}` };
    const read = async (path: string) => (await (await records.gateway.fetch(path, { headers })).json()) as Json;
    const { service_tier: tier, usage: own, cost } = await read(`/v1/jobs/job_${id}`);
    assert.deepEqual([tier, own, cost], ['priority', { ...usage, service_tier: 'priority' }, (2 * standard) / 1e9]);
    const plain = await ask(chatServedAt('default'));
    assert.equal((await read(`/v1/jobs/job_${plain.id}`)).service_tier, null);
    const { data } = (await read('/v1/jobs?limit=2')) as { data: Json[] };
    assert.deepEqual(
      data.map((job) => [job.id, job.service_tier]),
      [
        [`job_${plain.id}`, null],
        [`job_${id}`, 'priority'],
      ],
    );
  });

  test('Gemini is sent the service tier by its own name, and charged by the one that it names among its counts', async () => {
    // gemini-2.5-flash, nano-dollars for a token: 300 and 2500; flex 150 and 1250, priority 540 and 4500.
    const costs = { standard: 20 * 300 + 10 * 2500, flex: 20 * 150 + 10 * 1250, priority: 20 * 540 + 10 * 4500 };
    for (const [asked, sent] of [
      [undefined, undefined],
      ['auto', undefined],
      ['default', 'standard'],
      ['flex', 'flex'],
      ['priority', 'priority'],
    ] as const) {
      for (const said of ['standard', 'flex', 'priority'] as const) {
        for (const stream of [false, true]) {
          const tier = asked && { service_tier: asked };
          const { cost, text } = await ask({ ...chatServedAt(said), model: 'gemini-2.5-flash', stream, ...tier });
          assert.equal(cost, costs[said], `${asked} ${said} ${stream}`);
          assert.equal(shownIn(text), said === 'standard' ? 'default' : said);
          assert.equal(JSON.parse(vendor.requests.at(-1)?.body ?? '').serviceTier, sent);
        }
      }
    }
  });

  test('Groq has one price for flex and on demand, and its performance tier has none', async () => {
    const model = 'groq/llama-3.1-8b-instant';
    const costs: (number | null)[] = [];
    for (const [asked, said] of [
      [undefined, 'on_demand'],
      ['on_demand', 'on_demand'],
      ['flex', 'flex'],
      ['auto', 'flex'],
      ['auto', 'performance'],
    ]) {
      costs.push((await ask({ ...chatServedAt(`${said}`), model, ...(asked && { service_tier: asked }) })).cost);
    }
    assert.ok(
      costs.every((cost) => cost !== null && cost > 0 && cost === costs[0]),
      String(costs),
    );
    const refused = await records.post(
      { ...chat, model, service_tier: 'performance' },
      { authorization: `Bearer ${limited}` },
    );
    await assertErrorAnswer(refused, 403, 'permission_denied');
  });
});
