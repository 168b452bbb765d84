import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { LimitedVendor } from '../../support/limited-vendor.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody } from '../../vendors/recorded/recorded-openai.ts';

interface ParkedJob {
  readonly queue_position: number | null;
  readonly expected_wait_seconds: number | null;
}

describe('the limits of vendors', () => {
  let minute: LimitedVendor;
  let parallel: LimitedVendor;
  let single: LimitedVendor;
  let steady: LimitedVendor;
  let strict: FixtureVendor;
  let seeing: FixtureVendor;
  let gateway: TestGateway;
  let redis: Redis | Cluster;

  before(async () => {
    // In five seconds 1,200 a minute are 100, and what may come at once.
    minute = await LimitedVendor.start({ requests: 125, windowMs: 5000 });
    parallel = await LimitedVendor.start({ parallel: 3, windowMs: 1, callMs: 50 });
    single = await LimitedVendor.start({ parallel: 1, windowMs: 1, callMs: 300 });
    steady = await LimitedVendor.start({ windowMs: 1, callMs: 1000 });
    strict = await startFixtureVendor();
    strict.answer((response, { body }) => {
      const isLong = body.length > 20_000;
      const answer = isLong ? errorBody('too long', 'context_length_exceeded') : JSON.stringify(completion);
      sendJson(response, isLong ? 400 : 200, answer);
    });
    seeing = await startFixtureVendor();
    const pairs: ServerResponse[] = [];
    // Answers once it has two calls at a time.
    seeing.answer((response) => {
      pairs.push(response);
      if (pairs.length === 2) for (const waiting of pairs.splice(0)) sendJson(waiting, 200, JSON.stringify(completion));
    });
    const vendor = (server: LimitedVendor) => ({ base_url: server.server.baseUrl, api_key: 'a-key' });
    const route = (name: string, model = 'm') => ({ capability: 'chat' as const, routes: [{ vendor: name, model }] });
    gateway = await TestGateway.start({
      workers: 2,
      settings: { WORKER_CONCURRENCY_CHAT: '40' },
      configuration: {
        vendors: {
          minute: { ...vendor(minute), rpm: 1200 },
          parallel: { ...vendor(parallel), model_limits: { m: { max_parallel_requests: 3 } } },
          single: { ...vendor(single), max_parallel_requests: 1 },
          // One every half second.
          steady: { ...vendor(steady), rpm: 120 },
          slow: { ...vendor(minute), key_limits: { rpm: 1 } },
          crowded: { ...vendor(minute), rpm: 20 },
          // One every four seconds.
          late: { ...vendor(minute), rpm: 15 },
          second: { ...vendor(minute), rpm: 1 },
          // One every ten seconds.
          quoted: { ...vendor(minute), rpm: 6 },
          strict: { base_url: strict.baseUrl, api_key: 'a-key', tpm: 2000 },
          seeing: { base_url: seeing.baseUrl, api_key: 'a-key', tpm: 20_000 },
          gone: { base_url: 'http://127.0.0.1:1/v1', api_key: 'a-key', tpm: 2000 },
        },
        models: {
          minute: route('minute'),
          parallel: route('parallel'),
          busy: route('single', 'busy'),
          rare: route('single', 'rare'),
          steady: route('steady'),
          slow: route('slow'),
          crowded: route('crowded'),
          late: route('late'),
          quoted: route('quoted'),
          strict: route('strict'),
          seeing: route('seeing'),
          gone: route('gone'),
          'slow-or-other': {
            capability: 'chat',
            routes: [
              { vendor: 'second', model: 'm', order: 0 },
              { vendor: 'sandbox', model: 'sandbox-chat', order: 1 },
            ],
          },
        },
      },
    });
    const urls = gateway.redisUrl.split(',');
    redis = urls.length > 1 ? new Cluster(urls) : new Redis(gateway.redisUrl);
  });

  after(async () => {
    redis?.disconnect();
    await gateway?.stop();
    await minute?.close();
    await parallel?.close();
    await single?.close();
    await steady?.close();
    await strict?.close();
    await seeing?.close();
  });

  /** Keys of all nodes. */
  const keys = async (pattern: string): Promise<string[]> => {
    const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
    return (await Promise.all(nodes.map((node) => node.keys(pattern)))).flat();
  };

  const ask = async (
    model: string,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
    content: unknown = 'hi',
  ): Promise<Response> => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content }] });
    return await gateway.fetch('/v1/chat/completions', { method: 'POST', body, headers, ...(signal && { signal }) });
  };

  /** Their statuses, with the errors of those that should not have failed. */
  const statuses = async (answers: readonly Promise<Response>[]): Promise<(number | string)[]> =>
    await Promise.all(
      answers.map(async (answered) => {
        const answer = await answered;
        return answer.status < 500 ? answer.status : `${answer.status}: ${await answer.text()}`;
      }),
    );

  test('jobs beyond a limit of requests a minute wait, all are answered, and the vendor refuses none', async () => {
    const answers = await statuses(Array.from({ length: 200 }, () => ask('minute')));
    assert.deepEqual(new Set(answers), new Set([200]));
    assert.deepEqual([minute.accepted.length, minute.refused.length], [200, 0]);
  });

  test('no more calls than allowed run at a time in all workers together', async () => {
    const answers = await statuses(Array.from({ length: 60 }, () => ask('parallel')));
    assert.deepEqual(new Set(answers), new Set([200]));
    assert.deepEqual([parallel.accepted.length, parallel.refused.length, parallel.mostRunning], [60, 0, 3]);
  });

  test('a model with many jobs leaves the calls that its vendor allows at a time to another one, too', async () => {
    assert.deepEqual(await statuses([ask('busy'), ask('rare')]), [200, 200]);
    // Of two workers each has turns of its own, and knows only in time of what the other one has parked.
    const busy = Array.from({ length: 20 }, () => ask('busy'));
    await eventually(() => assert.ok(single.models.length >= 4, 'those of the busy model do not run'));
    const rare = Array.from({ length: 2 }, () => ask('rare'));
    assert.deepEqual(new Set(await statuses([...busy, ...rare])), new Set([200]));
    assert.ok(single.models.lastIndexOf('rare') < single.models.lastIndexOf('busy') - 1, single.models.join(' '));
    assert.deepEqual([single.models.length, single.refused.length], [24, 0]);
  });

  test('jobs of low priority that wait for their vendor leave its capacity to others, also of their own account', async () => {
    const accepted = parallel.accepted.length;
    let lowDone = 0;
    const low = Array.from({ length: 120 }, async () => {
      const { status } = await ask('parallel', { 'x-sluice-priority': 'low' });
      lowDone += 1;
      return status;
    });
    await eventually(() => assert.ok(parallel.accepted.length >= accepted + 6, 'those of low priority do not run'));
    const others = await statuses(Array.from({ length: 9 }, () => ask('parallel')));
    const doneBefore = lowDone;
    assert.deepEqual(new Set(others), new Set([200]));
    assert.ok(doneBefore < 80, `${doneBefore} of low priority came first`);
    assert.deepEqual(new Set(await Promise.all(low)), new Set([200]));
    assert.equal(parallel.refused.length, 0);
  });

  test('a job that cannot start before its deadline, or by the time that its caller allows, is refused with the time when it could', async () => {
    assert.equal((await ask('slow')).status, 200);
    for (const header of ['x-stainless-timeout', 'x-sluice-start-by']) {
      const refused = await ask('slow', { [header]: '5' });
      assert.equal(refused.status, 429);
      const { error } = (await refused.json()) as { error: { code: string } };
      assert.equal(error.code, 'rate_limit_exceeded');
      const seconds = Number(refused.headers.get('retry-after'));
      assert.ok(seconds > 30 && seconds < 80, `${seconds} s`);
    }
  });

  test('of more jobs than a vendor takes in time those that it takes are answered, and the others are refused at once', async () => {
    const answers = await statuses(Array.from({ length: 40 }, () => ask('steady', { 'x-stainless-timeout': '8' })));
    const answered = answers.filter((status) => status === 200);
    const refused = answers.filter((status) => status === 429);
    assert.equal(answered.length + refused.length, 40, JSON.stringify(answers));
    assert.ok(answered.length >= 8, `${answered.length} were answered`);
    // None was called in vain.
    assert.equal(steady.accepted.length, answered.length);
  });

  test('quotes and parked jobs tell how long a request waits in the line of its vendor', async () => {
    const urls = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const answer = await ask('quoted', { prefer: 'respond-async' });
        return new URL(((await answer.json()) as { urls: { self: string } }).urls.self).pathname;
      }),
    );
    await eventually(async () => {
      const quote = (await (await ask('quoted', { prefer: 'quote' })).json()) as { expected_wait_seconds: number };
      assert.ok(quote.expected_wait_seconds > 20 && quote.expected_wait_seconds < 60, JSON.stringify(quote));
    });
    const jobs = await Promise.all(urls.map(async (url) => (await (await gateway.fetch(url)).json()) as ParkedJob));
    const parked = jobs.filter(({ queue_position: place }) => place !== null);
    assert.deepEqual(parked.map(({ queue_position: place }) => place).sort(), [0, 1, 2]);
    for (const { queue_position: place, expected_wait_seconds: seconds } of parked) {
      assert.ok(Math.abs((seconds as number) - 10 * (place as number) - 5) <= 6, `${place}: ${seconds} s`);
    }
    for (const url of urls) await gateway.fetch(url, { method: 'DELETE' });
  });

  test('a request that its vendor rejects takes none of the tokens a minute from the requests of others', async () => {
    // By its length it would take them for several minutes.
    const long = await ask('strict', {}, undefined, 'word '.repeat(8000));
    assert.equal(long.status, 400);
    await eventually(async () => assert.equal((await ask('strict', { 'x-sluice-start-by': '10' })).status, 200));
  });

  test('a vendor that cannot be reached has used no tokens, and its jobs do not wait for them', async () => {
    const refused = await ask('gone', { 'x-stainless-timeout': '20' }, undefined, 'word '.repeat(8000));
    assert.equal(refused.status, 503, await refused.text());
  });

  test('an image counts as one against tokens a minute, and not as its data', async () => {
    const url = `data:image/png;base64,${'A'.repeat(400_000)}`;
    const content = [{ type: 'image_url', image_url: { url } }];
    const answers = [ask('seeing', {}, undefined, content), ask('seeing', {}, undefined, content)];
    assert.deepEqual(await statuses(answers), [200, 200]);
  });

  test('jobs that wait for a vendor hold no slot, and one whose caller leaves leaves nothing', async () => {
    const leaving = new AbortController();
    const before = minute.models.length;
    const waiting = Array.from({ length: 120 }, () => ask('crowded', {}, leaving.signal).catch(() => undefined));
    const parked = () => redis.zcard('sluice:{q-chat}:parked:crowded/m:prioritized');
    await eventually(async () => assert.ok((await parked()) > 100, 'too few are parked'));
    assert.equal((await ask('sandbox-chat')).status, 200);
    leaving.abort();
    await Promise.all(waiting);
    await eventually(async () => assert.deepEqual(await keys('sluice:{q-chat}:parked*'), []));
    await eventually(async () => assert.deepEqual(await keys('sluice:{q-chat}:chat:job_*'), []));
    assert.ok(minute.models.length - before < 20, 'the vendor was called for callers who had left');
  });

  test('a job takes another route if the first is full', async () => {
    const served = async () => (await ask('slow-or-other')).headers.get('x-sluice-vendor');
    assert.deepEqual([await served(), await served()], ['second', 'sandbox']);
  });

  test('a parked job ends at its deadline, or when it should have started, when all workers are gone, and leaves nothing', async () => {
    const old = gateway.workers.splice(0);
    const parkedKey = 'sluice:{q-chat}:parked:late/m:prioritized';
    assert.equal((await ask('late')).status, 200);
    const late = ask('late', { 'x-stainless-timeout': '6' });
    await eventually(async () => assert.equal(await redis.zcard(parkedKey), 1));
    const unstarted = ask('late', { 'x-stainless-timeout': '30', 'x-sluice-start-by': '10' });
    await eventually(async () => assert.equal(await redis.zcard(parkedKey), 2));
    await Promise.all(old.map((worker) => worker.kill()));
    assert.equal((await late).status, 504);
    assert.match(await (await unstarted).text(), /did not start within/);
    await eventually(async () => assert.equal(await redis.zcard(parkedKey), 0));
    assert.deepEqual(await keys('sluice:{q-chat}:chat:job_*'), []);
  });

  test('jobs whose worker was killed while they were parked are released by another', async () => {
    const worker = await gateway.startWorker();
    const parked = () => redis.zcard('sluice:{q-chat}:parked:late/m:prioritized');
    const answers = Array.from({ length: 3 }, () => ask('late'));
    await eventually(async () => assert.ok((await parked()) > 0, 'none is parked'));
    await worker.kill();
    await gateway.startWorker();
    assert.deepEqual(await statuses(answers), [200, 200, 200]);
  });
});
