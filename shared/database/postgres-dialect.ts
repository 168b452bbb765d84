import { accessSync, constants } from 'node:fs';
import {
  type Dialect,
  type PostgresCursor,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely';
import pg from 'pg';
import { optionsOf } from '../config/database-settings.ts';
import { codeOf } from '../runtime/error-code.ts';
import type { DatabaseActivity } from './database-activity.ts';
import { storableParameter } from './storable-parameter.ts';

/** Maximum number of connections per process. */
const maxConnections = 10;
/** How long a statement waits for a connection, including connecting, in milliseconds. */
const connectMs = 5000;
/** Statement timeout: enforced by the server, and a little later by the client, in case the server is silent. */
const statementMs = 5000;
const silenceMs = 7000;
/** How long the server keeps the locks of an idle transaction: its client's host may be gone. */
const idleTransactionMs = 30_000;

/**
 * SQLSTATE of errors that end the connection (https://www.postgresql.org/docs/15/errcodes-appendix.html), and of a read-only server
 * (25006): after a failover its address leads to the new primary, but a connection that is kept stays with the old one.
 */
const fatalCode = /^(08|57P|25006|25P03)/;

/** A statement rejected by Postgres, or a broken connection. Contains only those server messages that show no values. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';
  /** SQLSTATE, such as `23505` for a unique violation, or a system error such as `ECONNREFUSED`; undefined if neither. */
  readonly code: string | undefined;

  /**
   * Wraps an error of `pg`.
   * @param error its details contain whole rows, and are left out
   */
  constructor(error: unknown) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    // If all addresses of a host fail, Node's error has a code and no message.
    super(String(message || code || error));
    this.code = typeof code === 'string' ? code : undefined;
  }
}

/** 20: bigint; 1700: numeric, the type of sums of bigints. Times and counts stay below 2^53. */
const numberTypes: ReadonlySet<number> = new Set([20, 1700]);

/**
 * Settings shared by all connections to the server at a URL.
 * @throws TypeError for an invalid URL, Error for a file of it that cannot be read.
 */
export function connectionSettings(url: string): pg.ClientConfig {
  requireTlsFiles(url);
  return {
    connectionString: url,
    application_name: 'sluice',
    connectionTimeoutMillis: connectMs,
    idle_in_transaction_session_timeout: idleTransactionMs,
    // Compiling a usage query takes longer than it saves: a third of a report's time.
    options: '-c jit=off',
    keepAlive: true,
    types: {
      getTypeParser: (type, format) =>
        format !== 'binary' && numberTypes.has(type) ? Number : pg.types.getTypeParser(type, format),
    },
  };
}

/** A certificate that is missing would be taken for a server that is: both have the code ENOENT. */
function requireTlsFiles(url: string): void {
  const options = optionsOf(url);
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = options.get(name);
    if (!file) continue;
    try {
      accessSync(file, constants.R_OK);
    } catch (error) {
      throw new Error(`the file ${file} of its ${name} cannot be read (${codeOf(error)})`);
    }
  }
}

/**
 * A connection lent by the pool. After a failure other than a rejected statement, the server may still have work on it, perhaps
 * a transaction, so it is never used again.
 */
class LentConnection implements PostgresPoolClient {
  readonly #client: pg.PoolClient;
  readonly #activity: DatabaseActivity;
  #failure: PostgresError | undefined;

  constructor(client: pg.PoolClient, activity: DatabaseActivity) {
    this.#client = client;
    this.#activity = activity;
  }

  query<Row>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<Row>>;
  query<Row>(cursor: PostgresCursor<Row>): PostgresCursor<Row>;
  // biome-ignore lint/suspicious/noExplicitAny: the two forms that kysely asks for have no return type in common.
  query(statement: string | PostgresCursor<unknown>, parameters: readonly unknown[] = []): any {
    if (typeof statement === 'string') return this.#run(statement, parameters);
    throw new Error('Postgres answers whole results only: use limit');
  }

  async #run(sql: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      return await this.#activity.measure(() => this.#client.query(sql, parameters.map(storableParameter)));
    } catch (error) {
      const failure = new PostgresError(error);
      if (!(error instanceof pg.DatabaseError) || fatalCode.test(failure.code ?? '')) this.#failure = failure;
      throw failure;
    }
  }

  release(): void {
    this.#client.release(this.#failure);
  }
}

class ConnectionPool implements PostgresPool {
  readonly #pool: pg.Pool;
  readonly #activity: DatabaseActivity;
  readonly #isReady: () => boolean;

  constructor(url: string, activity: DatabaseActivity, isReady: () => boolean) {
    this.#activity = activity;
    this.#isReady = isReady;
    this.#pool = new pg.Pool({
      ...connectionSettings(url),
      max: maxConnections,
      statement_timeout: statementMs,
      query_timeout: silenceMs,
    });
    activity.max = maxConnections;
    activity.use = () => ({
      busy: this.#pool.totalCount - this.#pool.idleCount,
      waiting: this.#pool.waitingCount,
    });
    // An idle connection that breaks leaves the pool; a lent one fails its next statement.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  async connect(): Promise<PostgresPoolClient> {
    if (!this.#isReady()) {
      throw new PostgresError({ code: 'ECONNREFUSED', message: 'the database has not been reached since the start' });
    }
    const startedAt = performance.now();
    try {
      return new LentConnection(await this.#pool.connect(), this.#activity);
    } catch (error) {
      this.#activity.onStatement((performance.now() - startedAt) / 1000, 'failed');
      throw new PostgresError(error);
    }
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }
}

/**
 * kysely's dialect over a bounded pool of connections, each created on demand.
 * @param isReady while it returns false, each statement fails at once, as if no server listened
 * @throws TypeError for an invalid URL.
 */
export function postgresDialect(url: string, activity: DatabaseActivity, isReady: () => boolean = () => true): Dialect {
  return new PostgresDialect({ pool: new ConnectionPool(url, activity, isReady) });
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server listens there',
  ENOENT: 'no server listens there',
  ENOTFOUND: 'its host is not known',
  EAI_AGAIN: 'its host is not known',
  ERR_INVALID_URL: 'it is not a URL like postgres://user:password@host:5432/name',
  '28000': 'the server refuses the user',
  '28P01': 'the server refuses the user or the password',
  '3D000': 'the server has no database of that name',
  '42501': 'the user may not make tables there',
  '57014': 'another process keeps it locked',
};

/** Why a database could not be opened, as a part of a sentence; without the password. */
export function postgresFailure(error: unknown): string {
  const { code, message } = new PostgresError(error);
  return reasons[code ?? ''] ?? (message.split('\n', 1)[0] ?? '').replace(/\.$/, '');
}
