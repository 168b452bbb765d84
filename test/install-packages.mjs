// Installs packages that only tests need, apart from the project's own: each folder has a package.json and a lock file.
// Does nothing where they are already there, so that it needs a registry only once.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A registry that is silent, or a build that hangs, is a failure. */
const deadlineMs = 20 * 60_000;

/** Installations that this process has begun, by folder: two at a time would spoil it. */
const begun = new Map();

/**
 * @param folder where package-lock.json is
 * @param what the packages, as the line that says that they are being installed names them
 * @throws Error when npm fails.
 */
export function installPackages(folder, what) {
  const installation = begun.get(folder) ?? install(folder, what);
  begun.set(folder, installation);
  return installation;
}

async function install(folder, what) {
  const wanted = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  // A copy of the package-lock.json that was installed. npm removes it with the rest before it installs anew.
  const installedFrom = join(folder, 'node_modules', '.installed-from.json');
  if (readIfThere(installedFrom) === wanted) return;
  console.error(`Installing ${what} …`);
  // What these packages' install scripts do is not needed, and some `engines` speak of a Node they do not run on.
  const options = ['--ignore-scripts', '--engine-strict=false', '--loglevel=error', '--no-audit', '--no-fund'];
  await runTool('npm', ['ci', ...options], folder);
  writeFileSync(installedFrom, wanted);
}

/**
 * Runs a tool that installs or builds, to its end.
 * @param cwd the folder that it runs in
 * @throws Error when it is missing, fails or takes too long.
 */
export async function runTool(command, args, cwd) {
  const child = spawn(command, args, { cwd, stdio: 'inherit', timeout: deadlineMs, killSignal: 'SIGKILL' });
  const [status] = await once(child, 'exit');
  if (status !== 0) throw new Error(`${command} ${args.slice(0, 3).join(' ')} … failed: see above.`);
}

/** Runs `install` into an empty folder, unless it was done from the same files. */
export async function installOnce(target, files, what, install) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file)).update('\0');
  const wanted = hash.digest('hex');
  const installedFrom = join(target, '.installed-from');
  if (existsSync(installedFrom) && readFileSync(installedFrom, 'utf8') === wanted) return;
  console.error(`Installing ${what} …`);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  await install();
  writeFileSync(installedFrom, wanted);
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
