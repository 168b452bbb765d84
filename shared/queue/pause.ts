import type { VideoProgress } from '../capabilities/video.ts';
import { type Ownership, publishCommand } from '../jobs/append.ts';
import { frameLine } from '../jobs/frames.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { untilAccepted } from '../redis/redis-refusal.ts';
import { loadScript } from '../redis/script.ts';

const script = loadScript<Ownership>(new URL('./pause.lua', import.meta.url));

/** A job to let go of until its vendor's task is asked after again. */
export interface PauseCall {
  readonly jobId: string;
  readonly attempt: number;
  /** Percent, a whole number. One that is not above what is known changes nothing. */
  readonly progress: number;
  /** When the job is to be taken again, in milliseconds since 1970. */
  readonly dueAt: number;
  /** How long the log may stay when nobody ever ends the job, in ms. */
  readonly lifetimeMs: number;
  readonly isCluster: boolean;
}

/** Lets go of a job until its next poll, and says how far it is; see pause.lua. */
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
