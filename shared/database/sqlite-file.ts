import Libsql from 'libsql';
import { isThere } from '../config/start-failure.ts';
import { codeOf } from '../runtime/error-code.ts';
import {
  emptySchema,
  type Migration,
  missingMigrations,
  recordQueries,
  recordTableOf,
  recordTables,
  requireMigrated,
  type SchemaState,
} from './migrations.ts';

/** How long a statement waits for another process's lock, in milliseconds; and a start, while another one may be migrating. */
const busyTimeoutMs = 5000;
const startTimeoutMs = 30_000;
/**
 * Bytes that the write-ahead log keeps for the next writes. It grows while anybody reads for long, a backup say, and would stay as
 * long as it has been.
 */
const maxLogBytes = 64 * 1024 * 1024;

/**
 * Opens the file, creates it if missing, and runs the migrations it lacks.
 * @param isOff refuse a file that lacks migrations, in place of migrating it
 * @throws SqliteError of libsql, or SchemaError.
 */
export function openSqliteFile(path: string, migrations: readonly Migration[], isOff = false): Libsql.Database {
  // Before the file is opened, which would create it.
  if (isOff) requireMigrated(missingMigrations(migrations, readSqliteSchema(path)));
  const file = new Libsql(path, { timeout: startTimeoutMs });
  try {
    setWriteAheadLog(file);
    setOptions(file);
    migrate(file, migrations);
    file.pragma(`busy_timeout = ${busyTimeoutMs}`);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/**
 * Opens a file that `openSqliteFile` has opened before.
 * @throws SqliteError of libsql.
 */
export function reopenSqliteFile(path: string): Libsql.Database {
  const file = new Libsql(path, { timeout: busyTimeoutMs });
  try {
    setOptions(file);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Sets what the file itself does not keep. */
function setOptions(file: Libsql.Database): void {
  file.pragma('foreign_keys = ON');
  file.pragma('synchronous = NORMAL');
  file.pragma(`journal_size_limit = ${maxLogBytes}`);
}

/**
 * SQLite does not wait for a lock when changing the journal mode, so processes that start concurrently on a new file must
 * retry. The mode stays in the file: later starts find it.
 */
function setWriteAheadLog(file: Libsql.Database): void {
  const giveUpAt = Date.now() + startTimeoutMs;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      file.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (!codeOf(error)?.startsWith('SQLITE_BUSY') || Date.now() > giveUpAt) throw error;
      Atomics.wait(pause, 0, 0, 20);
    }
  }
}

/** Reads what a file says of its schema, and changes nothing. A missing file has none. */
export function readSqliteSchema(path: string): SchemaState {
  if (!isThere(path)) return emptySchema;
  const file = new Libsql(path, { timeout: busyTimeoutMs, readonly: true });
  try {
    return readSchema(file);
  } finally {
    file.close();
  }
}

function readSchema(file: Libsql.Database): SchemaState {
  const tables = file.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[];
  const found = tables.flatMap(({ name }) => {
    const query = recordQueries[name as keyof typeof recordQueries];
    return query === undefined ? [] : (file.prepare(query).all() as { name?: string; min_version?: number }[]);
  });
  return {
    done: new Set(found.flatMap(({ name }) => name ?? [])),
    minVersion: Math.max(0, ...found.map(({ min_version: version }) => version ?? 0)),
  };
}

/** One transaction takes the write lock before it reads the state, so of several processes the first migrates and the rest find it done. */
function migrate(file: Libsql.Database, migrations: readonly Migration[]): void {
  file.exec('BEGIN IMMEDIATE');
  try {
    for (const statement of recordTables) file.exec(statement);
    for (const migration of missingMigrations(migrations, readSchema(file))) {
      file.exec(migration.sql);
      const record = `INSERT INTO ${recordTableOf(migration)} (name, done_at) VALUES (?, ?)`;
      file.prepare(record).run([migration.name, Date.now()]);
    }
    file.exec('COMMIT');
  } catch (error) {
    if (file.inTransaction) file.exec('ROLLBACK');
    throw error;
  }
}
