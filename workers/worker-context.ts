import type { Blobs } from '../shared/blobs/blobs.ts';
import type { Capability } from '../shared/capabilities/capability.ts';
import type { Catalogue } from '../shared/catalogue/catalogue.ts';
import type { Config } from '../shared/config/config.ts';
import type { AccountBandwidth } from '../shared/fairness/account-bandwidth.ts';
import type { JobIdentity } from '../shared/jobs/job-state.ts';
import type { EndJobContext } from '../shared/jobs/settlement/end-job.ts';
import type { Settler } from '../shared/jobs/settlement/settle.ts';
import type { ShardedQueue } from '../shared/queue/sharded-queue.ts';
import type { RedisClock } from '../shared/redis/redis-clock.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Tracer } from '../shared/tracing/tracer.ts';
import type { Parking } from './queue/parking.ts';
import type { Router } from './routing/router.ts';
import type { VendorPool } from './routing/vendor-pool.ts';
import type { AnswerJournal } from './run/answer-journal.ts';
import type { RunningJobs } from './run/job-run.ts';
import type { RequestMemory } from './run/request-memory.ts';
import type { TaskSteps } from './run/task-steps.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** Dependencies of running jobs; created once per process. */
export interface WorkerContext extends EndJobContext {
  readonly config: Config;
  readonly workerId: string;
  readonly shards: { readonly count: number };
  readonly queues: ReadonlyMap<Capability, ShardedQueue>;
  readonly blobs: Blobs;
  /** What its jobs hold in memory of their requests. */
  readonly requestMemory: RequestMemory;
  readonly catalogue: Catalogue;
  readonly vendors: VendorPool;
  readonly router: Router;
  /** The jobs of a capability that wait for their vendors. */
  readonly parking: (job: Pick<JobIdentity, 'id' | 'capability' | 'shards'>) => Parking;
  readonly running: RunningJobs;
  readonly taskSteps: TaskSteps;
  /** What readers of this worker's streams get before their logs do; undefined on a Cluster. */
  readonly journal: AnswerJournal | undefined;
  readonly bandwidth: AccountBandwidth;
  /** Deadlines and ledger times use Redis's clock: this host's may be minutes off. */
  readonly clock: Pick<RedisClock, 'now'>;
  readonly settler: Settler;
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
  /** Undefined if nothing is traced. */
  readonly tracer: Tracer | undefined;
}
