import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { VendorLimits, VendorSettings } from '../../../shared/config/vendor-settings.ts';
import { LearnedLimits } from '../../../workers/pacing/learned-limits.ts';
import { type CallSlot, Pacer } from '../../../workers/pacing/pacer.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';

const route = { vendor: 'vendor', model: 'm' };

describe('what a worker keeps of the limits of vendors', () => {
  let jobs: JobFixture;
  before(async () => {
    jobs = await JobFixture.start();
  });
  after(() => jobs?.stop());

  /** A worker of a vendor with these limits, as a whole. */
  async function openPacer(vendor: VendorLimits['vendor']): Promise<Pacer> {
    await jobs.redis.flushall();
    const limits: VendorLimits = { vendor, key: {}, models: {} };
    const settings = { vendor: { limits } as VendorSettings };
    const clock = { now: () => Date.now() };
    const unexpected = (about: object, message: string): void => assert.fail(`${message} ${JSON.stringify(about)}`);
    return Pacer.open({ redis: jobs.redis, clock, log: { warn: unexpected as never } }, 'worker', settings);
  }

  async function reserve(pacer: Pacer, inputTokens = 10): Promise<CallSlot> {
    const slot = await pacer.reserve(route, ['key'], inputTokens, 10);
    assert.ok('account' in slot, JSON.stringify(slot));
    return slot;
  }

  const underWay = async (): Promise<number> => {
    const [key] = await jobs.redis.keys('sluice:{v*}:calls:vendor');
    return key === undefined ? 0 : jobs.redis.zcard(key);
  };
  const scripts = async (): Promise<number> =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await jobs.redis.info('commandstats'))?.[1] ?? 0);

  test('calls that come one after the other need not ask Redis each, and each is one of those at a time', async () => {
    const pacer = await openPacer({ rpm: 1_000_000, tpm: 1_000_000_000, maxParallelRequests: 1000 });
    const asked = await scripts();
    const slots: CallSlot[] = [];
    for (let call = 0; call < 200; call++) slots.push(await reserve(pacer));
    assert.ok((await scripts()) - asked < 20, `${(await scripts()) - asked} scripts for 200 calls`);
    // Those that are reserved but not used are returned.
    await eventually(async () => assert.equal(await underWay(), 200));
    for (const slot of slots) slot.end(20);
    await eventually(async () => assert.equal(await underWay(), 0));
    await pacer.close();
  });

  /** When what was reserved of the tokens will have leaked out, from a time on, in ms. */
  async function leakedOutAfter(start: number): Promise<number> {
    const [key] = await jobs.redis.keys('sluice:{v*}:capacity:vendor');
    return Number(await jobs.redis.hget(key as string, 'tokens')) - start;
  }
  const redisTime = async (): Promise<number> => {
    const [seconds, micros] = (await jobs.redis.time()).map(Number) as [number, number];
    return seconds * 1000 + micros / 1000;
  };

  test('tokens that calls use beyond those reserved are counted', async () => {
    const pacer = await openPacer({ tpm: 600_000 });
    const start = await redisTime();
    const slots = await Promise.all(Array.from({ length: 20 }, () => reserve(pacer)));
    for (const slot of slots) slot.end(1020);
    // 20,400 tokens, at 97 % of ten a ms.
    await eventually(async () => assert.ok((await leakedOutAfter(start)) > 2000, `${await leakedOutAfter(start)} ms`));
    await pacer.close();
  });

  test('tokens that are not used are returned: by calls that end, and of calls that were reserved in vain', async () => {
    const pacer = await openPacer({ tpm: 600_000 });
    for (let call = 0; call < 4; call++) (await reserve(pacer, 1700)).end(0);
    const start = await redisTime();
    // Two more were reserved, for 350 ms of the tokens.
    await eventually(async () => assert.ok((await leakedOutAfter(start)) < 200, `${await leakedOutAfter(start)} ms`));
    await pacer.close();
  });

  test('calls that their vendor has refused say nothing of the length of answers', async () => {
    const pacer = await openPacer({ tpm: 600_000 });
    for (let call = 0; call < 50; call++) (await reserve(pacer)).end(0);
    await eventually(async () =>
      assert.ok((await leakedOutAfter(await redisTime())) < 10, 'tokens are still reserved'),
    );
    const start = await redisTime();
    for (let call = 0; call < 20; call++) {
      const slot = await pacer.reserve(route, ['key'], 10, undefined);
      assert.ok('account' in slot, JSON.stringify(slot));
    }
    // 20 times 10 and 200, which are expected of an answer of which nothing is known.
    assert.ok((await leakedOutAfter(start)) > 300, `${await leakedOutAfter(start)} ms`);
    await pacer.close();
  });

  test('an answer whose vendor tells an absurd number of tokens takes those of a minute, and is no measure for others', async () => {
    const pacer = await openPacer({ tpm: 60_000_000 });
    (await reserve(pacer)).end(2_000_000_000);
    const start = await redisTime();
    await eventually(async () => assert.ok((await leakedOutAfter(start)) > 30_000, 'the tokens are not counted'));
    assert.ok((await leakedOutAfter(start)) < 63_000, `${await leakedOutAfter(start)} ms`);
    await jobs.redis.flushall();
    const slot = await pacer.reserve(route, ['key'], 10, undefined);
    assert.ok('account' in slot, JSON.stringify(slot));
    assert.ok((await leakedOutAfter(await redisTime())) < 1000, `${await leakedOutAfter(start)} ms`);
    await pacer.close();
  });

  test('what a worker has reserved but not used when it ends is free at once', async () => {
    const pacer = await openPacer({ maxParallelRequests: 1000 });
    const slots = await Promise.all(Array.from({ length: 3 }, () => reserve(pacer)));
    for (const slot of slots) slot.end(20);
    await pacer.close();
    assert.equal(await underWay(), 0);
  });

  /** Lets time pass since the limit of the vendor's key was learned. */
  const later = async (ms: number): Promise<void> => {
    const known = (await jobs.redis.hget('sluice:vendor-limits', 'vendor key m')) ?? '';
    const [until, rpm, tpm, at, promised] = known.split(' ');
    const before = [until, rpm, tpm, Number(at) - ms, promised].join(' ');
    await jobs.redis.hset('sluice:vendor-limits', 'vendor key m', before);
  };

  test('a vendor that refuses all until its minute is over is asked as much afterwards, or little less', async () => {
    await jobs.redis.flushall();
    const learned = await LearnedLimits.open(jobs.redis, { now: Date.now }, { warn: () => undefined });
    const key = { vendor: 'vendor', account: 'key', model: 'm' };
    // It took 600 calls in 20 s, and refuses one every two seconds in the other 40.
    for (let seconds = 20; seconds < 60; seconds += 2) {
      await learned.learn(key, 100, { rpm: undefined, tpm: undefined }, 1800);
      await later(2000);
    }
    const { rpm = 0 } = learned.limitsOf(key);
    assert.ok(rpm >= 600, `${rpm} a minute`);
    learned.close();
  });

  test('a vendor that refuses calls within the tokens that it has told is asked less by requests', async () => {
    await jobs.redis.flushall();
    const learned = await LearnedLimits.open(jobs.redis, { now: Date.now }, { warn: () => undefined });
    const key = { vendor: 'vendor', account: 'key', model: 'm' };
    const refuse = () => learned.learn(key, 100, { rpm: undefined, tpm: 1_000_000 }, 600);
    await refuse();
    assert.deepEqual(learned.limitsOf(key), { rpm: undefined, tpm: 1_000_000 });
    await later(16_000);
    await refuse();
    const { rpm: asked = 0 } = learned.limitsOf(key);
    assert.ok(asked >= 600, `${asked} a minute`);
    await later(16_000);
    await refuse();
    const { rpm = 0, tpm } = learned.limitsOf(key);
    assert.ok(rpm > 0 && rpm < asked, `${rpm} a minute`);
    assert.equal(tpm, 1_000_000);
    learned.close();
  });

  test('a model whose name holds half a character is limited as any other', async () => {
    const pacer = await openPacer({ rpm: 100, tpm: 1000 });
    const slot = await pacer.reserve({ vendor: 'vendor', model: 'half-\ud83d' }, ['key'], 10, 10);
    assert.ok('account' in slot, JSON.stringify(slot));
    slot.end(20);
    await pacer.close();
  });
});
