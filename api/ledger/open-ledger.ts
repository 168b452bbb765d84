import type { Config } from '../../shared/config/config.ts';
import type { Database } from '../../shared/database/database.ts';
import type { JobRecord } from '../../shared/jobs/settlement/outbox.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { idempotencyMs } from '../admission/admit.ts';
import { endpoints } from '../endpoints/endpoints.ts';
import type { View } from '../replies/view.ts';
import { JobLedger, type JobLedgerOptions } from './job-ledger.ts';
import { LedgerProcess, type LedgerProcessOptions } from './ledger-process.ts';
import { raiseMoney } from './sync-redis.ts';

/** What the ledger needs of the process that runs it. */
export type LedgerDependencies = Omit<LedgerProcessOptions, 'ledger'> & Pick<JobLedgerOptions, 'metrics'>;

/** Starts what brings the jobs' records into the database. */
export async function openLedger(services: LedgerDependencies): Promise<LedgerProcess> {
  const { config } = services;
  const views = new Map<string, View>(endpoints.map(({ name, view }) => [name, view]));
  const ledger = new JobLedger({
    ...services,
    viewOf: (endpoint) => views.get(endpoint),
    retentionMs: config.bodyRetentionMs,
    blobMs: keptAnswerMs(config),
    onLate: (records) => raiseLate(services, records),
  });
  return await LedgerProcess.open({ ...services, ledger });
}

/** Charges jobs that were settled without their holds, now that the ledger has them. The next start retries a failure. */
function raiseLate(
  { db, redis, log }: { readonly db: Database; readonly redis: RedisClient; readonly log: Logger },
  records: readonly JobRecord[],
): void {
  const accounts = [...new Set(records.map(({ account }) => account))];
  log.warn({ jobs: records.length }, 'charging jobs whose holds Redis lost');
  raiseMoney(db, redis, accounts).catch((error) =>
    log.warn({ err: error }, 'charging jobs whose holds Redis lost failed'),
  );
}

/** Maximum time that an answer is kept after its job's end. */
export function keptAnswerMs({ resultMs }: Pick<Config, 'resultMs'>): number {
  return Math.max(resultMs, idempotencyMs);
}
