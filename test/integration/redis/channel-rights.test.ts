import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Inbox, readerOf } from '../../../shared/jobs/inbox.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { linesOf, TestGateway } from '../../support/gateway.ts';
import { startRedis } from '../../support/redis.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const { log } = createLogger('silent', 'test');
const refusedMessage = 'subscribing to answers failed; it is tried again each second';

/** A Redis, or a Cluster of them, and its user `sluice`. */
interface RedisOfUser {
  readonly url: string;
  /** Makes the user anew: with channels, or, as an administrator who forgets them does, without. */
  setUser(hasChannels: boolean): Promise<void>;
  /** Ends the connections that have subscribed to something. */
  endSubscriptions(): Promise<void>;
}

function withUser(t: TestContext, url: string, nodeUrls: readonly string[]): RedisOfUser {
  const nodes = nodeUrls.map((node) => new Redis(node));
  t.after(() => {
    for (const node of nodes) node.disconnect();
  });
  return {
    url: url.replaceAll('://', '://sluice:secret@'),
    setUser: async (hasChannels) => {
      const rule = ['reset', 'on', '>secret', '~*', '+@all', ...(hasChannels ? ['&*'] : ['resetchannels'])];
      for (const node of nodes) await node.acl('SETUSER', 'sluice', ...rule);
    },
    endSubscriptions: async () => {
      for (const node of nodes) await node.call('CLIENT', 'KILL', 'TYPE', 'PUBSUB');
    },
  };
}

const kinds: Readonly<Record<string, (t: TestContext) => Promise<RedisOfUser>>> = {
  'one Redis': async (t) => {
    const server = await startRedis();
    t.after(() => server.stop());
    return withUser(t, server.url, [server.url]);
  },
  'a Cluster': async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const urls = cluster.nodes.map(({ url }) => url);
    return withUser(t, cluster.url, urls);
  },
};

describe('a user of Redis without rights to channels', { timeout: 120_000 }, () => {
  for (const [kind, start] of Object.entries(kinds)) {
    test(`live messages of ${kind} come again once the user may subscribe again, and are known to have been missed`, async (t) => {
      const redis = await start(t);
      await redis.setUser(true);
      const handle = await connectRedis(redis.url, log);
      t.after(() => handle.close());
      const heard = new Set<string>();
      let restored = 0;
      const listener = { abort: (id: string) => heard.add(id), resubscribed: () => restored++ };
      const processId = readerOf('api');
      const inbox = await Inbox.open(handle, processId, listener, log);
      t.after(() => inbox.close());
      /** Messages for jobs of many tags, of which a Cluster has some on each node. */
      const allHeard = async () => {
        heard.clear();
        const jobs = Array.from({ length: 100 }, (_, index) => String(index).padStart(32, '0'));
        for (const job of jobs) {
          const channel = `${jobKeys.inboxPrefix(job)}${processId}`;
          if (handle.isCluster) await handle.client.spublish(channel, `abort ${job}`);
          else await handle.client.publish(channel, `abort ${job}`);
        }
        await eventually(() => assert.equal(heard.size, jobs.length), 1000);
      };
      await allHeard();
      assert.equal(restored, 0, 'nothing was missed');
      // Redis ends the connections whose channels a user has lost.
      await redis.setUser(false);
      await delay(2500);
      assert.equal(restored, 0, 'it took a refusal for a subscription');
      await redis.setUser(true);
      await eventually(allHeard, 15_000);
      assert.ok(restored > 0, 'nobody was told to look for what was missed');
      const before = restored;
      await redis.endSubscriptions();
      await eventually(() => assert.ok(restored > before, 'the end of a connection was not told'), 10_000);
      await eventually(allHeard, 10_000);
    });
  }

  test('api and worker live on, say so once, and stream again once the right is back', async (t) => {
    const redis = await (kinds['one Redis'] as (t: TestContext) => Promise<RedisOfUser>)(t);
    await redis.setUser(true);
    const gateway = await TestGateway.start({ redisUrl: redis.url });
    t.after(() => gateway.stop());
    await gateway.client().chat.completions.create(held('Hi'));
    await redis.setUser(false);
    const processes = [...gateway.apis, ...gateway.workers];
    for (const process of processes) {
      await eventually(() => assert.equal(linesOf(process, refusedMessage).length, 1), 10_000);
    }
    await delay(3000);
    for (const process of processes) {
      assert.equal(process.child.exitCode ?? process.child.signalCode, null, process.output().slice(-2000));
      assert.equal(linesOf(process, refusedMessage).length, 1, 'each attempt is logged');
    }
    await redis.setUser(true);
    for (const process of processes) {
      await eventually(() => assert.equal(linesOf(process, 'subscribed to answers again').length, 1), 10_000);
    }
    const chunks = await gateway.client().chat.completions.create(streamed('WORDS:20@100'));
    assert.equal((await streamedText(chunks)).trim().split(' ').length, 20);
  });
});
