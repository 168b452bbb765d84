import type { Blobs } from '../../shared/blobs/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import { type JobIdentity, readJobState } from '../../shared/jobs/job-state.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { RedisClock } from '../../shared/redis/redis-clock.ts';
import { groupBy } from '../../shared/runtime/group-by.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { traceIdOf } from '../../shared/tracing/trace-context.ts';
import { type BodyShares, shareOfReply } from '../bounds/body-shares.ts';
import { type Connections, largeAnswer } from '../bounds/connections.ts';
import type { BaseUrls } from '../http/request-address.ts';
import type { Context } from '../state.ts';
import { BufferedReply } from './buffered-reply.ts';
import { ByteReply, type ByteReplyOptions } from './byte-reply.ts';
import type { ClientConnection } from './client-connection.ts';
import type { FileSender, FrameReceiver } from './frame-receiver.ts';
import { heldBody, heldFile, sendHeldBody, sendHeldFile, storedBody } from './held-body.ts';
import type { ResponseSocketReply } from './response-socket-reply.ts';
import { type EventPosition, SseReply } from './sse-reply.ts';
import type { StreamedReply } from './streamed-reply.ts';
import { type BytesView, type View, type ViewJobDependencies, viewEvents, viewJob, viewOptionsBlob } from './view.ts';

/** Dependencies of a reply, whatever its form. */
export interface OpenReplyDependencies extends ViewJobDependencies {
  readonly redis: RedisClient;
  readonly clock: RedisClock;
  readonly baseUrls: BaseUrls;
  readonly connections: Connections;
  readonly bodies: BodyShares;
  readonly delivered: DeliveredAnswers;
  readonly metrics: ApiMetrics;
  readonly log: Logger;
}

/** A request that waits for the answer of a job. */
export interface ReplyContext {
  readonly ctx: Context;
  readonly services: OpenReplyDependencies;
  readonly connection: ClientConnection;
  readonly job: JobIdentity;
  readonly view: View;
  /** The part of the stream that the client has already. */
  readonly resumeAfter?: EventPosition | undefined;
  /** Whether the request made the job: its limits apply here. */
  readonly isCreator?: boolean;
  /** Whether other requests may wait for the same answer, each as long as it likes. */
  readonly isShared?: boolean;
  /** Whether it repeats a request whose answer is kept for that: it can be asked for again. */
  readonly isRepeat?: boolean;
  /** Whether the request made no job and only follows one, which is free: the number of followers is bounded. */
  readonly isWatcher?: boolean;
  /** Maximum wait until the answer begins, or if it is held, is complete, in ms; undefined: to its end. */
  readonly patienceMs?: number;
}

/** The response to a request. */
export interface Reply {
  /** Receives the frames of the job: registered with a reader before the job can start. */
  readonly receiver: FrameReceiver;
  /** Whether it was started as a stream of events, which its caller can resume. */
  canBeResumed(): boolean;
  /**
   * Sends the answer to its end, once the job exists. Returns false when `patienceMs` elapsed before it started.
   * @throws ApiError the error before the answer, or the job's error.
   */
  finished(): Promise<boolean>;
}

/** Opens a job's reply: bytes, events, or one body. @throws ApiError 410 when data for its view has expired. */
export async function openReply(context: ReplyContext): Promise<Reply> {
  const bytes = bytesView(context);
  if (bytes !== undefined) return byteReply(context, bytes);
  return context.job.stream ? await eventReply(context) : await bodyReply(context);
}

function bytesView({ view, job }: Pick<ReplyContext, 'view' | 'job'>): BytesView | undefined {
  return view.bytes?.({ viewOptions: JSON.parse(job.viewOptions) as object });
}

/** The whole body, once the job has ended. */
async function bodyReply(context: ReplyContext): Promise<Reply> {
  const { ctx, services, connection, job, view, patienceMs } = context;
  // No other request is refused for it: its answer is paid, or would be made again.
  const share = context.isRepeat ? shareOfReply(services.bodies, ctx, job) : undefined;
  const viewed = await viewJob(services, job, services.baseUrls.of(ctx.req), share);
  const compose = (frames: readonly Frame[]) => heldFile(view, viewed, frames) ?? heldBody(view, viewed, frames);
  const files: FileSender = {
    isLarge: (bytes) => bytes > Math.max(largeAnswer, services.connections.pieceBytes),
    // Behind others it may have only a part of the answer.
    canSend: ({ seq }, start) =>
      (seq === 1 || view.heldFromEnd === true) && view.heldStart?.(viewed, start) !== undefined,
  };
  const receiver = new BufferedReply(compose, view.heldFromEnd, false, share, files);
  const finished = async (): Promise<boolean> => {
    const waited = patienceMs === undefined ? receiver.body : withTimeout(receiver.body, patienceMs);
    const held = await connection.wait(waited);
    if (held === undefined) return false;
    ctx.set('openai-processing-ms', String(Math.round(performance.now() - ctx.state.startedAt)));
    ctx.type = view.contentType?.(viewed) ?? 'application/json; charset=utf-8';
    // Images are compressed already.
    const isText = job.capability !== 'image';
    const file = 'file' in held ? held : await storedBody(context, held);
    if (file !== undefined) sendHeldFile(context, file, isText);
    else if ('body' in held) await sendHeldBody(context, held, isText);
    observeFirstFrame(context, receiver.firstFrameAt);
    if (isDelivery(context)) ctx.res.once('finish', () => services.delivered.add(job, receiver.blobs));
    return true;
  };
  return { receiver, canBeResumed: () => false, finished };
}

/** The job's events as they arrive. */
export async function eventReply(context: ReplyContext): Promise<Reply> {
  const { ctx, services, job, view } = context;
  const share = context.isWatcher || context.isRepeat ? shareOfReply(services.bodies, ctx, job) : undefined;
  const { viewed, repeatedBytes } = await viewEvents(services, job, services.baseUrls.of(ctx.req), share);
  const receiver = new SseReply({
    response: ctx.res,
    headers: ctx.state.headers,
    events: view.stream(viewed),
    view,
    opensAtOnce: view.opensAtOnce?.(viewed) ?? false,
    resumeAfter: context.resumeAfter,
    startedAt: ctx.state.startedAt,
    share,
    isRunning: async () => (await readJobState(services.redis, job.id))?.beganAt !== undefined,
  });
  receiver.expect(repeatedBytes);
  return {
    receiver,
    canBeResumed: () => receiver.isOpen,
    finished: () => {
      receiver.begin();
      return sendStreamed(context, receiver);
    },
  };
}

/** The job's bytes as they arrive. */
function byteReply(context: ReplyContext, bytes: BytesView): Reply {
  const { ctx, services, job } = context;
  const openFile: ByteReplyOptions['openFile'] = (file) => services.blobs.ofRecords(job.account).read(file);
  const { headers } = ctx.state;
  const receiver = new ByteReply({ response: ctx.res, headers, bytes, startedAt: ctx.state.startedAt, openFile });
  return { receiver, canBeResumed: () => false, finished: () => sendStreamed(context, receiver) };
}

/**
 * Sends a streamed answer to its end. Returns false when `patienceMs` elapsed before its status was sent.
 * @throws ApiError the error before its status.
 */
export async function sendStreamed(
  context: ReplyContext,
  reply: SseReply | ByteReply | ResponseSocketReply,
): Promise<boolean> {
  const { ctx, services, job } = context;
  const error = await untilEnded(context, reply);
  if (!reply.isOpen) return false;
  ctx.state.streamError = error ?? incomplete(reply);
  ctx.state.facts.frames = reply.frames;
  if (reply.missingBytes > 0) ctx.state.facts.missing_bytes = reply.missingBytes;
  services.metrics.frames.inc(reply.frames);
  observeFirstFrame(context, reply.firstFrameAt);
  if (isDelivery(context) && ctx.state.streamError === undefined) services.delivered.add(job, reply.blobs);
  return true;
}

/** Waits for the end of a streamed answer, and abandons it when `patienceMs` elapses. Returns the error that ended it. */
async function untilEnded(
  { ctx, services, connection, job, patienceMs }: ReplyContext,
  reply: SseReply | ByteReply | ResponseSocketReply,
): Promise<ApiError | undefined> {
  services.metrics.openStreams.inc();
  try {
    await connection.wait(patienceMs === undefined ? reply.opened : withTimeout(reply.opened, patienceMs));
    if (!reply.isOpen) {
      reply.abandon();
      return undefined;
    }
    ctx.respond = false;
    return await connection.wait(reply.ended);
  } catch (thrown) {
    // It ended before the connection closed, which is how bytes signal that they are incomplete.
    if (reply.isOpen && reply.isOver) return await reply.ended;
    if (connection.hasLeft) reply.abandon();
    // Its status is sent: a last event reports how to resume elsewhere.
    if (!reply.isOpen || connection.hasLeft) throw thrown;
    reply.fail(handedOver(job));
    return ApiError.from(thrown);
  } finally {
    services.metrics.openStreams.dec();
  }
}

/** The error of an answer that was not written completely. The client has received a status already. */
function incomplete({ bytes, missingBytes }: StreamedReply): ApiError | undefined {
  if (missingBytes === 0) return undefined;
  return new ApiError(
    'server_error',
    `${missingBytes} of the answer's ${bytes} bytes were not written to the connection.`,
  );
}

/** Whether a plain job was made for this answer: nobody needs the job's log once it is sent. */
function isDelivery({ job, isCreator, isShared }: ReplyContext): boolean {
  return job.retentionMs === 0 && isCreator === true && !isShared;
}

function handedOver(job: JobIdentity): ApiError {
  return new ApiError(
    'service_unavailable',
    `The server is shutting down. The job continues: GET /v1/jobs/job_${job.id}/events with Last-Event-ID resumes it.`,
    { reason: 'shutting_down' },
  );
}

function observeFirstFrame({ services, ctx, job, isCreator }: ReplyContext, firstFrameAt: number | undefined): void {
  // One of low priority waits on purpose.
  if (firstFrameAt === undefined || !isCreator || job.lane === 'flex') return;
  // The job's creation time is by Redis's clock.
  const milliseconds = Math.max(0, firstFrameAt + services.clock.now() - Date.now() - job.createdAt);
  const labels = { endpoint: ctx.state.endpoint, stream: job.stream ? 'yes' : 'no' };
  const { trace } = ctx.state;
  services.metrics.firstFrame.observe(labels, milliseconds / 1000, trace && traceIdOf(trace));
  ctx.state.facts.first_frame_ms = milliseconds;
}

/** How long a delivered answer can still be resumed, as the client may lack the last bytes. */
const graceMs = 5000;
const roundMs = 1000;

/** What is stored of the answers that were delivered within one round: the jobs whose logs they are, and blobs by account. */
interface DeliveredRound {
  readonly at: number;
  readonly jobIds: readonly string[];
  readonly blobs: ReadonlyMap<string, readonly string[]>;
}

/**
 * Deletes what is stored of plain jobs' answers some time after their delivery, many in one command: at a thousand answers per
 * second their logs would otherwise fill Redis, and their blobs the disk. What a dead process leaves expires, or is swept.
 */
export class DeliveredAnswers {
  readonly #redis: RedisClient;
  readonly #blobs: Blobs;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #recentJobs: string[] = [];
  #recentBlobs = new Map<string, string[]>();
  readonly #rounds: DeliveredRound[] = [];
  #isDeleting = false;

  constructor({ redis, blobs }: { readonly redis: RedisClient; readonly blobs: Blobs }, log: Logger) {
    this.#redis = redis;
    this.#blobs = blobs;
    this.#log = log;
    this.#timer = setInterval(() => this.#round(Date.now()), roundMs);
    this.#timer.unref();
  }

  /** @param blobs those that its frames came from */
  add({ id, account, viewOptions }: JobIdentity, blobs: readonly string[]): void {
    this.#recentJobs.push(id);
    const optionsBlob = viewOptionsBlob(viewOptions);
    if (blobs.length === 0 && optionsBlob === undefined) return;
    const known = this.#recentBlobs.get(account);
    const added = optionsBlob === undefined ? blobs : [...blobs, optionsBlob];
    if (known === undefined) this.#recentBlobs.set(account, [...added]);
    else known.push(...added);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #round(now: number): void {
    if (this.#recentJobs.length > 0) {
      this.#rounds.push({ at: now, jobIds: this.#recentJobs, blobs: this.#recentBlobs });
      this.#recentJobs = [];
      this.#recentBlobs = new Map();
    }
    while (this.#rounds[0] !== undefined && now - this.#rounds[0].at >= graceMs) {
      const round = this.#rounds.shift() as DeliveredRound;
      this.#remove(round).catch((error) => this.#log.warn({ err: error }, 'removing delivered answers failed'));
    }
  }

  async #remove({ jobIds, blobs }: DeliveredRound): Promise<void> {
    const groups = [...groupBy(jobIds, jobKeys.tag).values()];
    await Promise.all(groups.map((group) => this.#redis.unlink(...group.map((jobId) => jobKeys.log(jobId)))));
    // After the logs that refer to them. A storage too slow for one round a second has the rest swept.
    if (blobs.size === 0 || this.#isDeleting) return;
    this.#isDeleting = true;
    try {
      await this.#blobs.deleteAll(blobs);
    } finally {
      this.#isDeleting = false;
    }
  }
}
