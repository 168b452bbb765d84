import type { Frame } from '../../shared/jobs/append.ts';
import { attach } from '../../shared/jobs/attach.ts';
import { readerOf } from '../../shared/jobs/inbox.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { publishedSeq } from '../../shared/jobs/journal/published-seq.ts';
import { maxUnlogged } from '../../shared/jobs/journal/write-journal.ts';
import { readJobProgress } from '../../shared/jobs/leases/leases.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { SocketShares } from '../bounds/socket-shares.ts';
import { showServed } from '../http/request-report.ts';
import type { StoredJobs } from '../ledger/stored-jobs.ts';
import type { AnswerReader } from '../replies/answer-reader.ts';
import type { AnswerReaders } from '../replies/answer-readers.ts';
import { type OwnLimits, WaitLimits, type WaitLimitsDependencies } from '../replies/client-connection.ts';
import { eventReply, type OpenReplyDependencies, openReply, type ReplyContext } from '../replies/open-reply.ts';
import { beyondEnd, type EventPosition, eventHeaders } from '../replies/sse-reply.ts';
import { expired } from '../replies/unreadable-answer.ts';
import type { View } from '../replies/view.ts';

/** Dependencies of a reader that is attached to a job. */
export interface AttachDependencies {
  readonly redis: RedisClient;
  readonly storedJobs: StoredJobs;
  /** This process's name on Redis channels. */
  readonly processId: string;
}

/** Where a client goes on to read an answer, and in which view. */
export interface Resumption {
  readonly resumeAfter?: EventPosition | undefined;
  readonly view?: Pick<View, 'exactFrames'>;
}

/** Dependencies of a request that follows a job. */
export interface FollowJobDependencies extends AttachDependencies, OpenReplyDependencies, WaitLimitsDependencies {
  readonly readers: AnswerReaders;
  readonly sockets: SocketShares;
}

/** How long Redis, and the stores of answers that it no longer has, may take to attach a request to a job. */
const attachMs = 10_000;

/** A request that follows a job, which it need not have made. */
export interface FollowContext extends ReplyContext, OwnLimits {
  readonly services: FollowJobDependencies;
}

/**
 * Replies with the answer of an existing job, from the caller's position on. Returns false when `patienceMs` elapsed before
 * it started.
 * @throws ApiError the error before the answer; 410 when it is no longer stored; 429 for too many followers; 503 when neither Redis
 * nor the database shows it in time.
 */
export async function followJob(context: FollowContext, open = openReply): Promise<boolean> {
  const { ctx, services, connection, job, isShared = false, isCreator = isShared, ownDeadlineAt } = context;
  const release = context.isWatcher ? takeWatcher(context) : undefined;
  try {
    const reply = await open(context);
    const reader = services.readers.open(job, reply.receiver, {
      onServed: (served) => showServed(ctx, served),
      isCreator,
    });
    try {
      // While Redis is silent, nothing else would end this: the limits on the wait begin behind it.
      await connection.wait(attachTo(services, job, reader, context), attachMs);
      if (isCreator || ownDeadlineAt !== undefined) {
        reader.begin(new WaitLimits(services, job, reply.receiver, context));
      }
      return await reply.finished();
    } finally {
      reader.close();
    }
  } finally {
    release?.();
  }
}

/** The same with the job's events, whatever its endpoint replies with. HEAD has their head, and waits for none of them. */
export async function followEvents(context: FollowContext): Promise<void> {
  const { ctx } = context;
  if (ctx.method !== 'HEAD') {
    await followJob(context, eventReply);
    return;
  }
  ctx.status = 200;
  ctx.set(eventHeaders);
}

/**
 * Connects a reader to an existing job: registers this process with the job, then reads the log. If Redis no longer has the
 * job, the answer in the database is replayed.
 * @throws ApiError 410 when neither has it, 503 when the database does not respond.
 */
export async function attachTo(
  services: AttachDependencies,
  job: Pick<JobIdentity, 'id' | 'account'>,
  reader: AnswerReader,
  { resumeAfter, view }: Resumption = {},
): Promise<void> {
  if (await attach(services.redis, job.id, readerOf(services.processId))) {
    if (resumeAfter !== undefined) await assertReached(services, job.id, resumeAfter);
    reader.begin();
    reader.catchUp();
    return;
  }
  const frames = await services.storedJobs.findAnswer(job, (bytes) => reader.expect(bytes));
  if (frames === undefined || !continues(frames, resumeAfter, view)) throw expired();
  if (resumeAfter !== undefined && resumeAfter.seq > (frames.at(-1)?.seq ?? 0)) throw beyondEnd(resumeAfter);
  reader.replay(frames);
}

/** @throws ApiError 400 for a position that the job has not reached: no event can have had it. */
export async function assertReached(
  { redis }: { readonly redis: RedisClient },
  jobId: string,
  position: EventPosition,
): Promise<void> {
  const progress = await readJobProgress(redis, { jobId });
  if (progress === undefined || position.seq <= progress.seq) return;
  // The log may lack what others have got live, which is not much.
  const isFarBeyond = position.seq > progress.seq + maxUnlogged;
  if (isFarBeyond || position.seq > (await publishedSeq(redis, { jobId }))) throw beyondEnd(position);
}

/**
 * Whether stored frames continue a client's copy. Joined frames can only be resumed as a whole, or after it, and where they have the
 * events of the original ones.
 */
function continues(
  frames: readonly Frame[],
  resumeAfter: EventPosition | undefined,
  { exactFrames = 0 }: Pick<View, 'exactFrames'> = {},
): boolean {
  const [first, last] = [frames[0]?.seq ?? 0, frames.at(-1)?.seq ?? 0];
  const areJoined = frames.length > 1 && first > 1;
  if (!areJoined || resumeAfter === undefined || resumeAfter.seq === 0) return true;
  const { seq, event } = resumeAfter;
  return seq > last - exactFrames || (seq === last && !Number.isFinite(event));
}

/** @throws ApiError 429 for too many that follow a job, or jobs. */
function takeWatcher({ ctx, services, job }: FollowContext): () => void {
  // On the console it is a session that watches.
  const { apiKeyId } = ctx.state.caller ?? {};
  return services.sockets.take({ account: job.account, apiKeyId, job: job.id });
}
