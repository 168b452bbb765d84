/** How a statement ended. */
export type StatementOutcome = 'done' | 'failed';

/** Connections in use, and statements that wait for one. */
export interface DatabaseUse {
  readonly busy: number;
  readonly waiting: number;
}

/** What a process does with its database, for metrics and health checks. The database's dialect reports it. */
export class DatabaseActivity {
  /** Connections that the process may open. */
  max = 1;
  /**
   * Whether the SQLite file has refused the last write that was tried, as on a full disk: reads still work then. `DatabaseHealth`
   * tries again, and takes it back.
   */
  refusesWrites = false;
  /** Returns the use at the moment. */
  use: () => DatabaseUse = () => ({ busy: 0, waiting: 0 });
  /** Called after each statement, and after each failure to connect. */
  onStatement: (seconds: number, outcome: StatementOutcome) => void = () => undefined;

  /** Runs a statement, and reports its duration. @throws what it throws */
  async measure<Result>(statement: () => Promise<Result>): Promise<Result> {
    const startedAt = performance.now();
    let outcome: StatementOutcome = 'failed';
    try {
      const result = await statement();
      outcome = 'done';
      return result;
    } finally {
      this.onStatement((performance.now() - startedAt) / 1000, outcome);
    }
  }
}
