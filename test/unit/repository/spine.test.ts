import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const linesOf = (path: string): number => readFileSync(join(root, path), 'utf8').split('\n').length - 1;

/** The spine's rows of docs/architecture.md: each file with the script that is named beside it. */
function readSpine(): { file: string; script: string | undefined }[] {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const table = page.slice(page.indexOf('| the spine |')).split('\n\n')[0] ?? '';
  return [...table.matchAll(/^\| `([^`]+)`(?: \(`([^`]+)`\))? \|/gm)].map(([, file = '', script]) => ({
    file,
    script: script?.includes('/') ? script : script && join(dirname(file), script),
  }));
}

/** All files that a program loads, by their imports from its entry on; those of types alone are none. */
function loadedBy(entry: string, found = new Set<string>()): Set<string> {
  if (found.has(entry) || !existsSync(join(root, entry))) return found;
  found.add(entry);
  const text = readFileSync(join(root, entry), 'utf8');
  for (const [, imported = ''] of text.matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)';/gm)) {
    loadedBy(join(dirname(entry), imported), found);
  }
  return found;
}

test('docs/architecture.md names the spine of a streamed chat: eight loaded files, none over 300 lines', () => {
  const spine = readSpine();
  assert.equal(spine.length, 8);
  const loaded = { api: loadedBy('api/app.ts'), workers: loadedBy('workers/main.ts') };
  for (const { file, script } of spine) {
    const isLoaded = (file.startsWith('workers/') ? loaded.workers : loaded.api).has(file) || loaded.workers.has(file);
    assert.ok(isLoaded, `${file} is loaded`);
    assert.ok(linesOf(file) <= 300, `${file} has ${linesOf(file)} lines`);
    if (script !== undefined) assert.ok(existsSync(join(root, script)), `${script} is there`);
  }
  assert.ok(linesOf('api/pipeline/handle-request.ts') <= 200);
});
