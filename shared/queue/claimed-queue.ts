import type { Capability } from '../capabilities/capability.ts';
import { beginJobScript, beginTerms } from '../jobs/attempt.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, refusalScript } from '../redis/script.ts';
import { linesScript, queueKeysPrefix, queueRoot } from './queue.ts';

const claimScript = loadScript<[isMore: number, ...fields: string[]]>(
  new URL('./claim-jobs.lua', import.meta.url),
  refusalScript,
  beginJobScript,
  linesScript,
);
const requeueScript = loadScript<number>(new URL('./requeue-job.lua', import.meta.url));
const renewScript = loadScript<number>(new URL('./renew-locks.lua', import.meta.url));

/** A job claimed from a queue. */
export interface QueueEntry {
  /** Its id in the queue. */
  readonly id: string;
  /** The queued job, JSON. */
  readonly data: string;
  readonly priority: number;
  /** Number of times its worker was lost. */
  readonly stalled: number;
  /** Why it must no longer run; '' if it may. */
  readonly refusal: string;
  /** Reply of `beginJob`, see `readBeginReply`; '' if the job was not begun. */
  readonly beginReply: string;
}

/** A claim of a job. */
export interface QueueClaim {
  readonly id: string;
  /** Identifies this claim. */
  readonly token: string;
}

/** Claims jobs and removes ended ones in one step. */
export interface ClaimCall {
  readonly token: string;
  /** Maximum number of jobs to claim. */
  readonly wanted: number;
  readonly lockMs: number;
  /** Worker that begins the jobs as they are claimed; '' to leave them unbegun. */
  readonly workerId: string;
  /** Once jobs of an account leave unserved, its newest are claimed first while its oldest waits longer than this; 0: never. */
  readonly targetWaitMs: number;
  /** Claims whose jobs have ended. */
  readonly ended: readonly QueueClaim[];
}

/** Number of values that claim-jobs.lua returns per job. */
const fieldsOfEntry = 6;

/**
 * The worker's side of a queue, in BullMQ's layout, so that BullMQ's own Worker, stalled-job check and board work with it. Only
 * this folder depends on the layout; `test/integration/queue/bullmq-layout` compares it with BullMQ.
 */
export class ClaimedQueue {
  readonly #prefix: string;
  readonly #root: string;
  readonly #wait: string;
  readonly #active: string;
  readonly #marker: string;
  readonly #claimKeys: readonly string[];

  constructor(capability: Capability) {
    this.#prefix = queueKeysPrefix(capability);
    this.#root = queueRoot(capability);
    const key = (name: string): string => this.#prefix + name;
    [this.#wait, this.#active, this.#marker] = [key('wait'), key('active'), key('marker')];
    this.#claimKeys = [this.#wait, this.#active, key('prioritized'), this.#marker, key('pc'), key('meta')];
  }

  /** Removes ended jobs and claims the next ones; see claim-jobs.lua. Returns whether more wait. */
  async claim(redis: RedisClient, call: ClaimCall): Promise<{ isMore: boolean; entries: QueueEntry[] }> {
    const args = [this.#prefix, call.token, call.lockMs, call.wanted, ...beginTerms(call.workerId)];
    args.push(this.#root, call.targetWaitMs);
    for (const { id, token } of call.ended) args.push(id, token);
    const [isMore, ...fields] = await claimScript(redis, [...this.#claimKeys], args);
    const entries: QueueEntry[] = [];
    for (let at = 0; at < fields.length; at += fieldsOfEntry) {
      const [id = '', data = '', priority, stalled, refusal = '', beginReply = ''] = fields.slice(
        at,
        at + fieldsOfEntry,
      );
      entries.push({ id, data, priority: Number(priority), stalled: Number(stalled), refusal, beginReply });
    }
    return { isMore: isMore === 1, entries };
  }

  /** Waits for the marker for waiting jobs and removes it. Returns whether there was one. */
  async waitForJobs(redis: RedisClient, seconds: number): Promise<boolean> {
    return (await redis.bzpopmin(this.#marker, seconds)) !== null;
  }

  /** Requeues a claimed job as the next one, if the claim still holds. */
  async requeue(redis: RedisClient, { id, token }: QueueClaim): Promise<void> {
    const job = this.#prefix + id;
    await requeueScript(redis, [this.#wait, this.#active, this.#marker, job, `${job}:lock`], [id, token]);
  }

  /** Renews the locks of claims that still hold. */
  async renew(redis: RedisClient, claims: readonly QueueClaim[], lockMs: number): Promise<void> {
    const locks = claims.map(({ id }) => `${this.#prefix}${id}:lock`);
    await renewScript(redis, locks, [lockMs, ...claims.map(({ token }) => token)]);
  }
}
