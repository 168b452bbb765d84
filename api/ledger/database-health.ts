import { PostgresAdapter, sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import { readOnlyCode } from '../../shared/database/database-error.ts';
import { codeOf } from '../../shared/runtime/error-code.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Health checks wait no longer: those who ask have timeouts of a second. */
const patienceMs = 500;

/** `read-only`: it answers and takes no writes, as after a failover to a standby, or when its service has found it full. */
export type DatabaseState = 'ok' | 'read-only' | 'unavailable';

/** Whether the database answers, and takes writes. Checks share one statement: those of a silent database must not pile up. */
export class DatabaseHealth {
  readonly #db: Database;
  #asking: Promise<DatabaseState> | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** @param ms how long to wait for an answer; the statement itself has its own timeout */
  async state(ms: number = patienceMs): Promise<DatabaseState> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return (await withTimeout(this.#asking, ms)) ?? 'unavailable';
  }

  async #ask(): Promise<DatabaseState> {
    // A write of nothing, which a read-only Postgres refuses as any other: so its connection is not used again, which may
    // have stayed with a former primary. SQLite would wait for the lock of whoever writes.
    const isPostgres = this.#db.getExecutor().adapter instanceof PostgresAdapter;
    const question = isPostgres ? sql`update secrets set name = name where false` : sql`select 1`;
    try {
      await question.execute(this.#db);
      return 'ok';
    } catch (error) {
      return codeOf(error) === readOnlyCode ? 'read-only' : 'unavailable';
    }
  }
}
