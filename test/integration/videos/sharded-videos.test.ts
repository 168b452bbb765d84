import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { queueKeysPrefix } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

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
