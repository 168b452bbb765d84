import type { Blobs } from '../shared/blobs.ts';
import type { Catalogue } from '../shared/catalogue/catalogue.ts';
import type { Config } from '../shared/config.ts';
import type { EndJobContext } from '../shared/jobs/end-job.ts';
import type { Logger } from '../shared/log.ts';
import type { WorkerMetrics } from '../shared/metrics.ts';
import type { RunningJobs } from './running-jobs.ts';
import type { Settler } from './settler.ts';
import type { Vendor } from './vendors/vendor.ts';

/** What running jobs takes; made once per process. */
export interface WorkerContext extends EndJobContext {
  readonly config: Config;
  readonly workerId: string;
  readonly blobs: Blobs;
  readonly catalogue: Catalogue;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly running: RunningJobs;
  readonly settler: Settler;
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
}
