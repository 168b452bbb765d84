import type { Capability } from '../capabilities/capability.ts';
import type { ErrorCode } from '../errors.ts';
import { workerKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { isReadable } from '../runtime/wire-version.ts';

/** A worker silent for this long is gone, in ms: three report intervals. */
const workerSilenceMs = 15_000;
/** Maximum number of workers listed. */
const maxWorkers = 1000;

/** Health of a route as seen by one worker. */
export interface RouteHealth {
  /** Vendor and model, as routes are named in metrics. */
  readonly route: string;
  readonly vendor: string;
  readonly state: 'closed' | 'half-open' | 'open';
  /** Consecutive failed calls. */
  readonly failedInARow: number;
  /** The last failure. Never the vendor's message, which may repeat the request. */
  readonly lastError:
    | { readonly code: ErrorCode; readonly status: number | undefined; readonly at: number }
    | undefined;
}

/** A vendor's refusal of a key. */
export interface KeyRefusal {
  readonly status: number;
  /** The vendor's message, without keys and quotes of a request; null if it sent none. */
  readonly message: string | null;
  /** When, in ms since 1970. */
  readonly at: number;
}

/** Result of checking a key with its vendor; `unclear`: the response was missing or inconclusive. */
export type KeyCheckOutcome = 'accepted' | 'refused' | 'unclear';

/** Health of a vendor's keys as seen by one worker. */
export interface KeyHealth {
  readonly vendor: string;
  readonly keys: number;
  /** Number of keys cooling down, entirely or for some model. */
  readonly cooling: number;
  /** Number of keys that the vendor refuses. */
  readonly refused: number;
  /** The vendor's last refusal. */
  readonly refusal?: KeyRefusal | undefined;
  /** Results of the key checks at the worker's start: the count of each. Undefined: not checked. */
  readonly checked?: Readonly<Partial<Record<KeyCheckOutcome, number>>> | undefined;
}

/** A worker process's report, sent every few seconds. Times are ms since 1970. */
export interface WorkerReport {
  /** Version of the report, see wire-version.ts; left out: 1. */
  readonly v?: number;
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly region: string | undefined;
  readonly startedAt: number;
  readonly seenAt: number;
  /** For each capability it serves: the jobs it runs now, and the maximum. */
  readonly load: readonly { readonly capability: Capability; readonly running: number; readonly concurrency: number }[];
  /** The longest delay of its event loop since its last report, in ms. */
  readonly eventLoopLagMs: number;
  /** Share of one core used since its last report. */
  readonly cpu: number;
  /** Resident memory, in bytes. */
  readonly memory: number;
  readonly keys: readonly KeyHealth[];
  /** Unhealthy routes, and those that failed recently; worst first, truncated if there are very many. */
  readonly routes: readonly RouteHealth[];
}

/** Sends a worker's report; must be repeated within `workerSilenceMs`. */
export async function reportWorker(redis: RedisClient, report: WorkerReport): Promise<void> {
  const { id } = report;
  await redis.set(workerKeys.report(id), JSON.stringify(report), 'PX', workerSilenceMs);
  // By Redis's clock: a worker whose own clock is ahead would remove all others from the list.
  const seenAt = Number((await redis.time())[0]) * 1000;
  await redis.zadd(workerKeys.seen, seenAt, id);
  await redis.zremrangebyscore(workerKeys.seen, '-inf', seenAt - workerSilenceMs);
}

/** Removes a worker that shuts down. */
export async function removeWorker(redis: RedisClient, id: string): Promise<void> {
  await Promise.all([redis.del(workerKeys.report(id)), redis.zrem(workerKeys.seen, id)]);
}

/** The live workers, oldest first; without those whose reports have a version that this build does not read. */
export async function listWorkers(redis: RedisClient): Promise<WorkerReport[]> {
  const ids = await redis.zrevrange(workerKeys.seen, 0, maxWorkers - 1);
  const reports = await Promise.all(ids.map((id) => redis.get(workerKeys.report(id))));
  return reports
    .flatMap((report) => (report === null ? [] : [JSON.parse(report) as WorkerReport]))
    .filter(({ v }) => isReadable(v))
    .sort((a, b) => a.startedAt - b.startedAt);
}
