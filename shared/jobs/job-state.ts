import type { Capability } from '../capabilities/capability.ts';
import type { ErrorCode } from '../errors.ts';
import { jobKeys, shardOfJob } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, untilAccepted } from '../redis/script.ts';
import { isReadable, leaveUnread, otherVersion } from '../runtime/wire-version.ts';

/** How long a worker owns a job without renewing the lease. After this time another worker takes over. */
export const leaseMs = 10_000;

/** The script fragment that reads and ends leases. */
export const leaseScript = new URL('./leases/lease.lua', import.meta.url);

/** How a job ended. */
export type Outcome = 'completed' | 'failed' | 'cancelled';

/** A job's properties, fixed at creation. */
export interface JobIdentity {
  /** Version of the state and of the queued job, see wire-version.ts; left out: 1. */
  readonly v?: number | undefined;
  readonly id: string;
  readonly account: string;
  readonly apiKeyId: string;
  readonly capability: Capability;
  /** Name of the endpoint whose views show this job. */
  readonly endpoint: string;
  /** The model as the caller named it. */
  readonly model: string;
  readonly stream: boolean;
  /** Number of shards of its queue, one of which it belongs to by its id; left out: 1. */
  readonly shards?: number | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly deadlineAt: number;
  /**
   * Set if its deadline is the timeout of its caller, who waits until then for all of its answer, or for the beginning of a stream; left
   * out: it is the gateway's.
   */
  readonly isOwnDeadline?: true | undefined;
  /** When its first call of a vendor must have begun, else it ends; left out: only its deadline counts. */
  readonly startBy?: number | undefined;
  /**
   * `flex`: of low priority: it waits for spare capacity, for a while; `high`: of high priority: it waits before others; left out: as
   * most do.
   */
  readonly lane?: 'flex' | 'high' | undefined;
  /** How long log and state stay readable after the end, in ms; 0 for plain jobs, which are removed soon after delivery. */
  readonly retentionMs: number;
  /** Hash of the bound idempotency key, or ''. */
  readonly idempotency: string;
  /** Name under which a retry that its caller's client library makes on its own finds the job; left out: it finds none. */
  readonly retryName?: string | undefined;
  /** JSON that the endpoint's view needs, or a reference to it (see api/replies/view.ts). */
  readonly viewOptions: string;
  /**
   * Set if the job is a resource (a response, a video), whose request is kept with its answer. A background one is stored in
   * the database before it is accepted, a foreground one once it has ended.
   */
  readonly resource?: 'foreground' | 'background' | undefined;
  /** The request's tags: JSON text of an object of at most 16 strings, by which callers find its usage. */
  readonly metadata?: string | undefined;
}

/** A job's request: inline or (over 64 KiB, or with media) in a blob. */
export interface StoredRequest {
  /** Vendor-neutral request as JSON text; see ParsedRequest. */
  readonly request?: string;
  /** Id of the blob that holds the request. */
  readonly requestBlob?: string;
  /** The blob's bytes; processes of the previous release do not tell them. */
  readonly requestBytes?: number;
}

/** A job's state in Redis. For a resource it holds the request until the database does. */
export interface JobState extends JobIdentity, StoredRequest {
  readonly readers: string[];
  /** Its attempts that have called a vendor, or may: one that waited for its vendor in vain does not count. */
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
  /** Cost of an ended job in nano-dollars; undefined if not known (yet). */
  readonly cost: number | undefined;
  /** What its vendor's prompt cache saved, in nano-dollars; undefined: nothing, or not known (yet). */
  readonly saved?: number | undefined;
  /** Last committed sequence number. */
  readonly seq: number;
  readonly hasDelta: boolean;
  /** By its own field: see lease.lua for a job whose vendor is silent. */
  readonly leaseUntil: number;
  /** Progress of a vendor's task in percent: a whole number, 0 without a task, 100 once completed. */
  readonly progress: number;
  /** The task that a vendor runs for the job, in the form `readTask` parses; undefined if none. */
  readonly task: string | undefined;
  /** Whether the owner has deleted this resource; to callers it no longer exists. */
  readonly isDeleted: boolean;
}

const createScript = loadScript<number>(new URL('./create-state.lua', import.meta.url));

/** The shard of its capability's queue that a job belongs to, as it was when the job was accepted. */
export function shardOf(job: Pick<JobIdentity, 'id' | 'shards'>): number {
  return shardOfJob(job.id, job.shards ?? 0);
}

/** How long an unsettled job's state outlives its deadline. */
const unsettledMs = 3_600_000;

/** Another state field of a new job: the one that holds a resource's request or its blob; two empty strings if not a resource. */
export function storedField({ request, requestBlob }: StoredRequest = {}): [name: string, value: string] {
  if (request !== undefined) return ['request', request];
  return requestBlob === undefined ? ['', ''] : ['requestBlob', requestBlob];
}

/** Maximum lifetime of a new job's state, in ms. */
export function newStateLifetime(job: JobIdentity): number {
  return job.deadlineAt - job.createdAt + job.retentionMs + unsettledMs;
}

/**
 * Writes a job's state; admit.lua does the same where it can. Must run before a worker can claim the job: `begin` drops a job
 * without a state. A repeat (a resent command) writes the same state again. `reader` is the process that waits for the answer.
 */
export async function createJobState(
  redis: RedisClient,
  job: JobIdentity,
  reader: string,
  stored?: StoredRequest,
  [name, value]: readonly [name: string, value: string] = storedField(stored),
): Promise<void> {
  const args = newState(job, reader);
  if (name !== '') args.push(name, value);
  await untilAccepted(() => createScript(redis, [jobKeys.state(job.id)], args));
}

/** A new job's state, as scripts write it: its lifetime in ms, then fields and their values. */
export function newState(job: JobIdentity, reader: string): (string | number)[] {
  // Everything that no script reads is one field, as each field costs every process a little.
  return [newStateLifetime(job), 'job', JSON.stringify(job), 'deadline', job.deadlineAt, 'readers', reader];
}

/**
 * Parses a job as its state holds it.
 * @throws ApiError 503 if this build does not read its version: `isOtherVersion`.
 */
function readIdentity(text: string): JobIdentity {
  const job = JSON.parse(text) as JobIdentity;
  if (isReadable(job.v)) return job;
  leaveUnread('state');
  throw otherVersion("a job's state");
}

/**
 * Reads a job's state; undefined if missing (unknown or expired).
 * @throws ApiError 503 as `readIdentity`
 */
export async function readJobState(redis: RedisClient, jobId: string): Promise<JobState | undefined> {
  const fields = await redis.hgetall(jobKeys.state(jobId));
  if (fields.job === undefined) return undefined;
  const whole = (value: string | undefined): number | undefined => (value ? Number(value) : undefined);
  return {
    ...readIdentity(fields.job),
    readers: (fields.readers ?? '').split(' ').filter(Boolean),
    attempt: Number(fields.attempt ?? 0) - Number(fields.withdrawn ?? 0),
    beganAt: whole(fields.began),
    firstAt: whole(fields.first),
    endedAt: whole(fields.ended),
    outcome: fields.terminal as Outcome | undefined,
    errorCode: fields.error ? (fields.error as ErrorCode) : undefined,
    errorDetails: fields.details,
    usage: fields.usage || undefined,
    cost: whole(fields.cost),
    saved: whole(fields.saved),
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

/** Removes the state of a job that was not admitted. */
export async function deleteJobState(redis: RedisClient, jobId: string): Promise<void> {
  await redis.unlink(jobKeys.state(jobId));
}

/** Who serves an answer. */
export interface Served {
  /** The vendor that was called last. */
  readonly vendor: string;
  /** Number of vendor calls so far. */
  readonly calls: number;
  /** The model that replaces the requested one; undefined if none does. */
  readonly model: string | undefined;
  /** The answer's cost in nano-dollars, set at its end if known by then. */
  readonly cost?: number | undefined;
  /** The vendor's own name of the model; left out where the model has one route at the vendor, so that this tells nothing more. */
  readonly routeModel?: string | undefined;
}

/** Serializes for the head of a batch (see append.ts): tokens without spaces, so that the head stays one line. */
export function servedText({ vendor, calls, model = '', cost, routeModel = '' }: Served): string {
  const [by, served, route] = [vendor, model, routeModel].map(encodeURIComponent);
  return `${by} ${calls} ${served} ${cost ?? ''} ${route}`.trimEnd();
}

/** Adds the answer's cost to the text. '' stays: no vendor was called. */
export function withCost(text: string, cost: number | undefined): string {
  if (cost === undefined || text === '') return text;
  const [vendor, calls, model = '', , routeModel = ''] = text.split(' ');
  return `${vendor} ${calls} ${model} ${cost} ${routeModel}`.trimEnd();
}

/** Parses `servedText`; undefined for '': no vendor was called. */
export function readServed(text: string): Served | undefined {
  const [vendor = '', calls, model, cost, routeModel] = text.split(' ');
  if (vendor === '') return undefined;
  return {
    vendor: decodeURIComponent(vendor),
    calls: Number(calls),
    model: model ? decodeURIComponent(model) : undefined,
    cost: cost ? Number(cost) : undefined,
    ...(routeModel && { routeModel: decodeURIComponent(routeModel) }),
  };
}
