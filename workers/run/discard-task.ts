import { ApiError } from '../../shared/errors.ts';
import { readJobState } from '../../shared/jobs/job-state.ts';
import { storeTask } from '../../shared/jobs/store-task.ts';
import { readTask, type VendorTask } from '../../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { WorkerContext } from '../worker-context.ts';
import { callFiles, type JobRun } from './job-run.ts';

/** How long a vendor may take to discard a task. */
const discardMs = 10_000;

/**
 * Stores the task that a vendor has just started for a run, before anything else is done.
 * @throws ApiError when it is no longer wanted: its job has ended meanwhile, or belongs to another attempt. The task is then
 * discarded.
 */
export async function rememberTask(
  context: WorkerContext,
  run: JobRun,
  started: Pick<VendorTask, 'vendor' | 'account' | 'model' | 'task' | 'prices'>,
): Promise<void> {
  const { job, attempt = 0, beganAt = context.clock.now(), callsInAll: calls } = run;
  const task: VendorTask = { ...started, attempt, calls, beganAt };
  const ownership = await storeTask(context.redis, job.id, task);
  if (ownership === 'ok') {
    run.task = task;
    return;
  }
  run.stop(ownership);
  await discardTask(context, job, task);
  throw new ApiError('cancelled', 'The request was cancelled while its task was begun.');
}

/** Discards the task of a job that has ended without a result: cancelled, overdue or failed. */
export async function discardUnwantedTask(context: WorkerContext, job: QueuedJob): Promise<void> {
  const state = await readJobState(context.redis, job.id);
  if (state?.task === undefined || state.outcome === undefined || state.outcome === 'completed') return;
  await discardTask(context, job, readTask(state.task));
}

/** Cancels a task at its vendor, with one try: its remaining cost there would buy nothing. */
async function discardTask(
  context: WorkerContext,
  job: QueuedJob,
  { vendor: name, account, model, task }: VendorTask,
): Promise<void> {
  try {
    const { vendor } = context.vendors.findOfTask(name, account) ?? {};
    const signal = AbortSignal.timeout(discardMs);
    const files = callFiles(context.blobs, job.account);
    await vendor?.video?.discard?.({ model, task, signal, silenceMs: discardMs, files });
  } catch (error) {
    context.log.info({ job: job.id, vendor: name, code: ApiError.from(error).code }, 'discarding a vendor task failed');
  }
}
