import { jobKeys } from '../keys.ts';
import type { RedisClient } from '../redis.ts';
import { loadScript } from './script.ts';
import { readTask, type VendorTask } from './vendor-task.ts';

/** How long a worker owns a job without a sign of life. A frozen worker's job is taken over after this time. */
export const leaseMs = 10_000;

/** How often a job may be tried where trying again is allowed. */
const attemptsAllowed = 3;

/** What a worker may do with a job; see begin.lua. */
export type BeginVerdict =
  | { readonly verdict: 'run'; readonly attempt: number; readonly lastSeq: number }
  | {
      readonly verdict: 'poll';
      readonly attempt: number;
      readonly lastSeq: number;
      readonly task: VendorTask;
      /** How far the task is known to be, in percent. */
      readonly progress: number;
    }
  | { readonly verdict: 'wait'; readonly waitMs: number }
  | { readonly verdict: 'drop' | 'settle' | 'overdue' | 'interrupted' | 'unknown' | 'exhausted' };

const script = loadScript<[string, number, number, string?, number?]>('begin', new URL('./begin.lua', import.meta.url));

/**
 * Asks whether a job taken from the queue may run, and makes the caller its owner if so.
 * @param taking unique per taking of the job from the queue
 */
export async function begin(
  redis: RedisClient,
  call: { jobId: string; workerId: string; taking: string; repeatable: boolean },
): Promise<BeginVerdict> {
  const [verdict, number, lastSeq, task, progress = 0] = await script(
    redis,
    [jobKeys.state(call.jobId)],
    [call.workerId, leaseMs, attemptsAllowed, call.repeatable ? '1' : '0', call.taking],
  );
  if (verdict === 'run') return { verdict, attempt: number, lastSeq };
  if (task !== undefined) return { verdict: 'poll', attempt: number, lastSeq, task: readTask(task), progress };
  if (verdict === 'wait') return { verdict, waitMs: number };
  return { verdict: verdict as 'drop' };
}
