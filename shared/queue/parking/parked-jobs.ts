import type { Capability } from '../../capabilities/capability.ts';
import { queueKeysPrefix, queueRoot } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { isAheadScript, loadScript, untilAccepted } from '../../redis/script.ts';
import type { QueueClaim } from '../claimed-queue.ts';
import { highLaneScript, linesScripts } from '../script-fragments.ts';

const parkScript = loadScript<[verdict: 'parked' | 'late' | 'lost', ms: string, waiting: number]>(
  new URL('./park-job.lua', import.meta.url),
  isAheadScript,
  ...linesScripts,
  highLaneScript,
);
const unparkScript = loadScript<(string | number)[]>(
  new URL('./unpark-jobs.lua', import.meta.url),
  isAheadScript,
  ...linesScripts,
  highLaneScript,
);

/** How early a job is released, in ms: it is to be claimed and to reserve its call before there is capacity. */
const earlyMs = 600;
/**
 * By how much earlier one may be, in ms, by chance, that has come too early before. Else the lines of two routes that share a limit would
 * look for its capacity in step, and one would always come just behind the other. Together they are less than a call is reserved ahead.
 */
const earlySpreadMs = 350;
/** Jobs released at a time, which keeps Redis busy for some milliseconds. */
export const maxReleased = 100;

/** A job to park. */
export interface ParkCall extends QueueClaim {
  readonly account: string;
  /** The route with capacity the soonest. */
  readonly route: string;
  /** Until that route has capacity; undefined: as known from other jobs. */
  readonly waitMs: number | undefined;
  /** See `FullRoute`; undefined: as known from other jobs. */
  readonly intervalMs: number | undefined;
  /** In which it must start. */
  readonly latestMs: number;
  readonly maxParked: number;
  /** Share of the line's free places that its account may fill while others wait; left out: all. */
  readonly accountShare?: number;
  /** See `work.ts`. */
  readonly work: number;
  /** For how long it counts as of low priority; left out: it does not. */
  readonly lowMs?: number | undefined;
  /** Number of shards of its queue; left out: 1. */
  readonly shards?: number | undefined;
  /** Its API key, if its account shares its turns between keys. */
  readonly sharingKey?: string | undefined;
}

/** What became of a job to park. */
export interface ParkReply {
  /** `late`: it could not start in time; `lost`: the claim no longer holds. */
  readonly verdict: 'parked' | 'late' | 'lost';
  /** Until the next job of the route is released; if it is late, until it would start. */
  readonly ms: number;
  /** Parked jobs of the route. */
  readonly waiting: number;
}

/** Parked jobs of a route. */
export interface ParkedRoute {
  readonly route: string;
  /** Until its next job is released. */
  readonly nextMs: number;
  readonly waiting: number;
  /** How much of the vendor's time each takes, on average; 0 if that is not known. */
  readonly intervalMs: number;
}

/** The jobs of a queue that wait for their vendors: see park-job.lua and unpark-jobs.lua. */
export class ParkedJobs {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #routes: string;
  readonly #root: string;
  readonly #highShare: number;

  /** @param highShare share of the releases that jobs of high priority may have while others wait */
  constructor(capability: Capability, redis: RedisClient, shard = 0, highShare = 1) {
    this.#highShare = highShare;
    this.#redis = redis;
    this.#prefix = queueKeysPrefix(capability, shard);
    this.#routes = `${queueRoot(capability, shard)}parked`;
    this.#root = `${this.#routes}:`;
  }

  /** Parks a claimed job. */
  async park({
    id,
    token,
    account,
    route,
    waitMs,
    intervalMs,
    latestMs,
    maxParked,
    accountShare = 1,
    work,
    lowMs,
    shards = 1,
    sharingKey,
  }: ParkCall): Promise<ParkReply> {
    const job = this.#prefix + id;
    const keys = [`${this.#prefix}active`, job, `${job}:lock`, this.#routes];
    const args = [id, token, account, route, waitMs ?? '', intervalMs ?? '', latestMs, maxParked];
    args.push(`${this.#root}${route}:`, this.#prefix, earlyMs, work, this.#highShare, sharingKey ?? '', accountShare);
    args.push(lowMs ?? '', shards, Math.random() * earlySpreadMs);
    const [verdict, ms, waiting] = await untilAccepted(() => parkScript(this.#redis, keys, args));
    return { verdict, ms: Number(ms), waiting };
  }

  /** Releases the jobs that are due. @param ready routes with capacity now, and how many jobs of each to release, in this order */
  async unpark(ready: Iterable<readonly [route: string, jobs: number]> = []): Promise<ParkedRoute[]> {
    const keys = [this.#routes, `${this.#prefix}wait`, `${this.#prefix}marker`];
    const args = [this.#root, this.#prefix, maxReleased, this.#highShare, ...[...ready].flat()];
    const reply = await unparkScript(this.#redis, keys, args);
    const routes: ParkedRoute[] = [];
    for (let at = 0; at < reply.length; at += 4) {
      const [route, ms, waiting, intervalMs] = reply.slice(at, at + 4);
      const numbers = { nextMs: Number(ms), waiting: Number(waiting), intervalMs: Number(intervalMs) };
      routes.push({ route: String(route), ...numbers });
    }
    return routes;
  }
}
