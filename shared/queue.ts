import { type Job, type JobsOptions, Queue } from 'bullmq';
import type { Blobs } from './blobs.ts';
import type { Capability } from './capabilities/capability.ts';
import type { JobIdentity, StoredRequest } from './jobs/job-state.ts';
import { jobKeys, queuePrefix } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** What travels through BullMQ: who the job is, and its request, inline or (over 64 KiB, or with media) as a blob. */
export interface QueuedJob extends JobIdentity, StoredRequest {
  /** Ids of the uploaded files that the request names. */
  readonly files?: readonly string[];
  /** Fields of a chat that its vendor refuses are left out: its caller's key says so. */
  readonly dropsUnsupported?: true;
  /** Names of the routes that would refuse the request. */
  readonly excludedRoutes?: readonly string[];
}

/** Removes what lies beside a queued job once the job is over. A resource's request stays: it is read again. */
export async function deleteRequest(
  blobs: Blobs,
  { requestBlob, files, resource }: Pick<QueuedJob, 'requestBlob' | 'files' | 'resource'>,
): Promise<void> {
  const ids = [resource === undefined ? requestBlob : undefined, ...(files ?? [])];
  await Promise.all(ids.map((id) => (id === undefined ? undefined : blobs.delete(id))));
}

/** Requests above this many characters travel as blobs: a large value stalls every other client of Redis. */
export const inlineLimit = 65_536;

const jobOptions: JobsOptions = {
  // Nothing is kept: the job's own state says how it ended, and outlives it. Completed jobs go by the worker's option; one
  // that fails because no worker could hold on to it goes by this.
  removeOnFail: true,
};

/** Answers never travel over BullMQ's event stream, which is capped and lossy, so it is kept next to nothing. */
const streams = { events: { maxLen: 10 } };

/** BullMQ refuses bare integers and colons in ids; the prefix keeps 32 digits from being one. */
function queueId(jobId: string): string {
  return `job_${jobId}`;
}

/** Depth of a queue. */
export interface QueueDepth {
  readonly waiting: number;
  readonly active: number;
  /** How long the oldest waiting job has waited, in ms, since it was queued or its next poll was due; 0 when none waits. */
  readonly oldestWaitMs: number;
}

/** The producer's side of one capability's queue. */
export class CapabilityQueue {
  readonly capability: Capability;
  readonly #queue: Queue<QueuedJob>;
  readonly #redis: RedisClient;

  constructor(capability: Capability, redis: RedisClient) {
    this.capability = capability;
    this.#redis = redis;
    this.#queue = new Queue(capability, queueOptions(capability, redis, { streams, defaultJobOptions: jobOptions }));
    // Only the connection's errors, which the connection's own listener logs; without one BullMQ prints them.
    this.#queue.on('error', () => undefined);
  }

  /**
   * Adds a job under its own id, which makes a resent `add` harmless. Its state must be there before.
   */
  async enqueue(job: QueuedJob): Promise<void> {
    await this.#queue.add('job', job, { jobId: queueId(job.id) });
  }

  /** Takes a waiting job out; answers false when a worker has it already, or when there is none. */
  async remove(jobId: string): Promise<boolean> {
    return (await this.#queue.remove(queueId(jobId))) === 1;
  }

  /** Whether a job is in the queue: it waits, or a worker has it. */
  async has(jobId: string): Promise<boolean> {
    return (await this.#redis.exists(`${this.#queue.keys['']}${queueId(jobId)}`)) === 1;
  }

  /** What was queued of a job that waits or runs; undefined when it does neither. */
  async find(jobId: string): Promise<QueuedJob | undefined> {
    const data = await this.#redis.hget(`${this.#queue.keys['']}${queueId(jobId)}`, 'data');
    return data === null ? undefined : (JSON.parse(data) as QueuedJob);
  }

  /** How many jobs wait, run, and for how long the oldest has waited. */
  async depth(): Promise<QueueDepth> {
    const keys = this.#queue.keys;
    const [waiting, active, oldest] = await Promise.all([
      this.#redis.llen(keys.wait as string),
      this.#redis.llen(keys.active as string),
      this.#redis.lindex(keys.wait as string, -1),
    ]);
    return { waiting, active, oldestWaitMs: oldest ? await this.#waitOf(oldest) : 0 };
  }

  async #waitOf(queued: string): Promise<number> {
    const [added, due] = await Promise.all([
      this.#redis.hget(`${this.#queue.keys['']}${queued}`, 'timestamp'),
      this.#redis.hget(jobKeys.state(queued.slice(queueId('').length)), 'due'),
    ]);
    const since = due ?? added;
    return since === null ? 0 : Math.max(0, Date.now() - Number(since));
  }

  /** How many jobs wait. One cheap command, for admission. */
  async waiting(): Promise<number> {
    return this.#redis.llen(this.#queue.keys.wait as string);
  }

  /** How many jobs are before this one in the queue; undefined when it does not wait. */
  async position(jobId: string): Promise<number | undefined> {
    const key = this.#queue.keys.wait as string;
    // Jobs are pushed at the head of the list and taken from its tail.
    const [index, length] = await Promise.all([this.#redis.lpos(key, queueId(jobId)), this.#redis.llen(key)]);
    return index === null ? undefined : Math.max(0, length - 1 - index);
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

export type { Job };
