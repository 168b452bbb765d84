import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { loadProduct, TestGateway } from '../../support/gateway.ts';
import { LimitedVendor } from '../../support/limited-vendor.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody } from '../../vendors/recorded/recorded-openai.ts';

const { LearnedLimits } = await loadProduct<typeof import('../../../workers/pacing/learned-limits.ts')>(
  'workers/pacing/learned-limits',
);

describe('limits that vendors tell by refusals', () => {
  let refusing: FixtureVendor;
  let halfPaid: FixtureVendor;
  let shaky: FixtureVendor;
  let telling: LimitedVendor;
  let silent: LimitedVendor;
  let gateway: TestGateway;
  let redis: Redis;

  before(async () => {
    [refusing, halfPaid, shaky] = await Promise.all([startFixtureVendor(), startFixtureVendor(), startFixtureVendor()]);
    const headers = () => ({ 'x-ratelimit-limit-requests': '1200', 'retry-after': '1' });
    telling = await LimitedVendor.start({ requests: 60, windowMs: 2000, headers });
    silent = await LimitedVendor.start({ requests: 30, windowMs: 1000 });
    const vendor = (baseUrl: string) => ({ base_url: baseUrl, api_keys: ['key-one', 'key-two'] });
    const route = (name: string, model = 'm') => ({ capability: 'chat' as const, routes: [{ vendor: name, model }] });
    gateway = await TestGateway.start({
      workers: 2,
      configuration: {
        vendors: {
          refusing: vendor(refusing.baseUrl),
          'half-paid': vendor(halfPaid.baseUrl),
          shaky: { base_url: shaky.baseUrl, api_key: 'a-key' },
          telling: { base_url: telling.server.baseUrl, api_key: 'a-key' },
          silent: { base_url: silent.server.baseUrl, api_key: 'a-key' },
        },
        models: {
          refusing: route('refusing'),
          telling: route('telling'),
          silent: route('silent'),
          strange: route('refusing', 'strange'),
          'half-paid': route('half-paid'),
          'shaky-or-limited': {
            capability: 'chat',
            routes: [
              { vendor: 'shaky', model: 'm', order: 0 },
              { vendor: 'refusing', model: 'limited', order: 1 },
            ],
          },
        },
        // A vendor that tells nothing is asked too much at first.
        routing: { attempts: 20 },
      },
    });
    redis = new Redis(gateway.redisUrl);
  });

  after(async () => {
    redis?.disconnect();
    await gateway?.stop();
    await Promise.all([refusing, halfPaid, shaky, telling, silent].map((each) => each?.close()));
  });

  const ask = async (model: string): Promise<Response> => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] });
    return await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
  };

  test('with all keys limited for an hour, callers are refused at once, by new workers too, and no vendor is called', async () => {
    refusing.answer((response) =>
      sendJson(response, 429, errorBody('no', 'rate_limit_exceeded'), { 'retry-after': '3600' }),
    );
    const first = await ask('refusing');
    assert.equal(first.status, 429);
    assert.ok(Number(first.headers.get('retry-after')) >= 3599, String(first.headers.get('retry-after')));
    assert.equal(refusing.requests.length, 2);
    await eventually(async () => assert.equal(await redis.hlen('sluice:vendor-limits'), 2));
    const old = gateway.workers.splice(0);
    await gateway.startWorker();
    await Promise.all(old.map((worker) => worker.stop()));
    const second = await ask('refusing');
    assert.equal(second.status, 429);
    assert.ok(Number(second.headers.get('retry-after')) > 3000, String(second.headers.get('retry-after')));
    assert.equal(refusing.requests.length, 2);
    await gateway.startWorker();
  });

  test('with one key limited for an hour and the other refused, callers are told the time, and no vendor is called', async () => {
    halfPaid.answer((response, { headers }) => {
      if (headers.authorization === 'Bearer key-one') {
        sendJson(response, 429, errorBody('no', 'rate_limit_exceeded'), { 'retry-after': '3600' });
      } else sendJson(response, 401, errorBody('no', 'invalid_api_key'));
    });
    for (let asked = 1; asked <= 6; asked++) {
      const answer = await ask('half-paid');
      assert.equal(answer.status, 429);
      assert.ok(Number(answer.headers.get('retry-after')) > 3000, String(answer.headers.get('retry-after')));
      assert.equal(answer.headers.get('x-should-retry'), null);
    }
    // One worker knows within seconds what another has found, and may find it out by itself before.
    const calls = halfPaid.requests.map(({ headers }) => headers.authorization);
    assert.ok(calls.filter((key) => key === 'Bearer key-one').length <= gateway.workers.length, String(calls));
  });

  test('a job whose second route is limited for an hour tries again the first, which has failed once', async () => {
    const fine = { index: 0, message: { role: 'assistant', content: 'fine' }, logprobs: null, finish_reason: 'stop' };
    refusing.answer((response) =>
      sendJson(response, 429, errorBody('no', 'rate_limit_exceeded'), { 'retry-after': '3600' }),
    );
    let asked = 0;
    shaky.answer((response, { method }) => {
      // The worker checks the key, too.
      if (method === 'POST' && ++asked === 1) sendJson(response, 500, errorBody('no', 'server_error'));
      else sendJson(response, 200, JSON.stringify({ ...completion, choices: [fine] }));
    });
    assert.equal((await ask('shaky-or-limited')).status, 200);
    assert.equal(asked, 2);
  });

  for (const [name, vendor] of [
    ['telling', () => telling],
    ['silent', () => silent],
  ] as const)
    test(`jobs that a ${name} vendor refuses wait until it takes them`, async () => {
      const answers = await Promise.all(Array.from({ length: 120 }, () => ask(name)));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.equal(vendor().accepted.length, 120);
    });

  test('what a worker has asked a vendor too rarely is not taken for its limit', async () => {
    const learned = await LearnedLimits.open(redis, { now: Date.now }, { warn: () => undefined });
    const nothingTold = { rpm: undefined, tpm: undefined };
    for (const [account, asked] of [
      ['rarely', 2],
      ['often', 600],
    ] as const) {
      await learned.learn({ vendor: 'quiet', account, model: 'm' }, 100, nothingTold, asked);
    }
    assert.equal(learned.limitsOf({ vendor: 'quiet', account: 'rarely', model: 'm' }).rpm, 60);
    const often = learned.limitsOf({ vendor: 'quiet', account: 'often', model: 'm' }).rpm;
    assert.ok(often !== undefined && often >= 600, `${often} a minute`);
    learned.close();
    await redis.hdel('sluice:vendor-limits', 'quiet rarely m', 'quiet often m');
  });

  test('what a clock ahead has learned is forgotten once that is put right', async () => {
    const later = Date.now() + 90 * 86_400_000;
    await redis.hset('sluice:vendor-limits', 'quiet ahead m', `${later + 1000} 1.000 5.000 ${later} 1.000`);
    const limited = new Map<string, number>();
    const learned = await LearnedLimits.open(redis, { now: Date.now }, { warn: () => undefined });
    learned.tell({ limited: ({ account }, ms) => void limited.set(account, ms), read: () => undefined });
    const key = { vendor: 'quiet', account: 'ahead', model: 'm' };
    assert.deepEqual([learned.has('quiet', 'm'), learned.limitsOf(key), limited.get('ahead')], [false, {}, undefined]);
    await learned.learn(key, 100, { rpm: 30, tpm: undefined }, 600);
    const [until = '', ...rest] = ((await redis.hget('sluice:vendor-limits', 'quiet ahead m')) as string).split(' ');
    assert.ok(Number(until) < later, until);
    assert.deepEqual(rest.toSpliced(2, 1), ['30.000', '-', '30.000']);
    learned.close();
    await redis.hdel('sluice:vendor-limits', 'quiet ahead m');
  });

  test('absurd headers of a vendor limit its key for an hour at most, and nothing breaks', async () => {
    const fine = { index: 0, message: { role: 'assistant', content: 'fine' }, logprobs: null, finish_reason: 'stop' };
    for (const [absurd, isLong] of [
      [{ 'retry-after': `1${'0'.repeat(30)}` }, true],
      [{ 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }, true],
      [{ 'retry-after': '-5', 'x-ratelimit-limit-requests': '-1' }, false],
      [{ 'retry-after': 'NaN', 'x-ratelimit-limit-requests': '9'.repeat(400), 'x-ratelimit-limit-tokens': '0' }, false],
      [{ 'retry-after': '0', 'x-ratelimit-limit-requests': '1e3', 'x-ratelimit-limit-tokens': '{}' }, false],
    ] as const) {
      await redis.del('sluice:vendor-limits');
      let refusals = 0;
      refusing.answer((response) => {
        if (++refusals <= 2) sendJson(response, 429, errorBody('no', 'rate_limit_exceeded'), { ...absurd });
        else sendJson(response, 200, JSON.stringify({ ...completion, choices: [fine] }));
      });
      const model = `strange`;
      const answer = await ask(model);
      if (isLong) {
        assert.equal(answer.status, 429);
        // The worker does not wait for that.
        const known = await eventually(async () => {
          const [first] = await redis.hvals('sluice:vendor-limits');
          assert.ok(first !== undefined, 'nothing is known');
          return first;
        });
        const [seconds] = await redis.time();
        const forMs = Number(known.split(' ')[0]) - Number(seconds) * 1000;
        assert.ok(forMs > 3_500_000 && forMs <= 3_601_000, `${forMs} ms`);
        // The limit is known until a worker starts without it.
        await redis.del('sluice:vendor-limits');
        const old = gateway.workers.splice(0);
        await Promise.all(old.map((worker) => worker.stop()));
        await gateway.startWorker();
      } else assert.equal(answer.status, 200, JSON.stringify(absurd));
    }
  });
});
