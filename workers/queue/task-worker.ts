import { type Job, type Processor, Worker, type WorkerOptions } from 'bullmq';
import type { CapabilityQueue, QueuedJob } from '../../shared/queue/queue.ts';

/** Interval (ms) at which a trouble that goes on is told again. */
const tellAgainMs = 60_000;
/** Maximum number of troubles that are told apart. */
const maxTroubles = 20;

/**
 * BullMQ's Worker for one shard of a queue whose jobs return to it. Its claims are made one after the other, and each is noted in its
 * account's line before the next: the next claim would otherwise find no start tags but those of other accounts, and take the oldest
 * job, whoever's it is.
 */
export class TaskWorker extends Worker<QueuedJob> {
  constructor(queue: CapabilityQueue, processor: Processor<QueuedJob>, options: WorkerOptions) {
    super(queue.capability, processor, options);
    // The note goes out on the connection of the claims. That of a stalled job may have been lost with the worker that claimed it, and
    // its account's line has no start tag without it; but its priority may refer to an outdated base. Jobs that return have none. A
    // call that is lost otherwise leaves the clock behind until the next one.
    this.on('active', ({ data, priority, stalledCounter }) => {
      if (typeof data?.id !== 'string' || priority === 0) return;
      queue.noteClaimed(data, stalledCounter > 0 ? 0 : priority).catch(() => undefined);
    });
  }

  /** Tells what keeps it from working when that begins, and once a minute from then on: BullMQ tries, and fails, ten times a second. */
  onTrouble(tell: (trouble: string) => void): void {
    const toldAt = new Map<string, number>();
    this.on('error', ({ message }) => {
      const now = performance.now();
      if (now - (toldAt.get(message) ?? Number.NEGATIVE_INFINITY) < tellAgainMs) return;
      if (toldAt.size >= maxTroubles) toldAt.clear();
      toldAt.set(message, now);
      tell(message);
    });
  }

  /** A job that ends claims none itself: with many that end at once, their claims would come before the first note. */
  override processJob(job: Job<QueuedJob>, token: string): ReturnType<Worker<QueuedJob>['processJob']> {
    return super.processJob(job, token, () => false);
  }
}
