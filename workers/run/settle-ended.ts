import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { ApiError } from '../../shared/errors.ts';
import { readLog } from '../../shared/jobs/answer-log.ts';
import { type FinishReply, finishWithError } from '../../shared/jobs/attempt.ts';
import { type JobState, readJobState, readServed } from '../../shared/jobs/job-state.ts';
import { freeSlot, type Settlement, settlementOf, settleNow } from '../../shared/jobs/settlement/settle.ts';
import { storeUsage } from '../../shared/jobs/store-usage.ts';
import { readTask } from '../../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import {
  type Charge,
  chargeFor,
  chargeForInterrupted,
  chargeForLate,
  countCharge,
  hasCallerLeft,
  isCounted,
  nothing,
  routeServed,
} from '../usage/charge.ts';
import { cutMedia, isCutByCaller } from '../usage/estimate-media.ts';
import { estimateInterrupted, isChargedWhenCut, tierInLog } from '../usage/estimate-usage.ts';
import type { JobAnswer, OpenAnswer } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type JobRun, vendorLabel } from './job-run.ts';

/** The vendor calls of a job before it was ended from elsewhere. */
export interface Called {
  /** The vendor that was called last; '' if none was. */
  readonly vendor: string;
  /** Whether it was at work when the job ended: not if it had refused the call, and the next one was to be made. */
  readonly isAtWork: boolean;
  readonly attempts: number;
  /** The answer that came too late: it has its vendor's counts all the same. */
  readonly answer?: JobAnswer | undefined;
  /** The fallback model, if one replaced the requested model. */
  readonly servedModel: string | undefined;
  /** The model by the route that was called last, if the catalogue (still) has it. */
  readonly routed: RoutedModel | undefined;
  readonly firstAt: number | undefined;
  /** The answer, if it was cut off while its vendor counted it. */
  readonly openAnswer?: OpenAnswer | undefined;
}

/** Ends a job whose worker was lost in the middle of its answer; it is settled by the output so far. */
export function endInterrupted(context: WorkerContext, job: QueuedJob, error: ApiError): Promise<FinishReply> {
  const { id: jobId, retentionMs } = job;
  const call = { jobId, guard: 'abandoned', retentionMs, isCluster: context.isCluster } as const;
  return finishWithError(context.redis, call, error);
}

/**
 * Settles a job that another process has ended, from its state.
 * @param known vendor calls of the run that owned the job; omitted: this run made none
 * @returns the vendor that was called last; '' if none was
 */
export async function settleEnded(context: WorkerContext, job: QueuedJob, known?: Called): Promise<string> {
  const state = await readJobState(context.redis, job.id);
  if (state?.outcome === undefined) return '';
  const called = known ?? (await calledByLog(context, state));
  const charge = await chargeEnded(context, job, state, called);
  const { usage, cost, saved } = charge ?? state;
  if (charge !== undefined) countCharge(context, vendorLabel(called), called.routed?.id, charge);
  if (state.usage === undefined) await noteCharge(context, job, { usage, cost, saved });
  const { vendor, attempts, servedModel, firstAt = state.firstAt } = called;
  const settlement = settlementOf({ ...state, servedModel, firstAt, usage, cost, saved, attempt: attempts }, vendor);
  if (settlement !== undefined) await settleNow(context.redis, settlement);
  return vendor;
}

/** The charge of a job that was ended without one; undefined: a usage or cost that was recorded with the end is final. */
async function chargeEnded(
  context: WorkerContext,
  job: QueuedJob,
  state: JobState,
  { isAtWork, answer, routed, openAnswer }: Called,
): Promise<Charge | undefined> {
  if (state.outcome === 'completed' || state.usage !== undefined || state.cost !== undefined) return undefined;
  const isLeft = hasCallerLeft(job, state);
  const { hasDelta } = state;
  const late = answer && isCounted(job, answer) ? chargeForLate(routed, job, { isLeft, hasDelta }, answer) : undefined;
  if (late?.usage !== undefined) return late;
  const cut = isCutByCaller(state) ? await cutMedia(context, job, routed?.prices) : undefined;
  if (cut !== undefined) return chargeFor(routed, job, cut);
  const estimated = await estimateInterrupted(context, job, state, isLeft && isAtWork, openAnswer);
  if (estimated === undefined) return nothing;
  const tier = routed?.prices?.tiers && hasDelta ? await tierInLog(context, job.id) : undefined;
  return chargeForInterrupted(routed, job, { ...estimated, tier });
}

/** Without this note the charge is only in the settlement, which follows even if the note fails. */
export async function noteCharge(
  context: WorkerContext,
  job: QueuedJob,
  { usage, cost, saved }: Pick<Charge, 'usage' | 'cost' | 'saved'>,
): Promise<void> {
  if (usage === undefined) return;
  await storeUsage(context.redis, job.id, { usage, cost, saved }).catch((error) => logLeftOut(context, job, error));
}

/** Logs a failed step that settlement does not depend on. */
export function logLeftOut({ log }: WorkerContext, job: QueuedJob, error: unknown): void {
  log.warn({ err: error, job: job.id }, 'a step before settlement was skipped');
}

/** Reads the vendor calls of the run from the answer's log, or from its task. */
async function calledByLog(context: WorkerContext, state: JobState): Promise<Called> {
  const { id, hasDelta, attempt } = state;
  const { batches } = hasDelta ? await readLog(context.redis, id, 0, 1) : { batches: [] };
  const served = readServed(batches[0]?.served ?? '');
  const task = state.task === undefined ? undefined : readTask(state.task);
  const vendor = served?.vendor ?? task?.vendor ?? '';
  const standIn = served?.model;
  const vendorModel = task?.model ?? served?.routeModel;
  const routed = routeServed(context, state, { vendor, standIn, vendorModel });
  return {
    vendor: served?.vendor ?? '',
    isAtWork: false,
    attempts: served?.calls ?? attempt,
    ...{ servedModel: standIn, routed, firstAt: undefined },
  };
}

/** Counts the usage of an answer that its own run interrupted. Its slot is freed without waiting for that: the caller may return first. */
export async function countInterrupted(
  context: WorkerContext,
  { job, routed, openAnswer }: JobRun,
  end: Pick<Settlement, 'outcome' | 'errorCode'>,
): Promise<Charge> {
  const freed = freeSlot(context.redis, { ...job, ...end, jobId: job.id, began: true });
  const counted = isChargedWhenCut(job)
    ? cutMedia(context, job, routed?.prices)
    : estimateInterrupted(context, job, { outcome: end.outcome, hasDelta: true }, false, openAnswer);
  const [cut = { usage: null }] = await Promise.all([counted, freed.catch((error) => logLeftOut(context, job, error))]);
  const tier = routed?.prices?.tiers && (await tierInLog(context, job.id));
  const charge = isChargedWhenCut(job)
    ? chargeFor(routed, job, cut)
    : chargeForInterrupted(routed, job, { ...cut, tier });
  await noteCharge(context, job, charge);
  return charge;
}
