import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';

/** A settled job's state may stay so long, and the log of one that is not kept. */
const maxMs = 121_000;
/** And so long where its worker was killed after the settlement, before it could say so to the state. */
const orphanedMs = 600_000;

const patienceMs = 30_000;

/** Keys that a gateway at rest keeps for good, by how they end. */
const lasting = [/:key:[^:]+$/, /:fairness$/, /^sluice:(workers$|raised$|known-key:)/, /:(meta|events|marker)$/];

export interface LeftoverOptions {
  readonly hasDeadWorkers?: boolean;
  /**
   * A failover lost what the master had confirmed last: a job's end may be missing where its settlement, sent again, is not.
   * Such a state only has to expire.
   */
  readonly hasLostWrites?: boolean;
}

/**
 * What finished work has left in Redis and should not have: holds, money held, running places, states without an end, queued jobs,
 * locks, keys that never expire. Waits up to half a minute for it to go.
 */
export async function findLeftovers(redisUrl: string, options: LeftoverOptions = {}): Promise<string[]> {
  const nodes = redisUrl.split(',').map((url) => new Redis(url, { lazyConnect: true }));
  const deadline = Date.now() + patienceMs;
  const stateMs = options.hasDeadWorkers ? orphanedMs : maxMs;
  try {
    for (;;) {
      const found = (await Promise.all(nodes.map((node) => lookThrough(node, stateMs, options)))).flat();
      if (found.length === 0 || Date.now() > deadline) return found;
      await delay(500);
    }
  } finally {
    for (const node of nodes) node.disconnect();
  }
}

async function lookThrough(redis: Redis, stateMs: number, options: LeftoverOptions): Promise<string[]> {
  const found: string[] = [];
  for (const key of await redis.keys('*')) {
    const complaint = await lookAt(redis, key, stateMs, options);
    if (complaint !== undefined) found.push(`${key}: ${complaint}`);
  }
  return found;
}

async function lookAt(
  redis: Redis,
  key: string,
  stateMs: number,
  { hasLostWrites = false }: LeftoverOptions,
): Promise<string | undefined> {
  if (/:(holds|running:[^:]+)$/.test(key)) return `${await redis.zcard(key)} members`;
  if (/:(wait|active|paused|delayed|prioritized|completed|failed|stalled)$/.test(key)) return 'a list of jobs';
  if (/:outbox$/.test(key)) return await describeOutbox(redis, key);
  if (/:lock$/.test(key)) return 'a lock';
  if (/:job_[0-9a-f]+/.test(key)) return 'a queued job';
  if (/:(account|budget):[^:]+$/.test(key)) return await describeMoney(redis, key);
  if (/:reserved$/.test(key)) return `${await redis.hlen(key)} reservations`;
  const ttl = await redis.pttl(key);
  if (ttl === -2) return undefined;
  if (hasLostWrites && ttl > 0 && /:job:[0-9a-f]+$/.test(key)) return undefined;
  if (/:job:[0-9a-f]+$/.test(key)) {
    const [terminal, job] = await redis.hmget(key, 'terminal', 'job');
    if (terminal === null) return 'a state without an end';
    const isPlain = (JSON.parse(job ?? '{}') as Partial<JobIdentity>).retentionMs === 0;
    return ttl === -1 || (isPlain && ttl > stateMs) ? `expires in ${ttl} ms` : undefined;
  }
  if (/:log:[0-9a-f]+$/.test(key)) {
    const job = await redis.hget(key.replace(':log:', ':job:'), 'job');
    const isPlain = job !== null && (JSON.parse(job) as Partial<JobIdentity>).retentionMs === 0;
    return ttl === -1 || (isPlain && ttl > stateMs) ? `expires in ${ttl} ms` : undefined;
  }
  return ttl === -1 && !lasting.some((pattern) => pattern.test(key)) ? 'never expires' : undefined;
}

/** An account and a budget stay; what they hold and have under way does not. */
async function describeMoney(redis: Redis, key: string): Promise<string | undefined> {
  const fields = Object.entries(await redis.hgetall(key));
  const left = fields.filter(([field, value]) => (field === 'held' || field.startsWith('n:')) && value !== '0');
  return left.length === 0 ? undefined : left.map(([field, value]) => `${field} ${value}`).join(', ');
}

/** An outbox stays, for its consumers; what is in it does not. */
async function describeOutbox(redis: Redis, key: string): Promise<string | undefined> {
  const length = await redis.xlen(key);
  return length === 0 ? undefined : `${length} records`;
}
