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
import { isReadOnly } from './database-error.ts';
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
  readonly request: ThreadRequest;
  resolve(reply: ThreadReply & { type: 'result' }): void;
  reject(error: Error): void;
}

/**
 * Maximum number of statements that the thread has at a time. A busy event loop takes the results of these in each of its passes: if
 * the next statement were sent only after the result before, a thousand would wait for seconds. Results of more would fill the memory.
 */
const maxSent = 64;

/** A promise interface to the thread that has the file open. */
class SqliteThread {
  readonly #worker: Worker;
  /** Pending statements, answered in order. */
  readonly #waiting: Waiting[] = [];
  /** How many of them the thread has. */
  #sent = 0;
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
          const parameters = query.parameters.map(storableParameter);
          this.#enqueue({ request: { type: 'execute', sql: query.sql, parameters }, resolve, reject });
        }),
    );
    const rows = reply.rows as Row[];
    return reply.changes === undefined ? { rows } : { rows, numAffectedRows: BigInt(reply.changes) };
  }

  /** Waits for pending statements, then closes the file and ends the thread. */
  async close(): Promise<void> {
    const ignored = (): void => undefined;
    if (this.#failure === undefined) this.#enqueue({ request: { type: 'close' }, resolve: ignored, reject: ignored });
    await this.#ended;
  }

  #enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#send();
  }

  #send(): void {
    for (; this.#sent < maxSent; this.#sent++) {
      const next = this.#waiting[this.#sent];
      if (next === undefined) return;
      this.#worker.postMessage(next.request);
    }
  }

  #settle(reply: ThreadReply & { type: 'result' | 'error' }): void {
    const waiting = this.#waiting.shift();
    this.#sent--;
    this.#send();
    if (reply.type === 'result') {
      waiting?.resolve(reply);
      return;
    }
    const error = new SqliteError(reply.error);
    if (isReadOnly(error)) this.#activity.refusesWrites = true;
    waiting?.reject(error);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}

/**
 * The order of statements at the file, of which there is one for all borrowers: that of their calls, except that those beside a
 * transaction wait for its end, so that transactions never mix.
 */
class StatementOrder {
  #lastTransaction: Promise<void> = Promise.resolve();

  /** Resolves once every earlier transaction has ended. */
  get free(): Promise<void> {
    return this.#lastTransaction;
  }

  /** Resolves when a transaction may begin, to what is to be called at its end. */
  async startTransaction(): Promise<() => void> {
    const before = this.#lastTransaction;
    let end = (): void => {};
    this.#lastTransaction = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    return end;
  }
}

/** A borrower's view of the file. Statements outside of transactions do not wait for the results of those before. */
class SqliteConnection implements DatabaseConnection {
  readonly #thread: SqliteThread;
  readonly #order: StatementOrder;
  #endTransaction: (() => void) | undefined;

  constructor(thread: SqliteThread, order: StatementOrder) {
    this.#thread = thread;
    this.#order = order;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#endTransaction === undefined) await this.#order.free;
    return await this.#thread.executeQuery(query);
  }

  // biome-ignore lint/correctness/useYield: kysely asks for a generator, and this one only refuses.
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('the SQLite thread answers whole results only: use limit');
  }

  async startTransaction(): Promise<void> {
    this.#endTransaction = await this.#order.startTransaction();
  }

  /** Does nothing where there was no transaction. */
  endTransaction(): void {
    this.#endTransaction?.();
    this.#endTransaction = undefined;
  }
}

class SqliteThreadDriver implements Driver {
  readonly #data: ThreadData;
  readonly #activity: DatabaseActivity;
  readonly #order = new StatementOrder();
  #thread: SqliteThread | undefined;

  constructor(data: ThreadData, activity: DatabaseActivity) {
    this.#data = data;
    this.#activity = activity;
  }

  async init(): Promise<void> {
    this.#thread = await SqliteThread.open(this.#data, this.#activity);
  }

  async acquireConnection(): Promise<SqliteConnection> {
    if (this.#thread === undefined) throw new Error('the database is not open');
    return new SqliteConnection(this.#thread, this.#order);
  }

  async releaseConnection(connection: SqliteConnection): Promise<void> {
    connection.endTransaction();
  }

  /** `immediate`, as a transaction that reads first and writes later cannot wait for another process's lock: it fails. */
  async beginTransaction(connection: SqliteConnection): Promise<void> {
    await connection.startTransaction();
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  async commitTransaction(connection: SqliteConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: SqliteConnection): Promise<void> {
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
