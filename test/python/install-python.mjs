// Installs Python packages that only tests need, by uv (https://docs.astral.sh/uv/pip/), which takes a tenth of pip's time and work.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installOnce, runTool } from '../install-packages.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const installed = join(folder, '.installed');

/** The installation of uv that this process has begun. */
let begun;

/** The interpreter of an environment of Python. @param target its folder */
export function pythonIn(target) {
  return join(target, 'bin', 'python');
}

/**
 * Makes an environment of Python with exactly the listed packages, whose dependencies are listed with them.
 * @param target its folder
 * @param requirements the file that lists them, with a version each
 * @throws Error when Python is missing, or a package cannot be had.
 */
export async function installPython(target, requirements) {
  begun ??= installUv();
  try {
    const uv = await begun;
    await runTool('python3', ['-m', 'venv', '--without-pip', target], folder);
    const options = ['--quiet', '--no-deps', '--no-cache', '--system-certs', '--python', pythonIn(target)];
    await runTool(uv, ['pip', 'install', ...options, '--requirements', requirements], folder);
  } catch (error) {
    // An index that pip's own configuration names is not known to uv.
    console.error(`${error.message} By pip, which takes longer …`);
    await installByPip(target, requirements);
  }
}

/** Answers the path of uv. */
async function installUv() {
  const requirements = join(folder, 'requirements.txt');
  await installOnce(installed, [requirements], 'uv (test/python)', () => installByPip(installed, requirements));
  return join(installed, 'bin', 'uv');
}

async function installByPip(target, requirements) {
  await runTool('python3', ['-m', 'venv', '--clear', target], folder);
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile'];
  await runTool(pythonIn(target), ['-m', 'pip', 'install', ...options, '-r', requirements], folder);
}
