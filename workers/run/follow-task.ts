import { servedText } from '../../shared/jobs/job-state.ts';
import { callsFor, type VendorTask } from '../../shared/jobs/vendor-task.ts';
import { followVideo } from '../execute/execute-video.ts';
import type { Pause } from '../execute/execution.ts';
import { isRefusedKey } from '../routing/failure.ts';
import { videoSeconds } from '../usage/billed-quantities.ts';
import { routeServed } from '../usage/charge.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';
import type { JobAnswer } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { FrameWriter } from './frame-writer.ts';
import { callFiles, type JobRun } from './job-run.ts';

/** Pause of a job whose task belongs to a vendor unknown to this worker, so that another worker can claim it. */
const elsewhereMs = 10_000;
/** Pause of a task whose vendor holds up others, and the share by which it varies: those that are put off together come apart. */
const putOff = { ms: 10_000, spread: 0.25 };

/**
 * Takes the next step of a task, with the account that created it.
 * @param readRequest reads the job's request: a poll goes without it, as it may be long
 * @throws ApiError if no later step can help
 */
export async function followTask(
  context: WorkerContext,
  run: JobRun,
  writer: FrameWriter,
  task: VendorTask,
  readRequest: () => Promise<RequestBody>,
): Promise<JobAnswer | Pause> {
  const { job, progress } = run;
  const about = { job: job.id, vendor: task.vendor };
  const account = context.vendors.findOfTask(task.vendor, task.account);
  if (account === undefined) {
    context.log.warn(about, "the vendor that runs this job's task is not set up here");
    return { progress, pauseMs: elsewhereMs };
  }
  run.vendor = task.vendor;
  const row = routeServed(context, job, { vendor: task.vendor, vendorModel: task.model });
  run.routed = row && task.prices ? { ...row, prices: task.prices } : row;
  writer.served = servedText({ vendor: task.vendor, calls: callsFor(task), model: undefined });
  const { vendorSilenceMs: silenceMs, resultMs: filesStayMs } = context.config;
  const call = { model: task.model, signal: run.signal, silenceMs, files: callFiles(context.blobs, job.account) };
  const seconds = (made: string | undefined): Promise<number | undefined> =>
    videoSeconds(made, run.routed, async () => requestText(await readRequest()));
  const hasOwnKey = account.id === task.account;
  const known = { known: task, hasOwnKey, progress, filesStayMs, seconds };
  const next = await context.taskSteps.run(task.vendor, (limits) =>
    followVideo(account.vendor, call, { ...known, ...limits }),
  );
  if (next === undefined) {
    return { progress, pauseMs: Math.round(putOff.ms * (1 + putOff.spread * Math.random())) };
  }
  const error = 'error' in next ? next.error : undefined;
  if (error !== undefined && isRefusedKey(error)) context.vendors.refuseOfTask(account);
  if (error?.code === 'not_found') context.log.warn(about, "the key that began this job's task is not set up here");
  return next;
}
