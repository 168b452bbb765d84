import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

/** What starts an api or a worker. */
const starters = [
  ...['package.json', 'Dockerfile', 'docker-compose.yml', 'launcher/gateway-programs.ts'],
  ...['deploy/helm/sluice/templates/api.yaml', 'deploy/helm/sluice/templates/workers.yaml'],
];

test('whatever starts an api or a worker gives Node the same flags', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<'api' | 'worker', string> };
  const flags = scripts.api.match(/--\S+/g) ?? [];
  assert.ok(flags.length > 0);
  assert.deepEqual(scripts.worker.match(/--\S+/g), flags);
  for (const file of starters) {
    const text = read(file);
    const [first, ...others] = flags.map((flag) => text.split(flag).length - 1);
    assert.ok(first, `${file} has none of the flags`);
    for (const count of others) assert.equal(count, first, `${file} has not all of ${flags.join(' ')} as often`);
  }
});
