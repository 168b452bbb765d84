import type { VideoProgress } from '../capabilities/video.ts';
import { frameLine, type Ownership, publishCommand } from '../jobs/append.ts';
import { leaseScript } from '../jobs/job-state.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, untilAccepted } from '../redis/script.ts';

const script = loadScript<Ownership>(new URL('./pause.lua', import.meta.url), leaseScript);

/** A job to release until the next poll of its vendor's task. */
export interface PauseCall {
  readonly jobId: string;
  readonly attempt: number;
  /** Percent, a whole number. A value not above the known progress changes nothing. */
  readonly progress: number;
  /** When the job is to be claimed again, in milliseconds since 1970. */
  readonly dueAt: number;
  /** Lifetime of the log if the job is never ended, in ms. */
  readonly lifetimeMs: number;
  readonly isCluster: boolean;
}

/** Releases a job until its next poll and records its progress; see pause.lua. */
export function pause(redis: RedisClient, call: PauseCall): Promise<Ownership> {
  const { progress } = call;
  const args = [
    call.jobId,
    call.attempt,
    progress,
    frameLine('progress', JSON.stringify({ progress } satisfies VideoProgress)),
    jobKeys.inboxPrefix(call.jobId),
    publishCommand(call.isCluster),
    call.lifetimeMs,
    call.dueAt,
  ];
  return untilAccepted(() => script(redis, [jobKeys.state(call.jobId), jobKeys.log(call.jobId)], args));
}
