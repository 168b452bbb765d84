// What start.mjs and build.mjs know of dist/: of which sources it is, and that nothing else uses it while it is replaced.
// Plain JavaScript, and Node's own modules until a lock is taken: it runs before anything is known to be installed or built.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Folders whose modules are bundled into programs. */
export const sourceFolders = ['api', 'workers', 'shared', 'sandbox', 'launcher'];
/** All that a build depends on: package-lock.json stands for the packages. */
const inputs = [...sourceFolders, 'console', 'build.mjs', 'build-state.mjs', 'package-lock.json', 'tsconfig.json'];
/** In dist/: the hash of what it was built of. */
const stamp = 'sources.sha256';
/** Beside dist/, which is replaced as a whole. The launcher holds it, too: see launcher/hold-build.ts. */
const lockFile = 'dist.lock';
const lockPollMs = 500;

function filesOf(root, path) {
  const entries = readdirSync(join(root, path), { withFileTypes: true });
  return entries.flatMap((entry) => {
    const inside = `${path}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesOf(root, inside);
    return [inside];
  });
}

/** A hash of everything that is built: names and contents, not times, which git changes at will. */
export function hashSources(root) {
  const hash = createHash('sha256');
  const files = inputs.flatMap((input) => (/\.\w+$/.test(input) ? [input] : filesOf(root, input)));
  for (const file of files.sort()) {
    const content = readFileSync(join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Notes of which sources the build in a folder is. */
export function stampBuild(folder, hash) {
  writeFileSync(join(folder, stamp), `${hash}\n`);
}

/** Whether dist/ is a build of the sources as they are now. */
export function isBuilt(root) {
  const file = join(root, 'dist', stamp);
  return existsSync(file) && readFileSync(file, 'utf8').trim() === hashSources(root);
}

/**
 * Takes dist/ for this process alone: the kernel's lock, through an SQLite file, so that it goes with the process. Waits for
 * another build. Returns what gives it back; undefined: a gateway runs from dist/, so it must stay as it is.
 */
export async function lockBuild(root, onWait) {
  const { default: Libsql } = await import('libsql');
  const lock = new Libsql(join(root, lockFile), { timeout: 0 });
  for (let waited = false; ; waited = true) {
    if (tries(lock, 'BEGIN EXCLUSIVE')) return () => lock.close();
    // Those that run share the lock, so this one is free; another build leaves none.
    if (tries(lock, 'BEGIN IMMEDIATE')) {
      lock.close();
      return undefined;
    }
    if (!waited) onWait();
    await new Promise((resolve) => setTimeout(resolve, lockPollMs));
  }
}

function tries(lock, statement) {
  try {
    lock.exec(statement);
    return true;
  } catch (error) {
    if (String(error.code).startsWith('SQLITE_BUSY')) return false;
    throw error;
  }
}
