import { once } from 'node:events';
import { Redis } from 'ioredis';
import { builtProduct, type TestGateway } from '../gateway.ts';
import { startTcpProxy } from '../tcp-proxy.ts';
import { jobOf, ScriptCommands } from './script-commands.ts';

/** A point in a job's life: a script's call, before it runs or when it has run but the worker does not know. */
export interface StoppingPoint {
  readonly script: string;
  readonly stop: 'before' | 'after';
  /** At which call of the script for one job. */
  readonly call: number;
}

/** The scripts of the product, by what their calls look like. */
export const scripts = new ScriptCommands(builtProduct, [
  ['shared/jobs/store-task'],
  ['shared/jobs/journal/journaled', 'shared/jobs/attach'],
  ['shared/jobs/journal/write-journal'],
  ['api/replies/leave-job'],
  ['shared/jobs/journal/journaled', 'api/replies/adopt-job'],
  ['shared/jobs/journal/journaled', 'api/replies/shared/join-shared'],
  ['api/replies/shared/leave-shared'],
  ['shared/jobs/leases/lease', 'shared/queue/pause'],
  ['shared/redis/is-ahead', 'shared/jobs/settlement/settle'],
  ['shared/redis/refusal', 'shared/jobs/leases/lease', 'shared/jobs/append'],
  ['shared/redis/refusal', 'shared/jobs/leases/lease', 'shared/jobs/journal/journaled', 'shared/jobs/finish'],
  ['shared/redis/refusal', 'shared/jobs/leases/lease', 'shared/jobs/begin-job', 'shared/jobs/begin'],
  [
    ...['shared/redis/refusal', 'shared/jobs/leases/lease', 'shared/jobs/begin-job'],
    ...['shared/queue/keys-in-line', 'shared/queue/lines', 'shared/queue/flex-lane', 'shared/queue/high-lane'],
    'shared/queue/claim-jobs',
  ],
  [
    ...['shared/redis/refusal', 'shared/queue/add-job', 'shared/redis/is-ahead', 'api/admission/rate-buckets'],
    'api/admission/admit',
  ],
  [
    ...['shared/redis/refusal', 'shared/queue/keys-in-line', 'shared/queue/lines'],
    ...['shared/queue/flex-lane', 'shared/queue/high-lane'],
    ...['shared/queue/add-job', 'shared/queue/enqueue'],
  ],
]);

/**
 * Starts a worker that is killed when one of its jobs comes to a point; `hit` resolves with that job, once it is dead.
 * @param settings such as how many jobs it takes at a time
 * @param victims jobs that have been hit already: a worker that takes one over goes on to another
 */
export async function startDoomedWorker(
  gateway: TestGateway,
  point: StoppingPoint,
  settings: Record<string, string>,
  victims: Set<string>,
): Promise<{ hit: Promise<string> }> {
  const proxy = await startTcpProxy(gateway.redis?.port as number);
  const calls = new Map<string, number>();
  const stopped = proxy.stopAt({
    stop: point.stop,
    matches: (command) => {
      if (scripts.nameOf(command) !== point.script) return false;
      const job = jobOf(command);
      calls.set(job, (calls.get(job) ?? 0) + 1);
      if (victims.has(job) || calls.get(job) !== point.call) return false;
      victims.add(job);
      return true;
    },
  });
  const worker = await gateway.startWorker({ REDIS_URL: proxy.url, ...settings }).catch(async (error) => {
    await proxy.close();
    throw error;
  });
  // However it ends, for an open proxy would keep the suite from its own end.
  const closed = once(worker.child, 'exit').then(() => proxy.close());
  const hit = stopped.then(async (command) => {
    await worker.kill();
    await closed;
    return jobOf(command);
  });
  return { hit };
}

/**
 * Starts one for each point. `hits` resolves with the jobs that were hit, in the points' order, once all of the workers are dead. Until
 * then nobody takes these jobs over: one that does may die itself, of another job, and the job ends otherwise than its point says.
 * @throws the first error, once all the others are known to the gateway, which ends them.
 */
export async function startDoomedWorkers(
  gateway: TestGateway,
  points: readonly StoppingPoint[],
  settings: Record<string, string>,
  victims: Set<string>,
): Promise<{ hits: Promise<string[]> }> {
  const starts = points.map((point) => startDoomedWorker(gateway, point, settings, victims));
  await Promise.allSettled(starts);
  const doomed = await Promise.all(starts);
  const locks: string[] = [];
  const locked = doomed.map(async ({ hit }) => {
    const job = await hit;
    await withRedis(gateway, async (redis) => {
      for (const key of await redis.keys(`sluice:{q-*:job_${job}`)) {
        locks.push(`${key}:lock`);
        await redis.set(`${key}:lock`, 'nobody:1');
      }
    });
    return job;
  });
  const hits = Promise.all(locked).then(async (jobs) => {
    if (locks.length > 0) await withRedis(gateway, (redis) => redis.del(locks));
    return jobs;
  });
  return { hits };
}

async function withRedis(gateway: TestGateway, change: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(gateway.redisUrl);
  try {
    await change(redis);
  } finally {
    redis.disconnect();
  }
}
