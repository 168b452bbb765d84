import { type Job, type Processor, Worker, type WorkerOptions } from 'bullmq';
import type { CapabilityQueue, QueuedJob } from '../../shared/queue/queue.ts';

/**
 * BullMQ's Worker for one shard of a queue whose jobs return to it. Its claims are made one after the other, and each is noted in its
 * account's line before the next: the next claim would otherwise find no start tags but those of other accounts, and take the oldest
 * job, whoever's it is.
 */
export class TaskWorker extends Worker<QueuedJob> {
  constructor(queue: CapabilityQueue, processor: Processor<QueuedJob>, options: WorkerOptions) {
    super(queue.capability, processor, options);
    // The note goes out on the connection of the claims. Not for stalled jobs: they were claimed before, and their priority may refer
    // to an outdated base. A lost call leaves the clock behind until the next one.
    this.on('active', ({ data, priority, stalledCounter }) => {
      if (typeof data?.id !== 'string' || priority === 0 || stalledCounter > 0) return;
      queue.noteClaimed(data, priority).catch(() => undefined);
    });
  }

  /** A job that ends claims none itself: with many that end at once, their claims would come before the first note. */
  override processJob(job: Job<QueuedJob>, token: string): ReturnType<Worker<QueuedJob>['processJob']> {
    return super.processJob(job, token, () => false);
  }
}
