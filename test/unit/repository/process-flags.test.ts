import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { productFlags } from '../../support/product-flags.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** What starts an api or a worker. */
const starters = [
  ...['package.json', 'Dockerfile', 'docker-compose.yml', 'launcher/gateway-programs.ts'],
  ...['deploy/helm/sluice/templates/api.yaml', 'deploy/helm/sluice/templates/workers.yaml'],
];

test('whatever starts an api or a worker gives Node the same flags', () => {
  const flags = productFlags(root, 'api');
  assert.ok(flags.length > 0);
  assert.deepEqual(productFlags(root, 'worker'), flags);
  for (const file of starters) {
    const text = read(file);
    const [first, ...others] = flags.map((flag) => text.split(flag).length - 1);
    assert.ok(first, `${file} has none of the flags`);
    for (const count of others) assert.equal(count, first, `${file} has not all of ${flags.join(' ')} as often`);
  }
});
