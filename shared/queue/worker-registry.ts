import type { Capability } from '../capabilities/capability.ts';
import type { ErrorCode } from '../errors.ts';
import { workerKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';

/** A worker that says nothing for so long is gone, in ms: three of its words. */
const workerSilenceMs = 15_000;
/** Workers that are listed at most. */
const maxWorkers = 1000;

/** How a route fares with one worker. */
export interface RouteHealth {
  /** Vendor and model, as routes are named in metrics. */
  readonly route: string;
  readonly vendor: string;
  readonly state: 'closed' | 'half-open' | 'open';
  /** Calls that have failed one after the other. */
  readonly failedInARow: number;
  /** What the last call that failed has come to: never the vendor's own words, which may repeat the request. */
  readonly lastError:
    | { readonly code: ErrorCode; readonly status: number | undefined; readonly at: number }
    | undefined;
}

/** How a vendor has refused a key. */
export interface KeyRefusal {
  readonly status: number;
  /** The vendor's own sentence, without keys and what repeats a request; null where it said none. */
  readonly message: string | null;
  /** When, in ms since 1970. */
  readonly at: number;
}

/** What came of asking a vendor whether it takes a key; `unclear`: its answer says nothing of that, or there was none. */
export type KeyCheckOutcome = 'accepted' | 'refused' | 'unclear';

/** How the keys of a vendor fare with one worker. */
export interface KeyHealth {
  readonly vendor: string;
  readonly keys: number;
  /** Those that are left alone for now, as a whole or for some model. */
  readonly cooling: number;
  /** Those that the vendor refuses; workers of the release before do not say. */
  readonly refused?: number;
  /** What it said of the one that it refused last. */
  readonly refusal?: KeyRefusal | undefined;
  /** What came of asking, at the worker's start, whether the vendor takes its keys: how many of each. Undefined: not asked. */
  readonly checked?: Readonly<Partial<Record<KeyCheckOutcome, number>>> | undefined;
}

/** What a worker process says of itself every few seconds. Times are ms since 1970. */
export interface WorkerReport {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly region: string | undefined;
  readonly startedAt: number;
  readonly seenAt: number;
  /** Of each capability it works at: the jobs it runs now, and how many it runs at most. */
  readonly load: readonly { readonly capability: Capability; readonly running: number; readonly concurrency: number }[];
  /** The longest delay of its event loop since its last word, in ms. */
  readonly eventLoopLagMs: number;
  /** Share of one core that it has used since its last word. */
  readonly cpu: number;
  /** Resident memory, in bytes. */
  readonly memory: number;
  readonly keys: readonly KeyHealth[];
  /** Routes that are not well, or whose last failure is not long ago; the worst first, not all where there are very many. */
  readonly routes: readonly RouteHealth[];
}

/** Says that a worker is there; it has to be said again before `workerSilenceMs` is over. */
export async function reportWorker(redis: RedisClient, report: WorkerReport): Promise<void> {
  const { id } = report;
  await redis.set(workerKeys.report(id), JSON.stringify(report), 'PX', workerSilenceMs);
  // By Redis's clock: a worker whose own is ahead would strike all others off the list.
  const seenAt = Number((await redis.time())[0]) * 1000;
  await redis.zadd(workerKeys.seen, seenAt, id);
  await redis.zremrangebyscore(workerKeys.seen, '-inf', seenAt - workerSilenceMs);
}

/** Takes out a worker that stops. */
export async function removeWorker(redis: RedisClient, id: string): Promise<void> {
  await Promise.all([redis.del(workerKeys.report(id)), redis.zrem(workerKeys.seen, id)]);
}

/** The workers that are there, the oldest first. */
export async function listWorkers(redis: RedisClient): Promise<WorkerReport[]> {
  const ids = await redis.zrevrange(workerKeys.seen, 0, maxWorkers - 1);
  const reports = await Promise.all(ids.map((id) => redis.get(workerKeys.report(id))));
  return reports
    .flatMap((report) => (report === null ? [] : [JSON.parse(report) as WorkerReport]))
    .sort((a, b) => a.startedAt - b.startedAt);
}
