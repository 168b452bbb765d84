import type { Database } from '../../shared/database/database.ts';
import { within } from '../../shared/within.ts';
import type { Services } from '../services.ts';
import { deleteExpiredBodies } from './expired-bodies.ts';
import type { JobLedger } from './job-ledger.ts';
import { LostJobs } from './lost-jobs.ts';
import { OutboxConsumer } from './outbox-consumer.ts';
import { OutboxGroup } from './outbox-group.ts';

const housekeepingMs = 600_000;
/** How long records that are still there may be written for while the process closes. */
const drainMs = 2000;

type LedgerServices = Pick<Services, 'redis' | 'isCluster' | 'processId' | 'queue' | 'acceptedJobs' | 'log'>;

export interface LedgerProcessOptions extends LedgerServices {
  readonly db: Database;
  readonly ledger: JobLedger;
}

/** The ledger's work in one api process: records into the database, an end for lost jobs, old bodies out. */
export class LedgerProcess {
  readonly #options: LedgerProcessOptions;
  readonly #consumer: OutboxConsumer;
  readonly #lostJobs: LostJobs;
  readonly #housekeeping: NodeJS.Timeout;

  constructor(options: LedgerProcessOptions) {
    const { redis, isCluster, processId, db, ledger, log } = options;
    this.#options = options;
    this.#consumer = new OutboxConsumer({
      group: new OutboxGroup({ redis, isCluster, name: processId }),
      isCluster,
      write: (records) => ledger.write(records),
      log,
    });
    this.#lostJobs = new LostJobs(options);
    this.#housekeeping = setInterval(() => {
      deleteExpiredBodies(db).catch((error) => log.warn({ err: error }, 'removing expired job bodies failed'));
    }, housekeepingMs);
    this.#housekeeping.unref();
  }

  /** Writes what is there, for a bounded time. The database must still be open. */
  async close(): Promise<void> {
    clearInterval(this.#housekeeping);
    this.#lostJobs.close();
    await this.#consumer.close(drainMs);
    await within(this.#options.acceptedJobs.close(), drainMs);
  }
}
