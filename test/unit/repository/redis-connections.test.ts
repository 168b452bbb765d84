import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Source files of the product, by their paths from the root. */
const sources = ['api', 'workers', 'shared', 'launcher', 'sandbox'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path)),
);

test('connections to Redis are made in one file, which knows how each kind is reached', () => {
  const makers = sources.filter((path) =>
    /new (Redis|Cluster)\(|new IORedis|createClient\(/.test(readFileSync(join(root, path), 'utf8')),
  );
  assert.deepEqual(makers, ['shared/redis/open-redis.ts']);
});
