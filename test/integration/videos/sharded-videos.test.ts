import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { queueKeysPrefix } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { linesOf, TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const [shards, slots, videos] = [6, 4, 60];

test('a worker of a queue with shards claims few more videos than it has slots, so that the others keep their order', async (t) => {
  const gateway = await TestGateway.start({
    settings: { WORKER_CONCURRENCY_VIDEO: String(slots), SLUICE_QUEUE_SHARDS: String(shards) },
  });
  t.after(() => gateway.stop());
  const redis = new Redis(gateway.redisUrl);
  t.after(() => redis.disconnect());
  const client = gateway.client();
  for (let count = 0; count < videos; count++) await createVideo(client, { sandbox: { first_token_ms: 600_000 } });
  const lengths = async (list: string): Promise<number> => {
    const keys = Array.from({ length: shards + 1 }, (_, shard) => `${queueKeysPrefix('video', shard)}${list}`);
    const all = await Promise.all(keys.map((key) => (list === 'prioritized' ? redis.zcard(key) : redis.llen(key))));
    return all.reduce((sum, length) => sum + length, 0);
  };
  await eventually(async () => assert.equal((await vendorCalls(gateway)).length, slots), 60_000);
  const [waiting, prioritized, claimed] = await Promise.all(['wait', 'prioritized', 'active'].map(lengths));
  assert.equal((waiting as number) + (prioritized as number) + (claimed as number), videos);
  assert.ok((claimed as number) <= 2 * (shards + 1), `${claimed} videos are claimed`);
});

test('a worker that closes begins none of the videos that it has claimed beyond its slots, which another one begins', async (t) => {
  const vendor = await startFixtureVendor();
  const asked: ServerResponse[] = [];
  let isHeld = true;
  const begin = (response: ServerResponse): void =>
    sendJson(response, 200, JSON.stringify({ id: `film-${asked.length}`, object: 'video', status: 'in_progress' }));
  vendor.answer((response, { method }) => {
    if (method === 'POST') asked.push(response);
    if (method !== 'POST' || !isHeld) begin(response);
  });
  const gateway = await TestGateway.start({
    settings: {
      ...{ WORKER_CONCURRENCY_VIDEO: '2', SLUICE_QUEUE_SHARDS: '3' },
      SLUICE_VENDOR_SILENCE_SECONDS: '600',
    },
    configuration: {
      vendors: { films: { base_url: vendor.baseUrl, api_keys: ['any'] } },
      models: {
        film: {
          capability: 'video',
          routes: [{ vendor: 'films', model: 'film' }],
          video: { sizes: ['1280x720'], seconds: [4] },
        },
      },
    },
  });
  t.after(async () => {
    await gateway.stop();
    await vendor.close();
  });
  const client = gateway.client();
  const count = 20;
  for (let made = 0; made < count; made++) await createVideo(client, { model: 'film' as never });
  await eventually(() => assert.equal(asked.length, 2), 60_000);
  const [worker] = gateway.workers;
  assert.ok(worker);
  const stopped = worker.stop();
  await eventually(() => assert.equal(linesOf(worker, 'waiting for running jobs').length, 1), 60_000);
  isHeld = false;
  for (const response of asked) begin(response);
  assert.equal(await stopped, 0);
  assert.equal(asked.length, 2);
  await gateway.startWorker();
  await eventually(() => assert.equal(asked.length, count), 60_000);
});
