// Installs the agents and libraries that are tested as clients: about 900 MB in test/agents/node_modules, apart from the
// project's own packages. Does nothing where they are already there, so that it needs a registry only once.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const wanted = readFileSync(join(folder, 'package-lock.json'), 'utf8');
/** A copy of the package-lock.json that was installed. npm removes it with the rest before it installs anew. */
const installedFrom = join(folder, 'node_modules', '.installed-from.json');

function isInstalled() {
  try {
    return readFileSync(installedFrom, 'utf8') === wanted;
  } catch {
    return false;
  }
}

if (!isInstalled()) {
  console.error('Installing the agents that are tested as clients (test/agents) …');
  // Claude Code's install script only spares its launcher a process, and its `engines` speak of a Node it does not run on.
  const options = ['--ignore-scripts', '--engine-strict=false', '--loglevel=error', '--no-audit', '--no-fund'];
  const { status, error } = spawnSync('npm', ['ci', ...options], { cwd: folder, stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error('The agents that are tested as clients could not be installed: see npm above.');
  writeFileSync(installedFrom, wanted);
}
