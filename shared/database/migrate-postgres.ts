import pg from 'pg';
import { missingMigrations, readMigrations } from './migrations.ts';
import { connectionSettings } from './postgres-dialect.ts';

/** Timeout for the migrations, and for waiting for another process's: an index over millions of rows takes minutes. */
const migrationMs = 1_800_000;
/** The advisory lock of all migrating processes; any number unused by other programs on this database. */
const lock = 7_355_608_015;

/**
 * Brings the tables of a Postgres database up to date. One transaction takes the lock before it reads the state, so of several
 * processes the first migrates and the rest find it done; it keeps the lock until it commits, also behind a pooler.
 * @throws Error of `pg`, or one reporting that the database is of a newer version.
 */
export async function migratePostgres(url: string): Promise<void> {
  const client = new pg.Client({
    ...connectionSettings(url),
    statement_timeout: migrationMs,
    query_timeout: migrationMs,
  });
  // A broken connection rejects the pending statement; without a listener it would also end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('begin');
    await client.query('select pg_advisory_xact_lock($1)', [lock]);
    await migrate(client);
    await client.query('commit');
  } finally {
    // Closing the connection rolls back anything uncommitted.
    await client.end();
  }
}

async function migrate(client: pg.Client): Promise<void> {
  const migrations = readMigrations('postgres');
  await client.query('CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, done_at BIGINT NOT NULL)');
  const { rows } = await client.query<{ name: string }>('SELECT name FROM migrations');
  for (const { name, sql } of missingMigrations(migrations, new Set(rows.map((row) => row.name)))) {
    await client.query(sql);
    await client.query('INSERT INTO migrations (name, done_at) VALUES ($1, $2)', [name, Date.now()]);
  }
}
