import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** What is built, whatever other build the suites run. */
const dist = fileURLToPath(new URL('../../dist/', import.meta.url));

const programFiles = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.js') && !file.startsWith('console'),
);

test('built programs import nothing of node:http, which would load all of it, and with it a client that none of them needs', () => {
  const importing = programFiles.filter((file) => {
    return /\bfrom ?["'](node:)?http["']/.test(readFileSync(join(dist, file), 'utf8'));
  });
  assert.deepEqual(importing, []);
});

test('built programs have no characters of two bytes, for which V8 would keep twice the memory of their code', () => {
  const started = ['api', 'workers'].map((part) => join(part, 'main.js'));
  assert.ok(
    started.every((file) => programFiles.includes(file)),
    programFiles.join(' '),
  );
  const wide = programFiles.flatMap((file) => {
    const found = /.{0,20}[^\0-\xff].{0,20}/.exec(readFileSync(join(dist, file), 'utf8'));
    return found === null ? [] : [`${file}: ${found[0]}`];
  });
  assert.deepEqual(wide, []);
});

test('the built worker has nothing of the fetch and the mocks of undici, which are most of it and load a second one', () => {
  const worker = readFileSync(join(dist, 'workers', 'main.js'), 'utf8');
  assert.match(worker, /^\/\/ node_modules\/undici\/lib\/dispatcher\/pool\.js$/m);
  assert.deepEqual(worker.match(/^\/\/ node_modules\/undici\/lib\/(mock\/.*|web\/fetch\/index\.js)$/gm), null);
});

/** The code of a file and of all that it imports at its start; what it imports when needed is not among it. */
function loadedCode(file: string, seen = new Set<string>()): string {
  if (seen.has(file)) return '';
  seen.add(file);
  const code = readFileSync(join(dist, file), 'utf8');
  const imported = [...code.matchAll(/^(?:import|export) (?:[^;"']*? from )?["'](\.[^"']+)["'];/gm)];
  return [code, ...imported.map(([, path = '']) => loadedCode(join(dirname(file), path), seen))].join('\n');
}

test('of the built worker only the thread that counts tokens loads the tokenizer, which takes a quarter of a second and 70 MB', () => {
  const ofTokenizer = (file: string) => loadedCode(file).match(/^\/\/ node_modules\/gpt-tokenizer\/.*$/gm);
  assert.ok((ofTokenizer(join('workers', 'usage', 'token-counter-thread.js'))?.length ?? 0) > 0);
  assert.match(loadedCode(join('workers', 'main.js')), /^\/\/ workers\/usage\/token-counter\.ts$/m);
  assert.deepEqual(ofTokenizer(join('workers', 'main.js')), null);
});
