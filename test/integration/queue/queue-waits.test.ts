import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { JobConsumerOptions } from '../../../workers/queue/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const { connectRedis } = await loadProduct<typeof import('../../../shared/redis/redis.ts')>('shared/redis/redis');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

describe('waiting of a job consumer', () => {
  let queues: QueueFixture;
  before(async () => {
    queues = await QueueFixture.start();
  });
  after(() => queues?.stop());

  test('a job consumer runs a job that Redis gives it during its close', async () => {
    queues.newQueue();
    const { waiting, waits } = await queues.waitingConnection();
    const { ran, run } = noting();
    const consumer = queues.consume(run, { waiting });
    await eventually(waits);
    const one = queues.job();
    const script = `redis.call('HSET', KEYS[1] .. 'job_' .. ARGV[1], 'data', ARGV[2])
      redis.call('LPUSH', KEYS[1] .. 'wait', 'job_' .. ARGV[1])
      redis.call('ZADD', KEYS[1] .. 'marker', '0', '0')`;
    const putting = queues.jobs.redis.eval(script, 1, queues.keysPrefix, one.id, JSON.stringify(one));
    // Redis gives the job away meanwhile, and this process cannot hear of it before it closes.
    const until = performance.now() + 100;
    while (performance.now() < until);
    await Promise.all([consumer.close(), putting]);
    assert.deepEqual(ran, [one.id]);
    await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
  });

  test('a job consumer claims a job over the connection on which it waits', async () => {
    queues.newQueue();
    const { waiting, waits } = await queues.waitingConnection();
    const commands = queues.redis.blocking();
    const { ran, run } = noting();
    queues.consume(run, { waiting, redis: commands });
    await eventually(waits);
    commands.disconnect();
    const ids = await queues.put(1);
    await eventually(() => assert.deepEqual(ran, ids));
  });

  test('a job consumer runs a job that was added behind a failed wait', async () => {
    queues.newQueue();
    const { id, waiting, waits } = await queues.waitingConnection();
    const { ran, run } = noting();
    queues.consume(run, { waiting });
    await eventually(waits);
    const given = await queues.queueWithState(queues.job());
    // As when its node becomes a replica.
    await queues.jobs.redis.client('UNBLOCK', id, 'ERROR');
    await eventually(() => assert.deepEqual(ran, [given]));
  });

  test("a job whose claim's reply was lost is claimed again as soon as one of a dead worker", async (t) => {
    queues.newQueue();
    const proxy = await startTcpProxy(queues.jobs.server.port);
    const redis = await connectRedis(proxy.url, createLogger('silent', 'test').log);
    const { ran, run } = noting();
    const consumer = queues.consume(run, { workerId: 'loser', lockMs: 1500, waiting: redis.blocking() });
    t.after(async () => {
      await consumer.close();
      await redis.close();
      await proxy.close();
    });
    let isReported = false;
    const isClaim = (part: string): boolean => part.startsWith('loser:');
    const lost = proxy.stopAt({ stop: 'reset', matches: (command) => isReported && command.some(isClaim) });
    await eventually(async () => assert.ok(await queues.jobs.redis.zscore(queues.workersKey, 'loser'), 'no report'));
    isReported = true;
    // After the first one the consumer waits anew, and the second one is claimed for a reader that is gone.
    const [first] = await queues.put(1);
    await eventually(() => assert.deepEqual(ran, [first]));
    // The call that removes it, on the other connection, could claim the second one, too.
    await eventually(async () => assert.equal(await queues.queue.has(first as string), false));
    const [second] = await queues.put(1);
    await lost;
    assert.deepEqual(ran, [first]);
    await eventually(() => assert.deepEqual(ran, [first, second]), 5000);
  });

  test('a job consumer closes soon while Redis does not answer', async () => {
    queues.newQueue();
    const { waiting, waits } = await queues.waitingConnection();
    const consumer = queues.consume(async () => 'done', { waiting });
    await eventually(waits);
    await queues.jobs.redis.client('PAUSE', 3000, 'ALL');
    let answers = false;
    const answer = queues.jobs.redis.ping().then(() => {
      answers = true;
    });
    await consumer.close();
    assert.equal(answers, false);
    await answer;
  });

  test('a job consumer whose connections are lost closes all the same', { timeout: 30_000 }, async (t) => {
    queues.newQueue();
    const proxy = await startTcpProxy(queues.jobs.server.port);
    const redis = await connectRedis(proxy.url, createLogger('silent', 'test').log);
    t.after(() => redis.close());
    const waiting = redis.blocking();
    const { ran, run } = noting();
    const consumer = queues.consume(run, { waiting, redis: redis.client });
    const [job] = await queues.put(1);
    await eventually(() => assert.deepEqual(ran, [job]));
    const lost = [waiting, redis.client].map(
      (client) => new Promise<void>((resolve) => client.once('reconnecting', resolve)),
    );
    await proxy.close();
    await Promise.all(lost);
    await consumer.close();
  });

  test('a job consumer without a free slot leaves the marker of waiting jobs to one with a slot', async (t) => {
    queues.newQueue();
    const ends: (() => void)[] = [];
    t.after(() => {
      for (const end of ends) end();
    });
    const ran: string[][] = [[], []];
    const holding = (taken: string[]) => {
      const run: JobConsumerOptions['run'] = ({ job }) => {
        taken.push(job.id);
        return new Promise((resolve) => ends.push(() => resolve('done')));
      };
      return { run, concurrency: 1 };
    };
    const [full, free] = ran.map(holding) as [ReturnType<typeof holding>, ReturnType<typeof holding>];
    const first = await queues.waitingConnection();
    queues.consume(full.run, { ...full, waiting: first.waiting });
    await eventually(first.waits);
    const [long] = await queues.put(1);
    await eventually(() => assert.deepEqual(ran[0], [long]));
    const second = await queues.waitingConnection();
    queues.consume(free.run, { ...free, waiting: second.waiting });
    await eventually(second.waits);
    const [next] = await queues.put(1);
    // Sooner than the free one would look by itself.
    await eventually(() => assert.deepEqual(ran[1], [next]), 2500);
  });

  test('a job consumer gets nothing from a paused queue, until it is resumed', async () => {
    queues.newQueue();
    await (await queues.queue.bull()).pause();
    const [paused] = await queues.put(1);
    const { ran, run } = noting();
    const { waiting, waits } = await queues.waitingConnection();
    queues.consume(run, { waiting });
    await eventually(waits);
    assert.deepEqual(ran, []);
    await (await queues.queue.bull()).resume();
    await eventually(() => assert.deepEqual(ran, [paused]));
  });
});
