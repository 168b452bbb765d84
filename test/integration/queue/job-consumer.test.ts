import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Worker } from 'bullmq';
import type { ClaimedJob, JobConsumerOptions } from '../../../workers/queue/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { timesAnswered, wantingReplicas } from '../../support/redis-refusals.ts';

const { queueOptions } = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { jobKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');

describe('JobConsumer', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());

  test('the job consumer runs each job once, in order and within its concurrency, and leaves nothing in Redis', async () => {
    queues.newQueue();
    const ids = await queues.put(100);
    const [ran, most] = [[] as string[], { now: 0, ever: 0 }];
    queues.consume(async ({ job }) => {
      ran.push(job.id);
      most.ever = Math.max(most.ever, ++most.now);
      await new Promise((resolve) => setImmediate(resolve));
      most.now--;
      return 'done';
    });
    const late = await eventually(async () => {
      assert.equal(ran.length, 100);
      return await queues.put(5);
    });
    await eventually(() => assert.equal(ran.length, 105));
    assert.deepEqual(ran, [...ids, ...late]);
    assert.equal(most.ever, 10);
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
  });

  test('the job consumer claims jobs without a priority first, then by priority', async () => {
    queues.newQueue();
    const [third, second, first] = [[await queues.putAt(20)], [await queues.putAt(10)], await queues.put(1)];
    const ran: ClaimedJob[] = [];
    queues.consume(
      async (taken) => {
        ran.push(taken);
        return 'done';
      },
      { concurrency: 1 },
    );
    await eventually(() => assert.equal(ran.length, 3));
    assert.deepEqual(
      ran.map(({ job }) => job.id),
      [...first, ...second, ...third],
    );
    assert.deepEqual(
      ran.map(({ priority }) => priority),
      [0, 10, 20],
    );
  });

  test('the job consumer shares a queue with another one and a Worker of BullMQ without running a job twice', async () => {
    queues.newQueue();
    const ran = new Map<string, number>();
    const note = (id: string): 'done' => {
      ran.set(id, (ran.get(id) ?? 0) + 1);
      return 'done';
    };
    const parts = { ours: 0, theirs: 0 };
    const work = () => new Promise((resolve) => setTimeout(resolve, 2));
    const run = async ({ job }: ClaimedJob) => {
      parts.ours++;
      await work();
      return note(job.id);
    };
    queues.consume(run, { concurrency: 2 });
    queues.consume(run, { concurrency: 2 });
    const worker = new Worker(
      queues.capability,
      async ({ data }) => {
        parts.theirs++;
        await work();
        note(data.id);
      },
      queueOptions(queues.capability, queues.redis.client, { concurrency: 2, removeOnComplete: { count: 0 } }),
    );
    queues.closeLater(worker);
    await worker.waitUntilReady();
    const ids = await queues.put(300);
    await eventually(() => assert.equal(ran.size, 300));
    assert.deepEqual([...ran.keys()].sort(), [...ids].sort());
    assert.deepEqual(new Set(ran.values()), new Set([1]));
    assert.ok(parts.ours > 0 && parts.theirs > 0, JSON.stringify(parts));
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
  });

  test('the job consumer requeues a job as the next one, and runs the job of a lost worker again', async () => {
    queues.newQueue();
    const [first, second] = await queues.put(2);
    const ran: string[] = [];
    const giving = queues.consume(
      async ({ job }) => {
        ran.push(job.id);
        return ran.length === 1 ? 'requeued' : 'done';
      },
      { concurrency: 1 },
    );
    await eventually(() => assert.deepEqual(ran, [first, first, second]));
    await giving.close();
    const [third] = await queues.put(1, { hasPriority: true });
    // Its lock runs out, as that of a process that was killed.
    let end: () => void = () => undefined;
    const lost = (): Promise<'done'> =>
      new Promise((resolve) => {
        end = () => resolve('done');
      });
    queues.consume(lost, { lockMs: 200, concurrency: 1 });
    const locks = () => queues.jobs.redis.keys(`${queues.keysPrefix}*:lock`);
    await eventually(async () => assert.equal((await locks()).length, 1));
    await queues.jobs.redis.del(...(await locks()));
    const again: ClaimedJob[] = [];
    queues.consume(async (taken) => {
      again.push(taken);
      return 'done';
    });
    await eventually(() =>
      assert.deepEqual(
        again.map(({ job, stalled }) => [job.id, stalled]),
        [[third, 1]],
      ),
    );
    end();
  });

  test('the job consumer begins a job in the claim if its state is readable and it may be repeated', async () => {
    queues.newQueue();
    const verdicts = new Map<string, ClaimedJob['verdict']>();
    const run: JobConsumerOptions['run'] = async ({ job, verdict }) => {
      verdicts.set(job.id, verdict);
      return 'done';
    };
    const fresh = await queues.queueWithState(await queues.jobs.create({ capability: queues.capability }));
    const ended = await queues.jobs.create({ capability: queues.capability });
    await queues.jobs.end(ended);
    await queues.queueWithState(ended);
    const taken = await queues.jobs.create({ capability: queues.capability });
    await queues.jobs.take(taken);
    await queues.queueWithState(taken);
    const broken = await queues.jobs.create({ capability: queues.capability });
    await queues.jobs.redis.hset(jobKeys.state(broken.id), 'deadline', 'never');
    await queues.queueWithState(broken);
    const unknown = await queues.queueWithState(queues.job());
    const [stateless] = await queues.put(1);
    queues.consume(run, { begins: true, workerId: 'beginner' });
    await eventually(() => assert.equal(verdicts.size, 6));
    assert.deepEqual(verdicts.get(fresh), { verdict: 'run', attempt: 1, lastSeq: 0 });
    assert.equal(verdicts.get(ended.id)?.verdict, 'settle');
    assert.equal(verdicts.get(taken.id)?.verdict, 'wait');
    assert.deepEqual(verdicts.get(unknown), { verdict: 'drop' });
    assert.equal(verdicts.get(broken.id), undefined, 'whoever runs it asks, and is told why');
    assert.equal(verdicts.get(stateless as string), undefined);
    assert.deepEqual(await queues.jobs.redis.hmget(jobKeys.state(fresh), 'worker', 'sent'), ['beginner', '1']);
    // A repeat of what may not be run twice could not be told from a job whose vendor was called.
    queues.newQueue();
    const once = await queues.queueWithState(await queues.jobs.create({ capability: queues.capability }));
    queues.consume(run, { begins: false });
    await eventually(() => assert.equal(verdicts.has(once), true));
    assert.equal(verdicts.get(once), undefined);
    assert.equal(await queues.jobs.redis.hget(jobKeys.state(once), 'attempt'), null);
  });

  test('the job consumer drops an unreadable job, reruns one that throws, and renews the locks of running ones', async () => {
    queues.newQueue();
    const [broken] = await queues.put(1);
    await queues.jobs.redis.hset(`${queues.keysPrefix}job_${broken}`, 'data', '{');
    const [long, throwing] = await queues.put(2);
    // More than one where a lock has run out: the suite must come to its end all the same.
    const ends: (() => void)[] = [];
    const ran: string[] = [];
    queues.consume(
      async ({ job }) => {
        ran.push(job.id);
        if (job.id === throwing && ran.length < 4) throw new Error('it broke');
        if (job.id === throwing) return 'done';
        await new Promise<void>((resolve) => ends.push(resolve));
        return 'done';
      },
      { lockMs: 1600, stalledCheckMs: 100 },
    );
    await eventually(() => assert.equal(ran.length, 4));
    try {
      const lock = `${queues.keysPrefix}job_${long}:lock`;
      for (let renewed = 0; renewed < 3; renewed++) {
        const before = await queues.jobs.redis.pttl(lock);
        await eventually(async () =>
          assert.ok((await queues.jobs.redis.pttl(lock)) > before || before > 1500, 'its lock runs out'),
        );
      }
      assert.deepEqual(
        ran,
        [long, throwing, throwing, throwing],
        'what throws is run until it does not, what runs is not',
      );
    } finally {
      for (const end of ends) end();
    }
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
  });

  test('the job consumer completes a finished job once Redis accepts writes again, without another job', async () => {
    queues.newQueue();
    const [id] = await queues.put(1);
    const { run, ran } = noting();
    let end: () => void = () => undefined;
    const consumer = queues.consume(async (taken) => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return run(taken);
    });
    await eventually(async () => assert.equal((await queues.jobs.redis.keys(`${queues.keysPrefix}*:lock`)).length, 1));
    const { redis, server } = queues.jobs;
    const before = await timesAnswered(redis, wantingReplicas.code);
    await wantingReplicas.begin(redis, server);
    try {
      end();
      await eventually(async () => {
        const times = (await timesAnswered(redis, wantingReplicas.code)) - before;
        assert.ok(times > 0 && ran.length === 1, `refused ${times} times`);
      });
    } finally {
      await wantingReplicas.end(redis);
    }
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []), 5000);
    assert.deepEqual(ran, [id], 'it is not run again');
    await consumer.close();
  });

  test('the job consumer releases a finished job when Redis refuses writes longer than its lock, and it runs again', async () => {
    queues.newQueue();
    const [id] = await queues.put(1);
    const { run, ran } = noting();
    const { redis, server } = queues.jobs;
    let begin: () => Promise<unknown> = () => wantingReplicas.begin(redis, server);
    queues.consume(
      async (taken) => {
        await begin();
        begin = async () => undefined;
        return await run(taken);
      },
      { lockMs: 600, stalledCheckMs: 100 },
    );
    try {
      await eventually(() => assert.equal(ran.length, 1));
      await eventually(async () => assert.equal(await redis.exists(`${queues.keysPrefix}job_${id}:lock`), 0));
    } finally {
      await wantingReplicas.end(redis);
    }
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
    assert.deepEqual(ran, [id, id]);
  });

  test('a closed job consumer claims no more jobs and waits for the running ones', async () => {
    queues.newQueue();
    const [running] = await queues.put(1);
    let end: () => void = () => undefined;
    const ran: string[] = [];
    const consumer = queues.consume(
      ({ job }) =>
        new Promise((resolve) => {
          ran.push(job.id);
          end = () => resolve('done');
        }),
      { concurrency: 1 },
    );
    await eventually(() => assert.equal(ran.length, 1));
    const closed = consumer.close();
    const [waiting] = await queues.put(1);
    assert.equal(await Promise.race([closed.then(() => 'closed'), queues.reader.waiting()]), 1);
    end();
    await closed;
    assert.deepEqual(ran, [running]);
    assert.equal(await queues.queue.has(waiting as string), true);
    assert.equal(await queues.queue.has(running as string), false);
  });

  test('the job consumer does not complete a job that another one has claimed meanwhile', async (t) => {
    queues.newQueue();
    const [shared] = await queues.put(1);
    const ends: (() => void)[] = [];
    t.after(() => {
      for (const end of ends) end();
    });
    const ran: number[] = [];
    const holding = () => {
      const run: JobConsumerOptions['run'] = ({ stalled }) => {
        ran.push(stalled);
        return new Promise((resolve) => ends.push(() => resolve('done')));
      };
      return queues.consume(run, { concurrency: 1 });
    };
    const frozen = holding();
    await eventually(() => assert.deepEqual(ran, [0]));
    const lock = `${queues.keysPrefix}job_${shared}:lock`;
    const other = holding();
    await queues.jobs.redis.del(lock);
    await eventually(() => assert.deepEqual(ran, [0, 1]));
    ends[0]?.();
    await frozen.close();
    assert.equal(await queues.jobs.redis.exists(lock), 1);
    assert.equal(await queues.queue.has(shared as string), true);
    ends[1]?.();
    await other.close();
    assert.equal(await queues.queue.has(shared as string), false);
  });
});
