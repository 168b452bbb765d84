import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { Capability } from '../../../shared/capabilities/capability.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { RedisHandle } from '../../../shared/redis/redis.ts';
import type { Consumer } from '../../../workers/queue/consumer.ts';
import { CommandCounts } from '../../support/command-counts.ts';
import { eventually } from '../../support/eventually.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { ShardedQueue } =
  await loadProduct<typeof import('../../../shared/queue/sharded-queue.ts')>('shared/queue/sharded-queue');
const { QueueShards, shardedVersion } =
  await loadProduct<typeof import('../../../shared/queue/queue-shards.ts')>('shared/queue/queue-shards');
const { assignedShards, reportConsumer, removeConsumer } =
  await loadProduct<typeof import('../../../shared/queue/queue-consumers.ts')>('shared/queue/queue-consumers');
const { ShardedConsumer } = await loadProduct<typeof import('../../../workers/queue/sharded-consumer.ts')>(
  'workers/queue/sharded-consumer',
);
const { JobConsumer } =
  await loadProduct<typeof import('../../../workers/queue/job-consumer.ts')>('workers/queue/job-consumer');
const { ClaimSlots } =
  await loadProduct<typeof import('../../../workers/queue/claim-slots.ts')>('workers/queue/claim-slots');
const { ClaimedQueue } =
  await loadProduct<typeof import('../../../shared/queue/claimed-queue.ts')>('shared/queue/claimed-queue');
const { createJobState, newState, readJobState, shardOf } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { jobKeys, queuePrefix, queueRoot } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { writeFor, writtenVersion } =
  await loadProduct<typeof import('../../../shared/runtime/wire-version.ts')>('shared/runtime/wire-version');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

const { jobIdOfEntry, limitJobTags, newJobId } =
  await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');

const log = createLogger('silent', 'test').log;
const shards = 4;
/** Shard 0 besides, which has the jobs without. */
const queuesOf = shards + 1;
const numbers = Array.from({ length: queuesOf }, (_, shard) => shard);

let jobs: JobFixture;
let redis: RedisHandle;
const closers: (() => Promise<void> | void)[] = [];
let made = 0;
before(async () => {
  jobs = await JobFixture.start();
  limitJobTags(shards);
  redis = await connectRedis(jobs.server.url, log);
});
afterEach(async () => {
  writeFor([]);
  for (const close of closers.splice(0).reverse()) await close();
});
after(async () => {
  limitJobTags(undefined);
  await redis.close();
  await jobs.stop();
});

function newQueue(count = { count: queuesOf }): InstanceType<typeof ShardedQueue> {
  const queue = new ShardedQueue(`sharded${++made}` as Capability, redis.client, count);
  closers.push(() => queue.close());
  return queue;
}

/** The slot of a key with a tag: CRC-16 (XMODEM). */
function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(/\{(.+?)\}/.exec(key)?.[1] ?? key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc % 16_384;
}

/** Puts jobs into the shards that they belong to. */
async function put(
  queue: InstanceType<typeof ShardedQueue>,
  count: number,
  more: Partial<JobIdentity> & { hasPriority?: boolean } = {},
): Promise<JobIdentity[]> {
  const { hasPriority = false, ...rest } = more;
  const put = Array.from({ length: count }, () => jobs.identity({ capability: queue.capability, shards, ...rest }));
  for (const job of put) assert.equal(await queue.of(job).enqueue({ ...job, request: '{}' }, hasPriority), 'queued');
  return put;
}

function idOfShard(shard: number): string {
  for (;;) {
    const id = newJobId();
    if (shardOf({ id, shards }) === shard) return id;
  }
}

/** Puts one job into a shard. */
async function putInto(queue: InstanceType<typeof ShardedQueue>, shard: number): Promise<JobIdentity> {
  const job = jobs.identity({ capability: queue.capability, shards, id: idOfShard(shard) });
  assert.equal(await queue.of(job).enqueue({ ...job, request: '{}' }), 'queued');
  return job;
}

interface StartedWorker {
  readonly consumer: Consumer;
  readonly ran: { readonly id: string; readonly shard: number }[];
  readonly served: Set<number>;
}

/** A worker that consumes the shards assigned to it. */
function startWorker(
  queue: InstanceType<typeof ShardedQueue>,
  id: string,
  { concurrency = 4, run = async (): Promise<void> => undefined, count = { count: queuesOf } } = {},
): StartedWorker {
  const slots = new ClaimSlots(concurrency);
  const [ran, served] = [[] as { id: string; shard: number }[], new Set<number>()];
  const consumer = new ShardedConsumer({
    ...{ capability: queue.capability, redis: redis.client, workerId: id, shards: count, slots, log },
    open: (shard) => {
      served.add(shard);
      const inner = new JobConsumer({
        ...{ capability: queue.capability, shard, redis: redis.client, waiting: redis.blocking(), workerId: id },
        ...{ slots, begins: false, lockMs: 10_000, targetWaitMs: 0, stalledCheckMs: 100, maxStalledCount: 3, log },
        run: async ({ job }) => {
          ran.push({ id: job.id, shard });
          await run();
          return 'done';
        },
      });
      return {
        close: async () => {
          served.delete(shard);
          await inner.close();
        },
      };
    },
  });
  const worker = { consumer, ran, served };
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= inner());
  const inner = consumer.close.bind(consumer);
  consumer.close = close;
  closers.push(close);
  return worker;
}

describe('the shards of a queue', () => {
  test('jobs are spread over the shards, and what is read of the queue is the sum', async () => {
    const queue = newQueue();
    const all = await put(queue, 160);
    const prior = await put(queue, 40, { hasPriority: true, account: 'a' });
    const waiting = await Promise.all(numbers.slice(1).map((shard) => queue.shard(shard).reader.waiting()));
    assert.equal(await queue.shard(0).reader.waiting(), 0);
    // A shard is drawn from the job's random id: of 200 jobs each of the four has about 50, and one has fewer than 17 twice in 10^9 runs.
    assert.ok(
      waiting.every((count) => count > 16),
      String(waiting),
    );
    assert.equal(await queue.waiting(), 200);
    assert.equal(await queue.prioritized(), 40);
    const { waiting: depth, oldestWaitMs } = await queue.depth();
    assert.equal(depth, 200);
    assert.ok(oldestWaitMs >= 0);
    assert.deepEqual([...(await queue.progress()).lines], [['a', 40]]);
    const [first] = all as [JobIdentity];
    assert.equal(await queue.has(first.id), true);
    assert.equal(await queue.of(first).has(first.id), true);
    assert.equal(await queue.remove((prior[0] as JobIdentity).id), true);
    assert.equal(await queue.waiting(), 199);
  });

  test('jobs of a queue without shards, and those of another number, are found and run where they are', async () => {
    const queue = newQueue();
    const old = await put(queue, 5, { shards: undefined });
    const fewer = await put(queue, 5, { shards: 2 });
    assert.equal(await queue.shard(0).reader.waiting(), 5 + fewer.filter((job) => queue.of(job).shard === 0).length);
    assert.ok(fewer.every((job) => queue.of(job).shard <= 2));
    for (const job of [...old, ...fewer]) assert.equal(await queue.of(job).has(job.id), true);
    const { ran } = startWorker(queue, 'worker-a');
    await eventually(() => assert.equal(ran.length, 10));
  });

  test('new jobs have no shard while a process of the release before runs', async () => {
    const opened = await QueueShards.open({ queueShards: shards }, { client: redis.client, isCluster: false }, log);
    closers.push(() => opened.close());
    assert.equal(opened.forNewJobs, shards);
    assert.equal(opened.count, queuesOf);
    writeFor([{ oldest: 1, newest: 1 }]);
    assert.ok(writtenVersion() < shardedVersion);
    writeFor([]);
    assert.ok(writtenVersion() >= shardedVersion);
  });

  test('a process with fewer shards serves those of the others, also when they are gone', async () => {
    const more = await QueueShards.open({ queueShards: 9 }, { client: redis.client, isCluster: false }, log);
    more.close();
    limitJobTags(shards);
    const none = await QueueShards.open({ queueShards: undefined }, { client: redis.client, isCluster: false }, log);
    closers.push(() => none.close());
    assert.deepEqual([none.count, none.forNewJobs], [10, undefined]);
  });

  test('a process with more shards than others tells them again after Redis was emptied', async () => {
    const connection = { client: redis.client, isCluster: false };
    const more = await QueueShards.open({ queueShards: 9 }, connection, log);
    closers.push(() => more.close());
    limitJobTags(shards);
    await redis.client.flushall();
    await eventually(async () => {
      const none = await QueueShards.open({ queueShards: undefined }, connection, log);
      none.close();
      assert.equal(none.count, 10);
    });
  });
});

describe('the ids of jobs', () => {
  test('new ids are of the job tags that have shards, and sort by time', () => {
    const ids = Array.from({ length: 200 }, (_, index) => newJobId(1_700_000_000_000 + index));
    assert.deepEqual(new Set(ids.map((id) => jobKeys.tag(id))), new Set([49, 26, 18, 12]));
    assert.deepEqual([...ids].sort(), ids);
  });

  test('new ids of the same few milliseconds belong to one shard, 32 at most, and then to the next', () => {
    const at = 1_800_000_000_000;
    const drawn = (count: number, now: number) =>
      Array.from({ length: count }, () => shardOf({ id: newJobId(now), shards }));
    const [first, ...same] = [...drawn(30, at), ...drawn(2, at + 5)] as [number, ...number[]];
    assert.deepEqual(new Set(same), new Set([first]));
    const next = (shard: number): number => 1 + (shard % shards);
    assert.deepEqual(drawn(2, at + 5), [next(first), next(first)]);
    assert.deepEqual(drawn(1, at + 11), [next(next(first))]);
    assert.deepEqual(drawn(1, at), [next(next(next(first)))], 'a clock that was put back');
  });

  test('jobs and accounts have the tags that earlier builds stored their keys under', () => {
    const tags = {
      '0199aa00000070008000000000000000': 25,
      '0199aa00000070008000000000000001': 6,
      '0199aa0000007fffbfffffffffffffff': 3,
      'account-1': 22,
      Müller: 19,
    };
    for (const [id, tag] of Object.entries(tags)) assert.equal(jobKeys.tag(id), tag, id);
  });

  test('a new id belongs to each of the shards as often', () => {
    for (const count of [3, 48]) {
      limitJobTags(count);
      const counts = new Map<number, number>();
      for (let drawn = 0; drawn < 200 * count; drawn++) {
        const shard = shardOf({ id: newJobId(), shards: count });
        counts.set(shard, (counts.get(shard) ?? 0) + 1);
      }
      limitJobTags(shards);
      assert.equal(counts.size, count);
      // Seven standard deviations, of 48 or fewer shards.
      assert.ok(
        [...counts.values()].every((times) => times > 100 && times < 300),
        String([...counts]),
      );
    }
  });

  /** How many shards each of so many masters with equal ranges of slots has. */
  const shardsOfMasters = (count: number, masters: number): number[] => {
    const counts = Array.from({ length: masters }, () => 0);
    for (let shard = 1; shard <= count; shard++) {
      const master = Math.floor((slotOf(queuePrefix('chat', shard)) * masters) / 16_384);
      counts[master] = (counts[master] as number) + 1;
    }
    return counts;
  };

  test('the shards of any number are spread evenly over three masters of a Cluster', () => {
    for (let count = 3; count <= 64; count++) {
      const counts = shardsOfMasters(count, 3);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `${count}: ${counts}`);
    }
  });

  for (const [count, masters] of [
    [6, 6],
    [12, 4],
    [12, 6],
    [12, 12],
  ] as const) {
    test(`${count} shards are spread evenly over ${masters} masters of a Cluster`, () => {
      assert.deepEqual(new Set(shardsOfMasters(count, masters)), new Set([count / masters]));
    });
  }

  test('a job lies with its state, and the step that queues it makes that once and lets its claim begin the job', async () => {
    const queue = newQueue();
    const job = jobs.identity({ capability: queue.capability, shards });
    const shard = queue.of(job);
    assert.equal(queuePrefix(queue.capability, shard.shard).split('}')[0], jobKeys.state(job.id).split('}')[0]);
    const state = newState(job, 'api-reader');
    assert.equal(await shard.enqueue({ ...job, request: '{}' }, false, undefined, state), 'queued');
    assert.equal((await readJobState(jobs.redis, job.id))?.deadlineAt, job.deadlineAt);
    assert.ok((await jobs.redis.pttl(jobKeys.state(job.id))) > 0);
    const claimed = new ClaimedQueue(queue.capability, shard.shard);
    const call = { token: 'worker:1', wanted: 1, lockMs: 60_000, workerId: 'worker', targetWaitMs: 0, ended: [] };
    const [entry] = (await claimed.claim(redis.client, call)).entries;
    assert.ok(entry?.verdict?.verdict === 'run' && entry.verdict.attempt === 1, JSON.stringify(entry));
    // Ended before its queueing, which was sent again: the end stays.
    const cancelled = jobs.identity({ capability: queue.capability, shards });
    await createJobState(jobs.redis, cancelled, 'api-reader');
    await jobs.end(cancelled, { outcome: 'cancelled' });
    const late = newState(cancelled, 'api-reader');
    await queue.of(cancelled).enqueue({ ...cancelled, request: '{}' }, false, undefined, late);
    assert.equal((await readJobState(jobs.redis, cancelled.id))?.outcome, 'cancelled');
    // Queued too late, it leaves no state.
    const refused = jobs.identity({ capability: queue.capability, shards });
    assert.equal(
      await queue.of(refused).enqueue({ ...refused, request: '{}' }, false, 1, newState(refused, 'r')),
      'late',
    );
    assert.equal(await readJobState(jobs.redis, refused.id), undefined);
  });
});

describe('the assignment of shards to workers', () => {
  test('each shard has two workers where there are two, each worker two shards, and one that leaves moves only its own', () => {
    for (let count = 1; count <= 40; count++) {
      const workers = Array.from({ length: count }, (_, index) => `worker-${index}`);
      const assigned = new Map(workers.map((worker) => [worker, assignedShards(workers, worker, 16)]));
      for (let shard = 0; shard < 16; shard++) {
        const serving = workers.filter((worker) => assigned.get(worker)?.has(shard));
        assert.ok(serving.length >= Math.min(2, count), `${count} workers: shard ${shard} has ${serving.length}`);
      }
      assert.ok([...assigned.values()].every(({ size }) => size >= 2));
      const [gone, ...others] = workers as [string, ...string[]];
      for (const worker of others) {
        const [before, now] = [assigned.get(worker) as Set<number>, assignedShards(others, worker, 16)];
        assert.deepEqual(
          [...before].filter((shard) => !now.has(shard)),
          [],
        );
        const gained = [...now].filter((shard) => !before.has(shard));
        assert.ok(gained.every((shard) => assigned.get(gone)?.has(shard)));
      }
    }
  });

  test('the shards are spread evenly', () => {
    const workers = Array.from({ length: 8 }, (_, index) => `worker-${index}`);
    const sizes = workers.map((worker) => assignedShards(workers, worker, 64).size);
    assert.ok(Math.max(...sizes) <= 28 && Math.min(...sizes) >= 6, String(sizes));
  });

  test('a worker that is silent or has left no longer counts', async () => {
    const capability = `consumed${++made}` as Capability;
    assert.deepEqual(await reportConsumer(redis.client, capability, 'one'), ['one']);
    assert.deepEqual((await reportConsumer(redis.client, capability, 'two')).sort(), ['one', 'two']);
    await jobs.redis.zadd(`sluice:{q-${capability}}:consumers`, 1, 'one');
    assert.deepEqual(await reportConsumer(redis.client, capability, 'two'), ['two']);
    await removeConsumer(redis.client, capability, 'two');
    assert.equal(await jobs.redis.exists(`sluice:{q-${capability}}:consumers`), 0);
  });
});

describe('the consumers of shards', () => {
  test('a worker runs the jobs of all its shards within one concurrency, and none is left behind', async () => {
    const queue = newQueue();
    const most = { now: 0, ever: 0 };
    const run = async (): Promise<void> => {
      most.ever = Math.max(most.ever, ++most.now);
      await new Promise((resolve) => setImmediate(resolve));
      most.now--;
    };
    const { ran } = startWorker(queue, 'worker-a', { concurrency: 3, run });
    const all = await put(queue, 150);
    await eventually(() => assert.equal(ran.length, 150));
    assert.deepEqual(new Set(ran.map(({ id }) => id)), new Set(all.map(({ id }) => id)));
    assert.equal(most.ever, 3);
    await eventually(async () => assert.deepEqual([await queue.waiting(), await queue.active()], [0, 0]));
  });

  test('jobs that are queued at once go in one call, in order, and one that fails alone fails', async () => {
    const queue = newQueue();
    await redis.client.set(`${queueRoot(queue.capability, 1)}line:broken`, 'no line');
    const wanted = Array.from({ length: 12 }, (_, index) => {
      const account = index === 5 ? 'broken' : 'whole';
      return jobs.identity({ capability: queue.capability, shards, account, id: idOfShard(1) });
    });
    const counts = new CommandCounts(jobs.redis);
    await counts.start();
    const queued = wanted.map((job) => queue.of(job).enqueue({ ...job, request: '{}' }, true));
    const ended = await Promise.allSettled(queued);
    const calls = await counts.since();
    assert.equal((calls.get('evalsha') ?? 0) + (calls.get('eval') ?? 0), 1);
    for (const [index, end] of ended.entries()) {
      if (index === 5) assert.match(String(end.status === 'rejected' && end.reason), /WRONGTYPE/);
      else assert.deepEqual(end, { status: 'fulfilled', value: 'queued' });
    }
    const line = await jobs.redis.zrange(`${queueRoot(queue.capability, 1)}line:whole`, '0', '-1');
    assert.deepEqual(
      line.map((entry) => jobIdOfEntry(String(entry))),
      wanted.filter(({ account }) => account === 'whole').map(({ id }) => id),
    );
    assert.equal(await queue.shard(1).enqueue({ ...(wanted[0] as JobIdentity), request: '{}' }, true), 'there');
  });

  test('one slot serves every shard in turn', async () => {
    const queue = newQueue();
    for (let index = 0; index < 60; index++) await putInto(queue, 1 + (index % shards));
    const { ran } = startWorker(queue, 'worker-a', { concurrency: 1 });
    await eventually(() => assert.equal(ran.length, 60));
    const first = new Set(ran.slice(0, 40).map(({ shard }) => shard));
    assert.equal(first.size, shards, 'none has to wait until others are empty');
  });

  test('a worker that is woken without a free slot wakes another one', async () => {
    const queue = newQueue();
    const blocked = async (count: number) => {
      const clients = String(await jobs.redis.client('LIST'));
      assert.equal(clients.match(/ flags=\S*b/g)?.length ?? 0, count);
    };
    const ends: (() => void)[] = [];
    const run = () => new Promise<void>((resolve) => ends.push(resolve));
    const busy = startWorker(queue, 'worker-busy', { concurrency: 1, run });
    closers.push(() => {
      for (const end of ends) end();
    });
    await eventually(() => blocked(queuesOf));
    const idle = startWorker(queue, 'worker-idle');
    await eventually(() => blocked(2 * queuesOf));
    // Redis wakes whoever has waited longest.
    await putInto(queue, 4);
    await eventually(() => assert.equal(busy.ran.length, 1));
    const others = [await putInto(queue, 1), await putInto(queue, 2), await putInto(queue, 3)];
    // Earlier than it would look by itself.
    await eventually(() => assert.equal(idle.ran.length, others.length), 3000);
    assert.equal(busy.ran.length, 1);
  });

  test('a worker that comes takes over shards, one that goes leaves them, and each job runs once meanwhile', async () => {
    const queue = newQueue();
    const first = startWorker(queue, 'worker-1');
    const ids: string[] = [];
    const more = async (count: number): Promise<void> => {
      ids.push(...(await put(queue, count)).map(({ id }) => id));
    };
    await more(20);
    const second = startWorker(queue, 'worker-2');
    await more(20);
    await eventually(() => assert.equal(first.ran.length + second.ran.length, 40));
    const closing = first.consumer.close();
    await more(20);
    await closing;
    await more(20);
    await eventually(() => assert.equal(first.ran.length + second.ran.length, 80));
    const ran = [...first.ran, ...second.ran].map(({ id }) => id);
    assert.deepEqual(ran.sort(), ids.sort());
    assert.deepEqual([...second.served].sort(), numbers);
  });

  test('the claims of a worker that dies holding a shard alone are taken over by the next one', async () => {
    const queue = newQueue();
    const [job] = (await put(queue, 1)) as [JobIdentity];
    const shard = new ClaimedQueue(queue.capability, queue.of(job).shard);
    await shard.renew(redis.client, { id: 'dead', aliveMs: 0 }, [], 60_000);
    const call = { wanted: 1, lockMs: 60_000, workerId: '', targetWaitMs: 0, ended: [] };
    assert.equal((await shard.claim(redis.client, { ...call, token: 'dead:1' })).entries.length, 1);
    await reportConsumer(redis.client, queue.capability, 'dead');
    const { ran } = startWorker(queue, 'alive');
    await eventually(() =>
      assert.deepEqual(
        ran.map(({ id }) => id),
        [job.id],
      ),
    );
  });

  test('a queue that gets shards is served by workers that started without', async () => {
    const count = { count: 1 };
    const queue = newQueue();
    const { ran, served } = startWorker(queue, 'worker-a', { count });
    await put(queue, 3, { shards: undefined });
    await eventually(() => assert.equal(ran.length, 3));
    count.count = queuesOf;
    await put(queue, 12);
    await eventually(() => assert.equal(ran.length, 15), 15_000);
    assert.deepEqual([...served].sort(), numbers);
  });

  test('a paused shard holds its jobs, and the others go on', async () => {
    const queue = newQueue();
    const { ran } = startWorker(queue, 'worker-a');
    await (await queue.shard(1).bull()).pause();
    const all = await put(queue, 40);
    const held = all.filter((job) => queue.of(job).shard === 1).length;
    await eventually(() => assert.equal(ran.length, 40 - held));
    assert.equal(await queue.waiting(), held);
    await (await queue.shard(1).bull()).resume();
    await eventually(() => assert.equal(ran.length, 40));
  });
});
