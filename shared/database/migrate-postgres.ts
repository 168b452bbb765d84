import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { codeOf } from '../runtime/error-code.ts';
import {
  type Migration,
  missingMigrations,
  readMigrations,
  recordQueries,
  recordTableOf,
  recordTables,
  requireMigrated,
  type SchemaState,
  separateStatements,
} from './migrations.ts';
import { connectionSettings } from './postgres-dialect.ts';

/** Timeout for a step, and for waiting for another process's: an index over millions of rows takes minutes. */
const migrationMs = 1_800_000;
/**
 * How long a step waits for a table that others use. Whoever comes behind waits as long, so it is short: the step gives way, and is
 * tried again.
 */
const lockMs = 150;
/** SQLSTATE of a step that gave way, and the pause before it is tried again. */
const lockNotAvailable = '55P03';
const yieldMs = 500;
/** Interval at which a process asks whether another one has finished migrating. */
const waitMs = 250;
/** The advisory lock of all migrating processes; any number unused by other programs on this database. */
const lock = 7_355_608_016;

export interface MigratePostgresOptions {
  /** Refuse a database that lacks migrations, in place of migrating it. */
  readonly isOff?: boolean;
  /** Override of the files, for tests. */
  readonly migrations?: readonly Migration[];
}

/**
 * Brings the tables of a Postgres database up to date. Of several processes one migrates and the rest wait for it.
 * @returns the names of the migrations that it ran
 * @throws Error of `pg`, or SchemaError
 */
export async function migratePostgres(url: string, options: MigratePostgresOptions = {}): Promise<string[]> {
  const { migrations = readMigrations('postgres') } = options;
  return await withClient(url, {}, async (client) => {
    const missing = missingMigrations(migrations, await readSchema(client));
    if (options.isOff) requireMigrated(missing);
    if (missing.length === 0) return [];
    return await withLock(url, () => migrate(client, migrations));
  });
}

/** Reads what a database says of its schema, and changes nothing. @throws Error of `pg` */
export async function readPostgresSchema(url: string): Promise<SchemaState> {
  return await withClient(url, {}, readSchema);
}

async function withClient<Result>(
  url: string,
  settings: pg.ClientConfig,
  work: (client: pg.Client, broken: Promise<never>) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({
    ...connectionSettings(url),
    statement_timeout: migrationMs,
    query_timeout: migrationMs,
    ...settings,
  });
  // A broken connection rejects the pending statement; without a listener it would also end the process.
  const broken = new Promise<never>((_, reject) => client.on('error', reject));
  broken.catch(() => undefined);
  try {
    await client.connect();
    return await work(client, broken);
  } finally {
    // Closing the connection rolls back anything uncommitted.
    await client.end();
  }
}

/**
 * Works while this process has the lock. A second connection holds it, in a transaction of its own, so that it is one lock behind a
 * pooler, too. Those that wait ask again and again: a statement that waited for it would hold up an index made concurrently, which
 * waits for all older statements. If the connection breaks, the work ends with it: its own connection is closed by the caller.
 */
async function withLock<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  return await withClient(url, { idle_in_transaction_session_timeout: 0 }, async (holder, broken) => {
    const giveUpAt = Date.now() + migrationMs;
    for (;;) {
      await holder.query('begin');
      // Without parameters: a statement with some keeps its snapshot until the transaction ends, and so holds up such an index, too.
      const { rows } = await holder.query<{ got: boolean }>(`select pg_try_advisory_xact_lock(${lock}) as got`);
      if (rows[0]?.got) break;
      await holder.query('rollback');
      if (Date.now() > giveUpAt) throw new Error('another process has been migrating it for half an hour');
      await delay(waitMs);
    }
    const working = work();
    working.catch(() => undefined);
    return await Promise.race([working, broken]);
  });
}

async function readSchema(client: pg.Client): Promise<SchemaState> {
  const { rows } = await client.query<{ name: keyof typeof recordQueries }>(
    'select name from unnest($1::text[]) as name where to_regclass(name) is not null',
    [Object.keys(recordQueries)],
  );
  const all: Record<string, unknown>[] = [];
  for (const { name } of rows) all.push(...(await client.query(recordQueries[name])).rows);
  return {
    done: new Set(all.flatMap(({ name }) => (typeof name === 'string' ? name : []))),
    minVersion: Math.max(0, ...all.map(({ min_version: version }) => Number(version ?? 0))),
  };
}

async function migrate(client: pg.Client, migrations: readonly Migration[]): Promise<string[]> {
  for (const statement of recordTables) await client.query(statement);
  const missing = missingMigrations(migrations, await readSchema(client));
  for (const migration of missing) await run(client, migration);
  return missing.map(({ name }) => name);
}

async function run(client: pg.Client, migration: Migration): Promise<void> {
  const statements = separateStatements(migration);
  const record = `INSERT INTO ${recordTableOf(migration)} (name, done_at) VALUES ($1, $2)`;
  const values = [migration.name, Date.now()];
  if (statements !== undefined) {
    for (const statement of statements) await client.query(statement);
    await client.query(record, values);
    return;
  }
  await untilUnlocked(client, async () => {
    await client.query(migration.sql);
    await client.query(record, values);
  });
}

/** Runs statements in a transaction, which gives way to other users of its tables and is tried again. */
async function untilUnlocked(client: pg.Client, statements: () => Promise<void>): Promise<void> {
  const giveUpAt = Date.now() + migrationMs;
  for (;;) {
    await client.query('begin');
    try {
      await client.query(`set local lock_timeout = ${lockMs}`);
      await statements();
      await client.query('commit');
      return;
    } catch (error) {
      if (codeOf(error) !== lockNotAvailable || Date.now() > giveUpAt) throw error;
      await client.query('rollback');
      await delay(yieldMs * (0.5 + Math.random()));
    }
  }
}
