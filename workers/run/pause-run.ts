import { pause } from '../../shared/queue/pause.ts';
import type { Pause } from '../execute/execution.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { FrameWriter } from './frame-writer.ts';
import { type JobRun, logLifetime, type RunOutcome } from './job-run.ts';
import { settleEnded } from './settle-ended.ts';

/** Releases the job until its next poll. */
export async function pauseRun(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  writer: FrameWriter,
  { progress, pauseMs }: Pause,
): Promise<RunOutcome> {
  const { job } = run;
  await writer.discard();
  const { isCluster } = context;
  const ownership = await pause(context.redis, {
    jobId: job.id,
    attempt,
    progress,
    dueAt: context.clock.now() + pauseMs,
    lifetimeMs: logLifetime(job),
    isCluster,
  });
  if (ownership === 'ok') return { pauseMs };
  run.lose(ownership);
  if (ownership === 'ended') await settleEnded(context, job);
  return 'done';
}
