import { ApiError } from '../../shared/errors.ts';
import { type FinishReply, finish, releaseLease, withdrawAttempt } from '../../shared/jobs/attempt.ts';
import { overdue } from '../../shared/jobs/end-errors.ts';
import { type Outcome, withCost } from '../../shared/jobs/job-state.ts';
import { errorDetails } from '../../shared/jobs/settlement/error-details.ts';
import { type JobRecord, recordText } from '../../shared/jobs/settlement/outbox.ts';
import { callsFor } from '../../shared/jobs/vendor-task.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { releaseMemory } from '../../shared/runtime/collections.ts';
import type { Pause } from '../execute/execution.ts';
import { isCallersFault } from '../routing/failure.ts';
import {
  type Charge,
  chargeFor,
  chargeForAnswered,
  countCharge,
  hasCallerLeft,
  isCounted,
  nothing,
  uncountedOf,
  unknown,
} from '../usage/charge.ts';
import { hasTokens, isChargedWhenCut, withEstimate } from '../usage/estimate-usage.ts';
import type { JobAnswer } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { FrameWriter, LastFrames } from './frame-writer.ts';
import { type JobRun, type RunOutcome, vendorLabel } from './job-run.ts';
import { pauseRun } from './pause-run.ts';
import { type Called, countInterrupted, settleEnded } from './settle-ended.ts';

/** How a vendor call ended. */
export type Ending =
  | { readonly outcome: 'completed'; readonly answer: JobAnswer }
  | { readonly outcome: 'failed'; readonly error: ApiError }
  | ({ readonly outcome: 'paused' } & Pause);

/** Ends the job as its vendor call ended, unless it no longer belongs to this run. */
export async function finishRun(
  context: WorkerContext,
  run: JobRun,
  attempt: number,
  writer: FrameWriter,
  ending: Ending,
): Promise<RunOutcome> {
  const { job } = run;
  const called: Called = {
    vendor: run.vendor,
    isAtWork: run.isAtWork,
    attempts: run.task === undefined ? run.callsInAll : callsFor(run.task),
    answer: ending.outcome === 'completed' ? ending.answer : undefined,
    servedModel: run.servedModel,
    routed: run.routed,
    firstAt: writer.firstAt,
    openAnswer: run.openAnswer,
  };
  if (isLost(run)) return await leaveRun(context, run, writer, called);
  if (ending.outcome === 'paused') return await pauseRun(context, run, attempt, writer, ending);
  if (run.stopReason === 'requeued' && ending.outcome === 'failed' && !writer.hasDelta) {
    await writer.discard();
    if (await isReleased(context, run, attempt)) return 'requeued';
  }
  const answer = ending.outcome === 'completed' ? await counted(context, job, writer, ending.answer) : undefined;
  await writer.beforeEnd(answer?.body);
  await writer.close();
  // The last call of the log may have reported a lost lease or lost frames.
  if (isLost(run)) return await leaveRun(context, run, writer, called);
  const lastFrames = answer && (await writer.endWith(answer.body));
  // V8 would collect its whole heap for every few dozen of them (benchmark case `images`).
  if (answer?.memory !== undefined) releaseMemory(answer.memory);
  const error = ending.outcome === 'failed' ? stopError(run.stopReason, ending.error) : writer.failure;
  let end: End =
    answer && lastFrames
      ? { error: undefined, last: lastFrames, charge: chargeForWhole(run, answer) }
      : await endWithError(context, run, writer, error ?? writer.lose());
  let reply = await finishOwned(context, run, attempt, writer, end);
  if (reply.verdict === 'gap') {
    // Redis has lost frames that it had: the answer there is incomplete.
    const lost = writer.lose();
    end = await endWithError(context, run, writer, end.error ?? lost);
    reply = await finishOwned(context, run, attempt, writer, end);
  }
  writer.leave(true);
  return await afterFinish(context, run, called, end, reply);
}

/** The charge for a whole answer. One that is not known is what was held, as it is settled: its readers are told that at once. */
function chargeForWhole({ job, routed, task }: JobRun, answer: JobAnswer): Charge {
  const charge = chargeFor(routed ?? task, job, answer);
  return charge.cost === undefined && job.maxCost !== undefined ? { ...charge, cost: job.maxCost } : charge;
}

/** How a run ends its job. */
interface End {
  /** Undefined: the answer is complete. */
  readonly error: ApiError | undefined;
  readonly last: LastFrames;
  /** Why it failed, for its record. */
  readonly details?: string;
  /** Its usage and cost; undefined: it was interrupted or refused, and its usage is yet to be counted. */
  readonly charge: Charge | undefined;
}

/** Whether the job has ended, or belongs to another attempt. */
function isLost({ stopReason }: JobRun): boolean {
  return stopReason === 'ended' || stopReason === 'fenced' || stopReason === 'gone';
}

/** Releases a job without output. One that waits for its vendor has not begun. */
async function isReleased({ redis }: WorkerContext, { job, calls }: JobRun, attempt: number): Promise<boolean> {
  if (calls > 0) return (await releaseLease(redis, job.id, attempt)) === 'released';
  return (await withdrawAttempt(redis, { jobId: job.id, attempt, hasCalled: false })) === 'withdrawn';
}

async function leaveRun(context: WorkerContext, run: JobRun, writer: FrameWriter, called: Called): Promise<RunOutcome> {
  await writer.discard();
  writer.leave(true);
  // Whoever ended the job leaves its settlement to this run.
  if (run.stopReason === 'ended') await settleEnded(context, run.job, called);
  return 'done';
}

/** The text before an error is counted after the end, so that clients need not wait for the count. */
async function endWithError(context: WorkerContext, run: JobRun, writer: FrameWriter, error: ApiError): Promise<End> {
  const { job, stopReason, isAtWork, routed, openAnswer } = run;
  const isOverdue = stopReason === 'overdue';
  const isLeft = isOverdue && hasCallerLeft(job, { errorCode: error.code });
  // Sounds, their transcripts and partial images are charged if their caller's own deadline has ended them.
  const isInterrupted = hasTokens(job)
    ? writer.hasDelta || (isLeft && isAtWork)
    : writer.hasDelta && isOverdue && isChargedWhenCut(job);
  const last = await writer.endWithError(error);
  const isRefused = !isInterrupted && stopReason === undefined && isCallersFault(error);
  const failed = isRefused ? chargeForAnswered(routed, job, openAnswer?.answered) : nothing;
  // The inputs that were refused, and those whose calls ended with them, cost nothing.
  if (failed === undefined && openAnswer) run.openAnswer = uncountedOf(job, openAnswer);
  return { error, last, details: await detailsOf(context, job, error), charge: isInterrupted ? undefined : failed };
}

/** Why a job failed. A vendor's message is compared with the request, so that no part of the request stays in the record. */
async function detailsOf({ blobs, log }: WorkerContext, job: QueuedJob, error: ApiError): Promise<string> {
  const { isQuoted, vendorStatus, vendorCode } = error;
  const isVendors = isQuoted || vendorStatus !== undefined || vendorCode !== null;
  const files = job.uploads?.map(({ name }) => name);
  if (!isVendors || job.requestBlob === undefined) return errorDetails(error, job.request, files);
  try {
    return errorDetails(error, await blobs.ofRecords(job.account).text(job.requestBlob), files);
  } catch (thrown) {
    log.warn({ err: thrown, job: job.id }, 'reading the request of a failed job failed');
    return errorDetails(error);
  }
}

function finishOwned(
  { redis, isCluster }: WorkerContext,
  run: JobRun,
  attempt: number,
  writer: FrameWriter,
  end: End,
): Promise<FinishReply> {
  const { id: jobId, retentionMs } = run.job;
  const { usage, cost, saved } = end.charge ?? unknown;
  return finish(redis, {
    jobId,
    attempt,
    outcome: outcomeOf(end),
    usage,
    cost,
    saved,
    errorCode: end.error?.code,
    errorDetails: end.details,
    lines: end.last.lines,
    lineCount: end.last.lineCount,
    firstSeq: end.last.firstSeq,
    published: end.last.published,
    retentionMs,
    isCluster,
    served: withCost(writer.served, cost),
  });
}

function outcomeOf({ error }: End): Outcome {
  return error === undefined ? 'completed' : 'failed';
}

async function afterFinish(
  context: WorkerContext,
  run: JobRun,
  called: Called,
  end: End,
  reply: FinishReply,
): Promise<'done'> {
  // Another attempt still needs the request.
  if (reply.verdict === 'fenced') run.lose('fenced');
  if (reply.verdict !== 'finished' && reply.verdict !== 'already') return 'done';
  const { error } = end;
  const outcome = outcomeOf(end);
  countEnd(context, run.job, { vendor: run.vendor, outcome, error });
  // Its own call arrived twice, or another process was faster: the state has the valid outcome.
  if (reply.verdict === 'already') {
    await settleEnded(context, run.job, called);
    return 'done';
  }
  run.end = { outcome, errorCode: error?.code };
  const ended = { ...run.end, errorDetails: end.details, endedAt: context.clock.now() } as const;
  await settleOwn(context, run, called, ended, end.charge);
  return 'done';
}

/** Counts a job that this worker has ended. */
export function countEnd(
  { metrics }: Pick<WorkerContext, 'metrics'>,
  { capability }: Pick<QueuedJob, 'capability'>,
  { vendor: name, outcome, error }: { vendor: string; outcome: Outcome; error: Pick<ApiError, 'code'> | undefined },
): void {
  const vendor = vendorLabel({ vendor: name });
  metrics.jobs.inc({ capability, vendor, outcome });
  if (error !== undefined) metrics.errors.inc({ capability, vendor, code: error.code });
}

/** How a job ended, as recorded. */
type RecordedEnd = Pick<JobRecord, 'outcome' | 'errorCode' | 'errorDetails' | 'endedAt'>;

/** Settles a job that this run has ended. @param charge undefined: it was interrupted, and its usage is yet to be counted */
async function settleOwn(
  context: WorkerContext,
  run: JobRun,
  called: Called,
  end: RecordedEnd,
  charge: Charge | undefined,
): Promise<void> {
  const settled = charge ?? (await countInterrupted(context, run, end));
  const { cost, tokens } = settled;
  countCharge(context, vendorLabel(run), run.routed?.id, settled);
  const record = recordOf(run, called, end, settled);
  const { id: jobId, account, apiKeyId, capability, retentionMs, idempotency, retryName } = run.job;
  // Nothing waits for it: the queue learns at once that the job has ended.
  context.settler.add({
    jobId,
    account,
    apiKeyId,
    capability,
    retentionMs,
    idempotency,
    retryName,
    outcome: end.outcome,
    errorCode: end.errorCode,
    began: true,
    record,
    cost: cost ?? 'held',
    tokens,
  });
}

/** The record of a job that this run has ended. Each field is named: copying the job would cost more than the rest. */
function recordOf(
  { job, task, beganAt }: JobRun,
  { vendor, attempts, servedModel, firstAt }: Called,
  { outcome, errorCode, errorDetails: details, endedAt }: RecordedEnd,
  { usage, saved }: Pick<Charge, 'usage' | 'saved'>,
): string {
  const { id, account, apiKeyId, endpoint, capability, model, stream, createdAt, retentionMs, metadata } = job;
  return recordText({
    id,
    account,
    apiKeyId,
    endpoint,
    capability,
    model,
    stream,
    createdAt,
    retentionMs,
    metadata,
    vendor,
    attempts,
    servedModel,
    firstAt,
    beganAt: task?.beganAt ?? beganAt,
    endedAt,
    outcome,
    errorCode,
    errorDetails: details,
    usage,
    saved,
  });
}

/** The answer with its usage, counted if the vendor has reported none, or none that can be charged by. */
async function counted(
  context: WorkerContext,
  job: QueuedJob,
  writer: FrameWriter,
  answer: JobAnswer,
): Promise<JobAnswer> {
  if (isCounted(job, answer)) return answer;
  await writer.flushed();
  return await withEstimate(context, job, answer);
}

/** The error of a job whose run was stopped, else the vendor's. */
function stopError(reason: JobRun['stopReason'], vendorError: ApiError): ApiError {
  if (reason === 'overdue') return overdue();
  if (reason === 'requeued') return new ApiError('stream_interrupted', 'The answer broke off: its worker was stopped.');
  return reason instanceof ApiError ? reason : vendorError;
}
