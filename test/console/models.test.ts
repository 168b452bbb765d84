import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ConsoleClient } from '../support/console-client.ts';
import { TestGateway } from '../support/gateway.ts';

/** Ids as an operator may choose them: with slashes, and with what an address writes otherwise. */
const configuration = {
  vendors: { 'my-own': { like: 'openai', base_url: 'http://127.0.0.1:9' } },
  models: {
    'team/own chat?100%': {
      capability: 'chat',
      context_window: 2000,
      prices: { input: 1, output: 2 },
      routes: [
        { vendor: 'openai', model: 'gpt-4o' },
        { vendor: 'my-own', model: 'big', max_output_tokens: 500, prices: { input: 3, output: 4 } },
      ],
      fallbacks: ['sandbox-chat'],
    },
    fast: { alias_of: 'team/own chat?100%' },
    quick: { alias_of: 'team/own chat?100%' },
    'sandbox-instruct': { hide: true },
    hidden: { alias_of: 'sandbox-instruct' },
  },
} as const;

describe('models in the console', () => {
  let gateway: TestGateway;
  let client: ConsoleClient;
  before(async () => {
    gateway = await TestGateway.start({ configuration: structuredClone(configuration) as never, workers: 0 });
    client = new ConsoleClient(gateway.url);
    await client.signUp('models@example.com');
  });
  after(async () => gateway?.stop());

  const list = async (query: string) => (await client.call('GET', `/console/api/models${query}`)).body.data;
  const one = (id: string) => client.call('GET', `/console/api/models/${encodeURIComponent(id)}`);

  test('models in the console are listed all, or only those that can be used now', async () => {
    const all = await list('');
    const usable = await list('?available=true');
    assert.ok(all.length > 400);
    assert.ok(usable.length < 20);
    assert.ok(usable.every(({ available }: { available: boolean }) => available));
    assert.deepEqual(all.slice(0, usable.length), usable);
    assert.equal((await client.call('GET', '/console/api/models?available=maybe')).status, 400);
  });

  test('models in the console are shown one by one, by ids with slashes and odd letters, with every route and its own limits and prices', async () => {
    const { status, body } = await one('team/own chat?100%');
    assert.equal(status, 200);
    const { available, vendors, paths, alias_of, aliases, fallbacks, routes, context_window, prices } = body;
    assert.deepEqual({ available, vendors, alias_of }, { available: true, vendors: ['my-own'], alias_of: null });
    assert.deepEqual([aliases, fallbacks], [['fast', 'quick'], ['sandbox-chat']]);
    assert.equal(paths[0], '/v1/chat/completions');
    // Those of the route that is on.
    assert.deepEqual([context_window, prices.input], [2000, 3]);
    const told = routes.map((route: Record<string, { input?: number } | null>) => ({
      ...{ route: route.route, on: route.on, settings: route.settings },
      ...{ output: route.max_output_tokens, input: route.prices?.input ?? null },
    }));
    assert.deepEqual(told, [
      { route: 'openai/gpt-4o', on: false, settings: ['OPENAI_API_KEY'], output: null, input: 1 },
      { route: 'my-own/big', on: true, settings: [], output: 500, input: 3 },
    ]);
    const plain = await client.call('GET', '/console/api/models/openai/gpt-oss-120b');
    assert.deepEqual([plain.status, plain.body.id, plain.body.available], [200, 'openai/gpt-oss-120b', false]);
  });

  test('models in the console tell under another name whose it is, unless that model is hidden', async () => {
    const { body } = await one('fast');
    assert.deepEqual([body.alias_of, body.aliases], ['team/own chat?100%', ['quick']]);
    assert.equal((await one('hidden')).body.alias_of, null);
    assert.equal((await one('sandbox-instruct')).status, 404);
    assert.equal((await one('no-such-model')).status, 404);
  });
});
