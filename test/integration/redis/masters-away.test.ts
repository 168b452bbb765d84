import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Inbox, readerOf } from '../../../shared/jobs/inbox.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { connectRedis, type RedisClient, type RedisHandle } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { eventually } from '../../support/eventually.ts';
import type { TestRedis } from '../../support/redis.ts';
import { startRedisCluster, type TestRedisCluster } from '../../support/redis-cluster.ts';

const { log } = createLogger('silent', 'test');
const processId = readerOf('api');
/** Of many tags, of which a Cluster has some on each node. */
const jobs = Array.from({ length: 100 }, (_, index) => String(index).padStart(32, '0'));

interface Listening {
  readonly cluster: TestRedisCluster;
  readonly handle: RedisHandle;
  /** The clients by which the inbox has subscribed, the present one last. */
  readonly subscribers: readonly RedisClient[];
  /** How often it has been told that it may have missed messages. */
  readonly restored: () => number;
  readonly heard: Set<string>;
}

/** An inbox on a Cluster of three masters. */
async function listen(t: TestContext): Promise<Listening> {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  const handle = await connectRedis(cluster.url, log);
  t.after(() => handle.close());
  const subscribers: RedisClient[] = [];
  const subscriber = (): RedisClient => {
    subscribers.push(handle.subscriber());
    return subscribers.at(-1) as RedisClient;
  };
  const heard = new Set<string>();
  let restored = 0;
  const listener = { abort: (id: string) => heard.add(id), resubscribed: () => restored++ };
  const inbox = await Inbox.open({ ...handle, subscriber }, processId, listener, log);
  t.after(() => inbox.close());
  return { cluster, handle, subscribers, heard, restored: () => restored };
}

/** Resolves at the client's next such event. Not `once` of Node's events: a lost connection is an `error`, too. */
function next(client: RedisClient, event: string): Promise<void> {
  return new Promise((resolve) => {
    client.once(event, () => resolve());
  });
}

async function assertAllHeard({ handle, heard }: Listening): Promise<void> {
  heard.clear();
  const sent = jobs.map((job) => handle.client.spublish(`${jobKeys.inboxPrefix(job)}${processId}`, `abort ${job}`));
  await Promise.all(sent);
  await eventually(() => assert.equal(heard.size, jobs.length), 1000);
}

test('live messages come again after all masters of a Cluster were away at once, and are known to have been missed', {
  timeout: 120_000,
}, async (t) => {
  const listening = await listen(t);
  const { cluster, subscribers, restored } = listening;
  await assertAllHeard(listening);
  const [subscriber] = subscribers as [RedisClient];
  const [first, ...others] = cluster.nodes as [TestRedis, ...TestRedis[]];
  const isLost = next(subscriber, 'reconnecting');
  await Promise.all(cluster.nodes.map((node) => node.kill()));
  await isLost;
  await first.restart();
  // A master that has not found the others is left as soon as it is met, while connections to subscribe by are under way.
  for (let meetings = 0; meetings < 3; meetings++) {
    await next(subscriber, 'connect');
    await next(subscriber, 'reconnecting');
  }
  await Promise.all(others.map((node) => node.restart()));
  await eventually(() => assert.ok(restored() > 0, 'nothing is subscribed anew'), 30_000);
  await eventually(() => assertAllHeard(listening), 30_000);
});

test('while a master of a Cluster is away, a client that subscribes looks for another one twice a second, not all the time', {
  timeout: 60_000,
}, async (t) => {
  const { cluster, subscribers } = await listen(t);
  const [subscriber] = subscribers as [RedisClient];
  await cluster.nodes[0]?.kill();
  await next(subscriber, 'refresh');
  const startedAt = performance.now();
  for (let looks = 0; looks < 4; looks++) await next(subscriber, 'refresh');
  // Three pauses at least: the first look may have begun before the count.
  assert.ok(performance.now() - startedAt > 1400, 'looks follow each other at once');
});
