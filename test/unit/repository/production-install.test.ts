import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const maxBytes = 150_000_000;

interface Locked {
  readonly dev?: boolean;
}

/** What the files of a package take, without the packages inside it, which the lock file lists by themselves. */
function sizeOf(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isFile()) bytes += statSync(join(folder, entry.name)).size;
    else if (entry.isDirectory() && entry.name !== 'node_modules') bytes += sizeOf(join(folder, entry.name));
  }
  return bytes;
}

test('npm ci --omit=dev installs at most 150 MB', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  // Those of other systems are not installed.
  const folders = Object.entries(lock.packages).filter(
    ([path, { dev }]) => path !== '' && dev !== true && existsSync(join(root, path)),
  );
  const sizes = folders.map(([path]) => ({ path, bytes: sizeOf(join(root, path)) })).sort((a, b) => b.bytes - a.bytes);
  assert.ok(sizes.length > 100, 'the packages are not installed');
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  const heaviest = sizes.slice(0, 5).map(({ path, bytes }) => `${path} ${Math.round(bytes / 1e6)} MB`);
  assert.ok(total <= maxBytes, `${Math.round(total / 1e6)} MB: ${heaviest.join(', ')}`);
});
