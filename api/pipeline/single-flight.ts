import { ApiError } from '../../shared/errors.ts';
import { callerLeft } from '../../shared/jobs/end-errors.ts';
import { type JobIdentity, type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { sharedPrefix } from '../../shared/jobs/settlement/settle.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import {
  type AdmitJobDependencies,
  admitAndEnqueue,
  queueingMs,
  releaseRequest,
  type Submitted,
} from '../admission/admit-job.ts';
import { forgetBinding } from '../admission/forget-binding.ts';
import { cacheMsOf, type Preferences } from '../admission/preferences.ts';
import type { Submission } from '../admission/submission.ts';
import { untilQueued } from '../admission/unqueued-job.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import { nameJob, showLimits } from '../http/request-report.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import { patienceMs } from '../replies/left-jobs.ts';
import { openReply, type Reply } from '../replies/open-reply.ts';
import type { SharedJobs } from '../replies/shared/shared-jobs.ts';
import type { View } from '../replies/view.ts';
import type { Context } from '../state.ts';
import type { Endpoint } from './endpoint.ts';
import { type FollowJobDependencies, followJob } from './follow-job.ts';
import type { ParsedRequest } from './parsed-request.ts';
import { requestName } from './request-name.ts';

/** Dependencies of requests that share their jobs. */
export interface SingleFlightDependencies extends AdmitJobDependencies, FollowJobDependencies {
  readonly sharedJobs: SharedJobs;
}

/** How long a request that leaves waits until its job knows; that goes on after it. */
const leaveMs = 1000;

/** A request that shares its job, and its client. */
interface SharedCall {
  readonly ctx: Context;
  readonly services: SingleFlightDependencies;
  readonly preferences: Preferences;
  readonly submission: Submission;
  readonly connection: ClientConnection;
}

/**
 * The name by which requests find the job of an identical one that runs, in the place of an idempotency key; undefined if the
 * request has a job of its own. An idempotency key, a cached answer and `Prefer: respond-async` each bind a request to its job in
 * another way, and a job with a time to start by has terms of its own.
 * @param lane jobs of low priority are shared among themselves
 */
export function sharedName(
  ctx: Context,
  endpoint: Endpoint,
  parsed: ParsedRequest,
  preferences: Preferences,
  lane: JobIdentity['lane'],
): string | undefined {
  const { idempotencyKey, respondAsync, startByMs, singleFlight } = preferences;
  const { caller } = ctx.state;
  const isCached = cacheMsOf(preferences, caller) > 0;
  const isBoundElse = idempotencyKey !== undefined || respondAsync || isCached || startByMs !== undefined;
  const { cacheBreakpoints = 'caller' } = caller;
  const name = isBoundElse ? undefined : requestName(ctx, endpoint, parsed, cacheBreakpoints, lane ?? '');
  if (name === undefined && singleFlight) showSingleFlight(ctx, 'bypass');
  return name && sharedPrefix + name;
}

/** Reports what became of a request that wanted to share its job; `bypass`: it has one of its own. */
function showSingleFlight({ state }: Context, result: 'first' | 'joined' | 'bypass'): void {
  state.facts.single_flight = result;
  state.headers['x-sluice-single-flight'] = result;
}

/**
 * Handles a request that shares its job: it joins that of an identical one that runs, or makes one that others may join. Whichever
 * it does, it gets the whole answer, waits as long as it likes itself, and ends only itself.
 */
export async function replyToShared(call: SharedCall, view: View): Promise<void> {
  const { ctx, services, submission, connection } = call;
  const { sharedJobs } = services;
  const { job, isJoined } = await submitOrJoin(call);
  let reply: Reply | undefined;
  try {
    const following = { ctx, services, connection, job, view, isShared: true, ...(!isJoined && { isCreator: true }) };
    await followJob({ ...following, ownDeadlineAt: submission.ownDeadlineAt }, async (context) => {
      reply = await openReply(context);
      return reply;
    });
  } catch (error) {
    await leave(call, job, reply, ApiError.from(error));
    throw error;
  }
  // Its job has ended, unless it is the reply that failed.
  if (ctx.state.streamError === undefined) sharedJobs.release(job.id);
  else await leave(call, job, reply, ctx.state.streamError);
}

async function leave(
  { services: { sharedJobs }, preferences, connection }: SharedCall,
  job: JobIdentity,
  reply: Reply | undefined,
  error: ApiError,
): Promise<void> {
  const { ended, hasLeft, isAnswered } = connection;
  // As of any job: a stream that is handed over can be resumed, and a client library may send a request again that broke.
  const isHandedOver = ended !== undefined && !hasLeft && reply?.canBeResumed() === true;
  const mayReturn = hasLeft && preferences.retries !== undefined && !isAnswered && !job.stream;
  const leaving = isHandedOver
    ? sharedJobs.leaveGoing(job)
    : sharedJobs.leave(job, {
        error: ended === undefined ? error : callerLeft(),
        ...(mayReturn && { patienceMs }),
      });
  await withTimeout(leaving, leaveMs);
}

/** Admission runs to its end, whether its caller is there or not: what it has made is then left. */
const toItsEnd: Pick<ClientConnection, 'wait' | 'hasLeft'> = { wait: (work) => work, hasLeft: false };

/**
 * Submits a request, which makes a job, or joins that of an identical one that runs. Either way the request is counted as a sharer
 * of it once this resolves.
 */
async function submitOrJoin(call: SharedCall): Promise<{ job: JobIdentity; isJoined: boolean }> {
  const { ctx, services, submission, connection } = call;
  for (;;) {
    const submitted = await submit(call);
    if (!submitted.isReplay) {
      nameJob(ctx, submission.job.id);
      showLimits(ctx, submitted.limits);
      showSingleFlight(ctx, 'first');
      return { job: submission.job, isJoined: false };
    }
    const running = await connection.wait(readJobState(services.redis, submitted.jobId), readMs);
    if (running !== undefined && (await untilQueued(services, connection, running))) continue;
    if (running !== undefined && (await join(call, running))) {
      nameJob(ctx, running.id);
      showSingleFlight(ctx, 'joined');
      ctx.state.isFree = true;
      const { stream, viewOptions } = submission.job;
      releaseRequest(submission);
      return { job: { ...running, stream, viewOptions }, isJoined: true };
    }
    // It has ended, or Redis has lost it: the request is a new one.
    await forgetBinding(services, submission.job, submitted.jobId, running);
  }
}

/** Asks for admission. A job that it makes although the wait is over is left, which cancels it unless others have joined it. */
async function submit({ services, submission, connection }: SharedCall): Promise<Submitted> {
  const { sharedJobs } = services;
  const { job } = submission;
  submission.stateField = sharedJobs.make(job.id, !submission.cancelsOnLeave);
  const work = admitAndEnqueue(services, submission, toItsEnd).then(
    (submitted) => {
      if (submitted.isReplay) sharedJobs.release(job.id);
      return submitted;
    },
    (error) => {
      sharedJobs.release(job.id);
      throw error;
    },
  );
  try {
    return await connection.wait(work, queueingMs);
  } catch (error) {
    const leaving = work.then(({ isReplay }) =>
      isReplay ? undefined : sharedJobs.leave(job, { error: callerLeft() }),
    );
    await withTimeout(
      leaving.catch(() => undefined),
      leaveMs,
    );
    throw error;
  }
}

/** Joins a job that runs. Returns false if it has ended. */
async function join({ services, submission, connection }: SharedCall, running: JobState): Promise<boolean> {
  const { sharedJobs } = services;
  const joining = sharedJobs.join(running, !submission.cancelsOnLeave);
  try {
    return await connection.wait(joining, readMs);
  } catch (error) {
    // It may join all the same, and leaves again then.
    const leaving = joining.then((joined) => (joined ? sharedJobs.leave(running, { error: callerLeft() }) : undefined));
    await withTimeout(
      leaving.catch(() => undefined),
      leaveMs,
    );
    throw error;
  }
}
