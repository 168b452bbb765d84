// Installs packages that only tests need, apart from the project's own: each folder has a package.json and a lock file.
// Does nothing where they are already there, so that it needs a registry only once.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param folder where package-lock.json is
 * @param what the packages, as the line that says that they are being installed names them
 * @throws Error when npm fails.
 */
export function installPackages(folder, what) {
  const wanted = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  // A copy of the package-lock.json that was installed. npm removes it with the rest before it installs anew.
  const installedFrom = join(folder, 'node_modules', '.installed-from.json');
  if (readIfThere(installedFrom) === wanted) return;
  console.error(`Installing ${what} …`);
  // What these packages' install scripts do is not needed, and some `engines` speak of a Node they do not run on.
  const options = ['--ignore-scripts', '--engine-strict=false', '--loglevel=error', '--no-audit', '--no-fund'];
  const { status, error } = spawnSync('npm', ['ci', ...options], { cwd: folder, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`Installing ${what} failed: see npm above.`);
  writeFileSync(installedFrom, wanted);
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
