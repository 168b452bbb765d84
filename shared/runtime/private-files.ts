import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Read, write and enter, for the group and for everybody else. */
const othersBits = 0o077;

/** What the gateway keeps in the data folder; whatever else lies there is the operator's own. */
const ownFiles =
  /^(sluice\.db(-wal|-shm|-journal)?|launcher\.lock(-journal)?|api-key|operator-password|redis\.json|.*\.secret)$/;
const ownFolders = new Set(['blobs', 'redis']);

/**
 * Has this process, and the children it starts, make files that only their owner can read: the database, its journal, blobs
 * and Redis's data hold requests and credentials. Every program calls it before anything else.
 */
export function keepFilesPrivate(): void {
  process.umask(othersBits);
}

/**
 * Takes others' permissions off the gateway's own files in the data folder, which earlier versions made readable by all. The
 * folder itself is left as it is: it may be one that other programs use.
 * @returns what to warn of, where others may enter the folder or a file cannot be changed
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

/** Returns whether only the owner has any permission afterwards. A file that is gone by then is nobody's. */
async function tighten(path: string): Promise<boolean> {
  const mode = await modeOf(path);
  if ((mode & othersBits) === 0) return true;
  return await chmod(path, mode & ~othersBits).then(
    () => true,
    () => false,
  );
}

/** The permissions of a file; none where it cannot be looked at. */
async function modeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ mode }) => mode & 0o777,
    () => 0,
  );
}
