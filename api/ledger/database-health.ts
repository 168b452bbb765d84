import { PostgresAdapter, type RawBuilder, sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import type { DatabaseActivity } from '../../shared/database/database-activity.ts';
import { isReadOnly } from '../../shared/database/database-error.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Health checks wait no longer: those who ask have timeouts of a second. */
const patienceMs = 500;

/**
 * `read-only`: it answers and takes no writes, as after a failover to a standby, when its service has found it full, or on a full
 * disk.
 */
export type DatabaseState = 'ok' | 'read-only' | 'unavailable';

/** Whether the database answers, and takes writes. Checks share one statement: those of a silent database must not pile up. */
export class DatabaseHealth {
  readonly #db: Database;
  readonly #activity: DatabaseActivity;
  #asking: Promise<DatabaseState> | undefined;

  /** @param activity that of the database: it tells of writes that SQLite has refused */
  constructor(db: Database, activity: DatabaseActivity) {
    this.#db = db;
    this.#activity = activity;
  }

  /** @param ms how long to wait for an answer; the statement itself has its own timeout */
  async state(ms: number = patienceMs): Promise<DatabaseState> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return (await withTimeout(this.#asking, ms)) ?? 'unavailable';
  }

  async #ask(): Promise<DatabaseState> {
    try {
      await this.#question().execute(this.#db);
      this.#activity.refusesWrites = false;
      return 'ok';
    } catch (error) {
      return isReadOnly(error) ? 'read-only' : 'unavailable';
    }
  }

  #question(): RawBuilder<unknown> {
    // A write of nothing, which a read-only Postgres refuses as any other: so its connection is not used again, which may
    // have stayed with a former primary.
    if (this.#db.getExecutor().adapter instanceof PostgresAdapter) {
      return sql`update secrets set name = name where false`;
    }
    // SQLite would wait for the lock of whoever writes, and write nothing to its full disk. So only once it has refused a
    // write is another one tried: of a number in the file's head that nothing uses. Rows as they are would not be written again.
    return this.#activity.refusesWrites ? sql`pragma application_id = 0` : sql`select 1`;
  }
}
