import { existsSync } from 'node:fs';
import Libsql from 'libsql';
import { ConfigError } from '../shared/config/config.ts';

/**
 * Keeps builds away from the one that this process runs from, until it ends: a child that starts again must find what it was
 * started from. Any number of launchers hold it; a build (build-state.mjs) takes it alone. Where the file is
 * missing or cannot be written, as in an image, nothing is built either.
 * @throws ConfigError while it is being built.
 */
export function holdBuild(lockFile: string): void {
  if (!existsSync(lockFile)) return;
  let lock: Libsql.Database;
  try {
    lock = new Libsql(lockFile, { timeout: 0 });
  } catch {
    return;
  }
  try {
    // Reading inside a transaction takes SQLite's shared lock, and keeps it.
    lock.exec('BEGIN');
    lock.prepare('SELECT count(*) FROM sqlite_master').get();
    process.once('exit', () => lock.close());
  } catch (error) {
    lock.close();
    if (!String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')) return;
    throw new ConfigError('Sluice is being built in this folder: start it when that is done.');
  }
}
