import { join } from 'node:path';
import Libsql from 'libsql';
import { ConfigError } from '../shared/config/config.ts';

/**
 * Takes the data folder for this process; returns what gives it back. The lock is the kernel's, held through an SQLite
 * file: it is gone with the process, however that ended, so there are no stale ones and no process ids to mistake.
 * @throws ConfigError when another launcher has it.
 */
export function lockDataDir(dataDir: string): () => void {
  const lock = new Libsql(join(dataDir, 'launcher.lock'), { timeout: 0 });
  try {
    lock.exec('BEGIN IMMEDIATE');
  } catch (error) {
    lock.close();
    if (!String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')) throw error;
    throw new ConfigError(
      `The data folder ${dataDir} is used by another Sluice that runs: stop that one, or set SLUICE_DATA_DIR and PORT to others.`,
    );
  }
  return () => lock.close();
}
