import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { onThisMachine } from './eventually.ts';

/** A settled job's state may stay so long, and the log of one that is not kept. */
const maxMs = 121_000;
/** And so long where its worker was killed after the settlement, before it could say so to the state. */
const orphanedMs = 600_000;

/** What ends by itself is gone by then; what a sweeper ends takes longer. */
const promptMs = 10_000;
/** Longer than a record may take whose reader lost it with its connection: after 30 s another reader takes it over. */
export const withLostReadersMs = 45_000;

/** Keys that a gateway at rest keeps for good, by how they end. */
const lasting = [
  /:key:[^:]+$/,
  // The accounts claimed at the present virtual time: emptied when that advances.
  /:(fairness|served)$/,
  /^sluice:(workers$|raised$|queue-shards$|known-key:)/,
  /:(meta|events|marker)$/,
];

export interface LeftoverOptions {
  /** How long it may take to go, longer on a busy machine; 10 s by default, 0: it has to be gone. */
  readonly withinMs?: number;
  readonly hasDeadWorkers?: boolean;
  /**
   * A failover lost what the master had confirmed last: a job's end may be missing where its settlement, sent again, is not.
   * Such a state only has to expire.
   */
  readonly hasLostWrites?: boolean;
}

/**
 * What finished work has left in Redis and should not have: holds, money held, running places, states without an end, queued jobs,
 * locks, keys that never expire. Waits for it to go.
 * @param redisUrl of all nodes, if there are several, with commas between
 */
export async function leftovers(redisUrl: string, options: LeftoverOptions = {}): Promise<string[]> {
  const nodes = redisUrl.split(',').map((url) => new Redis(url, { lazyConnect: true }));
  const begun = Date.now();
  const withinMs = options.withinMs ?? promptMs;
  const stateMs = options.hasDeadWorkers ? orphanedMs : maxMs;
  try {
    for (;;) {
      const isLast = Date.now() - begun >= onThisMachine(withinMs);
      // Until then one of them is enough to look again, later and later.
      const looks = nodes.map((node) => lookThrough(node, stateMs, options, isLast ? Number.POSITIVE_INFINITY : 1));
      const found = (await Promise.all(looks.map((look) => look.catch(describeMove)))).flat();
      if (found.length === 0 || isLast) return found;
      await delay(Math.max(100, Math.min(1000, (Date.now() - begun) / 10)));
    }
  } finally {
    for (const node of nodes) node.disconnect();
  }
}

/** A node of a Cluster that has just become a replica refuses to be read. It has nothing to look at once it has settled. */
function describeMove(error: Error): string[] {
  if (/^MOVED /.test(error.message)) return [error.message];
  throw error;
}

async function lookThrough(redis: Redis, stateMs: number, options: LeftoverOptions, most: number): Promise<string[]> {
  const found: string[] = [];
  for (const key of await redis.keys('*')) {
    if (found.length >= most) break;
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
