import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { CapabilityQueue } from '../../shared/queue/queue.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import { admission, knowCaller } from '../support/admission.ts';
import { held } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct, TestGateway } from '../support/gateway.ts';
import { leftovers, withLostReadersMs } from '../support/leftovers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

const { admit } = await loadProduct<typeof import('../../api/admission/admit.ts')>('api/admission/admit');

describe('work that arrives too late', () => {
  let jobs: JobFixture;
  before(async () => {
    jobs = await JobFixture.start();
    await knowCaller(jobs.redis);
  });
  after(() => jobs?.stop());

  const everything = async (): Promise<string[]> => (await jobs.redis.keys('*')).sort();

  test('admit rejects a late job without any change, and admits a timely job beside it', async () => {
    const [late, timely] = [jobs.identity(), jobs.identity()];
    const before = await everything();
    const common = { reader: 'api', queued: { request: '{}' } };
    assert.equal((await admit(jobs.redis, admission(late, { ...common, notAfter: Date.now() - 1 }))).verdict, 'late');
    assert.deepEqual(await everything(), before);
    const replies = await Promise.all([
      admit(jobs.redis, admission(late, { ...common, notAfter: Date.now() - 1 })),
      admit(jobs.redis, admission(timely, common)),
    ]);
    assert.deepEqual(
      replies.map(({ verdict }) => verdict),
      ['late', 'admitted'],
    );
    assert.equal(await jobs.redis.exists(jobKeys.state(late.id)), 0);
  });

  test('admit never admits a late job again after its state is gone, and repeats its verdict before that', async () => {
    const job = jobs.identity();
    const call = admission(job, { reader: 'api', queued: { request: '{}' }, notAfter: Date.now() + 500 });
    assert.equal((await admit(jobs.redis, call)).verdict, 'admitted');
    assert.equal((await admit(jobs.redis, call)).verdict, 'admitted');
    await delay(600);
    assert.equal((await admit(jobs.redis, call)).verdict, 'admitted', 'its state still tells that it was');
    await jobs.redis.del(jobKeys.state(job.id));
    assert.equal((await admit(jobs.redis, call)).verdict, 'late');
  });

  test('enqueue rejects a late job, with a priority or without, and queues a timely job once', async () => {
    const queue = new CapabilityQueue('video', jobs.redis);
    try {
      for (const hasPriority of [false, true]) {
        const job = { ...jobs.identity({ capability: 'video' }), request: '{}' };
        assert.equal(await queue.enqueue(job, hasPriority, Date.now() - 1), 'late');
        assert.equal(await queue.has(job.id), false);
        assert.equal(await queue.enqueue(job, hasPriority, Date.now() + 10_000), 'queued');
        assert.equal(await queue.enqueue(job, hasPriority, Date.now() - 1), 'there');
        assert.deepEqual(await queue.find(job.id), JSON.parse(JSON.stringify(job)));
      }
      assert.equal(await queue.reader.waiting(), 2);
      assert.equal((await (await queue.bull()).getJobs(['waiting', 'prioritized'])).length, 2);
    } finally {
      await queue.close();
    }
  });
});

describe('an api whose Redis is away or rejects writes', () => {
  let gateway: TestGateway;
  let proxy: TcpProxy;
  let redis: Redis;
  beforeEach(async () => {
    gateway = await TestGateway.start({ apis: 0 });
    redis = new Redis(gateway.redisUrl);
    proxy = await startTcpProxy(gateway.redis?.port as number);
    await gateway.startApi({ REDIS_URL: proxy.url });
    assert.equal((await ask('warm')).status, 200);
  });
  afterEach(async () => {
    redis?.disconnect();
    await gateway?.stop();
    await proxy?.close();
  });

  function ask(user: string, more: object = {}): Promise<Response> {
    const body = JSON.stringify(held('Reply with exactly: x', { user, ...more }));
    return gateway.fetch('/v1/chat/completions', { method: 'POST', body });
  }

  const charged = async (): Promise<string | null> => {
    const [key] = await redis.keys('sluice:*:account:*');
    return await redis.hget(key as string, 'charged');
  };

  test('POST /v1/chat/completions returns 503 while Redis is away, and none of it runs when Redis is back', async () => {
    const before = await eventually(async () => {
      const sum = await charged();
      assert.ok(Number(sum) > 0, 'the first is not settled yet');
      return sum;
    });
    proxy.cut();
    const large = { metadata: { note: 'x'.repeat(400) }, prompt_cache_key: 'y'.repeat(100_000) };
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => ask('away', index % 4 === 0 ? large : {})),
    );
    for (const answer of answers) await assertErrorAnswer(answer, 503, 'service_unavailable');
    // From here on nobody waits for it.
    const refused = await ask('away');
    const { message } = await assertErrorAnswer(refused, 503, 'service_unavailable');
    assert.match(message, /queue is temporarily unavailable/, 'it did not wait for Redis');
    assert.ok(Number(refused.headers.get('retry-after')) >= 1, 'it says when to come again');
    proxy.restore();
    await eventually(async () => assert.equal((await ask('back')).status, 200), 20_000);
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
    assert.deepEqual(await vendorCalls(gateway, 'away'), []);
    const calls = (await vendorCalls(gateway, 'back')).length;
    const price = Number(before ?? 0);
    // Each costs the same as the first.
    await eventually(async () => assert.equal(Number(await charged()), price * (1 + calls)));
  });

  test('a job whose admission reply was lost runs once, even after everything known of it is gone', async () => {
    const stopped = proxy.stopAt({
      matches: (command) => /^evalsha$/i.test(command[0] ?? '') && command.join(' ').includes('lost-answer'),
      stop: 'reset',
    });
    const answer = ask('lost-answer', { metadata: { note: 'lost-answer' }, model: 'sandbox-chat' });
    await stopped;
    proxy.cut();
    await assertErrorAnswer(await answer, 503, 'service_unavailable');
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'lost-answer')).length, 1));
    await eventually(async () => assert.equal(await redis.zcard((await redis.keys('*:holds'))[0] ?? 'none'), 0));
    // Two minutes later.
    for (const key of await redis.keys('sluice:*:job:*')) await redis.del(key);
    proxy.restore();
    await eventually(async () => assert.equal((await ask('back')).status, 200), 20_000);
    assert.equal((await vendorCalls(gateway, 'lost-answer')).length, 1);
  });

  test('an answer that started before its admission was confirmed carries the id of its job', async () => {
    const stopped = proxy.stopAt({
      matches: (command) => /^evalsha$/i.test(command[0] ?? '') && command.join(' ').includes('lost-answer'),
      stop: 'reset',
    });
    const answer = await ask('lost-answer', { metadata: { note: 'lost-answer' }, stream: true });
    await stopped;
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('x-request-id') ?? '', /^job_/);
    assert.match(await answer.text(), /data: \[DONE\]/);
  });

  test('POST /v1/chat/completions waits while Redis briefly accepts no writes, and returns 503 when that lasts', async () => {
    await redis.config('SET', 'min-replicas-to-write', '1');
    const passing = ask('passing');
    await delay(500);
    await redis.config('SET', 'min-replicas-to-write', '0');
    assert.equal((await passing).status, 200);
    await redis.config('SET', 'min-replicas-to-write', '1');
    const refused = await ask('lasting');
    await redis.config('SET', 'min-replicas-to-write', '0');
    await assertErrorAnswer(refused, 503, 'service_unavailable');
    assert.ok(Number(refused.headers.get('retry-after')) >= 1, 'it says when to come again');
    assert.equal((await ask('back')).status, 200);
    assert.deepEqual(await vendorCalls(gateway, 'lasting'), []);
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });

  test('GET /v1/jobs/{id} and its events return 503 while Redis rejects the commands they need', async () => {
    const made = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { prefer: 'respond-async' },
      body: JSON.stringify(held('Reply with exactly: x')),
    });
    const path = `/v1/jobs/${((await made.json()) as { id: string }).id}`;
    const read = async (): Promise<unknown> => (await (await gateway.fetch(path)).json()) as unknown;
    await eventually(async () => assert.equal(((await read()) as { status: string }).status, 'completed'), 20_000);
    // One that has yet to be noted as a reader.
    const elsewhere = await gateway.startApi();
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    const follow = (): Promise<Response> => fetch(`${elsewhere.url}${path}/events`, { headers });
    await redis.config('SET', 'min-replicas-to-write', '1');
    const followed = await follow();
    await redis.config('SET', 'min-replicas-to-write', '0');
    await assertErrorAnswer(followed, 503, 'service_unavailable');
    assert.ok(Number(followed.headers.get('retry-after')) >= 1, 'it says when to come again');
    assert.equal((await follow()).status, 200);
    // A script that never ends keeps everybody from reading.
    await redis.config('SET', 'busy-reply-threshold', '1');
    const busy = redis.eval('while true do end', 0).catch(() => undefined);
    const beside = new Redis(gateway.redisUrl, { enableReadyCheck: false });
    try {
      await eventually(async () => await assert.rejects(beside.get('any'), /^ReplyError: BUSY /));
      await assertErrorAnswer(await gateway.fetch(path), 503, 'service_unavailable');
    } finally {
      await beside.script('KILL');
      beside.disconnect();
      await busy;
    }
    assert.equal((await gateway.fetch(path)).status, 200);
  });
});
