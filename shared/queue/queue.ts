import { Queue } from 'bullmq';
import type { Blobs } from '../blobs/blobs.ts';
import type { UploadRecord } from '../blobs/upload.ts';
import type { Capability } from '../capabilities/capability.ts';
import type { JobIdentity, StoredRequest } from '../jobs/job-state.ts';
import type { FeeFacts } from '../money/cost.ts';
import { jobKeys, queuePrefix } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript } from '../redis/script.ts';
import { isReadable } from '../runtime/wire-version.ts';
import type { TraceContext } from '../tracing/trace-context.ts';

/** A job's data in BullMQ: its identity, and its request, inline or (over 64 KiB, or with media) as a blob. */
export interface QueuedJob extends JobIdentity, StoredRequest {
  /** The caller's uploads. They are kept here and never in the request, whose content the caller controls. */
  readonly uploads?: readonly UploadRecord[] | undefined;
  /** Ids of the uploads inside the request, for a job queued by the previous release. */
  readonly files?: readonly string[] | undefined;
  /** Set if the caller's key leaves out chat fields that the vendor does not support. */
  readonly dropsUnsupported?: true | undefined;
  /** Names of the routes that would refuse the request. */
  readonly excludedRoutes?: readonly string[] | undefined;
  /** Maximum output tokens if the balance, rather than the caller, sets a limit. */
  readonly outputLimit?: number;
  /** Facts that prices of requests and images depend on; left out: the defaults. */
  readonly fee?: FeeFacts | undefined;
  /** The request's span, if it is traced. */
  readonly trace?: TraceContext | undefined;
}

/** Parses a queued job; undefined for invalid text. */
export function readQueuedJob(data: string): QueuedJob | 'other_version' | undefined {
  try {
    const job = JSON.parse(data) as QueuedJob | null;
    if (!isReadable(job?.v)) return 'other_version';
    return typeof job?.id === 'string' ? job : undefined;
  } catch {
    return undefined;
  }
}

/** Deletes a queued job's blobs once the job has ended. A resource's request stays: it is read again. */
export async function deleteRequest(
  blobs: Blobs,
  { account, requestBlob, uploads = [], resource }: Pick<QueuedJob, 'account' | 'requestBlob' | 'uploads' | 'resource'>,
): Promise<void> {
  // Not those that the previous release has taken from the request (`files`): the sweep of old blobs removes them.
  const ids = [resource === undefined ? requestBlob : undefined, ...uploads.map(({ blob }) => blob)];
  const own = blobs.ofRecords(account);
  await Promise.all(ids.map((id) => (id === undefined ? undefined : own.delete(id))));
}

/** Requests above this many characters travel as blobs: a large value stalls every other client of Redis. */
export const inlineLimit = 65_536;

/** Answers never travel over BullMQ's event stream, which is capped and lossy, so it is kept minimal. */
const streams = { events: { maxLen: 10 } };

/** Start of the keys of a queue, as BullMQ names them. */
export function queueKeysPrefix(capability: Capability): string {
  return `${queuePrefix(capability)}:${capability}:`;
}

/** Start of the gateway's own keys of a queue; see lines.lua. */
export function queueRoot(capability: Capability): string {
  return `${queuePrefix(capability)}:`;
}

/** The job of an id in the queue. */
export function jobIdOfEntry(entryId: string): string {
  return entryId.slice(queueId('').length);
}

/** BullMQ rejects bare integers and colons in ids; the prefix keeps 32 digits from being an integer. (admit.lua builds it, too.) */
function queueId(jobId: string): string {
  return `job_${jobId}`;
}

/** Number of next jobs, and of the longest lines, among which the oldest job is searched. */
const jobsExamined = 100;
/** Maximum number of lines that are read, the longest first. */
const maxLines = 1000;

/** The script fragment that enqueues jobs. */
export const addJobScript = new URL('./add-job.lua', import.meta.url);
/** The script fragment that keeps the queue fair between accounts. */
export const linesScript = new URL('./lines.lua', import.meta.url);

const enqueueScript = loadScript<'queued' | 'there' | 'late'>(
  new URL('./enqueue.lua', import.meta.url),
  linesScript,
  addJobScript,
);
const removeScript = loadScript<number>(new URL('./remove-job.lua', import.meta.url), linesScript);
const noteClaimedScript = loadScript<number>(new URL('./note-claimed.lua', import.meta.url), linesScript);
const oldestQueued = loadScript<string>(new URL('./oldest-queued.lua', import.meta.url));

/** Depth of a queue. */
export interface QueueDepth {
  readonly waiting: number;
  readonly active: number;
  /** How long the oldest waiting job has waited, in ms, since it was queued or its next poll was due; 0 if none waits. */
  readonly oldestWaitMs: number;
}

/** The progress of a queue whose jobs wait. */
export interface QueueProgress {
  /** Number of jobs that workers have claimed while others waited, since the queue exists. */
  readonly claimed: number;
  /** Number of jobs that wait with a priority, by account: the longest lines. */
  readonly lines: ReadonlyMap<string, number>;
}

/** The producer's side of one capability's queue. */
export class CapabilityQueue {
  readonly capability: Capability;
  readonly #root: string;
  readonly #queue: Queue<QueuedJob>;
  readonly #redis: RedisClient;

  constructor(capability: Capability, redis: RedisClient) {
    this.capability = capability;
    this.#root = queueRoot(capability);
    this.#redis = redis;
    this.#queue = new Queue(capability, queueOptions(capability, redis, { streams }));
    // Only the connection's errors, which the connection's own listener logs; without a listener BullMQ prints them.
    this.#queue.on('error', () => undefined);
  }

  /**
   * Adds a job under its own id, so a resent call is harmless. The job's state must already exist.
   * @param hasPriority whether it gets the next priority of its account; else it precedes all that have one, first in, first out
   * @param notAfter time by Redis's clock after which it must not be queued; left out: no limit
   * @returns `late` if it was not queued
   */
  async enqueue(job: QueuedJob, hasPriority = false, notAfter?: number): Promise<'queued' | 'there' | 'late'> {
    const { '': jobs, wait, prioritized, marker, pc } = this.#queue.keys as Record<string, string>;
    const id = queueId(job.id);
    const keys = [`${jobs}${id}`, wait, prioritized, marker, pc] as string[];
    const args = [id, JSON.stringify(job), hasPriority ? job.account : '', notAfter ?? '', this.#root, jobs as string];
    return await enqueueScript(this.#redis, keys, args);
  }

  /**
   * Removes a waiting job.
   * @param isGivenUp whether its caller no longer waits for it, so that others of its account are about to leave, too
   * @returns false if a worker has already claimed it
   */
  async remove(jobId: string, isGivenUp = false): Promise<boolean> {
    const { '': jobs, prioritized } = this.#queue.keys as Record<string, string>;
    const id = queueId(jobId);
    const args = [id, this.#root, jobs as string, isGivenUp ? '1' : '0'];
    if ((await removeScript(this.#redis, [`${jobs}${id}`, prioritized as string], args)) === 1) return true;
    return (await this.#queue.remove(id)) === 1;
  }

  /** Records that BullMQ's Worker has claimed a job with this priority. */
  async noteClaimed({ id, account }: Pick<QueuedJob, 'id' | 'account'>, priority: number): Promise<void> {
    const args = [queueId(id), account, priority, this.#root, queueKeysPrefix(this.capability)];
    await noteClaimedScript(this.#redis, [`${this.#root}fairness`], args);
  }

  /** Whether a job is in the queue: waiting, or claimed by a worker. */
  async has(jobId: string): Promise<boolean> {
    return (await this.#redis.exists(`${this.#queue.keys['']}${queueId(jobId)}`)) === 1;
  }

  /** The queued data of a waiting or active job; undefined otherwise. */
  async find(jobId: string): Promise<QueuedJob | undefined> {
    const data = await this.#redis.hget(`${this.#queue.keys['']}${queueId(jobId)}`, 'data');
    return data === null ? undefined : (JSON.parse(data) as QueuedJob);
  }

  /** Returns how many jobs wait and run, and how long the oldest has waited. */
  async depth(): Promise<QueueDepth> {
    const keys = this.#queue.keys;
    const [time, waiting, active, first, prioritizedSince] = await Promise.all([
      this.#redis.time(),
      this.waiting(),
      this.active(),
      this.#redis.lindex(keys.wait as string, -1),
      oldestQueued(
        this.#redis,
        [keys.prioritized as string, `${this.#root}lines`],
        [jobsExamined, keys[''] as string, this.#root],
      ),
    ]);
    const now = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000);
    const since = Math.min(
      await this.#waitsSince(first, now),
      prioritizedSince === '' ? now : Number(prioritizedSince),
    );
    return { waiting, active, oldestWaitMs: now - since };
  }

  /** Since when a job without a priority waits: since it was queued, or its poll was due. */
  async #waitsSince(queued: string | null, now: number): Promise<number> {
    if (queued === null) return now;
    const [added, due] = await Promise.all([
      this.#redis.hget(`${this.#queue.keys['']}${queued}`, 'timestamp'),
      this.#redis.hget(jobKeys.state(jobIdOfEntry(queued)), 'due'),
    ]);
    return Math.min(Number(due ?? added ?? now), now);
  }

  /** Number of jobs that workers have claimed. */
  async active(): Promise<number> {
    return await this.#redis.llen(this.#queue.keys.active as string);
  }

  /** Number of waiting jobs. Two cheap commands, for admission. */
  async waiting(): Promise<number> {
    const { wait, prioritized } = this.#queue.keys;
    const counts = [this.#redis.llen(wait as string), this.#redis.zcard(prioritized as string)];
    const [untimed = 0, timed = 0] = await Promise.all(counts);
    return untimed + timed;
  }

  /** Number of jobs that wait for a time: for their next poll. */
  async delayed(): Promise<number> {
    return await this.#redis.zcard(this.#queue.keys.delayed as string);
  }

  /** Returns what the drain of the queue, and what waits in it, are measured by. Two cheap commands, for admission. */
  async progress(): Promise<QueueProgress> {
    const [claimed, lines] = await Promise.all([
      this.#redis.hget(`${this.#root}fairness`, 'claimed'),
      this.#redis.zrevrange(`${this.#root}lines`, 0, maxLines - 1, 'WITHSCORES'),
    ]);
    const waiting = new Map<string, number>();
    for (let at = 0; at < lines.length; at += 2) waiting.set(lines[at] as string, Number(lines[at + 1]));
    return { claimed: Number(claimed ?? 0), lines: waiting };
  }

  /** Number of jobs ahead of this one in the queue; undefined if it does not wait. */
  async position(jobId: string): Promise<number | undefined> {
    const { wait, prioritized } = this.#queue.keys;
    // Jobs are pushed at the head of the list and taken from its tail; those with a priority come after all of them.
    const [index, length, rank] = await Promise.all([
      this.#redis.lpos(wait as string, queueId(jobId)),
      this.#redis.llen(wait as string),
      this.#redis.zrank(prioritized as string, queueId(jobId)),
    ]);
    if (index !== null) return Math.max(0, length - 1 - index);
    return rank === null ? undefined : length + rank;
  }

  /** The BullMQ queue, for the operator's views of it. */
  get bull(): Queue<QueuedJob> {
    return this.#queue;
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

/** BullMQ options that producer and worker of a queue share. */
export function queueOptions<Options extends object>(
  capability: Capability,
  redis: RedisClient,
  options: Options,
): Options & { connection: RedisClient; prefix: string; skipVersionCheck: true } {
  return { ...options, connection: redis, prefix: queuePrefix(capability), skipVersionCheck: true };
}
