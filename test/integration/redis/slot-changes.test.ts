import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { Cluster, Redis } from 'ioredis';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const { log } = createLogger('silent', 'test');

describe('clients of a Cluster for blocking commands', () => {
  it('learn which node has a slot when another client of the process finds that it was moved', async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const nodes = cluster.nodes.map(({ url }) => new Redis(url));
    t.after(() => {
      for (const node of nodes) node.disconnect();
    });
    const handle = await connectRedis(cluster.url, log);
    t.after(() => handle.close());
    const blocking = handle.blocking() as Cluster;
    t.after(() => blocking.disconnect());
    assert.ok(blocking instanceof Cluster && blocking.options.slotsRefreshInterval === 0, 'it does not look itself');
    await once(blocking, 'ready');
    const slot = Number(await nodes[0]?.call('CLUSTER', 'KEYSLOT', 'moved'));
    const before = blocking.slots[slot]?.[0];
    const to = cluster.nodes.findIndex(({ port }) => before !== `127.0.0.1:${port}`);
    const target = String(await nodes[to]?.call('CLUSTER', 'MYID'));
    for (const node of nodes) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', target);
    // It is redirected, and so looks.
    assert.equal(await handle.client.get('moved'), null);
    await eventually(() => assert.equal(blocking.slots[slot]?.[0], `127.0.0.1:${cluster.nodes[to]?.port}`));
  });
});
