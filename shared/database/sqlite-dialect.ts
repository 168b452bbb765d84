import { Worker } from 'node:worker_threads';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { threadFile } from '../runtime/thread-file.ts';
import type { DatabaseActivity } from './database-activity.ts';
import type { ThreadData, ThreadError, ThreadReply, ThreadRequest } from './sqlite-thread.ts';
import { storableParameter } from './storable-parameter.ts';

/** A statement rejected by SQLite, or a file it could not open. */
export class SqliteError extends Error {
  override readonly name = 'SqliteError';
  /** SQLite's name of the error, such as `SQLITE_CONSTRAINT_UNIQUE`; undefined if it has none. */
  readonly code: string | undefined;

  constructor({ message, code }: ThreadError) {
    super(message);
    this.code = code;
  }
}

interface Waiting {
  resolve(reply: ThreadReply & { type: 'result' }): void;
  reject(error: Error): void;
}

/** A promise interface to the thread that has the file open. */
class SqliteThread implements DatabaseConnection {
  readonly #worker: Worker;
  /** Pending statements, answered in order. */
  readonly #waiting: Waiting[] = [];
  readonly #ended: Promise<void>;
  readonly #activity: DatabaseActivity;
  #failure: Error | undefined;

  private constructor(worker: Worker, activity: DatabaseActivity) {
    this.#worker = worker;
    this.#activity = activity;
    activity.use = () => ({
      busy: Math.min(1, this.#waiting.length),
      waiting: Math.max(0, this.#waiting.length - 1),
    });
    this.#ended = new Promise((resolve) => worker.once('exit', () => resolve()));
    worker.on('error', (error) => this.#fail(error as Error));
    worker.on('exit', () => this.#fail(new Error('the database is closed')));
  }

  /**
   * Starts the thread and opens the file.
   * @throws SqliteError when the file cannot be opened or migrated.
   */
  static async open(workerData: ThreadData, activity: DatabaseActivity): Promise<SqliteThread> {
    const worker = new Worker(threadFile('./sqlite-thread', import.meta.url), { workerData, execArgv: [] });
    const thread = new SqliteThread(worker, activity);
    await new Promise<void>((resolve, reject) => {
      worker.on('message', (reply: ThreadReply) => {
        if (reply.type === 'ready') resolve();
        else if (reply.type === 'failed') reject(new SqliteError(reply.error));
        else thread.#settle(reply);
      });
      worker.once('error', reject);
    });
    return thread;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#failure !== undefined) throw this.#failure;
    const reply = await this.#activity.measure(
      () =>
        new Promise<ThreadReply & { type: 'result' }>((resolve, reject) => {
          this.#waiting.push({ resolve, reject });
          this.#post({ type: 'execute', sql: query.sql, parameters: query.parameters.map(storableParameter) });
        }),
    );
    const rows = reply.rows as Row[];
    return reply.changes === undefined ? { rows } : { rows, numAffectedRows: BigInt(reply.changes) };
  }

  // biome-ignore lint/correctness/useYield: kysely asks for a generator, and this one only refuses.
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('the SQLite thread answers whole results only: use limit');
  }

  /** Waits for pending statements, then closes the file and ends the thread. */
  async close(): Promise<void> {
    if (this.#failure === undefined) this.#post({ type: 'close' });
    await this.#ended;
  }

  #post(request: ThreadRequest): void {
    this.#worker.postMessage(request);
  }

  #settle(reply: ThreadReply & { type: 'result' | 'error' }): void {
    const waiting = this.#waiting.shift();
    if (reply.type === 'result') waiting?.resolve(reply);
    else waiting?.reject(new SqliteError(reply.error));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}

/**
 * One shared connection, lent to one borrower at a time in the order of requests: a transaction keeps it from begin to commit,
 * so transactions never mix.
 */
class SqliteThreadDriver implements Driver {
  readonly #data: ThreadData;
  readonly #activity: DatabaseActivity;
  #thread: SqliteThread | undefined;
  #lastLoan: Promise<void> = Promise.resolve();
  #endLoan: () => void = () => {};

  constructor(data: ThreadData, activity: DatabaseActivity) {
    this.#data = data;
    this.#activity = activity;
  }

  async init(): Promise<void> {
    this.#thread = await SqliteThread.open(this.#data, this.#activity);
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#lastLoan;
    let end = (): void => {};
    this.#lastLoan = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    this.#endLoan = end;
    if (this.#thread === undefined) throw new Error('the database is not open');
    return this.#thread;
  }

  async releaseConnection(): Promise<void> {
    this.#endLoan();
  }

  /** `immediate`, as a transaction that reads first and writes later cannot wait for another process's lock: it fails. */
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  async destroy(): Promise<void> {
    await this.#thread?.close();
  }
}

/** kysely's dialect over a dedicated thread, which opens the file at the first statement and ends with `destroy`. */
export function sqliteDialect(data: ThreadData, activity: DatabaseActivity): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new SqliteThreadDriver(data, activity),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}
