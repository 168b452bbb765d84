import assert from 'node:assert/strict';
import { test } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

test('jobs of an account that run count for nothing in its share of a queue that another account fills', async (t) => {
  const gateway = await TestGateway.start({
    settings: { SLUICE_QUEUE_LIMIT: '130', WORKER_CONCURRENCY_CHAT: '60' },
  });
  t.after(() => gateway.stop());
  const [served, flooding] = await Promise.all(
    ['served', 'flooding'].map((accountId) => makeApiKey(gateway, { accountId })),
  );
  const ask = async (key: string | undefined, user: string): Promise<number> => {
    const answer = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(held('Hi', { user, sandbox: { first_token_ms: 600_000 } })),
      headers: { prefer: 'respond-async', authorization: `Bearer ${key}` },
    });
    await answer.text();
    return answer.status;
  };
  const askMany = async (key: string | undefined, user: string, count: number): Promise<number[]> => {
    const statuses: number[] = [];
    while (statuses.length < count) statuses.push(await ask(key, user));
    return statuses;
  };
  const run = (user: string, count: number): Promise<void> =>
    eventually(async () => assert.equal((await vendorCalls(gateway, user)).length, count), 60_000);
  // Less than half of the slots, so that no slots beside all are given away for others.
  assert.deepEqual(new Set(await askMany(served, 'served', 28)), new Set([202]));
  await run('served', 28);
  // The first that wait have no turn; what comes once that is seen is known to be of the other account.
  await askMany(flooding, 'flooding', 34);
  await run('flooding', 32);
  await eventually(async () => {
    const page = await MetricsPage.read(gateway.url);
    assert.ok(page.sum('sluice_queue_oldest_wait_seconds', 'capability="chat"') > 0.1, 'jobs are seen to wait');
  }, 30_000);
  assert.deepEqual(new Set(await askMany(flooding, 'flooding', 98)), new Set([202]));
  assert.equal(await ask(served, 'served'), 202);
  await run('served', 29);
  // What it has waiting fills its share.
  const statuses = await askMany(served, 'served', 40);
  assert.deepEqual(new Set(statuses), new Set([202, 429]));
  assert.ok(statuses.filter((status) => status === 202).length < 26, statuses.join());
});
