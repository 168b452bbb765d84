import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Read, write and execute, for group and others. */
const othersBits = 0o077;

/** The gateway's own files in the data folder; all others belong to the operator. */
const ownFiles =
  /^(sluice\.db(-wal|-shm|-journal)?|launcher\.lock(-journal)?|api-key|operator-password|redis\.json|.*\.secret)$/;
const ownFolders = new Set(['blobs', 'redis']);

/**
 * Makes this process and its children create files that only their owner can read: the database, its journal, blobs and Redis's
 * data contain requests and credentials. Every program calls it first.
 */
export function keepFilesPrivate(): void {
  process.umask(othersBits);
}

/**
 * Removes others' permissions from the gateway's own files in the data folder, which earlier versions made world-readable. The
 * folder itself is left unchanged: other programs may use it.
 * @returns a warning if others may enter the folder or a file cannot be changed
 */
export async function tightenDataDir(dataDir: string): Promise<string | undefined> {
  const names = await readdir(dataDir, { withFileTypes: true }).catch(() => []);
  const own = names.filter((entry) => (entry.isDirectory() ? ownFolders.has(entry.name) : ownFiles.test(entry.name)));
  const tightened = await Promise.all(own.map(({ name }) => tighten(join(dataDir, name))));
  const failed = own.filter((_, index) => !tightened[index]).map(({ name }) => name);
  if (failed.length > 0) {
    return `Other users may read ${failed.join(', ')} in the data folder ${dataDir}, and this process may not change that: run chmod go-rwx on them.`;
  }
  const mode = await modeOf(dataDir);
  if ((mode & othersBits) === 0) return undefined;
  return `Other users may enter the data folder ${dataDir} (mode ${mode.toString(8).padStart(4, '0')}): run chmod 700 on it.`;
}

/** Returns whether only the owner has permissions afterwards. A file deleted meanwhile counts as such. */
async function tighten(path: string): Promise<boolean> {
  const mode = await modeOf(path);
  if ((mode & othersBits) === 0) return true;
  return await chmod(path, mode & ~othersBits).then(
    () => true,
    () => false,
  );
}

/** A file's permissions; 0 if it cannot be read. */
async function modeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ mode }) => mode & 0o777,
    () => 0,
  );
}
