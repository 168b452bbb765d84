import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AdminKeys } from '../../support/admin-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const patience = { timeout: 180_000 };

/** Queues a video with a key, by which the vendor's journal tells it. */
async function ask(gateway: TestGateway, apiKey: string, user: string): Promise<void> {
  const video = { duration_ms: 600_000 };
  const { status } = await createVideo(gateway.client({ apiKey }), { user, sandbox: { video } });
  assert.equal(status, 'queued');
}

/** Waits until the queue is seen to wait: what is queued before has no priority. */
async function untilItWaits(gateway: TestGateway): Promise<void> {
  await eventually(async () => {
    await ask(gateway, gateway.apiKey, 'before');
    const metrics = await (await gateway.fetch('/metrics')).text();
    const waits = /^sluice_queue_oldest_wait_seconds\{.*capability="video".*\} (\S+)/m.exec(metrics)?.[1];
    assert.ok(Number(waits) > 0.1, `it waits for ${waits} s`);
  });
}

test(
  'videos of a key with few come in turn beside those of another key of its account, if that wants it',
  patience,
  async (t) => {
    const gateway = await TestGateway.start({ workers: 0 });
    t.after(() => gateway.stop());
    const admin = await AdminKeys.open(gateway);
    await untilItWaits(gateway);
    const ids: string[] = [];
    for (const [accountId, queue_by_key] of [
      ['team', true],
      ['alone', false],
    ] as const) {
      const [many, few] = [await makeApiKey(gateway, { accountId }), await makeApiKey(gateway, { accountId })];
      assert.equal(
        (await admin.answer(200, 'PATCH', `/accounts/${accountId}`, { queue_by_key })).queue_by_key,
        queue_by_key,
      );
      for (let count = 0; count < 20; count++) await ask(gateway, many, `${accountId} many`);
      for (let count = 0; count < 4; count++) await ask(gateway, few, `${accountId} few`);
      ids.push(`${accountId} many`, `${accountId} few`);
    }
    // It claims that many before it runs the first.
    await gateway.startWorker({ WORKER_CONCURRENCY_VIDEO: '10' }, 'video');
    const calls = await eventually(async () => {
      const all = (await vendorCalls(gateway)).map(({ test_id }) => String(test_id)).filter((id) => ids.includes(id));
      assert.equal(all.length, 48);
      return all;
    }, 150_000);
    // Ten calls at a time overtake each other, so the bounds are halfway between turns and the order of requests.
    const before = (id: string, place: number) => calls.slice(0, place).filter((one) => one === id).length;
    const seen = calls.join();
    assert.ok(before('team many', calls.lastIndexOf('team few')) <= 14, seen);
    assert.ok(before('alone many', calls.indexOf('alone few')) >= 10, seen);
    assert.ok(before('alone many', 24) >= 5, seen);
  },
);
