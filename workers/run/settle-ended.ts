import type { SpeechJobRequest } from '../../shared/capabilities/speech.ts';
import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { ApiError } from '../../shared/errors.ts';
import { readLog } from '../../shared/jobs/answer-log.ts';
import { finishWithError } from '../../shared/jobs/finish.ts';
import { type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { readServed } from '../../shared/jobs/settlement/served.ts';
import { settlementOf, settleNow } from '../../shared/jobs/settlement/settle.ts';
import { storeUsage } from '../../shared/jobs/store-usage.ts';
import { readTask } from '../../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { spokenCharacters } from '../usage/billed-quantities.ts';
import { type Charge, chargeFor, chargeForInterrupted, chargeForLate, nothing, routeServed } from '../usage/charge.ts';
import { estimateInterrupted } from '../usage/estimate-usage.ts';
import type { VendorAnswer } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';

/** What vendors were asked for a job before somebody ended it. */
export interface Called {
  /** The one that was called last; '' where none was. */
  readonly vendor: string;
  readonly attempts: number;
  /** The answer that came too late: it has its vendor's counts all the same. */
  readonly answer?: VendorAnswer | undefined;
  /** The model that stood in for the one that was asked for. */
  readonly servedModel: string | undefined;
  /** The model by the route that was called last, where the catalogue (still) has it. */
  readonly routed: RoutedModel | undefined;
  readonly firstAt: number | undefined;
}

/** Ends a job whose worker was lost in the middle of its answer, and settles it by what it had said. */
export async function endInterrupted(context: WorkerContext, job: QueuedJob, error: ApiError): Promise<void> {
  const { id: jobId, retentionMs } = job;
  const call = { jobId, guard: 'abandoned', retentionMs, isCluster: context.isCluster } as const;
  const reply = await finishWithError(context.redis, call, error);
  if (reply.verdict === 'finished') await settleEnded(context, job);
}

/**
 * Settles a job that somebody has ended, by what stands in its state.
 * @param known what the run that had the job has asked; left out: nobody, by this one
 */
export async function settleEnded(context: WorkerContext, job: QueuedJob, known?: Called): Promise<void> {
  const state = await readJobState(context.redis, job.id);
  if (state?.outcome === undefined) return;
  const called = known ?? (await calledByLog(context, state));
  const { usage, cost } = await chargeEnded(context, job, state, called);
  if (state.usage === undefined) await noteCharge(context, job, { usage, cost });
  const { vendor, attempts, servedModel, firstAt = state.firstAt } = called;
  const settlement = settlementOf({ ...state, servedModel, firstAt, usage, cost, attempt: attempts }, vendor);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
}

async function chargeEnded(
  context: WorkerContext,
  job: QueuedJob,
  state: JobState,
  { vendor, answer, routed }: Called,
): Promise<Pick<Charge, 'usage' | 'cost'>> {
  // What its end said stands.
  if (state.outcome === 'completed' || state.usage !== undefined || state.cost !== undefined) return state;
  const late = answer && chargeForLate(routed, job, state, answer);
  if (late?.usage !== undefined) return late;
  if (job.capability === 'speech' && state.outcome === 'cancelled' && state.hasDelta) {
    // Whoever leaves in the middle has had his text spoken, as far as anybody can tell.
    const request = job.request ?? (await context.blobs.ofRecords(job.account).text(job.requestBlob ?? ''));
    const characters = spokenCharacters(JSON.parse(request) as SpeechJobRequest);
    return chargeFor(routed, job, { usage: null, quantities: { characters } });
  }
  const taken = await estimateInterrupted(context, job, state, vendor);
  return taken === undefined ? nothing : chargeForInterrupted(routed, job, taken);
}

/** Without the note the charge is in the settlement only: whatever comes of it, that follows. */
export async function noteCharge(
  context: WorkerContext,
  job: QueuedJob,
  { usage, cost }: Pick<Charge, 'usage' | 'cost'>,
): Promise<void> {
  if (usage === undefined) return;
  await storeUsage(context.redis, job.id, usage, cost).catch((error) => logLeftOut(context, job, error));
}

/** Logs a failed step that a settlement does without. */
export function logLeftOut({ log }: WorkerContext, job: QueuedJob, error: unknown): void {
  log.warn({ err: error, job: job.id }, 'a step before settlement was skipped');
}

/** What the log of an answer, or its task, tells of the run that has called vendors. */
async function calledByLog(context: WorkerContext, state: JobState): Promise<Called> {
  const { id, hasDelta, attempt } = state;
  const { batches } = hasDelta ? await readLog(context.redis, id, 0, 1) : { batches: [] };
  const served = readServed(batches[0]?.served ?? '');
  const task = state.task === undefined ? undefined : readTask(state.task);
  const vendor = served?.vendor ?? task?.vendor ?? '';
  const standIn = served?.model;
  const routed = routeServed(context, state, { vendor, standIn, ...(task && { vendorModel: task.model }) });
  return {
    vendor: served?.vendor ?? '',
    attempts: served?.calls ?? attempt,
    ...{ servedModel: standIn, routed, firstAt: undefined },
  };
}
