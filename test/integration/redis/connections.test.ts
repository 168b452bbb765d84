import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { describe, test } from 'node:test';
import { Queue, Worker } from 'bullmq';
import { Inbox } from '../../../shared/jobs/inbox.ts';
import { queueOptions } from '../../../shared/queue/queue.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { connectRedis, type RedisHandle } from '../../../shared/redis/redis.ts';
import { checkRedisMemory } from '../../../shared/redis/redis-memory.ts';
import { loadScript } from '../../../shared/redis/script.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { redisKinds } from '../../support/redis-kinds/redis-kinds.ts';

const { log } = createLogger('silent', 'test');
const attach = loadScript<number>(new URL('../../../shared/jobs/attach.lua', import.meta.url));

/** Live messages over a connection of their own. */
async function receiveMessage(handle: RedisHandle): Promise<void> {
  const process = randomUUID();
  const job = randomUUID().replaceAll('-', '');
  const listener = new EventEmitter();
  const heard = once(listener, 'abort');
  const inbox = await Inbox.open(handle, process, { abort: (id) => listener.emit('abort', id) }, log);
  const channel = `${jobKeys.inboxPrefix(job)}${process}`;
  if (handle.isCluster) await handle.client.spublish(channel, `abort ${job}`);
  else await handle.client.publish(channel, `abort ${job}`);
  assert.deepEqual(await heard, [job]);
  inbox.close();
}

/** A wait that blocks a connection of its own. */
async function waitForMarker(handle: RedisHandle): Promise<void> {
  const waiting = handle.blocking();
  const key = `sluice:{q-chat}:${randomUUID()}`;
  const popped = waiting.bzpopmin(key, 10);
  await handle.client.zadd(key, 7, 'marker');
  assert.deepEqual(await popped, [key, 'marker', '7']);
  waiting.disconnect();
}

/** BullMQ's Worker, which makes a connection of its own from the one it gets. */
async function runWithBullmq(handle: RedisHandle): Promise<void> {
  const queue = new Queue('video', queueOptions('video', handle.client, {}));
  const worker = new Worker('video', async (job) => job.data.text, queueOptions('video', handle.client, {}));
  const completed = once(worker, 'completed');
  await queue.add('job', { text: 'done' }, { jobId: `job_${randomUUID()}` });
  const [, result] = await completed;
  assert.equal(result, 'done');
  await worker.close();
  await queue.close();
}

describe('connections to Redis', { concurrency: 3 }, () => {
  for (const kind of redisKinds) {
    test(`commands, scripts, messages, blocking waits and BullMQ work on ${kind.name}`, {
      timeout: 60_000,
    }, async () => {
      const started = await kind.start();
      try {
        const handle = await connectRedis(started.url, log, started.tls);
        try {
          assert.equal(handle.isCluster, kind.isCluster ?? false);
          assert.match((await checkRedisMemory(handle.client, false)).join(), /^Redis has no maxmemory/);
          const key = jobKeys.state('0'.repeat(32));
          assert.equal(await attach(handle.client, [key], ['reader']), 0);
          await receiveMessage(handle);
          await waitForMarker(handle);
          await runWithBullmq(handle);
        } finally {
          await handle.close();
        }
      } finally {
        await started.stop();
      }
    });
  }
});
