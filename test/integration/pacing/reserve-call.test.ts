import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { CapacityLimits } from '../../../shared/config/vendor-settings.ts';
import { capacityPrefix } from '../../../shared/redis/keys.ts';
import { type CapacityScope, scopesText } from '../../../workers/pacing/call-scopes.ts';
import { additionalIds, type ReserveReply, reserveCall, returnCalls } from '../../../workers/pacing/reserve-call.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';

const none: CapacityScope = { name: undefined, limits: {} };

describe('reservations of vendor calls', () => {
  let jobs: JobFixture;
  let vendors = 0;
  let calls = 0;
  before(async () => {
    jobs = await JobFixture.start();
  });
  after(() => jobs?.stop());

  interface Limits {
    readonly vendor?: CapacityLimits;
    readonly keys?: readonly CapacityLimits[];
    readonly models?: readonly CapacityLimits[];
  }

  /** A vendor of the test's own, and what reserves its calls. */
  function vendorWith({ vendor = {}, keys = [{}], models = [] }: Limits) {
    const name = `vendor${++vendors}`;
    const scope = (of: string, limits: CapacityLimits = {}): CapacityScope =>
      Object.keys(limits).length === 0 ? none : { name: of, limits };
    const scopes = {
      vendorScope: scope(name, vendor),
      keys: keys.map((limits, index) => ({
        key: scope(`${name}/key${index}`, limits),
        model: scope(`${name}/key${index}/m`, models[index]),
      })),
    };
    const text = scopesText([scopes.vendorScope, ...scopes.keys.flatMap(({ key, model }) => [key, model])]);
    const reserve = (tokens = 0): Promise<ReserveReply> =>
      reserveCall(jobs.redis, { id: `call${++calls}`, vendor: name, tokens, scopes: text });
    /** How many can be reserved at once, and the reply that refuses the next one: a moment later there may be another to be had. */
    const reserveUntilRefused = async (tokens = 0): Promise<{ count: number; refused: ReserveReply }> => {
      for (let count = 0; ; count++) {
        const reply = await reserve(tokens);
        if (reply.key === undefined) return { count, refused: reply };
      }
    };
    const reserveAll = async (tokens = 0): Promise<number> => (await reserveUntilRefused(tokens)).count;
    return { name, scopes, text, reserve, reserveUntilRefused, reserveAll };
  }

  test('a limit of requests a minute gives what may come at once, and a second ahead', async () => {
    const { reserveUntilRefused } = vendorWith({ vendor: { rpm: 600 } });
    // 2 % at once, and 97 % of ten a second; more if the machine is slow.
    const { count, refused } = await reserveUntilRefused();
    assert.ok(count >= 12 + 9 && count <= 12 + 30, String(count));
    const { waitMs, intervalMs } = refused;
    assert.ok(waitMs > 900 && waitMs < 1200, `${waitMs} ms`);
    assert.ok(Math.abs(intervalMs - 103) < 1, `${intervalMs} ms`);
  });

  test('more calls are reserved at once as far as all may start now, and up to half of the calls at a time are in use', async () => {
    const more = async (limits: Limits, count: number): Promise<number> => {
      const { name, text } = vendorWith(limits);
      return (await reserveCall(jobs.redis, { id: 'call', vendor: name, tokens: 10, more: count, scopes: text })).more;
    };
    assert.equal(await more({ vendor: { rpm: 600_000 } }, 64), 64);
    // 2 % at once, of which the call itself is one.
    assert.equal(await more({ vendor: { rpm: 600 } }, 64), 11);
    assert.equal(await more({ vendor: { rpm: 600_000 }, keys: [{ rpm: 600 }] }, 64), 11);
    assert.equal(await more({ vendor: { rpm: 10 } }, 64), 0);
    // 2 % of 1,500 tokens are three calls of 10, of which the call itself is one.
    assert.equal(await more({ vendor: { rpm: 600_000 }, keys: [{ tpm: 1500 }] }, 64), 2);
    assert.equal(await more({ vendor: { maxParallelRequests: 10 } }, 64), 2);
    assert.equal(await more({ vendor: { maxParallelRequests: 4 } }, 64), 0);
    const { name, text, reserveAll } = vendorWith({ vendor: { rpm: 600 } });
    await reserveCall(jobs.redis, { id: 'call', vendor: name, tokens: 0, more: 5, scopes: text });
    const count = await reserveAll();
    assert.ok(count >= 12 + 9 - 6 && count <= 12 + 30 - 6, String(count));
  });

  test('a vendor that allows little gets one call at a time', async () => {
    const { reserveAll } = vendorWith({ vendor: { rpm: 5 } });
    assert.equal(await reserveAll(), 1);
  });

  test('the strictest limit counts: of the vendor, of the key, or of the model', async () => {
    const strict = { rpm: 1 };
    const loose = { rpm: 100_000 };
    for (const limits of [
      { vendor: strict, keys: [loose], models: [loose] },
      { vendor: loose, keys: [strict], models: [loose] },
      { vendor: loose, keys: [loose], models: [strict] },
    ])
      assert.equal(await vendorWith(limits).reserveAll(), 1);
  });

  test('a call takes the first key with capacity, and the interval is that of all keys together', async () => {
    const { reserve } = vendorWith({ keys: [{ rpm: 1 }, { rpm: 1 }] });
    assert.equal((await reserve()).key, 0);
    assert.equal((await reserve()).key, 1);
    const { key, intervalMs } = await reserve();
    assert.equal(key, undefined);
    assert.ok(Math.abs(intervalMs - 60_000 / 0.97 / 2) < 1, `${intervalMs} ms`);
  });

  test('tokens that were not used are returned', async () => {
    const { name, scopes, reserve } = vendorWith({ keys: [{ tpm: 1000 }] });
    assert.equal((await reserve(1000)).key, 0);
    assert.equal((await reserve(10)).key, undefined);
    await returnCalls(jobs.redis, name, [
      {
        id: 'any',
        scopes: [scopes.keys[0]?.key as CapacityScope],
        hasEnded: true,
        reservedTokens: 1000,
        usedTokens: 10,
      },
    ]);
    assert.equal((await reserve(10)).key, 0);
  });

  test('calls at a time are limited, and free again when one ends or its worker dies', async () => {
    const { name, scopes, reserve, reserveAll } = vendorWith({ vendor: { maxParallelRequests: 2 } });
    const first = calls + 1;
    assert.equal(await reserveAll(), 2);
    assert.equal((await reserve()).isParallel, true);
    const ended = {
      id: `call${first}`,
      scopes: [scopes.vendorScope],
      hasEnded: true,
      reservedTokens: 0,
      usedTokens: 0,
    };
    await returnCalls(jobs.redis, name, [ended]);
    assert.equal((await reserve()).key, 0);
    const key = (await jobs.redis.keys(`sluice:{v*}:calls:${name}`))[0] as string;
    const [, lease] = await jobs.redis.zrange(key, 0, '0', 'WITHSCORES');
    const [seconds] = await jobs.redis.time();
    assert.ok(Number(lease) / 1000 - Number(seconds) <= 10, 'the lease of a dead worker is too long');
    // Nothing renews them.
    await eventually(async () => assert.equal((await reserve()).key, 0), 12_000);
  });

  test('each of the calls that are reserved at once is one of those at a time, and takes its tokens', async () => {
    const { name, scopes, text, reserveAll } = vendorWith({ vendor: { maxParallelRequests: 20, tpm: 60_000 } });
    const reply = await reserveCall(jobs.redis, { id: 'call', vendor: name, tokens: 100, more: 64, scopes: text });
    const ids = ['call', ...additionalIds('call', reply.more)];
    assert.equal(ids.length, 5);
    // 2 % of the tokens at once, and 97 % of a thousand a second, of which five calls have taken 500.
    const count = await reserveAll(100);
    assert.ok(count >= 12 + 8 - 5 && count <= 20 - 5, String(count));
    const end = (id: string) => ({
      id,
      scopes: [scopes.vendorScope],
      hasEnded: true,
      reservedTokens: 100,
      usedTokens: 0,
    });
    await returnCalls(jobs.redis, name, ids.map(end));
    const [calls] = await jobs.redis.keys(`sluice:{v*}:calls:${name}`);
    assert.equal(await jobs.redis.zcard(calls as string), count);
    assert.equal((await reserveCall(jobs.redis, { id: 'next', vendor: name, tokens: 100, scopes: text })).key, 0);
  });

  test('tokens are reserved for each of the calls that are reserved at once', async () => {
    const { name, text, reserveAll } = vendorWith({ vendor: { tpm: 60_000 } });
    const startedAt = performance.now();
    const { more } = await reserveCall(jobs.redis, { id: 'call', vendor: name, tokens: 100, more: 64, scopes: text });
    assert.equal(more, 11);
    // What came at once is used up; 97 % of a thousand a second may be reserved a second ahead, and what has come since the start.
    const count = await reserveAll(100);
    const most = 10 + Math.ceil((performance.now() - startedAt) / 103);
    assert.ok(count >= 9 && count <= most, `${count} of at most ${most}`);
  });

  test('what a clock ahead has reserved is forgotten once that is put right', async () => {
    const limits = { rpm: 60, tpm: 1000, maxParallelRequests: 1 };
    const { name, scopes, reserve } = vendorWith({ vendor: limits });
    const [bucket, leases] = [`${capacityPrefix(name)}capacity:${name}`, `${capacityPrefix(name)}calls:${name}`];
    const later = Date.now() + 90 * 86_400_000;
    const spoil = async (): Promise<void> => {
      await jobs.redis.hset(bucket, { at: later, requests: later + 1000, tokens: later + 60_000 });
      await jobs.redis.zadd(leases, later, 'a call of then');
    };
    await spoil();
    const first = await reserve(1000);
    assert.deepEqual([first.key, first.waitMs], [0, 0]);
    assert.deepEqual(await jobs.redis.zcard(leases), 1, 'the lease of the call alone');
    assert.equal((await reserve(1000)).key, undefined, 'that one counts');
    await spoil();
    const scoped = [scopes.vendorScope];
    const call = { id: `call${calls - 1}`, scopes: scoped, hasEnded: true, reservedTokens: 1000, usedTokens: 0 };
    await returnCalls(jobs.redis, name, [call]);
    const second = await reserve(1000);
    assert.deepEqual([second.key, second.waitMs], [0, 0]);
  });

  test('a reservation that Redis refuses is made once it accepts writes again', async () => {
    const { reserve } = vendorWith({ vendor: { rpm: 600 } });
    const refused = async () =>
      /errorstat_NOREPLICAS:count=(\d+)/.exec(await jobs.redis.info('errorstats'))?.[1] ?? '0';
    await jobs.redis.config('SET', 'min-replicas-to-write', '1');
    const reserving = reserve();
    await eventually(async () => assert.ok(Number(await refused()) > 1, 'nothing was refused twice'));
    await jobs.redis.config('SET', 'min-replicas-to-write', '0');
    assert.equal((await reserving).key, 0);
  });

  test('nothing of a vendor without limits is kept', async () => {
    const { name, reserve } = vendorWith({});
    assert.deepEqual((await reserve()).key, 0);
    assert.deepEqual(await jobs.redis.keys(`*${name}*`), []);
  });
});
