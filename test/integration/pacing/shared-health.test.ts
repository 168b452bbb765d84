import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { routingDefaults } from '../../../shared/config/routing-settings.ts';
import { RouteBreakers } from '../../../workers/routing/route-breakers.ts';
import { type RefusedKey, SharedHealth } from '../../../workers/routing/shared-health.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';

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
    assert.deepEqual([breakers.admits('vendor/m'), breakers.admits('vendor/other')], [false, true]);
    breakers.pauseElsewhere(new Map());
    assert.equal(breakers.admits('vendor/m'), true);
  });

  test('what is no time, or long over, is not told, and what is long over is removed', async () => {
    await jobs.redis.hset(key, {
      'route v/a': 'NaN',
      'route v/b': '1',
      'route v/c': '9'.repeat(300),
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
