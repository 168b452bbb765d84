import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { RedisClient, RedisHandle } from '../../shared/redis.ts';
import type { QueueConsumer, QueueConsumerOptions, TakenJob } from '../../workers/queue-consumer.ts';
import { eventually } from '../support/eventually.ts';
import { loadProduct } from '../support/gateway.ts';
import { JobFixture } from './job-fixture.ts';

const product = await loadProduct<typeof import('../../workers/queue-consumer.ts')>('workers/queue-consumer');
const { CapabilityQueue, queueOptions } = await loadProduct<typeof import('../../shared/queue.ts')>('shared/queue');
const { connectRedis } = await loadProduct<typeof import('../../shared/redis.ts')>('shared/redis');
const { createLogger } = await loadProduct<typeof import('../../shared/log.ts')>('shared/log');
const { jobKeys, queuePrefix } = await loadProduct<typeof import('../../shared/keys.ts')>('shared/keys');

const log = createLogger('silent', 'test').log;

describe('the consumer of a queue', () => {
  let jobs: JobFixture;
  let redis: RedisHandle;
  let capability: Capability;
  let queue: InstanceType<typeof CapabilityQueue>;
  let made = 0;
  const opened: { close(): Promise<void> }[] = [];

  before(async () => {
    jobs = await JobFixture.start();
    redis = await connectRedis(jobs.server.url, log);
  });
  after(async () => {
    for (const one of opened.reverse()) await one.close();
    await redis?.close();
    await jobs?.stop();
  });

  /** Each test has one of its own. */
  function newQueue(): void {
    capability = `chat${++made}` as Capability;
    queue = new CapabilityQueue(capability, redis.client);
    opened.push(queue);
  }

  function consume(run: QueueConsumerOptions['run'], more: Partial<QueueConsumerOptions> = {}): QueueConsumer {
    const consumer = new product.QueueConsumer({
      ...{ capability, redis: redis.client, workerId: `worker${opened.length}` },
      ...{ begins: false, concurrency: 10, lockMs: 10_000, stalledCheckMs: 200, maxStalledCount: 3, run, log },
      ...more,
      waiting: more.waiting ?? redis.subscriber(),
    });
    opened.push(consumer);
    return consumer;
  }

  /** A connection to wait by, how Redis names it, and what throws until it waits. */
  async function waitingConnection(): Promise<{ waiting: RedisClient; id: number; waits: () => Promise<void> }> {
    const waiting = redis.subscriber();
    const id = await (waiting as Redis).client('ID');
    const waits = async () => assert.match(String(await jobs.redis.client('LIST', 'ID', id)), / flags=\S*b/);
    return { waiting, id, waits };
  }

  /** What runs jobs, which takes no time, and the jobs it has run. */
  function noting(): { ran: string[]; run: QueueConsumerOptions['run'] } {
    const ran: string[] = [];
    const run: QueueConsumerOptions['run'] = async ({ job }) => {
      ran.push(job.id);
      return 'done';
    };
    return { ran, run };
  }

  const job = () => jobs.identity({ capability });
  const put = async (count: number, turn = 0) => {
    const put = Array.from({ length: count }, job);
    for (const one of put) await queue.enqueue(one, turn);
    return put.map(({ id }) => id);
  };

  /** As admission puts it there, but for the word of it. */
  const queueWithState = async (identity: ReturnType<typeof job>): Promise<string> => {
    const key = `${queuePrefix(capability)}:${capability}:job_${identity.id}`;
    await jobs.redis.hset(key, { data: JSON.stringify(identity), state: jobKeys.state(identity.id) });
    await jobs.redis.lpush(`${queuePrefix(capability)}:${capability}:wait`, `job_${identity.id}`);
    return identity.id;
  };

  /** What the queue has left in Redis, but for what BullMQ keeps of it. */
  async function leftovers(): Promise<string[]> {
    const keys = await jobs.redis.keys(`${queuePrefix(capability)}*`);
    return keys.filter((key) => !/:(meta|events|id|marker|stalled-check|stalled|fairness)$/.test(key));
  }

  test('runs each job once, in order, so many at a time as it may, and leaves nothing of them', async () => {
    newQueue();
    const ids = await put(100);
    const [ran, most] = [[] as string[], { now: 0, ever: 0 }];
    consume(async ({ job }) => {
      ran.push(job.id);
      most.ever = Math.max(most.ever, ++most.now);
      await new Promise((resolve) => setImmediate(resolve));
      most.now--;
      return 'done';
    });
    const late = await eventually(async () => {
      assert.equal(ran.length, 100);
      return await put(5);
    });
    await eventually(() => assert.equal(ran.length, 105));
    assert.deepEqual(ran, [...ids, ...late]);
    assert.equal(most.ever, 10);
    await eventually(async () => assert.deepEqual(await leftovers(), []));
  });

  test('takes jobs without a turn first, the others by their turns', async () => {
    newQueue();
    const [third, second, first] = [await put(1, 20), await put(1, 10), await put(1)];
    const ran: TakenJob[] = [];
    consume(
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

  test('shares a queue with another one, and with a Worker of BullMQ: no job runs twice', async () => {
    newQueue();
    const ran = new Map<string, number>();
    const note = (id: string): 'done' => {
      ran.set(id, (ran.get(id) ?? 0) + 1);
      return 'done';
    };
    const parts = { ours: 0, theirs: 0 };
    const work = () => new Promise((resolve) => setTimeout(resolve, 2));
    const run = async ({ job }: TakenJob) => {
      parts.ours++;
      await work();
      return note(job.id);
    };
    consume(run, { concurrency: 2 });
    consume(run, { concurrency: 2 });
    const worker = new Worker(
      capability,
      async ({ data }) => {
        parts.theirs++;
        await work();
        note(data.id);
      },
      queueOptions(capability, redis.client, { concurrency: 2, removeOnComplete: { count: 0 } }),
    );
    opened.push(worker);
    await worker.waitUntilReady();
    const ids = await put(300);
    await eventually(() => assert.equal(ran.size, 300));
    assert.deepEqual([...ran.keys()].sort(), [...ids].sort());
    assert.deepEqual(new Set(ran.values()), new Set([1]));
    assert.ok(parts.ours > 0 && parts.theirs > 0, JSON.stringify(parts));
    await eventually(async () => assert.deepEqual(await leftovers(), []));
  });

  test('gives a job back to be the next one, and runs one again whose worker was lost', async () => {
    newQueue();
    const [first, second] = await put(2);
    const ran: string[] = [];
    const giving = consume(
      async ({ job }) => {
        ran.push(job.id);
        return ran.length === 1 ? 'given back' : 'done';
      },
      { concurrency: 1 },
    );
    await eventually(() => assert.deepEqual(ran, [first, first, second]));
    await giving.close();
    const [third] = await put(1, 5);
    // Its lock runs out, as that of a process that was killed.
    let end: () => void = () => undefined;
    const lost = (): Promise<'done'> =>
      new Promise((resolve) => {
        end = () => resolve('done');
      });
    consume(lost, { lockMs: 200, concurrency: 1 });
    const locks = () => jobs.redis.keys(`${queuePrefix(capability)}*:lock`);
    await eventually(async () => assert.equal((await locks()).length, 1));
    await jobs.redis.del(...(await locks()));
    const again: TakenJob[] = [];
    consume(async (taken) => {
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

  test('begins jobs as it takes them, where their state is at hand and they may be run again', async () => {
    newQueue();
    const verdicts = new Map<string, TakenJob['verdict']>();
    const run: QueueConsumerOptions['run'] = async ({ job, verdict }) => {
      verdicts.set(job.id, verdict);
      return 'done';
    };
    const fresh = await queueWithState(await jobs.create({ capability }));
    const ended = await jobs.create({ capability });
    await jobs.end(ended);
    await queueWithState(ended);
    const taken = await jobs.create({ capability });
    await jobs.take(taken);
    await queueWithState(taken);
    const broken = await jobs.create({ capability });
    await jobs.redis.hset(jobKeys.state(broken.id), 'deadline', 'never');
    await queueWithState(broken);
    const unknown = await queueWithState(job());
    const [stateless] = await put(1);
    consume(run, { begins: true, workerId: 'beginner' });
    await eventually(() => assert.equal(verdicts.size, 6));
    assert.deepEqual(verdicts.get(fresh), { verdict: 'run', attempt: 1, lastSeq: 0 });
    assert.equal(verdicts.get(ended.id)?.verdict, 'settle');
    assert.equal(verdicts.get(taken.id)?.verdict, 'wait');
    assert.deepEqual(verdicts.get(unknown), { verdict: 'drop' });
    assert.equal(verdicts.get(broken.id), undefined, 'whoever runs it asks, and is told why');
    assert.equal(verdicts.get(stateless as string), undefined);
    assert.deepEqual(await jobs.redis.hmget(jobKeys.state(fresh), 'worker', 'sent'), ['beginner', '1']);
    // A repeat of what may not be run twice could not be told from a job whose vendor was called.
    newQueue();
    const once = await queueWithState(await jobs.create({ capability }));
    consume(run, { begins: false });
    await eventually(() => assert.equal(verdicts.has(once), true));
    assert.equal(verdicts.get(once), undefined);
    assert.equal(await jobs.redis.hget(jobKeys.state(once), 'attempt'), null);
  });

  test('takes out what cannot be read, goes on after one that throws, and holds its locks', async () => {
    newQueue();
    const [broken] = await put(1);
    await jobs.redis.hset(`${queuePrefix(capability)}:${capability}:job_${broken}`, 'data', '{');
    const [long, throwing] = await put(2);
    let end: () => void = () => undefined;
    const ran: string[] = [];
    consume(
      async ({ job }) => {
        ran.push(job.id);
        if (job.id === throwing) throw new Error('it broke');
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        return 'done';
      },
      { lockMs: 400, stalledCheckMs: 100 },
    );
    await eventually(() => assert.equal(ran.length, 2));
    const lock = `${queuePrefix(capability)}:${capability}:job_${long}:lock`;
    for (let renewed = 0; renewed < 3; renewed++) {
      const before = await jobs.redis.pttl(lock);
      await eventually(async () => assert.ok((await jobs.redis.pttl(lock)) > before || before > 350));
    }
    assert.deepEqual(ran, [long, throwing], 'nobody else took it meanwhile');
    end();
    await eventually(async () => assert.deepEqual(await leftovers(), []));
  });

  test('that is closed takes no more jobs, and waits for those that run', async () => {
    newQueue();
    const [running] = await put(1);
    let end: () => void = () => undefined;
    const ran: string[] = [];
    const consumer = consume(
      ({ job }) =>
        new Promise((resolve) => {
          ran.push(job.id);
          end = () => resolve('done');
        }),
      { concurrency: 1 },
    );
    await eventually(() => assert.equal(ran.length, 1));
    const closed = consumer.close();
    const [waiting] = await put(1);
    assert.equal(await Promise.race([closed.then(() => 'closed'), queue.waiting()]), 1);
    end();
    await closed;
    assert.deepEqual(ran, [running]);
    assert.equal(await queue.has(waiting as string), true);
    assert.equal(await queue.has(running as string), false);
  });

  test('runs a job that was taken for it in the moment of its closing', async () => {
    newQueue();
    const { waiting, waits } = await waitingConnection();
    const { ran, run } = noting();
    const consumer = consume(run, { waiting });
    await eventually(waits);
    const one = job();
    const key = `${queuePrefix(capability)}:${capability}:`;
    const put = `redis.call('HSET', KEYS[1] .. 'job_' .. ARGV[1], 'data', ARGV[2])
      redis.call('LPUSH', KEYS[1] .. 'wait', 'job_' .. ARGV[1])
      redis.call('ZADD', KEYS[1] .. 'marker', '0', '0')`;
    const putting = jobs.redis.eval(put, 1, key, one.id, JSON.stringify(one));
    // Redis gives the job away meanwhile, and this process cannot hear of it before it closes.
    const until = performance.now() + 100;
    while (performance.now() < until);
    await Promise.all([consumer.close(), putting]);
    assert.deepEqual(ran, [one.id]);
    await eventually(async () => assert.deepEqual(await leftovers(), []));
  });

  test('takes a job by the connection by which it waits, in the step in which it comes', async () => {
    newQueue();
    const { waiting, waits } = await waitingConnection();
    const commands = redis.subscriber();
    const { ran, run } = noting();
    consume(run, { waiting, redis: commands });
    await eventually(waits);
    commands.disconnect();
    const ids = await put(1);
    await eventually(() => assert.deepEqual(ran, ids));
  });

  test('runs what it was given behind a wait that has failed', async () => {
    newQueue();
    const { id, waiting, waits } = await waitingConnection();
    const { ran, run } = noting();
    consume(run, { waiting });
    await eventually(waits);
    const given = await queueWithState(job());
    // As when its node becomes a replica.
    await jobs.redis.client('UNBLOCK', id, 'ERROR');
    await eventually(() => assert.deepEqual(ran, [given]));
  });

  test('that waits is closed soon, also while Redis does not answer', async () => {
    newQueue();
    const { waiting, waits } = await waitingConnection();
    const consumer = consume(async () => 'done', { waiting });
    await eventually(waits);
    await jobs.redis.client('PAUSE', 3000, 'ALL');
    let answers = false;
    const answer = jobs.redis.ping().then(() => {
      answers = true;
    });
    await consumer.close();
    assert.equal(answers, false);
    await answer;
  });

  test('that has no place leaves the word that jobs wait to one that has', async (t) => {
    newQueue();
    const ends: (() => void)[] = [];
    t.after(() => {
      for (const end of ends) end();
    });
    const ran: string[][] = [[], []];
    const holding = (taken: string[]) => {
      const run: QueueConsumerOptions['run'] = ({ job }) => {
        taken.push(job.id);
        return new Promise((resolve) => ends.push(() => resolve('done')));
      };
      return { run, concurrency: 1 };
    };
    const [full, free] = ran.map(holding) as [ReturnType<typeof holding>, ReturnType<typeof holding>];
    const first = await waitingConnection();
    consume(full.run, { ...full, waiting: first.waiting });
    await eventually(first.waits);
    const [long] = await put(1);
    await eventually(() => assert.deepEqual(ran[0], [long]));
    const second = await waitingConnection();
    consume(free.run, { ...free, waiting: second.waiting });
    await eventually(second.waits);
    const [next] = await put(1);
    // Sooner than the free one would look by itself.
    await eventually(() => assert.deepEqual(ran[1], [next]), 2500);
  });

  test('takes nothing from a paused queue, and goes on when it is resumed', async () => {
    newQueue();
    await queue.bull.pause();
    const [paused] = await put(1);
    const { ran, run } = noting();
    const { waiting, waits } = await waitingConnection();
    consume(run, { waiting });
    await eventually(waits);
    assert.deepEqual(ran, []);
    await queue.bull.resume();
    await eventually(() => assert.deepEqual(ran, [paused]));
  });

  test('does not take out a job that another one has by now', async (t) => {
    newQueue();
    const [shared] = await put(1);
    const ends: (() => void)[] = [];
    t.after(() => {
      for (const end of ends) end();
    });
    const ran: number[] = [];
    const holding = () => {
      const run: QueueConsumerOptions['run'] = ({ stalled }) => {
        ran.push(stalled);
        return new Promise((resolve) => ends.push(() => resolve('done')));
      };
      return consume(run, { concurrency: 1 });
    };
    const frozen = holding();
    await eventually(() => assert.deepEqual(ran, [0]));
    const lock = `${queuePrefix(capability)}:${capability}:job_${shared}:lock`;
    const other = holding();
    await jobs.redis.del(lock);
    await eventually(() => assert.deepEqual(ran, [0, 1]));
    ends[0]?.();
    await frozen.close();
    assert.equal(await jobs.redis.exists(lock), 1);
    assert.equal(await queue.has(shared as string), true);
    ends[1]?.();
    await other.close();
    assert.equal(await queue.has(shared as string), false);
  });
});
