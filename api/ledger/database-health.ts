import { sql } from 'kysely';
import type { Database } from '../../shared/database/database.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Health checks wait no longer: those who ask have timeouts of a second. */
const patienceMs = 500;

/** Whether the database answers. Checks share one statement: those of a silent database must not pile up. */
export class DatabaseHealth {
  readonly #db: Database;
  #asking: Promise<boolean> | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** @param ms how long to wait for an answer; the statement itself has its own timeout */
  async isThere(ms: number = patienceMs): Promise<boolean> {
    this.#asking ??= sql`select 1`
      .execute(this.#db)
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        this.#asking = undefined;
      });
    return (await withTimeout(this.#asking, ms)) ?? false;
  }
}
