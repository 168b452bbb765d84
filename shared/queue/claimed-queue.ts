import type { Capability } from '../capabilities/capability.ts';
import { type BeginVerdict, beginJobScript, beginTerms, readClaimedReply } from '../jobs/attempt.ts';
import { leaseScript } from '../jobs/job-state.ts';
import { queueKeysPrefix, queueRoot } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { loadScript, refusalScript } from '../redis/script.ts';
import { laneScripts } from './script-fragments.ts';

const claimScript = loadScript<[isMore: number, ...fields: string[]]>(
  new URL('./claim-jobs.lua', import.meta.url),
  refusalScript,
  leaseScript,
  beginJobScript,
  ...laneScripts,
);
const requeueScript = loadScript<number>(new URL('./requeue-job.lua', import.meta.url));
const renewScript = loadScript<number>(new URL('./renew-claims.lua', import.meta.url));
const returnScript = loadScript<number>(new URL('./return-stalled.lua', import.meta.url));

/** Maximum number of claims renewed in one call. */
const maxRenewed = 500;

/** A job claimed from a queue. */
export interface QueueEntry {
  /** Its id in the queue. */
  readonly id: string;
  /** The queued job, JSON; '' if it must no longer run. */
  readonly data: string;
  readonly priority: number;
  /** Number of times its worker was lost. */
  readonly stalled: number;
  /** The verdict of `begin`; undefined if the job was not begun, or its state cannot be read: `begin` then tells why. */
  readonly verdict: BeginVerdict | undefined;
  /** The route for whose capacity it has waited; '' if it has not. */
  readonly parkedFor: string;
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
  /** How many of them may be of low priority; left out: none. */
  readonly spare?: number;
  readonly lockMs: number;
  /** Worker that begins the jobs as they are claimed; '' to leave them unbegun. */
  readonly workerId: string;
  /** Once jobs of an account leave unserved, its newest are claimed first while its oldest waits longer than this; 0: never. */
  readonly targetWaitMs: number;
  /** Share of the claims that jobs of high priority may have while others wait; left out: all. */
  readonly highShare?: number | undefined;
  /** An account of which no jobs are claimed, as it has most of the slots; left out: none. */
  readonly beside?: string | undefined;
  /** Claims whose jobs have ended. */
  readonly ended: readonly QueueClaim[];
}

/** Number of values that claim-jobs.lua returns per job. */
const fieldsOfEntry = 7;

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
  readonly #workers: string;

  constructor(capability: Capability, shard = 0) {
    this.#prefix = queueKeysPrefix(capability, shard);
    this.#root = queueRoot(capability, shard);
    const key = (name: string): string => this.#prefix + name;
    [this.#wait, this.#active, this.#marker] = [key('wait'), key('active'), key('marker')];
    this.#workers = `${this.#root}workers`;
    this.#claimKeys = [this.#wait, this.#active, key('prioritized'), this.#marker, key('pc'), key('meta')];
  }

  /** Removes ended jobs and claims the next ones; see claim-jobs.lua. Returns whether more wait. */
  async claim(redis: RedisClient, call: ClaimCall): Promise<{ isMore: boolean; entries: QueueEntry[] }> {
    const args = [this.#prefix, call.token, call.lockMs, call.wanted, ...beginTerms(call.workerId)];
    args.push(this.#root, call.targetWaitMs, call.spare ?? 0, call.highShare ?? 1, call.beside ?? '');
    for (const { id, token } of call.ended) args.push(id, token);
    const [isMore, ...fields] = await claimScript(redis, [...this.#claimKeys], args);
    const entries: QueueEntry[] = [];
    for (let at = 0; at < fields.length; at += fieldsOfEntry) {
      const [id = '', data = '', priority, stalled, refusal = '', beginReply = '', parkedFor = ''] = fields.slice(
        at,
        at + fieldsOfEntry,
      );
      const counts = { priority: Number(priority), stalled: Number(stalled) };
      const verdict = readClaimedReply(beginReply);
      entries.push({ id, data: refusal === '' ? data : '', ...counts, verdict, parkedFor });
    }
    return { isMore: isMore === 1, entries };
  }

  /** Waits for the marker for waiting jobs and removes it. Returns whether there was one. */
  async waitForJobs(redis: RedisClient, seconds: number): Promise<boolean> {
    return (await redis.bzpopmin(this.#marker, seconds)) !== null;
  }

  /** Sets the marker for waiting jobs again, for a worker that can claim them. */
  async mark(redis: RedisClient): Promise<void> {
    await redis.zadd(this.#marker, 0, '0');
  }

  /** Requeues a claimed job as the next one, if the claim still holds. */
  async requeue(redis: RedisClient, { id, token }: QueueClaim): Promise<void> {
    const job = this.#prefix + id;
    await requeueScript(redis, [this.#wait, this.#active, this.#marker, job, `${job}:lock`], [id, token]);
  }

  /**
   * Reports that a worker is alive, for `aliveMs`, and renews the locks of claims that still hold. It takes several calls for
   * many claims, each of which reports.
   * @param worker `aliveMs` 0: it claims nothing from now on, and what it leaves is returned at the next check
   */
  async renew(
    redis: RedisClient,
    worker: { readonly id: string; readonly aliveMs: number },
    claims: readonly QueueClaim[],
    lockMs: number,
  ): Promise<void> {
    for (let at = 0; at === 0 || at < claims.length; at += maxRenewed) {
      const some = claims.slice(at, at + maxRenewed);
      const locks = some.map(({ id }) => `${this.#prefix}${id}:lock`);
      const args = [worker.id, worker.aliveMs, lockMs, ...some.map(({ token }) => token)];
      await renewScript(redis, [this.#workers, ...locks], args);
    }
  }

  /**
   * Returns jobs whose workers were lost to the queue, unless another worker has just looked for them.
   * @param everyMs how often all workers together look
   * @param maxStalled how often a job may lose its worker before it must no longer run
   * @returns the number of jobs
   */
  async returnStalled(redis: RedisClient, everyMs: number, maxStalled: number): Promise<number> {
    const keys = [
      `${this.#root}check`,
      this.#active,
      this.#wait,
      this.#marker,
      this.#workers,
      `${this.#prefix}stalled`,
    ];
    return await returnScript(redis, keys, [this.#prefix, everyMs, maxStalled]);
  }
}
