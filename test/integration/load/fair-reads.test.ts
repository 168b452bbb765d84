import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { stopDatabase } from '../../support/database-faults.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';

/** More than may wait. */
const flooded = 300;

let gateway: TestGateway;
before(async () => {
  gateway = await TestGateway.start({ workers: 0 });
});
after(() => gateway?.stop());

async function statusOf(key: string, path: string): Promise<number> {
  const answer = await gateway.fetch(path, { headers: { authorization: `Bearer ${key}` } });
  await answer.body?.cancel();
  return answer.status;
}

test('a flood of reports and lists by one account gets 429 while the database is slow, and others are not behind it', async () => {
  const [flooding, other] = [await makeApiKey(gateway), await makeApiKey(gateway, { accountId: 'other' })];
  // So that neither key has to be looked up.
  for (const key of [flooding, other]) assert.equal(await statusOf(key, '/v1/usage'), 200);
  const restore = await stopDatabase(gateway);
  const statuses: number[] = [];
  try {
    const paths = ['/v1/usage', '/v1/jobs?model=none', '/v1/key', '/v1/videos'];
    const flood = Array.from({ length: flooded }, async (_, index) => {
      statuses.push(await statusOf(flooding, paths[index % paths.length] as string));
    });
    // At once, while the first ones wait; on a busy machine some of those have waited too long by then.
    await eventually(async () => assert.ok(statuses.includes(429), `answered: ${[...new Set(statuses)]}`));
    const answer = statusOf(other, '/v1/usage');
    await restore();
    assert.equal(await answer, 200);
    await Promise.all(flood);
  } finally {
    await restore();
  }
  assert.equal(await statusOf(flooding, '/v1/jobs'), 200);
});
