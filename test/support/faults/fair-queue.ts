import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { LoadGauge } from '../../../api/admission/load-gauge.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { CapabilityQueue } from '../../../shared/queue/queue.ts';
import type { RedisHandle } from '../../../shared/redis/redis.ts';
import type { JobConsumer } from '../../../workers/queue/job-consumer.ts';
import { loadProduct } from '../gateway.ts';
import { JobFixture } from './job-fixture.ts';

const { ClaimSlots } =
  await loadProduct<typeof import('../../../workers/queue/claim-slots.ts')>('workers/queue/claim-slots');
const { CapabilityQueue: Queue } =
  await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { JobConsumer: Consumer } =
  await loadProduct<typeof import('../../../workers/queue/job-consumer.ts')>('workers/queue/job-consumer');
const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { settleNow } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { admit } = await loadProduct<typeof import('../../../api/admission/admit.ts')>('api/admission/admit');
const gauges = await loadProduct<typeof import('../../../api/admission/load-gauge.ts')>('api/admission/load-gauge');

/** A job in the queue, and who it is of. */
export interface SentJob {
  readonly id: string;
  readonly account: string;
  /** Resolves when it has run. */
  readonly done: Promise<void>;
}

/**
 * A queue of chats with the product's own admission before it, its consumer behind it, and a real Redis: everything that decides
 * who is next, and nothing of what a job does.
 */
export class FairQueue {
  readonly queue: CapabilityQueue;
  readonly load: LoadGauge;
  /** Jobs that workers have taken, in that order. */
  readonly taken: { readonly id: string; readonly account: string; readonly work: number }[] = [];
  readonly #jobs: JobFixture;
  readonly #redis: RedisHandle;
  readonly #waiting = new Map<string, () => void>();
  #worker: JobConsumer | undefined;

  private constructor(jobs: JobFixture, redis: RedisHandle) {
    this.#jobs = jobs;
    this.#redis = redis;
    this.queue = new Queue('chat', redis.client);
    this.load = new gauges.LoadGauge(redis.client, new Map([['chat', this.queue.reader]]), {
      queueLimit: 100_000,
      queueWaitMs: 600_000,
      highShare: 0.8,
    });
  }

  static async start(): Promise<FairQueue> {
    const jobs = await JobFixture.start();
    return new FairQueue(jobs, await connectRedis(jobs.server.url, createLogger('silent', 'test').log));
  }

  async stop(): Promise<void> {
    this.load.close();
    await this.#worker?.close();
    await this.queue.close();
    await this.#redis.close();
    await this.#jobs.stop();
  }

  async addAccount(account: string): Promise<void> {
    await this.#jobs.redis.set(accountKeys.keyActive(account, account), '1');
    await this.#jobs.redis.hset(accountKeys.account(account), 'credit', '');
  }

  /** Says that workers have come to this turn. */
  async setVirtualTime(now: number): Promise<void> {
    await this.#jobs.redis.hset('sluice:{q-chat}:fairness', 'now', now);
    await this.load.refresh();
  }

  /** Admits a job and puts it into the queue. @param work it counts as so much, over the weight of its account */
  async send(account: string, work = 1, weight = 1): Promise<SentJob> {
    const job = this.#jobs.identity({ account, apiKeyId: account });
    const caller = { account, apiKeyId: account, revision: 1 };
    const asked = admit(this.#redis.client, {
      ...{ job, caller: caller as never, concurrency: 100_000, bodyHash: '', shedding: undefined },
      ...{ flows: this.load.flows('chat'), hold: 'unpriced', tokens: 0, reader: undefined },
      ...{ time: job.createdAt, notAfter: job.deadlineAt },
    });
    this.load.asking(job);
    const reply = await asked.finally(() => this.load.answered(job));
    assert.equal(reply.verdict, 'admitted');
    const done = new Promise<void>((resolve) => this.#waiting.set(job.id, resolve));
    await this.queue.enqueue({ ...job, work: work / weight, request: String(work) }, reply.hasPriority);
    this.load.added(job);
    return { id: job.id, account, done };
  }

  /** Many at once; they are in the queue in this order. */
  sendAll(account: string, count: number): Promise<SentJob[]> {
    return Promise.all(Array.from({ length: count }, () => this.send(account)));
  }

  /** Waits until the queue is seen not to flow. */
  async backUp(): Promise<void> {
    while (this.load.flows('chat')) {
      await delay(10);
      await this.load.refresh();
    }
  }

  /** Takes a waiting job out, as a cancellation does. */
  async cancel(sent: SentJob): Promise<void> {
    const job = this.#jobs.identity({ id: sent.id, account: sent.account, apiKeyId: sent.account });
    await this.queue.remove(job.id);
    await this.#settle(job);
  }

  /** Starts the worker. @param jobMs how long a job takes, on an average */
  work(concurrency: number, jobMs: number): void {
    this.#worker = new Consumer({
      ...{
        capability: 'chat',
        redis: this.#redis.client,
        waiting: this.#redis.blocking(),
        workerId: 'worker',
        slots: new ClaimSlots(concurrency),
      },
      ...{ begins: false, lockMs: 10_000, targetWaitMs: 0, stalledCheckMs: 2000, maxStalledCount: 3 },
      run: async ({ job }) => {
        this.taken.push({ id: job.id, account: job.account, work: Number(job.request) });
        await delay(jobMs * (0.5 + Math.random()));
        await this.#settle(job);
        this.#waiting.get(job.id)?.();
        this.#waiting.delete(job.id);
        return 'done';
      },
      log: createLogger('silent', 'test').log,
    });
  }

  async #settle(job: JobIdentity): Promise<void> {
    const ending = { outcome: 'completed', errorCode: undefined, began: true, record: '' } as const;
    await settleNow(this.#redis.client, { ...job, ...ending, jobId: job.id, cost: 0, tokens: undefined });
  }
}
