import type { JobIdentity, StoredRequest } from '../../shared/jobs/job-state.ts';
import type { Caller } from '../auth/caller.ts';
import type { ParsedLargeRequest } from '../pipeline/large-bodies.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';
import type { Limits } from './limit-headers.ts';

/** A request that is ready to be admitted. */
export interface Submission {
  readonly job: JobIdentity;
  readonly caller: Caller;
  /** Let go once it is queued: a caller who waits for its answer must not keep 20 MiB in memory. */
  parsed: ParsedRequest | ParsedLargeRequest | undefined;
  /** Where the request has been put already. */
  placed?: StoredRequest;
  readonly bodyHash: string;
  /** Whether the job is cancelled when its caller leaves. */
  readonly cancelsOnLeave: boolean;
  /**
   * Called when the job is admitted, before it is queued: the last moment at which the headers of the answer can be set,
   * for its first frame may come before the queue's own reply.
   */
  readonly onAdmitted: (limits: Limits) => void;
  /** Called when its request is not in memory any more. May be called again. */
  readonly onQueued?: (() => void) | undefined;
}
