import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../../shared/jobs/settlement/end-job.ts';
import type { WorkerContext } from '../../../workers/worker-context.ts';
import { admission, knowCaller } from '../../support/admission.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { unlimitedBandwidth } from '../../support/unlimited-bandwidth.ts';

const { accountKeys, jobKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { createJobState, readJobState } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { settle, settleNow, settlementOf, settledByWorkerMs, countedByWorkersMs, holdMember } = await loadProduct<
  typeof import('../../../shared/jobs/settlement/settle.ts')
>('shared/jobs/settlement/settle');
const { storeUsage } =
  await loadProduct<typeof import('../../../shared/jobs/store-usage.ts')>('shared/jobs/store-usage');
const { parseRecord } = await loadProduct<typeof import('../../../shared/jobs/settlement/outbox.ts')>(
  'shared/jobs/settlement/outbox',
);
const { releaseLease } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { readLog } = await loadProduct<typeof import('../../../shared/jobs/answer-log.ts')>('shared/jobs/answer-log');
const { finishWithError } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { attach } = await loadProduct<typeof import('../../../shared/jobs/attach.ts')>('shared/jobs/attach');
const { Inbox } = await loadProduct<typeof import('../../../shared/jobs/inbox.ts')>('shared/jobs/inbox');
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { endJob } = await loadProduct<typeof import('../../../shared/jobs/settlement/end-job.ts')>(
  'shared/jobs/settlement/end-job',
);
const { Sweeper, sweepAfterMs } = await loadProduct<typeof import('../../../shared/jobs/settlement/sweeper.ts')>(
  'shared/jobs/settlement/sweeper',
);
const { ApiError } = await loadProduct<typeof import('../../../shared/errors.ts')>('shared/errors');
const { finishRun } = await loadProduct<typeof import('../../../workers/run/finish-run.ts')>('workers/run/finish-run');
const { FrameWriter } =
  await loadProduct<typeof import('../../../workers/run/frame-writer.ts')>('workers/run/frame-writer');
const { JobRun } = await loadProduct<typeof import('../../../workers/run/job-run.ts')>('workers/run/job-run');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { forgetResource } = await loadProduct<typeof import('../../../shared/jobs/forget.ts')>('shared/jobs/forget');
const { forgetBinding } =
  await loadProduct<typeof import('../../../api/admission/forget-binding.ts')>('api/admission/forget-binding');
const { admit } = await loadProduct<typeof import('../../../api/admission/admit.ts')>('api/admission/admit');

let jobs: JobFixture;

before(async () => {
  jobs = await JobFixture.start();
});

after(() => jobs?.stop());

async function loggedTexts(job: JobIdentity): Promise<string[]> {
  const { batches } = await readLog(jobs.redis, job.id, 0);
  return batches.flatMap(({ frames }) => frames.map((frame) => frame.text.replaceAll('"', '')));
}

describe('begin', () => {
  test('begin evaluates each job of a batch on its own, so that an unreadable one affects no other', async () => {
    const [first, broken, polled, last] = await Promise.all(Array.from({ length: 4 }, () => jobs.create()));
    assert.ok(first && broken && polled && last, 'four jobs');
    await jobs.redis.hset(jobKeys.state(broken.id), 'deadline', 'never');
    await jobs.redis.hset(jobKeys.state(polled.id), 'task', '{');
    const begun = await Promise.all([first, broken, polled, last].map((job) => jobs.take(job)));
    assert.deepEqual(
      begun.map(({ verdict }) => verdict),
      ['run', 'unreadable', 'unreadable', 'run'],
    );
  });

  test('begin drops a job without a state', async () => {
    assert.deepEqual(await jobs.take(jobs.identity()), { verdict: 'drop' });
  });

  test('begin runs a job, and returns the same for a repeat of the call', async () => {
    const job = await jobs.create();
    assert.deepEqual(await jobs.take(job, { claim: 'same' }), { verdict: 'run', attempt: 1, lastSeq: 0 });
    assert.deepEqual(await jobs.take(job, { claim: 'same' }), { verdict: 'run', attempt: 1, lastSeq: 0 });
  });

  test('begin makes another claim wait while the lease lives, and takes over afterwards', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const second = await jobs.take(job);
    assert.equal(second.verdict, 'wait');
    assert.ok(second.verdict === 'wait' && second.waitMs > 5000 && second.waitMs <= 10_000);
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job), { verdict: 'run', attempt: 2, lastSeq: 0 });
  });

  test('begin never runs a job again that has a delta in its log', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a']);
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job), { verdict: 'interrupted' });
  });

  test('begin runs a job again that has only progress in its log, with continued frame numbers', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a', 'b'], { hasDelta: false });
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job), { verdict: 'run', attempt: 2, lastSeq: 2 });
  });

  test('begin does not run an unrepeatable job again once its vendor may have been called', async () => {
    const job = await jobs.create();
    await jobs.take(job, { repeatable: false });
    await jobs.expireLease(job);
    assert.deepEqual(await jobs.take(job, { repeatable: false }), { verdict: 'unknown' });
  });

  test('begin extends an expired lease by half when a takeover would end the job', async () => {
    const [said, unrepeatable, repeatable] = [await jobs.create(), await jobs.create(), await jobs.create()];
    await jobs.take(said);
    await jobs.write(said, 1, 1, ['a']);
    await jobs.take(unrepeatable, { repeatable: false });
    await jobs.take(repeatable);
    for (const job of [said, unrepeatable, repeatable]) await jobs.expireLease(job, 1);
    assert.equal((await jobs.take(said)).verdict, 'wait');
    assert.equal((await jobs.take(unrepeatable, { repeatable: false })).verdict, 'wait');
    assert.equal((await jobs.take(repeatable)).verdict, 'run', 'nothing is lost by another attempt');
    assert.equal(await jobs.write(said, 1, 2, ['b']), 'ok');
    assert.equal(await jobs.renew(unrepeatable), 'ok');
  });

  test('begin gives a job up after two attempts, not counting a released one', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal(await releaseLease(jobs.redis, job.id, 1), 'released');
    // As the client library sends it again after a broken connection.
    assert.equal(await releaseLease(jobs.redis, job.id, 1), 'released');
    for (const attempt of [2, 3]) {
      assert.deepEqual(await jobs.take(job), { verdict: 'run', attempt, lastSeq: 0 });
      await jobs.expireLease(job);
    }
    assert.deepEqual(await jobs.take(job), { verdict: 'exhausted' });
  });
});

describe('createJobState', () => {
  test('createJobState sets an expiry in the same call, should its process die', async () => {
    // Redis knows the script: the first call is the one that writes.
    await jobs.create();
    const proxy = await startTcpProxy(jobs.server.port);
    const maker = new Redis(proxy.url);
    maker.on('error', () => undefined);
    try {
      const job = jobs.identity();
      const stopped = proxy.stopAt({ stop: 'after', matches: (command) => command.includes(jobKeys.state(job.id)) });
      createJobState(maker, job, 'api-reader').catch(() => undefined);
      await stopped;
      const ttl = await jobs.redis.pttl(jobKeys.state(job.id));
      assert.ok(ttl > 0, `${ttl} ms`);
    } finally {
      maker.disconnect();
      await proxy.close();
    }
  });
});

describe('append', () => {
  test('append accepts frames of the current attempt only', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.expireLease(job);
    await jobs.take(job);
    assert.equal(await jobs.write(job, 1, 1, ['old']), 'fenced');
    assert.equal(await jobs.write(job, 2, 1, ['new']), 'ok');
    assert.equal(await jobs.renew(job), 'fenced');
    assert.equal((await jobs.end(job, { attempt: 1 })).verdict, 'fenced');
    assert.deepEqual(await loggedTexts(job), ['new']);
  });

  test('append ignores frames that the log already has', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal(await jobs.write(job, 1, 1, ['a', 'b']), 'ok');
    assert.equal(await jobs.write(job, 1, 1, ['a', 'b']), 'ok');
    assert.equal(await jobs.write(job, 1, 3, ['c']), 'ok');
    assert.deepEqual(await loggedTexts(job), ['a', 'b', 'c']);
  });

  test('append publishes the batches of one call in one message to readers that accept that, and one by one to others', async () => {
    const [one, two] = await Promise.all([jobs.create(), jobs.create()]);
    assert.ok(one && two);
    const received: Record<string, string[]> = { 'api-reader': [], 'new-reader+': [] };
    const subscriber = new Redis(jobs.server.url);
    try {
      for (const job of [one, two]) {
        await jobs.take(job);
        await attach(jobs.redis, job.id, 'new-reader+');
        for (const reader of Object.keys(received))
          await subscriber.subscribe(`${jobKeys.inboxPrefix(job.id)}${reader}`);
      }
      subscriber.on('message', (channel, text) => received[channel.slice(channel.lastIndexOf(':') + 1)]?.push(text));
      await Promise.all([jobs.write(one, 1, 1, ['a', 'b']), jobs.write(two, 1, 1, ['c'])]);
      await subscriber.ping();
      const messages = [`${one.id} 1 1 \nd"a"\nd"b"`, `${two.id} 1 1 \nd"c"`];
      assert.deepEqual(received, { 'api-reader': messages, 'new-reader+': [messages.join('\n\n')] });
      assert.deepEqual([await loggedTexts(one), await loggedTexts(two)], [['a', 'b'], ['c']]);
    } finally {
      subscriber.disconnect();
    }
  });

  test('an inbox takes several messages in one, each as a string of its own, whatever characters they have', async () => {
    const taken: string[] = [];
    const { log } = createLogger('silent', 'test');
    const handle = await connectRedis(jobs.server.url, log);
    let onAbort: (jobId: string) => void = () => undefined;
    const aborted = new Promise<string>((resolve) => {
      onAbort = resolve;
    });
    const listener = {
      frames: (id: string, text: string, start: number) => void taken.push(`${id}: ${text.slice(start)}`),
      abort: (id: string) => onAbort(id),
    };
    const inbox = await Inbox.open(handle, 'inbox+', listener, log);
    const channel = `${jobKeys.inboxPrefix('0')}inbox+`;
    await jobs.redis.publish(channel, 'j1 1 1 \nd"世界🌊"\nd"b"\n\nj2 1 4 \nd"Grüße"\n\nj3 2 1 \np{}');
    await jobs.redis.publish(channel, 'j1 1 3 \nd"c"');
    await jobs.redis.publish(channel, 'abort j9');
    assert.equal(await aborted, 'j9');
    inbox.close();
    const expected = ['j1: 1 1 \nd"世界🌊"\nd"b"', 'j2: 1 4 \nd"Grüße"', 'j3: 2 1 \np{}', 'j1: 1 3 \nd"c"'];
    assert.deepEqual(taken, expected);
    await handle.close();
  });

  test('append accepts nothing after the end of a job or without its state', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.write(job, 1, 1, ['a']);
    await jobs.end(job, { outcome: 'cancelled' });
    assert.equal(await jobs.write(job, 1, 2, ['b']), 'ended');
    assert.equal(await jobs.renew(job), 'ended');
    assert.deepEqual(await loggedTexts(job), ['a', '{}']);
    const lost = jobs.identity();
    assert.equal(await jobs.write(lost, 1, 1, ['a']), 'gone');
    assert.equal(await jobs.redis.exists(jobKeys.log(lost.id)), 0);
  });
});

describe('finish', () => {
  test('finish lets the first caller win, and returns the existing outcome to the others', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.deepEqual(await jobs.end(job, { outcome: 'cancelled' }), {
      verdict: 'finished',
      outcome: 'cancelled',
      began: true,
      isRunning: true,
    });
    const already = { verdict: 'already', outcome: 'cancelled', began: true, isRunning: false };
    assert.deepEqual(await jobs.end(job, { attempt: 1 }), already);
    assert.deepEqual(await loggedTexts(job), ['{}']);
    assert.equal((await readJobState(jobs.redis, job.id))?.outcome, 'cancelled');
  });

  test('finish with the guard queued or abandoned ends only a job that has not started or whose lease is dead', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal((await jobs.end(job, { guard: 'queued' })).verdict, 'refused');
    assert.equal((await jobs.end(job, { guard: 'abandoned' })).verdict, 'refused');
    await jobs.expireLease(job);
    assert.equal((await jobs.end(job, { guard: 'abandoned' })).verdict, 'finished');
    assert.equal((await jobs.end(await jobs.create(), { guard: 'queued' })).verdict, 'finished');
  });

  test('finish with the guard overdue ends a job only after its deadline by the clock of Redis', async () => {
    const job = await jobs.create();
    assert.equal((await jobs.end(job, { guard: 'overdue' })).verdict, 'refused');
    assert.deepEqual(await loggedTexts(job), []);
    await jobs.redis.hset(jobKeys.state(job.id), 'deadline', Date.now() - 1);
    assert.equal((await jobs.end(job, { guard: 'overdue' })).verdict, 'finished');
  });

  test('finish reports that no worker runs a job that is queued, released or expired', async () => {
    const [waiting, given, lost] = [await jobs.create(), await jobs.create(), await jobs.create()];
    await jobs.take(given);
    await releaseLease(jobs.redis, given.id, 1);
    await jobs.take(lost);
    await jobs.expireLease(lost);
    for (const job of [waiting, given, lost]) {
      const { verdict, isRunning } = await jobs.end(job, { outcome: 'cancelled' });
      assert.deepEqual([verdict, isRunning], ['finished', false]);
    }
  });

  test('finish notifies the worker that still runs the job', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    const subscriber = new Redis(jobs.server.url);
    try {
      await subscriber.subscribe(`${jobKeys.inboxPrefix(job.id)}worker`);
      const message = new Promise((resolve) => subscriber.once('message', (_channel, text) => resolve(text)));
      await jobs.end(job, { outcome: 'cancelled' });
      assert.equal(await message, `abort ${job.id}`);
    } finally {
      subscriber.disconnect();
    }
  });
});

describe('storeUsage', () => {
  const usageOf = async (job: JobIdentity) => (await readJobState(jobs.redis, job.id))?.usage;

  test('storeUsage stores usage once, and never over the usage of the end', async () => {
    const [cut, whole] = [await jobs.create(), await jobs.create()];
    for (const job of [cut, whole]) await jobs.take(job);
    await jobs.end(cut, { outcome: 'cancelled' });
    await jobs.end(whole, { usage: '{"total_tokens":3}' });
    for (const total of [1, 2]) {
      for (const job of [cut, whole])
        await storeUsage(jobs.redis, job.id, { usage: `{"total_tokens":${total}}`, cost: undefined });
    }
    assert.deepEqual([await usageOf(cut), await usageOf(whole)], ['{"total_tokens":1}', '{"total_tokens":3}']);
  });

  test('storeUsage and the end store what a prompt cache saved, and settlement puts it into the record', async () => {
    const [cut, whole, plain] = [await jobs.create(), await jobs.create(), await jobs.create()];
    for (const job of [cut, whole, plain]) await jobs.take(job);
    await jobs.end(cut, { outcome: 'cancelled' });
    await storeUsage(jobs.redis, cut.id, { usage: '{}', cost: 5, saved: 2 });
    await jobs.end(whole, { usage: '{}', cost: 5, saved: 3 });
    await jobs.end(plain, { usage: '{}', cost: 5, saved: 0 });
    const savedIn = async ({ id }: JobIdentity): Promise<number | undefined> => {
      const state = await readJobState(jobs.redis, id);
      return state && parseRecord(settlementOf(state)?.record ?? '')?.saved;
    };
    assert.deepEqual(await Promise.all([cut, whole, plain].map(savedIn)), [2, 3, undefined]);
    assert.equal(await jobs.redis.hexists(jobKeys.state(plain.id), 'saved'), 0);
  });

  test('storeUsage stores nothing for an unfinished or unknown job', async () => {
    const [open, gone] = [await jobs.create(), jobs.identity()];
    for (const job of [open, gone])
      await storeUsage(jobs.redis, job.id, { usage: '{"total_tokens":1}', cost: 5, saved: 2 });
    assert.equal(await usageOf(open), undefined);
    assert.equal(await jobs.redis.exists(jobKeys.state(gone.id)), 0);
  });
});

describe('finishRun', () => {
  test('finishRun of a fenced run leaves the job and its request to the other attempt', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    await jobs.expireLease(job);
    await jobs.take(job);
    const { redis } = jobs;
    const fixed = {
      ...{ redis, blobs: {} as never, isCluster: false, jobId: job.id, lastSeq: 0, lifetimeMs: 60_000 },
      ...{ account: job.account, bandwidth: unlimitedBandwidth },
    };
    for (const stopped of [undefined, 'requeued', 'overdue'] as const) {
      const run = new JobRun(job);
      run.attempt = 1;
      run.vendor = 'sandbox';
      if (stopped !== undefined) run.stop(stopped);
      const writer = new FrameWriter({ ...fixed, attempt: 1, onConfirmed: () => undefined, onLost: () => undefined });
      const ending = {
        outcome: 'completed',
        answer: { body: '{}', usage: { prompt_tokens: 1, completion_tokens: 1 } },
      } as const;
      const context = { redis, isCluster: false } as unknown as WorkerContext;
      assert.equal(await finishRun(context, run, 1, writer, ending), 'done');
      assert.equal(run.stopReason, 'fenced', 'what runJob keeps the request by');
    }
    assert.equal((await readJobState(redis, job.id))?.outcome, undefined);
  });
});

describe('forgetResource', () => {
  test('forgetResource deletes an answer, but keeps an interrupted one for its worker to count', async () => {
    const [whole, cut, counted] = [await jobs.create(), await jobs.create(), await jobs.create()];
    for (const job of [whole, cut, counted]) {
      await jobs.take(job);
      await jobs.write(job, 1, 1, ['a']);
      await jobs.end(job, { outcome: job === whole ? 'completed' : 'cancelled' });
    }
    await storeUsage(jobs.redis, counted.id, { usage: '{"total_tokens":1}', cost: undefined });
    for (const job of [whole, cut, counted]) await forgetResource(jobs.redis, job.id);
    const lifetimes = [whole, cut, counted].map(({ id }) => jobs.redis.pttl(jobKeys.log(id)));
    const [ofWhole, ofCut, ofCounted] = await Promise.all(lifetimes);
    assert.deepEqual([ofWhole, ofCounted], [-2, -2]);
    assert.ok((ofCut as number) > 0 && (ofCut as number) <= countedByWorkersMs, `${ofCut} ms`);
    for (const { id } of [whole, cut]) assert.equal((await readJobState(jobs.redis, id))?.isDeleted, true);
  });
});

describe('settle', () => {
  const settlement = (job: JobIdentity) => ({
    ...{ ...job, jobId: job.id, outcome: 'failed' as const, errorCode: 'server_error' as const, began: true },
    ...{ record: `{"id":"${job.id}"}`, cost: undefined, tokens: undefined },
  });
  const admitJob = (job: JobIdentity) => admit(jobs.redis, admission(job));

  test('settle frees the hold and the slot of a job once, and of no other job', async () => {
    await knowCaller(jobs.redis);
    const [one, two] = [await jobs.create(), await jobs.create()];
    assert.equal((await admitJob(one)).running, 1);
    assert.equal((await admitJob(one)).verdict, 'admitted', 'a repeated admission is one admission');
    assert.equal((await admitJob(two)).running, 2);
    await settle(jobs.redis, [settlement(one)]);
    await settleNow(jobs.redis, settlement(one));
    const holds = await jobs.redis.zrange(accountKeys.holds('account'), '0', '-1');
    assert.deepEqual(holds, [holdMember({ ...two, jobId: two.id })]);
    assert.deepEqual(await jobs.redis.zrange(accountKeys.running('account', 'key'), '0', '-1'), [two.id]);
    const ttl = await jobs.redis.pttl(jobKeys.state(one.id));
    assert.ok(ttl > 0 && ttl <= 120_000);
    await settle(jobs.redis, [settlement(two)]);
  });

  test('settle charges each of 8,100 jobs that end at once and writes all records to the outbox', async () => {
    const account = 'crowd';
    const ended = Array.from({ length: 8100 }, () => jobs.identity({ account }));
    const key = accountKeys.account(account);
    await jobs.redis.hset(key, 'n:chat', ended.length);
    const holds = ended.flatMap((job) => [1, holdMember({ ...job, jobId: job.id })]);
    await jobs.redis.zadd(accountKeys.holds(account), ...holds);
    const outbox = accountKeys.outbox(account);
    const before = await jobs.redis.xlen(outbox);
    await settle(
      jobs.redis,
      ended.map((job) => ({ ...settlement(job), cost: 2 })),
    );
    assert.equal(await jobs.redis.zcard(accountKeys.holds(account)), 0);
    assert.equal((await jobs.redis.xlen(outbox)) - before, ended.length);
    assert.deepEqual(await jobs.redis.hmget(key, 'charged', 'n:chat'), [`${2 * ended.length}`, '0']);
  });

  test('a job that ends while its worker runs is settled by the worker, and by the sweeper after its time', async () => {
    await knowCaller(jobs.redis);
    const queue = { has: async () => true, find: async () => undefined, remove: async () => false };
    const context = { redis: jobs.redis, isCluster: false, blobs: {}, queue: () => queue } as unknown as EndJobContext;
    const sweeper = new Sweeper(context, createLogger('silent', 'test').log);
    const [mine, lost] = [await jobs.create(), await jobs.create()];
    const held = async () => {
      const members = await jobs.redis.zrange(accountKeys.holds('account'), '0', '-1', 'WITHSCORES');
      const scores = members.flatMap((member, index) =>
        index % 2 ? [] : [[member, Number(members[index + 1])] as const],
      );
      return new Map(scores.map(([member, score]) => [member.split(' ')[0], score - Date.now()]));
    };
    try {
      for (const job of [mine, lost]) {
        await admitJob(job);
        await jobs.take(job);
      }
      await jobs.expireLease(lost);
      for (const job of [mine, lost]) await endJob(context, job, new ApiError('cancelled', 'It was cancelled.'));
      assert.deepEqual([...(await held()).keys()], [mine.id], 'what has no worker is settled at once');
      const left = (await held()).get(mine.id) as number;
      assert.ok(left > sweepAfterMs - 1000 && left <= sweepAfterMs, `${left} ms`);
      await jobs.redis.zadd(accountKeys.holds('account'), Date.now() - 1, holdMember({ ...mine, jobId: mine.id }));
      await sweeper.sweep();
      assert.ok(((await held()).get(mine.id) as number) > settledByWorkerMs - 1000, 'its time is not over');
      await jobs.redis.hset(jobKeys.state(mine.id), 'ended', Date.now() - settledByWorkerMs);
      await jobs.redis.zadd(accountKeys.holds('account'), Date.now() - 1, holdMember({ ...mine, jobId: mine.id }));
      await sweeper.sweep();
      assert.deepEqual([...(await held()).keys()], []);
    } finally {
      sweeper.close();
    }
  });

  for (const code of ['cancelled', 'timeout'] as const) {
    test(`the end of a running job (${code}) frees its slot at once, and its idempotency key as other ends do`, async () => {
      await knowCaller(jobs.redis);
      const job = await jobs.create({ idempotency: code });
      await admitJob(job);
      await jobs.take(job);
      const context = { redis: jobs.redis, isCluster: false } as unknown as EndJobContext;
      await endJob(context, job, new ApiError(code, 'It has ended.'));
      assert.equal(await jobs.redis.zscore(accountKeys.running('account', 'key'), job.id), null);
      const bound = await jobs.redis.hget(accountKeys.idempotency('account', code), 'job');
      assert.equal(bound, code === 'cancelled' ? job.id : null);
      const member = holdMember({ ...job, jobId: job.id });
      assert.notEqual(await jobs.redis.zscore(accountKeys.holds('account'), member), null, 'the hold is its worker’s');
      await settle(jobs.redis, [settlement(job)]);
    });
  }

  test('a repeat between the end and the settlement gets the idempotency key, and the worker still settles', async () => {
    await knowCaller(jobs.redis);
    const [one, two] = [await jobs.create({ idempotency: 'between' }), await jobs.create({ idempotency: 'between' })];
    await admitJob(one);
    await jobs.take(one);
    await finishWithError(
      jobs.redis,
      { jobId: one.id, attempt: 1, retentionMs: 0, isCluster: false },
      new ApiError('server_error', 'It broke.'),
    );
    assert.equal((await admitJob(two)).verdict, 'replay');
    await forgetBinding({ redis: jobs.redis }, two, one.id, await readJobState(jobs.redis, one.id));
    const { verdict, running } = await admitJob(two);
    assert.deepEqual([verdict, running], ['admitted', 1]);
    const records = await jobs.redis.xlen(accountKeys.outbox('account'));
    await settle(jobs.redis, [settlement(one)]);
    assert.equal(await jobs.redis.xlen(accountKeys.outbox('account')), records + 1, 'its record is its worker’s');
    await settle(jobs.redis, [settlement(two)]);
  });

  test('a second settlement does not free an idempotency key that is bound to a new job', async () => {
    await knowCaller(jobs.redis);
    const [one, two] = [await jobs.create({ idempotency: 'hash' }), await jobs.create({ idempotency: 'hash' })];
    assert.equal((await admitJob(one)).verdict, 'admitted');
    const replay = await admitJob(two);
    assert.deepEqual([replay.verdict, replay.detail], ['replay', one.id]);
    await settle(jobs.redis, [settlement(one)]);
    assert.equal((await admitJob(two)).verdict, 'admitted');
    await settle(jobs.redis, [settlement(one)]);
    assert.equal(await jobs.redis.hget(accountKeys.idempotency('account', 'hash'), 'job'), two.id);
    await settle(jobs.redis, [settlement(two)]);
  });
});
