import { existsSync } from 'node:fs';
import Libsql from 'libsql';
import { ConfigError } from '../shared/config/config.ts';
import { codeOf } from '../shared/runtime/error-code.ts';

/**
 * Keeps builds from replacing this process's build until it ends: a restarted child must find the same build. Any number of
 * launchers hold the lock; a build (build-state.mjs) takes it exclusively. If the file is missing or read-only, as in an
 * image, there are no builds either.
 * @throws ConfigError while a build is running.
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
    if (!codeOf(error)?.startsWith('SQLITE_BUSY')) return;
    throw new ConfigError('Sluice is being built in this folder: start it when that is done.');
  }
}
