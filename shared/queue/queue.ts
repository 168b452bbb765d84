import type { Queue } from 'bullmq';
import type { Blobs } from '../blobs/blobs.ts';
import type { UploadRecord } from '../blobs/upload.ts';
import type { Capability } from '../capabilities/capability.ts';
import { entryIdOf } from '../ids.ts';
import type { JobIdentity, StoredRequest } from '../jobs/job-state.ts';
import type { FeeFacts } from '../money/cost.ts';
import { jobKeys, queueKeysPrefix, queuePrefix, queueRoot } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { inBatches, loadScript, readVerdict, refusalScript } from '../redis/script.ts';
import type { TraceContext } from '../tracing/trace-context.ts';
import { QueueReader } from './reading/queue-reader.ts';
import { addJobScript, laneScripts, linesScripts } from './script-fragments.ts';

/** A job's data in BullMQ: its identity, and its request, inline or (over 64 KiB, or with media) as a blob. */
export interface QueuedJob extends JobIdentity, StoredRequest {
  /** The caller's uploads. They are kept here and never in the request, whose content the caller controls. */
  readonly uploads?: readonly UploadRecord[] | undefined;
  /** Set if the caller's key leaves out chat fields that the vendor does not support. */
  readonly dropsUnsupported?: true | undefined;
  /** Set if the caller's key lets the gateway set breakpoints of Claude's prompt cache. */
  readonly addsCacheBreakpoints?: true | undefined;
  /** Names of the routes that would refuse the request. */
  readonly excludedRoutes?: readonly string[] | undefined;
  /** Maximum output tokens if the balance, rather than the caller, sets a limit. */
  readonly outputLimit?: number;
  /** Nano-dollars that are held for it, of which no more is charged; left out: nothing limits its cost. */
  readonly maxCost?: number | undefined;
  /** Expected tokens of the request; left out: by its length. */
  readonly inputTokens?: number | undefined;
  /** Facts that prices depend on; left out: the defaults. */
  readonly fee?: FeeFacts | undefined;
  /** What it counts as among the jobs of its account, if it was queued with a priority; see `work.ts`. */
  readonly work?: number | undefined;
  /** Set if its account shares its turns in queues between its keys. */
  readonly sharesByKey?: true | undefined;
  /** What a chat shares with those that a vendor's prompt cache can serve with it; see `cacheAffinity`. */
  readonly affinity?: string | undefined;
  /** The request's span, if it is traced. */
  readonly trace?: TraceContext | undefined;
}

/** Deletes a queued job's blobs once the job has ended. A resource's request stays: it is read again. */
export async function deleteRequest(
  blobs: Blobs,
  { account, requestBlob, uploads = [], resource }: Pick<QueuedJob, 'account' | 'requestBlob' | 'uploads' | 'resource'>,
): Promise<void> {
  const ids = [resource === undefined ? requestBlob : undefined, ...uploads.map(({ blob }) => blob)];
  const own = blobs.ofRecords(account);
  await Promise.all(ids.map((id) => (id === undefined ? undefined : own.delete(id))));
}

/** Requests above this many characters travel as blobs: a large value stalls every other client of Redis. */
export const inlineLimit = 65_536;

/** Answers never travel over BullMQ's event stream, which is capped and lossy, so it is kept minimal. */
const streams = { events: { maxLen: 10 } };

const enqueueScript = loadScript<string[]>(
  new URL('./enqueue.lua', import.meta.url),
  refusalScript,
  ...laneScripts,
  addJobScript,
);
const removeScript = loadScript<number>(new URL('./remove-job.lua', import.meta.url), ...laneScripts);
const noteClaimedScript = loadScript<number>(new URL('./note-claimed.lua', import.meta.url), ...linesScripts);

/**
 * What became of a job to enqueue: `there`: it is in the queue already; `late`: its time was up; `full`: too many jobs of low priority
 * wait; `share`: of its account. The last three were not queued.
 */
export type Enqueued = (typeof verdicts)[number];

const verdicts = ['queued', 'there', 'late', 'full', 'share'] as const;

/** How a job of low priority is queued; see flex-lane.lua. */
export interface FlexTerms {
  /** After how many ms of waiting it joins the other jobs. */
  readonly joinsAfterMs: number;
  /** How many such jobs may wait, of all accounts and of one. */
  readonly most: number;
  readonly accountMost: number;
}

/** The API key of a job whose account shares its turns between its keys; see keys-in-line.lua. */
export function sharingKeyOf({
  sharesByKey,
  apiKeyId,
}: Pick<QueuedJob, 'sharesByKey' | 'apiKeyId'>): string | undefined {
  return sharesByKey && apiKeyId;
}

/** A job to enqueue; see `CapabilityQueue.enqueue`. */
interface EnqueueCall {
  readonly capability: Capability;
  readonly shard: number;
  readonly job: QueuedJob;
  readonly hasPriority: boolean;
  readonly notAfter: number | undefined;
  readonly state: readonly (string | number)[];
  readonly lane: FlexTerms | 'high' | undefined;
}

const enqueueTogether = inBatches(
  enqueueAll,
  (one, other) => one.capability === other.capability && one.shard === other.shard,
);

/** The producer's side of one queue: a shard of a capability's, which most have one of. */
export class CapabilityQueue {
  readonly capability: Capability;
  readonly shard: number;
  /** What is read of it: how many jobs wait, how long, and where. */
  readonly reader: QueueReader;
  readonly #root: string;
  /** Start of the keys of its jobs, and of their lists. */
  readonly #jobs: string;
  readonly #redis: RedisClient;
  #bull: Promise<Queue<QueuedJob>> | undefined;

  constructor(capability: Capability, redis: RedisClient, shard = 0) {
    this.capability = capability;
    this.shard = shard;
    this.reader = new QueueReader(capability, redis, shard);
    this.#root = queueRoot(capability, shard);
    this.#jobs = queueKeysPrefix(capability, shard);
    this.#redis = redis;
  }

  /**
   * Adds a job under its own id, so a resent call is harmless. The job's state must already exist. Simultaneous calls are batched.
   * @param hasPriority whether it gets the next priority of its account; else it precedes all that have one, first in, first out
   * @param notAfter time by Redis's clock after which it must not be queued; left out: no limit
   * @param state the job's state, made in the same step, which only queues on a Cluster's shards do; left out: it exists
   * @param lane for a job of low or high priority
   */
  async enqueue(
    job: QueuedJob,
    hasPriority = false,
    notAfter?: number,
    state: (string | number)[] = [],
    lane?: FlexTerms | 'high',
  ): Promise<Enqueued> {
    const { capability, shard } = this;
    return await enqueueTogether(this.#redis, { capability, shard, job, hasPriority, notAfter, state, lane });
  }

  /**
   * Removes a waiting job.
   * @param isGivenUp whether its caller no longer waits for it, so that others of its account are about to leave, too
   * @returns false if a worker has already claimed it, or it is not in the queue
   */
  async remove(jobId: string, isGivenUp = false): Promise<boolean> {
    const id = entryIdOf(jobId);
    const keys = [id, 'prioritized', `${id}:lock`, 'delayed', 'wait', 'active'].map((name) => this.#jobs + name);
    return (await removeScript(this.#redis, keys, [id, this.#root, this.#jobs, isGivenUp ? '1' : '0'])) === 1;
  }

  /**
   * Records that BullMQ's Worker has claimed a job, unless that is recorded already.
   * @param priority 0: none that tells of the queue's virtual time
   */
  async noteClaimed({ id, account }: Pick<QueuedJob, 'id' | 'account'>, priority: number): Promise<void> {
    const args = [entryIdOf(id), account, priority, this.#root, this.#jobs];
    await noteClaimedScript(this.#redis, [`${this.#root}fairness`], args);
  }

  /** Whether a job is in the queue: waiting, or claimed by a worker. */
  async has(jobId: string): Promise<boolean> {
    return (await this.#redis.exists(this.#jobs + entryIdOf(jobId))) === 1;
  }

  /** The route for whose capacity a claimed job has waited; '' if it has not. */
  async parkedFor(jobId: string): Promise<string> {
    return (await this.#redis.hget(this.#jobs + entryIdOf(jobId), 'parked')) ?? '';
  }

  /** The queued data of a waiting or active job; undefined otherwise. */
  async find(jobId: string): Promise<QueuedJob | undefined> {
    const data = await this.#redis.hget(this.#jobs + entryIdOf(jobId), 'data');
    return data === null ? undefined : (JSON.parse(data) as QueuedJob);
  }

  /** The queue as BullMQ has it, for its board and its Worker. Loaded on first use: most processes need neither. */
  bull(): Promise<Queue<QueuedJob>> {
    this.#bull ??= this.#openBull().catch((error: unknown) => {
      this.#bull = undefined;
      throw error;
    });
    return this.#bull;
  }

  async #openBull(): Promise<Queue<QueuedJob>> {
    const { Queue } = await import('bullmq');
    const queue: Queue<QueuedJob> = new Queue(
      this.capability,
      queueOptions(this.capability, this.#redis, { streams }, this.shard),
    );
    // Only the connection's errors, which the connection's own listener logs; without a listener BullMQ prints them.
    queue.on('error', () => undefined);
    return queue;
  }

  async close(): Promise<void> {
    await (await this.#bull)?.close();
  }
}

/** Queues jobs of one queue; see enqueue.lua. */
async function enqueueAll(redis: RedisClient, calls: readonly EnqueueCall[]): Promise<(Enqueued | Error)[]> {
  const { capability, shard } = calls[0] as EnqueueCall;
  const jobs = queueKeysPrefix(capability, shard);
  const keys = ['wait', 'prioritized', 'marker'].map((name) => jobs + name);
  const args: (string | number)[] = [queueRoot(capability, shard), jobs, makesStates(shard) ? 1 : 0];
  for (const { job, hasPriority, notAfter, state, lane } of calls) {
    const id = entryIdOf(job.id);
    keys.push(jobs + id);
    if (makesStates(shard)) keys.push(jobKeys.state(job.id));
    args.push(id, JSON.stringify(job), hasPriority || lane ? job.account : '', notAfter ?? '', job.work ?? 1);
    args.push(laneText(lane), sharingKeyOf(job) ?? '', state.length, ...state);
  }
  return (await enqueueScript(redis, keys, args)).map(readEnqueued);
}

function readEnqueued(text: string): Enqueued | Error {
  return text.startsWith('error ') ? new Error(text.slice('error '.length)) : readVerdict(verdicts, text);
}

/** Whether the states of a shard's jobs are on its node, so that queueing can make them, and claiming begins the jobs. */
function makesStates(shard: number): boolean {
  return shard > 0;
}

function laneText(lane: FlexTerms | 'high' | undefined): string {
  if (lane === undefined || lane === 'high') return lane ?? '';
  return `${lane.joinsAfterMs} ${lane.most} ${lane.accountMost}`;
}

/** BullMQ options that producer and worker of a queue share. */
export function queueOptions<Options extends object>(
  capability: Capability,
  redis: RedisClient,
  options: Options,
  shard = 0,
): Options & { connection: RedisClient; prefix: string; skipVersionCheck: true } {
  return { ...options, connection: redis, prefix: queuePrefix(capability, shard), skipVersionCheck: true };
}
