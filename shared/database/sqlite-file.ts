import Libsql from 'libsql';
import { type Migration, missingMigrations } from './migrations.ts';

/** How long a statement waits for another process's lock, in milliseconds. */
const busyTimeoutMs = 5000;

/**
 * Opens the file, creates it if missing, and runs the migrations it lacks.
 * @throws SqliteError of libsql.
 */
export function openSqliteFile(path: string, migrations: readonly Migration[]): Libsql.Database {
  const file = new Libsql(path, { timeout: busyTimeoutMs });
  try {
    setWriteAheadLog(file);
    file.pragma('foreign_keys = ON');
    file.pragma('synchronous = NORMAL');
    migrate(file, migrations);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/**
 * SQLite does not wait for a lock when changing the journal mode, so processes that start concurrently on a new file must
 * retry. The mode stays in the file: later starts find it.
 */
function setWriteAheadLog(file: Libsql.Database): void {
  const giveUpAt = Date.now() + busyTimeoutMs;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      file.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      const code = (error as { code?: unknown }).code;
      if (typeof code !== 'string' || !code.startsWith('SQLITE_BUSY') || Date.now() > giveUpAt) throw error;
      Atomics.wait(pause, 0, 0, 20);
    }
  }
}

/** One transaction takes the write lock before it reads the state, so of several processes the first migrates and the rest find it done. */
function migrate(file: Libsql.Database, migrations: readonly Migration[]): void {
  file.exec('BEGIN IMMEDIATE');
  try {
    file.exec(
      'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY NOT NULL, done_at INTEGER NOT NULL) STRICT',
    );
    const rows = file.prepare('SELECT name FROM migrations').all() as { name: string }[];
    for (const migration of missingMigrations(migrations, new Set(rows.map((row) => row.name)))) {
      file.exec(migration.sql);
      file.prepare('INSERT INTO migrations (name, done_at) VALUES (?, ?)').run([migration.name, Date.now()]);
    }
    file.exec('COMMIT');
  } catch (error) {
    if (file.inTransaction) file.exec('ROLLBACK');
    throw error;
  }
}
