import { join } from 'node:path';
import Libsql from 'libsql';
import { ConfigError } from '../shared/config/config.ts';
import { sqliteReason } from '../shared/config/start-failure.ts';

/**
 * Locks the data folder for this process; returns a function that unlocks it. The lock is the kernel's, held through an
 * SQLite file: it ends with the process, however that ends, so there are no stale locks or reused process ids.
 * @throws ConfigError when another launcher holds it, or the file cannot be used.
 */
export function lockDataDir(dataDir: string): () => void {
  const file = join(dataDir, 'launcher.lock');
  let lock: Libsql.Database | undefined;
  try {
    lock = new Libsql(file, { timeout: 0 });
    lock.exec('BEGIN IMMEDIATE');
  } catch (error) {
    lock?.close();
    const { code, name, message } = error as Error & { readonly code?: string };
    if (!String(code).startsWith('SQLITE_BUSY')) {
      const reason = sqliteReason({ code, name, message });
      throw new ConfigError(`${file}, which locks the data folder, cannot be used: ${reason}.`);
    }
    throw new ConfigError(
      `The data folder ${dataDir} is used by another Sluice that runs: stop that one, or set SLUICE_DATA_DIR and PORT to others.`,
    );
  }
  const held = lock;
  return () => held.close();
}
