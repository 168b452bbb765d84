import type { Capability } from '../capabilities/capability.ts';
import type { ErrorCode } from '../errors.ts';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { untilAccepted } from '../redis/redis-refusal.ts';
import { loadScript } from '../redis/script.ts';

/** How a job ended. */
export type Outcome = 'completed' | 'failed' | 'cancelled';

/** What a job is, fixed when it is made. */
export interface JobIdentity {
  readonly id: string;
  readonly account: string;
  readonly apiKeyId: string;
  readonly capability: Capability;
  /** Name of the endpoint whose views show this job. */
  readonly endpoint: string;
  /** The model as the caller named it. */
  readonly model: string;
  readonly stream: boolean;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly deadlineAt: number;
  /** How long log and state stay readable after the end, in ms; 0 for plain jobs, which go soon after delivery. */
  readonly retentionMs: number;
  /** Hash of the idempotency key it is bound to, or ''. */
  readonly idempotency: string;
  /** JSON that the endpoint's view needs, or where that lies (see api/replies/view-options.ts). */
  readonly viewOptions: string;
  /**
   * The job is a resource of its own (a response, a video), whose request is kept with its answer; left out: it is none.
   * One in the background is in the database before it is accepted, one in the foreground once it has ended.
   */
  readonly resource?: 'foreground' | 'background' | undefined;
  /** The request's tags: JSON text of an object of at most 16 strings, by which its caller finds it in the usage again. */
  readonly metadata?: string | undefined;
}

/** Where the request of a job is: here, or (over 64 KiB, or with media) in a blob. */
export interface StoredRequest {
  /** Vendor-neutral request as JSON text; see ParsedRequest. */
  readonly request?: string;
  /** Id of the blob that holds it. */
  readonly requestBlob?: string;
}

/** The state of a job as it stands in Redis. Of a resource it holds the request, until the database does. */
export interface JobState extends JobIdentity, StoredRequest {
  readonly readers: string[];
  readonly attempt: number;
  readonly beganAt: number | undefined;
  /** When the first piece of its answer was appended. */
  readonly firstAt?: number | undefined;
  readonly endedAt: number | undefined;
  readonly outcome: Outcome | undefined;
  readonly errorCode: ErrorCode | undefined;
  /** Why it failed, as JSON text, see `errorDetails`. */
  readonly errorDetails?: string | undefined;
  readonly usage: string | undefined;
  /** What an ended job has cost, in nano-dollars; undefined where it is not known (yet). */
  readonly cost: number | undefined;
  /** Last committed sequence number. */
  readonly seq: number;
  readonly hasDelta: boolean;
  readonly leaseUntil: number;
  /** How far a vendor's task is, in percent: a whole number, 0 where there is none, 100 once it is completed. */
  readonly progress: number;
  /** The task that a vendor runs for the job, as `readTask` takes it; undefined where there is none. */
  readonly task: string | undefined;
  /** A resource that its owner has deleted: to everybody it is not there any more. */
  readonly isDeleted: boolean;
}

const createScript = loadScript<number>(new URL('./create-state.lua', import.meta.url));

/** How long a state outlives its job's deadline when nobody settles it. */
const unsettledMs = 3_600_000;

/** The field of a new job's state that holds a resource's request, or where that is; two empty texts where it is none. */
export function storedField({ request, requestBlob }: StoredRequest = {}): [name: string, value: string] {
  if (request !== undefined) return ['request', request];
  return requestBlob === undefined ? ['', ''] : ['requestBlob', requestBlob];
}

/** How long a new job's state may stay, in ms. */
export function newStateLifetime(job: JobIdentity): number {
  return job.deadlineAt - job.createdAt + job.retentionMs + unsettledMs;
}

/**
 * Writes a job's state, as admit.lua does where it can. Must be done before a worker can take the job: `begin` drops a job
 * without one. A repeat (a resent command) writes the same again. `reader` is the process that waits for the answer.
 */
export async function createJobState(
  redis: RedisClient,
  job: JobIdentity,
  reader: string,
  stored?: StoredRequest,
): Promise<void> {
  const key = jobKeys.state(job.id);
  const [name, value] = storedField(stored);
  // What no script looks at is one field, for each field costs every process a little.
  const fields = ['job', JSON.stringify(job), 'deadline', job.deadlineAt, 'readers', reader];
  if (name !== '') fields.push(name, value);
  await untilAccepted(() => createScript(redis, [key], [newStateLifetime(job), ...fields]));
}

/** Reads a job's state; undefined when there is none (unknown, or its time is over). */
export async function readJobState(redis: RedisClient, jobId: string): Promise<JobState | undefined> {
  const fields = await redis.hgetall(jobKeys.state(jobId));
  if (fields.job === undefined) return undefined;
  const whole = (value: string | undefined): number | undefined => (value ? Number(value) : undefined);
  return {
    ...(JSON.parse(fields.job) as JobIdentity),
    readers: (fields.readers ?? '').split(' ').filter(Boolean),
    attempt: Number(fields.attempt ?? 0),
    beganAt: whole(fields.began),
    firstAt: whole(fields.first),
    endedAt: whole(fields.ended),
    outcome: fields.terminal as Outcome | undefined,
    errorCode: fields.error ? (fields.error as ErrorCode) : undefined,
    errorDetails: fields.details,
    usage: fields.usage || undefined,
    cost: whole(fields.cost),
    seq: Number(fields.seq ?? 0),
    hasDelta: fields.delta === '1',
    leaseUntil: Number(fields.lease ?? 0),
    progress: fields.terminal === 'completed' ? 100 : Number(fields.progress ?? 0),
    task: fields.task,
    isDeleted: fields.deleted === '1',
    ...(fields.request !== undefined && { request: fields.request }),
    ...(fields.requestBlob !== undefined && { requestBlob: fields.requestBlob }),
  };
}

/**
 * How far a job is: its last committed sequence number, and whether it has ended; undefined when there is no such job. It
 * is asked every few seconds for each silent stream, so it reads no more than that.
 */
export async function readJobProgress(
  redis: RedisClient,
  jobId: string,
): Promise<{ readonly seq: number; readonly hasEnded: boolean } | undefined> {
  const [deadline, terminal, seq] = await redis.hmget(jobKeys.state(jobId), 'deadline', 'terminal', 'seq');
  if (!deadline) return undefined;
  return { seq: Number(seq ?? 0), hasEnded: Boolean(terminal) };
}

/** Removes the state of a job that was not admitted after all. */
export async function deleteJobState(redis: RedisClient, jobId: string): Promise<void> {
  await redis.unlink(jobKeys.state(jobId));
}
