import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { projectRoot } from '../children.ts';

/** The whole environment: package managers find their registries and caches in it. */
export const installerEnvironment = process.env as Record<string, string>;

/**
 * Installs a package on first use into a cache folder, since it is no dependency of the project. It is installed beside that
 * folder and moved, so that an interrupted installation is never used.
 * @param checkToolchain throws when the machine cannot install it
 * @returns the folder
 */
export async function installOnce(
  name: string,
  version: string,
  install: (folder: string) => Promise<void>,
  checkToolchain?: () => Promise<void>,
): Promise<string> {
  const folder = join(projectRoot, 'node_modules', '.cache', 'sluice-bench', `${name}-${version}`);
  if (existsSync(folder)) return folder;
  await checkToolchain?.();
  const fresh = `${folder}.${process.pid}`;
  await mkdir(fresh, { recursive: true });
  try {
    console.error(`installing ${name} ${version} into node_modules/.cache (once)`);
    await install(fresh);
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return folder;
}
