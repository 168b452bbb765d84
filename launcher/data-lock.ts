import { join } from 'node:path';
import Libsql from 'libsql';
import { ConfigError } from '../shared/config/config.ts';

/**
 * Locks the data folder for this process; returns a function that unlocks it. The lock is the kernel's, held through an
 * SQLite file: it ends with the process, however that ends, so there are no stale locks or reused process ids.
 * @throws ConfigError when another launcher holds it.
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
