import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** What is built, whatever other build the suites run. */
const dist = fileURLToPath(new URL('../../dist/', import.meta.url));

test('built programs have no characters of two bytes, for which V8 would keep twice the memory of their code', () => {
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.js') && !file.startsWith('console'),
  );
  assert.ok(files.includes(join('api', 'main.js')) && files.includes(join('workers', 'main.js')), files.join(' '));
  const wide = files.flatMap((file) => {
    const found = /.{0,20}[^\0-\xff].{0,20}/.exec(readFileSync(join(dist, file), 'utf8'));
    return found === null ? [] : [`${file}: ${found[0]}`];
  });
  assert.deepEqual(wide, []);
});
