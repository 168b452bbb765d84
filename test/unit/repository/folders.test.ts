import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const maxFiles = 25;
const maxLoose = 5;

/** What is installed, built or stored beside the sources, by `.gitignore`. */
const notSource = new Set(['node_modules', '.installed', '__pycache__', 'dist', 'data']);

/** Source folders by their paths, each with its number of files. */
function filesByFolder(folder: string): [folder: string, files: number][] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  const inner = entries.filter((entry) => entry.isDirectory() && !notSource.has(entry.name));
  return [
    [folder, entries.filter((entry) => entry.isFile()).length],
    ...inner.flatMap(({ name }) => filesByFolder(join(folder, name))),
  ];
}

/** Migrations never move, and grow with the releases. */
const migrations = /^shared\/database\/migrations\/\w+$/;

test('no folder has more than 25 files, except the tests’ support and migrations', () => {
  const folders = ['api', 'workers', 'shared', 'sandbox', 'launcher', 'catalogue', 'console', 'docs', 'deploy', 'test'];
  const large = folders
    .flatMap(filesByFolder)
    .filter(([folder, files]) => files > maxFiles && folder !== 'test/support' && !migrations.test(folder))
    .map(([folder, files]) => `${folder}: ${files}`);
  assert.deepEqual(large, []);
});

for (const folder of ['api', 'workers', 'shared']) {
  test(`${folder}/ has at most 5 files outside its folders`, () => {
    const [, files] = filesByFolder(folder)[0] as [string, number];
    assert.ok(files <= maxLoose, `${files} files`);
  });
}

test('docs/architecture.md has a line for each folder of api, workers and shared', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const missing = ['api', 'workers', 'shared']
    .flatMap(filesByFolder)
    .map(([folder]) => folder)
    .filter((folder) => folder.split('/').length === 2 && !page.includes(`\`${folder}/\``));
  assert.deepEqual(missing, []);
});
