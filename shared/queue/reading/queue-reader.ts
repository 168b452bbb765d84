import type { Capability } from '../../capabilities/capability.ts';
import { entryIdOf, jobIdOfEntry } from '../../ids.ts';
import { jobKeys, queueKeysPrefix, queueRoot } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { millisecondsOf } from '../../redis/redis-clock.ts';
import { loadScript } from '../../redis/script.ts';
import { laneScripts } from '../script-fragments.ts';

/** Number of next jobs, and of the longest lines, among which the oldest job is searched. */
const jobsExamined = 100;
/** Maximum number of lines that are read, the longest first. */
const maxLines = 1000;
/** Maximum number of routes whose parked jobs are counted. */
const maxRoutes = 100;

/** Scores of jobs of high priority are below this one; see high-lane.lua. */
const highScores = 2 ** 32;

const oldestQueued = loadScript<string>(new URL('./oldest-queued.lua', import.meta.url));
const jobsAhead = loadScript<number | [ahead: number, nextMs: number, intervalMs: string]>(
  new URL('./jobs-ahead.lua', import.meta.url),
  ...laneScripts,
);

/** Depth of a queue. */
export interface QueueDepth {
  readonly waiting: number;
  readonly active: number;
  /** How long the oldest waiting job has waited, in ms, since it was queued or its next poll was due; 0 if none waits. */
  readonly oldestWaitMs: number;
}

/** The progress of a queue whose jobs wait. */
export interface QueueProgress {
  /** Number of jobs that workers have claimed while others waited, since the queue exists. */
  readonly claimed: number;
  /** Number of jobs that wait with a priority, by account: the longest lines. */
  readonly lines: ReadonlyMap<string, number>;
  /** The same of jobs of high priority, which are not among those. */
  readonly highLines: ReadonlyMap<string, number>;
  /** Number of jobs that wait beside the queue, by account: of low priority, and for their vendors' capacity. */
  readonly beside: ReadonlyMap<string, number>;
}

/** Where a job waits. */
export interface QueuePlace {
  /** Number of jobs ahead of it, estimated. */
  readonly ahead: number;
  /** Until it is expected to start, in ms, if it waits for its vendor and not for a worker. */
  readonly startsInMs?: number;
}

/** What a new job in a route's line waits for. */
export interface LineWait {
  /** Until the first of the line is released, in ms; 0 if none waits. */
  readonly nextMs: number;
  /** What those before it take of the route's capacity, in ms. */
  readonly aheadMs: number;
}

const sumOf = (numbers: Iterable<number>): number => [...numbers].reduce((sum, number) => sum + number, 0);

/** Adds up lines by account. @param accountOf the account of a line, if that is not its name */
export function sumOfLines(
  all: readonly ReadonlyMap<string, number>[],
  accountOf = (line: string): string => line,
): Map<string, number> {
  const sum = new Map<string, number>();
  for (const lines of all) {
    for (const [line, waiting] of lines) sum.set(accountOf(line), (sum.get(accountOf(line)) ?? 0) + waiting);
  }
  return sum;
}

/** Ends the name of an account's line of low priority, in which each job weighs as much as so many others; as in lines.lua. */
export const [lowEnding, lowWeight] = [' low', 16];

/**
 * How many jobs of fair lines precede a new one of an account: its own, and of each other line as many and one, or of those of low
 * priority what comes of them meanwhile.
 */
function precede(lines: ReadonlyMap<string, number>, account: string): number {
  const own = lines.get(account) ?? 0;
  const of = (line: string): number => (line.endsWith(lowEnding) ? Math.floor(own / lowWeight) : own) + 1;
  return own + sumOf([...lines].map(([line, waiting]) => (line === account ? 0 : Math.min(waiting, of(line)))));
}

/** Reads how many jobs wait in one queue, how long they have waited, and where one of them stands. It changes nothing. */
export class QueueReader {
  readonly #redis: RedisClient;
  readonly #root: string;
  readonly #jobs: string;

  constructor(capability: Capability, redis: RedisClient, shard: number) {
    this.#redis = redis;
    this.#root = queueRoot(capability, shard);
    this.#jobs = queueKeysPrefix(capability, shard);
  }

  /** Returns how many jobs wait and run, and how long the oldest has waited. */
  async depth(): Promise<QueueDepth> {
    const [time, waiting, active, first, prioritizedSince] = await Promise.all([
      this.#redis.time(),
      this.waiting(),
      this.active(),
      this.#redis.lindex(`${this.#jobs}wait`, -1),
      oldestQueued(this.#redis, [`${this.#jobs}prioritized`], [jobsExamined, this.#jobs, this.#root]),
    ]);
    const now = Math.floor(millisecondsOf(time));
    const since = Math.min(
      await this.#waitsSince(first, now),
      prioritizedSince === '' ? now : Number(prioritizedSince),
    );
    return { waiting, active, oldestWaitMs: now - since };
  }

  /** Since when a job without a priority waits: since it was queued, or its poll was due. */
  async #waitsSince(queued: string | null, now: number): Promise<number> {
    if (queued === null) return now;
    const [added, due] = await Promise.all([
      this.#redis.hget(`${this.#jobs}${queued}`, 'timestamp'),
      this.#redis.hget(jobKeys.state(jobIdOfEntry(queued)), 'due'),
    ]);
    return Math.min(Number(due ?? added ?? now), now);
  }

  /** Number of jobs that workers have claimed. */
  async active(): Promise<number> {
    return await this.#redis.llen(`${this.#jobs}active`);
  }

  /** Number of waiting jobs. Two cheap commands, for admission. */
  async waiting(): Promise<number> {
    const counts = [this.#redis.llen(`${this.#jobs}wait`), this.#redis.zcard(`${this.#jobs}prioritized`)];
    const [untimed = 0, timed = 0] = await Promise.all(counts);
    return untimed + timed;
  }

  /** Number of waiting jobs that have a priority. */
  async prioritized(): Promise<number> {
    return await this.#redis.zcard(`${this.#jobs}prioritized`);
  }

  /** Number of jobs of low priority that wait for spare slots; see flex-lane.lua. */
  async flex(): Promise<number> {
    return await this.#redis.zcard(`${this.#root}flex:prioritized`);
  }

  /** The same, of all accounts and of one. */
  async flexOf(account: string): Promise<{ readonly all: number; readonly own: number }> {
    const own = this.#redis.zscore(`${this.#root}flex:lines`, account);
    return { all: await this.flex(), own: Number((await own) ?? 0) };
  }

  /** Number of jobs of high priority that wait; they are among `waiting`. See high-lane.lua. */
  async high(): Promise<number> {
    return await this.#redis.zcount(`${this.#jobs}prioritized`, '-inf', `(${highScores}`);
  }

  /** Number of jobs that wait for a time: for their next poll. */
  async delayed(): Promise<number> {
    return await this.#redis.zcard(`${this.#jobs}delayed`);
  }

  /** Number of jobs that wait for their vendors' capacity; see park-job.lua. */
  async parked(): Promise<number> {
    const roots = await this.#parkedRoots();
    const counts = await Promise.all(roots.map((root) => this.#redis.zcard(`${root}prioritized`)));
    return sumOf(counts);
  }

  /** Starts of the keys of routes with parked jobs. */
  async #parkedRoots(): Promise<string[]> {
    const routes = await this.#redis.zrange(`${this.#root}parked`, 0, String(maxRoutes - 1));
    return routes.map((route) => `${this.#root}parked:${route}:`);
  }

  /**
   * What a new job of an account that had to wait for this route would wait for. One command, if none waits for it.
   * @param isHigh whether it is of high priority, whose jobs are taken to come before all others
   */
  async line(route: string, account: string, isHigh: boolean): Promise<LineWait> {
    const root = `${this.#root}parked:${route}:`;
    const next = await this.#redis.zscore(`${this.#root}parked`, route);
    if (next === null) return { nextMs: 0, aheadMs: 0 };
    const [time, intervalMs, lines, high] = await Promise.all([
      this.#redis.time(),
      this.#redis.hget(`${root}fairness`, 'interval'),
      this.#lines(root),
      this.#lines(`${root}high:`),
    ]);
    const nextMs = Math.max(0, Number(next) - millisecondsOf(time));
    const ahead = isHigh ? precede(high, account) : precede(lines, account) + sumOf(high.values());
    return { nextMs, aheadMs: ahead * Number(intervalMs ?? 0) };
  }

  /**
   * Returns what the drain of the queue, and what waits in it and beside it, are measured by. A few cheap commands, for admission:
   * five, and two for each route with parked jobs.
   */
  async progress(): Promise<QueueProgress> {
    const [[claimed, owed], lines, beside] = await Promise.all([
      this.#redis.hmget(`${this.#root}fairness`, 'claimed', 'owed'),
      this.#lines(this.#root),
      this.#beside(),
    ]);
    // Most queues have never had jobs of high priority.
    const highLines = typeof owed === 'string' ? await this.#lines(`${this.#root}high:`) : new Map();
    return { claimed: Number(claimed ?? 0), lines, highLines, beside };
  }

  async #beside(): Promise<Map<string, number>> {
    const parked = (await this.#parkedRoots()).flatMap((root) => [root, `${root}high:`]);
    const accountOf = (line: string): string => (line.endsWith(lowEnding) ? line.slice(0, -lowEnding.length) : line);
    return sumOfLines(await Promise.all([`${this.#root}flex:`, ...parked].map((root) => this.#lines(root))), accountOf);
  }

  async #lines(root: string): Promise<Map<string, number>> {
    const lines = await this.#redis.zrevrange(`${root}lines`, 0, maxLines - 1, 'WITHSCORES');
    const waiting = new Map<string, number>();
    for (let at = 0; at < lines.length; at += 2) waiting.set(lines[at] as string, Number(lines[at + 1]));
    return waiting;
  }

  /** Number of jobs ahead of this one in the queue; undefined if it does not wait. See `place`. */
  async position(jobId: string, highShare = 1): Promise<number | undefined> {
    return (await this.place(jobId, highShare))?.ahead;
  }

  /**
   * Where a job waits: in the queue, or in the line of its vendor; undefined if it does not wait.
   * @param highShare share of the claims that jobs of high priority may have while others wait; left out: all
   * @param shards of its queue, in each of which as many are expected to be ahead of it; left out: 1
   */
  async place(jobId: string, highShare = 1, shards = 1): Promise<QueuePlace | undefined> {
    const id = entryIdOf(jobId);
    const keys = [id, 'prioritized', 'wait'].map((name) => `${this.#jobs}${name}`);
    const reply = await jobsAhead(this.#redis, keys, [id, this.#root, this.#jobs, highShare]);
    if (typeof reply === 'number') return reply < 0 ? undefined : { ahead: reply * shards };
    const [inShard, nextMs, intervalMs] = reply;
    const ahead = inShard * shards;
    return { ahead, startsInMs: nextMs + Math.floor(ahead * Number(intervalMs)) };
  }
}
