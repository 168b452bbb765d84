import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { routingDefaults } from '../../../shared/config/routing-settings.ts';
import { RouteBreakers } from '../../../workers/routing/route-breakers.ts';
import { type RefusedKey, SharedHealth } from '../../../workers/routing/shared-health.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody } from '../../vendors/recorded/recorded-openai.ts';

const key = 'sluice:vendor-health';

describe('the health of vendors in several workers', () => {
  let jobs: JobFixture;
  const opened: SharedHealth[] = [];
  const warnings: unknown[] = [];
  const log = { warn: (line: unknown) => void warnings.push(line) };
  const clock = { now: () => Date.now() };
  before(async () => {
    jobs = await JobFixture.start();
  });
  after(async () => {
    for (const health of opened) health.close();
    await jobs?.stop();
  });
  beforeEach(() => jobs.redis.del(key));

  /** A worker, and what it was told. */
  async function worker(): Promise<{ health: SharedHealth; paused: Map<string, number>; refused: RefusedKey[] }> {
    const health = await SharedHealth.open(jobs.redis, clock, log);
    opened.push(health);
    const told = { paused: new Map<string, number>(), refused: [] as RefusedKey[] };
    health.tell({
      paused: (routes) => {
        told.paused.clear();
        for (const [route, ms] of routes) told.paused.set(route, ms);
      },
      refused: (refused) => void told.refused.push(refused),
    });
    return { health, ...told };
  }

  test('a new worker knows the routes that others have paused, and the keys that vendors have refused', async () => {
    const { health } = await worker();
    health.pause('vendor/a model/with parts', 10_000);
    health.refuse({ vendor: 'vendor', account: 'one', model: undefined }, 10_000);
    health.refuse({ vendor: 'vendor', account: 'two', model: 'a model' }, 10_000);
    await eventually(async () => assert.equal(await jobs.redis.hlen(key), 3));
    const other = await worker();
    assert.deepEqual([...other.paused.keys()], ['vendor/a model/with parts']);
    assert.deepEqual(other.refused, [
      { vendor: 'vendor', account: 'one', model: undefined },
      { vendor: 'vendor', account: 'two', model: 'a model' },
    ]);
    health.resume('vendor/a model/with parts');
    await eventually(async () => assert.equal(await jobs.redis.hlen(key), 2));
    await other.health.read();
    assert.deepEqual([...other.paused.keys()], []);
  });

  test('a route that another worker has paused is not admitted, and is again once that is over', () => {
    const breakers = new RouteBreakers(
      () => routingDefaults,
      () => undefined,
    );
    breakers.pauseElsewhere(new Map([['vendor/m', 60_000]]));
    assert.deepEqual(
      [breakers.admits('vendor/m', 'account'), breakers.admits('vendor/other', 'account')],
      [false, true],
    );
    breakers.pauseElsewhere(new Map());
    assert.equal(breakers.admits('vendor/m', 'account'), true);
  });

  test('what is no time, or long over, is not told, and what is long over is removed', async () => {
    await jobs.redis.hset(key, {
      'route v/a': 'NaN',
      'route v/b': '1',
      'route v/c': String(Date.now() + 3_630_000),
      // Noted while Redis's clock was ahead.
      'route v/d': String(Date.now() + 90 * 86_400_000),
      'route v/e': '9'.repeat(300),
      odd: '5',
      '': '',
    });
    const { paused, refused, health } = await worker();
    assert.deepEqual([...paused], [['v/c', 3_600_000]]);
    assert.deepEqual(refused, []);
    await health.read();
    assert.deepEqual(await jobs.redis.hkeys(key), ['route v/c']);
  });

  test('a Redis that refuses leaves a worker with what it knows', async () => {
    const { health, paused } = await worker();
    health.pause('vendor/m', 10_000);
    await eventually(async () => assert.equal(await jobs.redis.hlen(key), 1));
    await health.read();
    await jobs.redis.del(key);
    await jobs.redis.set(key, 'no hash');
    await health.read();
    health.pause('vendor/other', 10_000);
    assert.deepEqual([...paused.keys()], ['vendor/m']);
    assert.ok(warnings.length > 0);
  });
});

test('a new worker calls neither a route that another has paused nor a key that its vendor has refused', async (t) => {
  const [broken, well] = await Promise.all([startFixtureVendor(), startFixtureVendor()]);
  t.after(() => Promise.all([broken.close(), well.close()]));
  well.answer((response, { headers }) => {
    const isRefused = headers.authorization === 'Bearer a-refused-key';
    if (isRefused) sendJson(response, 401, errorBody('no', 'invalid_api_key'));
    else sendJson(response, 200, JSON.stringify(completion));
  });
  const gateway = await TestGateway.start({
    configuration: {
      vendors: {
        broken: { base_url: broken.baseUrl, api_key: 'a-key' },
        well: { base_url: well.baseUrl, api_keys: ['a-refused-key', 'a-good-key'] },
      },
      models: {
        both: {
          capability: 'chat',
          routes: ['broken', 'well'].map((vendor) => ({ vendor, model: 'm' })),
        },
      },
      routing: { breaker: { calls: 4, pause_seconds: 300 } },
    },
  });
  t.after(() => gateway.stop());
  const refusals = (): number =>
    well.requests.filter(({ headers }) => headers.authorization === 'Bearer a-refused-key').length;
  const ask = async (): Promise<void> => {
    const body = JSON.stringify({ model: 'both', messages: [{ role: 'user', content: 'hi' }] });
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    assert.equal(response.status, 200, await response.text());
  };
  const health = new Redis(gateway.redisUrl);
  t.after(() => health.disconnect());
  await eventually(async () => {
    await ask();
    assert.equal(await health.hlen(key), 2);
  });
  const [old, before] = [gateway.workers.splice(0), [broken.requests.length, refusals()]];
  await gateway.startWorker();
  await Promise.all(old.map((worker) => worker.stop()));
  for (let count = 0; count < 6; count++) await ask();
  assert.deepEqual([broken.requests.length, refusals()], before);
});

test('an account whose requests a vendor always fails on moves no other account to the fallback, in any worker', async (t) => {
  const [first, second] = await Promise.all([startFixtureVendor(), startFixtureVendor()]);
  t.after(() => Promise.all([first.close(), second.close()]));
  first.answer((response, { body }) => {
    if (body.includes('poison')) sendJson(response, 500, errorBody('no', 'server_error'));
    else sendJson(response, 200, JSON.stringify(completion));
  });
  second.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
  const gateway = await TestGateway.start({
    configuration: {
      vendors: {
        first: { base_url: first.baseUrl, api_key: 'a-key' },
        second: { base_url: second.baseUrl, api_key: 'a-key' },
      },
      models: {
        both: { capability: 'chat', routes: ['first', 'second'].map((vendor) => ({ vendor, model: 'm' })) },
      },
      routing: { breaker: { calls: 4, pause_seconds: 300 } },
    },
  });
  t.after(() => gateway.stop());
  const authorization = `Bearer ${await makeApiKey(gateway, { accountId: 'another' })}`;
  const ask = async (content: string, headers: Record<string, string> = {}): Promise<string | null> => {
    const body = JSON.stringify({ model: 'both', messages: [{ role: 'user', content }] });
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body, headers });
    assert.equal(response.status, 200, await response.text());
    return response.headers.get('x-sluice-vendor');
  };
  const health = new Redis(gateway.redisUrl);
  t.after(() => health.disconnect());
  await eventually(async () => {
    await ask('poison', { authorization });
    assert.match(String(await health.hkeys(key)), /^route \S+ first\/m$/);
  });
  const before = first.requests.length;
  await ask('poison', { authorization });
  assert.equal(first.requests.length, before, 'it is not called for the account that it fails for');
  assert.equal(await ask('hi'), 'first');
  const old = gateway.workers.splice(0);
  await gateway.startWorker();
  await Promise.all(old.map((worker) => worker.stop()));
  await ask('poison', { authorization });
  assert.equal(first.requests.length, before + 1, 'another worker knows it');
  assert.equal(await ask('hi'), 'first');
});
