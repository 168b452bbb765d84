import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const queue = 'sluice:{q-video}:';
const line = `${queue}parked:sandbox/sandbox-video:`;

test('videos that wait for their vendor wait in fair lines, outside of workers', { timeout: 240_000 }, async (t) => {
  const gateway = await TestGateway.start({
    // One in three seconds.
    configuration: { vendors: { sandbox: { rpm: 20 } } },
  });
  t.after(() => gateway.stop());
  const redis = new Redis(gateway.redisUrl);
  t.after(() => redis.disconnect());
  const [many, few] = await Promise.all(['many', 'few'].map((accountId) => makeApiKey(gateway, { accountId })));
  const ask = async (apiKey: string | undefined, user: string): Promise<() => Promise<unknown>> => {
    const client = gateway.client({ apiKey: apiKey as string });
    const { id } = await createVideo(client, { user, sandbox: { video: { duration_ms: 600_000 } } });
    return () => client.videos.delete(id);
  };
  const deletions: (() => Promise<unknown>)[] = [];
  for (let count = 0; count < 40; count++) deletions.push(await ask(many, 'many'));
  await eventually(async () => {
    const parked = await redis.zcard(`${line}prioritized`);
    assert.ok(parked + (await redis.zcard(`${queue}video:delayed`)) > 35, `${parked} wait for their vendor`);
  });
  for (let count = 0; count < 3; count++) deletions.push(await ask(few, 'few'));
  const before = (await vendorCalls(gateway)).length;
  const order = await eventually(async () => {
    const users = (await vendorCalls(gateway)).map(({ test_id }) => test_id);
    assert.equal(users.filter((user) => user === 'few').length, 3);
    return users.slice(before);
  }, 90_000);
  // In turn; some may have been released as the first of them came.
  assert.ok(order.lastIndexOf('few') < 12, order.join());
  // One that waits is not claimed again and again.
  const left = await redis.zrange(`${line}prioritized`, 0, '-1');
  const claims = await Promise.all(left.map(async (id) => Number(await redis.hget(`${queue}video:${id}`, 'ats'))));
  assert.ok(claims.length > 10 && claims.filter((count) => count === 1).length > claims.length / 2, claims.join());
  for (const deleteIt of deletions) await deleteIt();
  await eventually(async () => assert.deepEqual(await redis.keys(`${queue}parked*`), []));
});
