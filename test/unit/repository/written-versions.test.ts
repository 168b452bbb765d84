import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

test('what a process writes for others names the version of its last change, not the newest one, so that it outlives a rollback', async () => {
  const found: string[] = [];
  for (const folder of ['api', 'workers', 'shared']) {
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (!name.endsWith('.ts')) continue;
      const text = await readFile(join(root, folder, name), 'utf8');
      for (const [, value] of text.matchAll(/\bv(?:: | = )(writtenVersion|versionOf|readVersions)\b/g)) {
        found.push(`${folder}/${name}: ${value}`);
      }
    }
  }
  assert.deepEqual(found.sort(), [
    'api/ledger/outbox/spooled-records.ts: versionOf',
    'api/pipeline/describe-job.ts: versionOf',
    'shared/jobs/settlement/outbox.ts: versionOf',
    'shared/jobs/vendor-task.ts: versionOf',
    'workers/heartbeat.ts: versionOf',
  ]);
});
