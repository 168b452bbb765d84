// The release before this one, built from this repository's history, to run beside this build.
// See docs/decisions/2026-11-25-release-before.md.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installOnce, installPackages, runTool } from '../install-packages.mjs';

/** Until there is one with a number: the last commit whose processes write version 1 of what others read. */
const commit = '547f0f1d770ffa7f9461d611b55c29404d59bf94';

const folder = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(folder));
const installed = join(folder, '.installed');
/** What a build is made of, and what tells its version. */
const sources = ['api', 'workers', 'shared', 'sandbox', 'launcher', 'console', 'catalogue', 'build.mjs'];
const alone = ['build-state.mjs', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Why it cannot be built here; undefined: it can. */
export async function whyNotBuilt() {
  try {
    await promisify(execFile)('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root });
    return undefined;
  } catch {
    return `this copy of the repository lacks its commit: git fetch origin ${commit}`;
  }
}

/** Builds it, unless that is done. @throws Error if the history lacks it, or its build fails */
export async function buildReleaseBefore() {
  const why = await whyNotBuilt();
  if (why !== undefined) throw new Error(`The release before this one cannot be built: ${why}`);
  await installOnce(
    installed,
    [fileURLToPath(import.meta.url)],
    `the release before this one (${commit})`,
    async () => {
      const archive = join(installed, 'sources.tar');
      await runTool('git', ['archive', '--output', archive, commit, ...sources, ...alone], root);
      await runTool('tar', ['-xf', archive, '-C', installed], root);
      // Packages of the same versions are found in the folders above.
      if (!hasSamePackages()) await installPackages(installed, 'packages of the release before this one');
      await runTool(process.execPath, ['build.mjs', '--quick'], installed);
      const kept = new Set(['dist', 'node_modules', 'package.json']);
      for (const entry of readdirSync(installed)) {
        if (!kept.has(entry)) rmSync(join(installed, entry), { recursive: true, force: true });
      }
    },
  );
}

/** The folder of its build. */
export const releaseBefore = join(installed, 'dist');

function hasSamePackages() {
  const [before, now] = [installed, root].map((path) => JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')));
  return ['dependencies', 'devDependencies'].every((kind) =>
    Object.entries(before[kind]).every(([name, version]) => now[kind][name] === version),
  );
}
