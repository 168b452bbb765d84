// The versions of Node that the product is tested on.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installPackages } from '../install-packages.mjs';

const folder = dirname(fileURLToPath(import.meta.url));

/** The version that counts: everything is tested and measured on it. The same as in .nvmrc. */
export const mainVersion = 24;

/** Versions that must work, too. */
export const otherVersions = [20, 22, 26];

/**
 * The path of a Node of this major version: the one that runs this where it is of that version, else npm's.
 * @throws Error where npm has none for this system.
 */
export async function findNode(major) {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  await installPackages(folder, 'the versions of Node that are tested (test/node-versions)');
  const path = join(folder, 'node_modules', `node-${major}-${process.platform}-${process.arch}`, 'bin', 'node');
  if (existsSync(path)) return path;
  throw new Error(`There is no Node ${major} for this system in test/node-versions: run this with Node ${major}.`);
}

/** What each Node that was asked has answered: hundreds of processes are started with it. */
const typescript = new Map();

/** Whether this Node runs TypeScript itself, as 22.18 and newer ones do. */
export function runsTypeScript(path) {
  if (!typescript.has(path)) {
    const feature = execFileSync(path, ['-p', 'process.features.typescript'], { encoding: 'utf8' });
    typescript.set(path, /strip|transform/.test(feature));
  }
  return typescript.get(path);
}

/** The environment in which `node` is this one, for what is started by name. */
export function withNode(path, environment) {
  return { ...environment, PATH: `${dirname(path)}:${environment.PATH}` };
}
