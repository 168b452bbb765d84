import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import { ApiError } from '../../shared/errors.ts';
import { attach } from '../../shared/jobs/attach.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import { type JobIdentity, readJobProgress, readJobState } from '../../shared/jobs/job-state.ts';
import { endJob } from '../../shared/jobs/settlement/end-job.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { compressed, minCompressed } from '../http/compress-json.ts';
import { nameJob } from '../http/request-id.ts';
import type { AnswerReader, FrameReceiver } from '../replies/answer-reader.ts';
import { BufferedReply } from '../replies/buffered-reply.ts';
import { ByteReply, type ByteReplyOptions } from '../replies/byte-reply.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import { ResponseSocketReply } from '../replies/response-socket-reply.ts';
import { beyondEnd, type EventPosition, SseReply } from '../replies/sse-reply.ts';
import type { StreamedReply } from '../replies/streamed-reply.ts';
import { expired } from '../replies/unreadable-answer.ts';
import type { BytesView, View, ViewedJob } from '../replies/view.ts';
import { WaitLimits } from '../replies/wait-limits.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';
import { showServed } from './show-served.ts';
import { readViewOptions, viewOptionsBlob } from './view-options.ts';

/** How long Redis may take to cancel a job whose caller has left; it goes on after that. */
const cancelMs = 1000;

/** Answers above so many characters are looked at before they are sent: their clients may not take them. */
const largeAnswer = 1024 * 1024;

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
  /** The request made no job and only follows one, which costs nothing: how many do is bounded. */
  readonly isWatcher?: boolean;
  /** How long an answer that is not a stream of events is waited for, in ms; undefined: to its end. */
  readonly patienceMs?: number;
}

/** Starts the flow of frames into a sink, once the sink is registered with a reader. */
export type Start = (reader: AnswerReader) => Promise<void>;

/**
 * The job as its view may see it. Links last as long as results do, counted from when the job was made.
 * @param baseUrl that of the request which the answer is for
 * @throws ApiError 410 when what the view needs has expired.
 */
export async function viewedJob(services: Services, job: JobIdentity, baseUrl: string): Promise<ViewedJob> {
  const isInBlob = viewOptionsBlob(job.viewOptions) !== undefined;
  const viewOptions = isInBlob
    ? await unlessMissing(readViewOptions(services.blobs.ofRecords(job.account), job.viewOptions))
    : job.viewOptions;
  if (viewOptions === undefined) throw expired();
  return {
    id: job.id,
    model: job.model,
    createdAt: job.createdAt,
    viewOptions: JSON.parse(viewOptions) as Record<string, unknown>,
    link: (file) =>
      services.resultLinks.link(baseUrl, { account: job.account, file }, job.createdAt + services.config.resultMs),
  };
}

/**
 * Start for a job that is there already: registers this process as a reader, then reads what the log holds. Where Redis
 * knows the job no more, the answer that the database keeps is replayed.
 * @throws ApiError 410 when neither has it (any more), 503 when the database does not answer.
 */
export function attachTo(
  services: Services,
  job: Pick<JobIdentity, 'id' | 'account'>,
  resumeAfter?: EventPosition,
): Start {
  return async (reader) => {
    if (await attach(services.redis, job.id, services.processId)) {
      if (resumeAfter !== undefined) await assertReached(services, job.id, resumeAfter);
      reader.made();
      reader.catchUp();
      return;
    }
    const frames = await services.storedJobs.findAnswer(job);
    if (frames === undefined || !continues(frames, resumeAfter)) throw expired();
    if (resumeAfter !== undefined && resumeAfter.seq > (frames.at(-1)?.seq ?? 0)) throw beyondEnd(resumeAfter);
    reader.replay(frames);
  };
}

/** @throws ApiError 400 for a position that the job has not reached: nothing can have come from there. */
export async function assertReached({ redis }: Services, jobId: string, position: EventPosition): Promise<void> {
  const progress = await readJobProgress(redis, jobId);
  if (progress !== undefined && position.seq > progress.seq) throw beyondEnd(position);
}

/** Whether kept frames go on where a client's copy ends. Of joined ones only their whole is known, and what follows it. */
function continues(frames: readonly Frame[], resumeAfter: EventPosition | undefined): boolean {
  const [first, last] = [frames[0]?.seq ?? 0, frames.at(-1)?.seq ?? 0];
  const areJoined = frames.length > 1 && first > 1;
  return !areJoined || resumeAfter === undefined || resumeAfter.seq === 0 || resumeAfter.seq >= last - 1;
}

/**
 * Answers the request that made a job, or one that repeats it, as its endpoint does: with bytes, events or a body. Answers
 * false when `patienceMs` was over before.
 * @throws ApiError what came before the answer.
 */
export function answerJob(waiting: Waiting, start: Start): Promise<boolean> {
  const bytes = bytesView(waiting);
  if (bytes !== undefined) return answerBytes(waiting, bytes, start);
  return waiting.job.stream ? answerStream(waiting, start) : answerHeld(waiting, start);
}

/** Whether `answerJob` answers with events, which nobody waits for with patience. */
export function hasEvents(waiting: Waiting): boolean {
  return waiting.job.stream && bytesView(waiting) === undefined;
}

function bytesView({ view, job }: Waiting): BytesView | undefined {
  return view.bytes?.({ viewOptions: JSON.parse(job.viewOptions) as Record<string, unknown> });
}

/**
 * Answers with the whole body once the job has ended. Returns false when `patienceMs` was over before.
 * @throws ApiError what the job ended with.
 */
async function answerHeld(waiting: Waiting, start: Start): Promise<boolean> {
  const { ctx, services, connection, job, patienceMs } = waiting;
  const { view } = waiting;
  const viewed = await viewedJob(services, job, services.baseUrls.of(ctx.req));
  const answer = new BufferedReply((frames) => view.held(viewed, frames), view.heldFromEnd);
  const body = await run(waiting, answer, start, () =>
    connection.wait(patienceMs === undefined ? answer.body : withTimeout(answer.body, patienceMs)),
  );
  if (body === undefined) return false;
  ctx.set('openai-processing-ms', String(Math.round(performance.now() - ctx.state.startedAt)));
  ctx.type = view.contentType?.(viewed) ?? 'application/json; charset=utf-8';
  // Pictures are compressed already.
  const isText = body.length >= minCompressed && job.capability !== 'image';
  const sent = isText ? await compressed(ctx, body) : body;
  if (sent.length > largeAnswer) services.connections.expect(sent.length);
  ctx.body = sent;
  observeFirstFrame(waiting, answer.firstFrameAt);
  if (isDelivery(waiting)) ctx.res.once('finish', () => services.delivered.add(job.id));
  return true;
}

/** Answers with the job's events as they come, and with true. @throws ApiError what came before the first event. */
export async function answerStream(waiting: Waiting, start: Start): Promise<boolean> {
  const { ctx, services, job, view } = waiting;
  const viewed = await viewedJob(services, job, services.baseUrls.of(ctx.req));
  let answer: SseReply | undefined;
  return await relay(
    waiting,
    (onDrain) => {
      answer = new SseReply({
        response: ctx.res,
        events: view.stream(viewed),
        view,
        opensAtOnce: view.opensAtOnce?.(viewed) ?? false,
        resumeAfter: waiting.resumeAfter,
        startedAt: ctx.state.startedAt,
        isRunning: async () => (await readJobState(services.redis, job.id))?.beganAt !== undefined,
        onDrain,
      });
      return answer;
    },
    async (reader) => {
      await start(reader);
      answer?.begin();
    },
  );
}

/** Answers with the job's bytes as they come. Returns false when `patienceMs` was over before the first of them. */
async function answerBytes(waiting: Waiting, bytes: BytesView, start: Start): Promise<boolean> {
  const { ctx, services, job } = waiting;
  const openFile: ByteReplyOptions['openFile'] = (file) => services.blobs.ofRecords(job.account).read(file);
  const { startedAt } = ctx.state;
  return await relay(
    waiting,
    (onDrain) => new ByteReply({ response: ctx.res, bytes, startedAt, openFile, onDrain }),
    start,
  );
}

/** Sends an answer that grows, to its end. Returns false when `patienceMs` was over before its status was out. */
export async function relay(
  waiting: Waiting,
  open: (onDrain: () => void) => SseReply | ByteReply | ResponseSocketReply,
  start: Start,
): Promise<boolean> {
  const { ctx, services, connection, job, patienceMs } = waiting;
  let reader: AnswerReader | undefined;
  const answer = open(() => reader?.resume());
  const startAndKeep: Start = async (opened) => {
    reader = opened;
    await start(opened);
  };
  const error = await run(waiting, answer, startAndKeep, async () => {
    try {
      await connection.wait(patienceMs === undefined ? answer.opened : withTimeout(answer.opened, patienceMs));
      if (!answer.isOpen) {
        answer.abandon();
        return undefined;
      }
      ctx.respond = false;
      return await connection.wait(answer.ended);
    } catch (thrown) {
      // It had ended before the connection closed, which is how bytes say that they are not whole.
      if (answer.isOpen && answer.isOver) return await answer.ended;
      if (connection.hasLeft) answer.abandon();
      // Its status is out: the client learns from a last event how to go on elsewhere.
      if (!answer.isOpen || connection.hasLeft) throw thrown;
      answer.fail(handedOver(job));
      return ApiError.from(thrown);
    }
  });
  if (!answer.isOpen) return false;
  ctx.state.streamError = error ?? incomplete(answer);
  ctx.state.facts.frames = answer.frames;
  if (answer.missingBytes > 0) ctx.state.facts.missing_bytes = answer.missingBytes;
  services.metrics.frames.inc(answer.frames);
  observeFirstFrame(waiting, answer.firstFrameAt);
  if (isDelivery(waiting) && ctx.state.streamError === undefined) services.delivered.add(job.id);
  return true;
}

/** The error of an answer of which the connection has written less than was handed to it. The client has seen a status already. */
function incomplete({ bytes, missingBytes }: StreamedReply): ApiError | undefined {
  if (missingBytes === 0) return undefined;
  return new ApiError(
    'server_error',
    `${missingBytes} of the answer's ${bytes} bytes were not written to the connection.`,
  );
}

/** Whether this answer is the one that a plain job was made for: nobody needs the job's log once it is out. */
function isDelivery({ job, isCreator }: Waiting): boolean {
  return job.retentionMs === 0 && isCreator;
}

/** The steps every answer shares: register the reader, start, keep the limits, and clean up whatever happens. */
async function run<T>(waiting: Waiting, sink: LimitedSink, start: Start, wait: () => Promise<T>): Promise<T> {
  const { services, connection, job } = waiting;
  const release = waiting.isWatcher ? takeWatcher(waiting) : undefined;
  const reader = services.readers.open(job, sink, {
    onServed: (served) => {
      // Its first frame may be here before the word that it was admitted, which a broken connection can cost.
      if (waiting.isCreator) nameJob(waiting.ctx, job.id);
      showServed(waiting.ctx, served);
    },
    isCreator: waiting.isCreator,
  });
  let isStarted = false;
  try {
    await start(reader);
    isStarted = true;
    reader.made();
    if (waiting.isCreator) {
      const limits = new WaitLimits(services, job, (error) => sink.fail(error));
      sink.onTick = () => limits.tick();
    }
    return await wait();
  } catch (error) {
    if (isStarted && connection.ended !== undefined) await leave(waiting, sink);
    throw error;
  } finally {
    reader.close();
    release?.();
    // What cannot be shown to the one it is made for need not be made to its end.
    if (reader.failure !== undefined && waiting.cancelsOnLeave) void endLater(waiting, reader.failure);
  }
}

/** @throws ApiError 429 for too many that follow a job, or jobs. */
function takeWatcher({ ctx, services, job }: Waiting): () => void {
  // On the console it is a session that watches.
  const { apiKeyId } = ctx.state.caller ?? {};
  return services.sockets.take({ account: job.account, apiKeyId, job: job.id });
}

interface LimitedSink extends FrameReceiver {
  onTick: ((now: number) => void) | undefined;
}

/**
 * The client left, or is sent away: a plain job is cancelled, because nobody would read its answer (or because its caller
 * will send it again). A stream that was begun and is handed over goes on: its caller resumes it.
 */
async function leave(waiting: Waiting, sink: LimitedSink): Promise<void> {
  const { connection, cancelsOnLeave } = waiting;
  const hasBegun = (sink instanceof SseReply || sink instanceof ResponseSocketReply) && sink.isOpen;
  if (!cancelsOnLeave || (!connection.hasLeft && hasBegun)) return;
  const ended = endLater(waiting, new ApiError('cancelled', 'The caller left.'));
  // A process that stops must not close its Redis connection in the middle of it.
  await withTimeout(ended, cancelMs);
}

/** Ends the job; resolves when that is done, or has failed. */
async function endLater({ services, job }: Waiting, error: ApiError): Promise<void> {
  try {
    await endJob(services, job, error);
  } catch (thrown) {
    services.log.warn({ err: thrown, job: job.id }, 'cancelling a job failed');
  }
}

function handedOver(job: JobIdentity): ApiError {
  return new ApiError(
    'service_unavailable',
    `The server is shutting down. The job continues: GET /v1/jobs/job_${job.id}/events with Last-Event-ID resumes it.`,
  );
}

function observeFirstFrame({ services, ctx, job, isCreator }: Waiting, firstFrameAt: number | undefined): void {
  if (firstFrameAt === undefined || !isCreator) return;
  // The job was made by Redis's clock.
  const milliseconds = Math.max(0, firstFrameAt + services.clock.now() - Date.now() - job.createdAt);
  services.metrics.firstFrame.observe({ endpoint: ctx.state.endpoint }, milliseconds / 1000);
  ctx.state.facts.first_frame_ms = milliseconds;
}
