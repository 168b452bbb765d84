import type { Redis } from 'ioredis';
import { connectRedis } from '../../shared/redis/redis.ts';
import { createLogger } from '../../shared/runtime/log.ts';

/** Sorted sets of holds and running jobs, which BullMQ lists name the jobs that wait or run, and the jobs themselves. */
const setPattern = /^sluice:\{m\d+\}:(holds|running:.+)$/;
const listPattern = /^sluice:\{q-[^}]+\}:[^:]+:(wait|active|paused)$/;
const sortedPattern = /^sluice:\{q-[^}]+\}:[^:]+:(delayed|prioritized|completed|failed)$/;
const queuedPattern = /^sluice:\{q-[^}]+\}:[^:]+:job_[0-9a-f]{32}(:.*)?$/;
const statePattern = /^sluice:\{a\d+\}:job:/;
const logPattern = /^sluice:\{a\d+\}:log:/;

/**
 * What unfinished jobs have left in Redis, a sentence each; empty when every job has ended and was settled: holds, members
 * of running sets, queued or locked jobs, states without an end, and states or logs that would never expire.
 * @param redisUrl as in `REDIS_URL`; of a Cluster every master is looked at
 */
export async function leftovers(redisUrl: string): Promise<string[]> {
  const { client, isCluster, close } = await connectRedis(redisUrl, createLogger('silent', 'test').log);
  try {
    const nodes = isCluster && 'nodes' in client ? client.nodes('master') : [client as Redis];
    const found = await Promise.all(nodes.map((node) => leftoversOf(node)));
    return found.flat().sort();
  } finally {
    await close();
  }
}

async function leftoversOf(redis: Redis): Promise<string[]> {
  const found: string[] = [];
  for await (const keys of redis.scanStream({ match: 'sluice:*', count: 500 })) {
    for (const key of keys as string[]) {
      const left = await describe(redis, key);
      if (left !== undefined) found.push(`${key} ${left}`);
    }
  }
  return found;
}

async function describe(redis: Redis, key: string): Promise<string | undefined> {
  if (setPattern.test(key) || sortedPattern.test(key)) return listed(await redis.zrange(key, '0', '9'));
  if (listPattern.test(key)) return listed(await redis.lrange(key, 0, 9));
  if (queuedPattern.test(key)) return 'is still there';
  const isState = statePattern.test(key);
  if (!isState && !logPattern.test(key)) return undefined;
  // -2: it has expired since it was listed.
  const expiresIn = await redis.pttl(key);
  if (expiresIn === -1) return 'never expires';
  if (isState && expiresIn !== -2 && (await redis.hexists(key, 'terminal')) === 0) return 'has no end';
  return undefined;
}

function listed(members: string[]): string | undefined {
  return members.length === 0 ? undefined : `holds ${members.join(', ')}`;
}
