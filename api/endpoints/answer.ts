import { ApiError } from '../../shared/errors.ts';
import { attach } from '../../shared/jobs/attach.ts';
import { endJob } from '../../shared/jobs/end-job.ts';
import { type JobIdentity, readJobState } from '../../shared/jobs/job-state.ts';
import { within } from '../../shared/within.ts';
import type { AnswerReader, AnswerSink } from '../answers/answer-reader.ts';
import type { ClientConnection } from '../answers/client-connection.ts';
import { expired, HeldAnswer } from '../answers/held.ts';
import { type EventPosition, SseAnswer } from '../answers/sse.ts';
import { WaitLimits } from '../answers/wait-limits.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import type { View, ViewedJob } from './endpoint.ts';

/** How long Redis may take to cancel a job whose caller has left; it goes on after that. */
const cancelMs = 1000;

/** One request that waits for the answer of a job. */
export interface Waiting {
  readonly ctx: Context;
  readonly services: Services;
  readonly connection: ClientConnection;
  readonly job: JobIdentity;
  readonly view: View;
  /** What the client has of the stream already. */
  readonly resumeAfter?: EventPosition | undefined;
  /** The request made the job: its limits apply here. */
  readonly isCreator: boolean;
  /** The job is cancelled when the client leaves. */
  readonly cancelsOnLeave: boolean;
  /** How long a held answer is waited for, in ms; undefined: to its end. */
  readonly patienceMs?: number;
}

/** Starts the flow of frames into a sink, once the sink is registered with a reader. */
export type Start = (reader: AnswerReader) => Promise<void>;

export function viewedJob(services: Services, job: JobIdentity): ViewedJob {
  return {
    id: job.id,
    model: job.model,
    createdAt: job.createdAt,
    viewOptions: JSON.parse(job.viewOptions) as Record<string, unknown>,
    link: (file) => services.resultLinks.link(file, job.createdAt + services.config.resultMs),
  };
}

/** Start for a job that is there already: registers this process as a reader, then reads what the log holds. */
export function attachTo(services: Services, jobId: string): Start {
  return async (reader) => {
    if (!(await attach(services.redis, jobId, services.processId))) throw expired();
    reader.made();
    reader.catchUp();
  };
}

/**
 * Answers with the whole body once the job has ended. Answers false when `patienceMs` was over before.
 * @throws ApiError what the job ended with.
 */
export async function answerHeld(waiting: Waiting, start: Start): Promise<boolean> {
  const { ctx, services, connection, job, patienceMs } = waiting;
  const viewed = viewedJob(services, job);
  const answer = new HeldAnswer(waiting.view, viewed);
  const body = await run(waiting, answer, start, () =>
    connection.wait(patienceMs === undefined ? answer.body : within(answer.body, patienceMs)),
  );
  if (body === undefined) return false;
  ctx.set('openai-processing-ms', String(Math.round(performance.now() - ctx.state.startedAt)));
  ctx.type = waiting.view.contentType?.(viewed) ?? 'application/json; charset=utf-8';
  ctx.body = body;
  observeFirstFrame(waiting, answer.firstFrameAt);
  if (job.retentionMs === 0) ctx.res.once('finish', () => services.delivered.add(job.id));
  return true;
}

/** Answers with the job's events as they come. @throws ApiError what came before the first event. */
export async function answerStream(waiting: Waiting, start: Start): Promise<void> {
  const { ctx, services, connection, job } = waiting;
  let reader: AnswerReader | undefined;
  const answer = new SseAnswer({
    response: ctx.res,
    events: waiting.view.stream(viewedJob(services, job)),
    resumeAfter: waiting.resumeAfter,
    startedAt: ctx.state.startedAt,
    isRunning: async () => (await readJobState(services.redis, job.id))?.beganAt !== undefined,
    onDrain: () => reader?.resume(),
  });
  const startAndKeep: Start = async (opened) => {
    reader = opened;
    await start(opened);
  };
  const error = await run(waiting, answer, startAndKeep, async () => {
    try {
      await connection.wait(answer.opened);
      ctx.respond = false;
      return await connection.wait(answer.ended);
    } catch (thrown) {
      if (connection.hasLeft) answer.abandon();
      // Its status is out: the client learns from a last event how to go on elsewhere.
      if (!answer.isOpen || connection.hasLeft) throw thrown;
      answer.fail(handedOver(job));
      return ApiError.from(thrown);
    }
  });
  ctx.state.streamError = error;
  ctx.state.facts.frames = answer.frames;
  services.metrics.frames.inc(answer.frames);
  observeFirstFrame(waiting, answer.firstFrameAt);
  if (job.retentionMs === 0 && error === undefined) services.delivered.add(job.id);
}

/** The steps every answer shares: register the reader, start, keep the limits, and clean up whatever happens. */
async function run<T>(waiting: Waiting, sink: LimitedSink, start: Start, wait: () => Promise<T>): Promise<T> {
  const { services, connection, job } = waiting;
  const reader = services.readers.open(job.id, sink);
  let isStarted = false;
  try {
    await start(reader);
    isStarted = true;
    reader.made();
    if (waiting.isCreator) {
      const limits = new WaitLimits(services, job, (error) => sink.fail(error));
      sink.onTick = (now) => limits.tick(now);
    }
    return await wait();
  } catch (error) {
    if (isStarted && connection.ended !== undefined) await leave(waiting, sink);
    throw error;
  } finally {
    reader.close();
  }
}

interface LimitedSink extends AnswerSink {
  onTick: ((now: number) => void) | undefined;
  fail(error: ApiError): void;
}

/**
 * The client left, or is sent away: a plain job is cancelled, because nobody would read its answer (or because its caller
 * will send it again). A stream that was begun and is handed over goes on: its caller resumes it.
 */
async function leave(waiting: Waiting, sink: LimitedSink): Promise<void> {
  const { services, connection, job, cancelsOnLeave } = waiting;
  if (!cancelsOnLeave || (!connection.hasLeft && sink instanceof SseAnswer && sink.isOpen)) return;
  const ended = endJob(services, job, new ApiError('cancelled', 'The caller left.')).catch((error) =>
    services.log.warn({ err: error, job: job.id }, 'cancelling failed'),
  );
  // A process that stops must not close its Redis connection in the middle of it.
  await within(ended, cancelMs);
}

function handedOver(job: JobIdentity): ApiError {
  return new ApiError(
    'service_unavailable',
    `This instance of the gateway is closing. The job goes on: GET /v1/jobs/job_${job.id}/events with Last-Event-ID resumes it.`,
  );
}

function observeFirstFrame({ services, ctx, job, isCreator }: Waiting, firstFrameAt: number | undefined): void {
  if (firstFrameAt === undefined || !isCreator) return;
  services.metrics.firstFrame.observe(
    { endpoint: ctx.state.endpoint },
    Math.max(0, firstFrameAt - job.createdAt) / 1000,
  );
  ctx.state.facts.first_frame_ms = firstFrameAt - job.createdAt;
}
