import type { JobIdentity, StoredRequest } from '../../shared/jobs/job-state.ts';
import type { TraceContext } from '../../shared/tracing/trace-context.ts';
import type { Caller } from '../auth/caller.ts';
import type { BodyShare } from '../bounds/body-shares.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';

/** A request that is ready to be admitted. */
export interface Submission {
  /** Replaced if another account has its idempotency key, see own-binding.ts. */
  job: JobIdentity;
  readonly caller: Caller;
  /** Undefined once it is released, see `releaseRequest`. */
  parsed: ParsedRequest | undefined;
  /** The request as it is stored, once it is. */
  stored?: StoredRequest;
  /** Another field of the job's state in the place of that: a shared job's sharer, see `SharedJobs`. */
  stateField?: readonly [name: string, value: string];
  readonly bodyHash: string;
  /** How old an answer may be that is taken from the cache, in ms, and how long it is cached; undefined: it is not. */
  readonly cacheMs?: number | undefined;
  /** Whether its answer is cached because its key says so, not the request itself: it needs no database, as a plain one does not. */
  readonly isCachedByKey?: boolean;
  /** The job of a cached answer that is older than that, or that waits with a lower priority. */
  replaces?: string;
  /** Whether it shares its job with identical requests that come while it runs. */
  readonly isShared?: boolean;
  /** When its caller gets a 504, if its job may take longer: one that goes on without it, or a stream that has begun by then. */
  ownDeadlineAt?: number | undefined;
  /** Whether its client library has made it on its own as a retry; no longer once no job of an earlier try is there for it. */
  isRetry?: boolean;
  /** Whether the job is cancelled when its caller disconnects. */
  readonly cancelsOnLeave: boolean;
  /** Whether its caller waits for the answer, so that the queue limit applies; asynchronous work waits until its deadline. */
  readonly isAwaited: boolean;
  /** As of `ParsedRequest`, or of the session that its client names. */
  readonly affinity?: string | undefined;
  /** The request's span, if it is traced. */
  readonly trace?: TraceContext | undefined;
  /** The request's share of memory, if it is counted. */
  readonly share?: BodyShare | undefined;
}
