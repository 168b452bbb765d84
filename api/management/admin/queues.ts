import type { Middleware } from 'koa';
import type { Capability } from '../../../shared/capabilities/capability.ts';
import type { ShardedQueue } from '../../../shared/queue/sharded-queue.ts';
import { BoundedReads, readMs } from '../../bounds/bounded-reads.ts';
import type { State } from '../../state.ts';
import { wholeList } from './whole-list.ts';

/** `GET /admin/v1/queues`: how many jobs of each capability wait, run, and are put aside until their next poll. */
export function listQueues({ queues }: { readonly queues: ReadonlyMap<Capability, ShardedQueue> }): Middleware<State> {
  const reads = new BoundedReads(readMs, 'The queues cannot be read for now.', 'queue_unavailable');
  return async (ctx) => {
    ctx.state.endpoint = 'admin.queues';
    ctx.body = wholeList(await reads.read(() => Promise.all([...queues.values()].map(queueView))));
  };
}

async function queueView(queue: ShardedQueue): Promise<Record<string, unknown>> {
  const [depth, prioritized, delayed] = await Promise.all([queue.depth(), queue.prioritized(), queue.delayed()]);
  return {
    capability: queue.capability,
    // All waiting jobs; those with a priority, which fairness assigns, are `prioritized`.
    waiting: depth.waiting,
    prioritized,
    active: depth.active,
    delayed,
    oldest_wait_seconds: Math.round(depth.oldestWaitMs / 100) / 10,
  };
}
