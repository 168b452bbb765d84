import { mkdir, mkdtemp, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Kysely, sql } from 'kysely';
import { type Config, ConfigError } from '../config/config.ts';
import { fileReason, type SqliteFailure, sqliteReason } from '../config/start-failure.ts';
import { codeOf } from '../runtime/error-code.ts';
import { DatabaseActivity } from './database-activity.ts';
import { isDatabaseUnreachable } from './database-error.ts';
import { sqliteDialect } from './sqlite-dialect.ts';
import type { Tables } from './tables.ts';

/** The gateway's tables through kysely; `destroy()` closes it. */
export type Database = Kysely<Tables>;

/** Name of the database file in the data folder. */
export const databaseFile = 'sluice.db';

/**
 * The database's location: a Postgres server, or without a URL a file in the data folder; and whether opening it runs the
 * migrations that it lacks (by default it does).
 */
export type DatabaseSettings = Pick<Config, 'databaseUrl' | 'dataDir'> & Partial<Pick<Config, 'migratesAtStart'>>;

/**
 * Opens the database, creates the data folder and its file if missing, and brings the tables up to date. Several processes may
 * have it open: an SQLite file those of one host, Postgres all.
 * @throws ConfigError when the folder, the file or the server cannot be used, or lacks migrations that are not to run here.
 */
export async function openDatabase(settings: DatabaseSettings): Promise<Database> {
  const { db, absence } = await tryDatabase(settings);
  if (absence === undefined) return db;
  await db.destroy();
  throw absence;
}

/** A database that may be away for now. */
export interface TriedDatabase {
  /** Its statements fail at once until the database has been reached. */
  readonly db: Database;
  /** Why it cannot be reached; undefined: it is there. */
  readonly absence: ConfigError | undefined;
  /** Tries again, and brings the tables up to date. @throws ConfigError when it cannot be used. */
  readonly reach: () => Promise<void>;
}

/**
 * Same as `openDatabase`, except that a Postgres server that cannot be reached may be reached later.
 * @param activity gets reports of what is done with it
 * @throws the same
 */
export async function tryDatabase(
  settings: DatabaseSettings,
  activity = new DatabaseActivity(),
): Promise<TriedDatabase> {
  const { databaseUrl, migratesAtStart = true } = settings;
  const isMigrationOff = !migratesAtStart;
  if (databaseUrl !== undefined) return await tryPostgres(settings, databaseUrl, isMigrationOff, activity);
  return { db: await openSqlite(settings, isMigrationOff, activity), absence: undefined, reach: async () => undefined };
}

/**
 * Runs `work` on the database.
 * @throws ConfigError, one sentence, when the database cannot be used.
 */
export async function orConfigError<Result>(
  { databaseUrl, dataDir }: DatabaseSettings,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (databaseUrl !== undefined) {
      const { postgresFailure } = await import('./postgres-dialect.ts');
      const message = `The database of DATABASE_URL cannot be used: ${postgresFailure(error)}.`;
      throw new ConfigError(message, { cause: error });
    }
    const known = error as SqliteFailure;
    if (!['SqliteError', 'SchemaError'].includes(known.name)) throw error;
    throw new ConfigError(`The database ${join(dataDir, databaseFile)} cannot be used: ${sqliteReason(known)}.`);
  }
}

async function openSqlite(
  settings: DatabaseSettings,
  isMigrationOff: boolean,
  activity: DatabaseActivity,
): Promise<Database> {
  const { dataDir } = settings;
  await ensureDataDir(dataDir);
  const db = new Kysely<Tables>({
    dialect: sqliteDialect({ path: join(dataDir, databaseFile), isMigrationOff }, activity),
  });
  return await orConfigError(settings, async () => {
    // kysely opens lazily at the first statement, and closes only what it has opened.
    await sql`select 1`.execute(db);
    return db;
  });
}

async function tryPostgres(
  settings: DatabaseSettings,
  url: string,
  isOff: boolean,
  activity: DatabaseActivity,
): Promise<TriedDatabase> {
  // Lazy: its client costs time to load, and SQLite does not need it.
  const { PostgresError, postgresDialect } = await import('./postgres-dialect.ts');
  const { migratePostgres } = await import('./migrate-postgres.ts');
  let isReady = false;
  const reach = (): Promise<void> =>
    orConfigError(settings, async () => {
      await migratePostgres(url, { isOff });
      isReady = true;
    });
  let absence: ConfigError | undefined;
  try {
    await reach();
  } catch (error) {
    if (!(error instanceof ConfigError) || !isDatabaseUnreachable(new PostgresError(error.cause))) throw error;
    absence = error;
  }
  return { db: new Kysely<Tables>({ dialect: postgresDialect(url, activity, () => isReady) }), absence, reach };
}

/**
 * Creates the data folder, readable by its owner only.
 * @throws ConfigError when it cannot be created or written to.
 */
export async function ensureDataDir(dataDir: string): Promise<void> {
  try {
    await makeFolder(dataDir);
    // Only writing shows whether it is allowed: root passes every permission check.
    await rmdir(await mkdtemp(join(dataDir, '.probe-')));
  } catch (error) {
    const reason = fileReason(error);
    throw new ConfigError(`The data folder ${dataDir} cannot be used: ${reason} (set SLUICE_DATA_DIR to another one).`);
  }
}

/** Not `mkdir` with `recursive`: on Node 20 that never returns if the file system refuses with ENOENT, as /proc does. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}
