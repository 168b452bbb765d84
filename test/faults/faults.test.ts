import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Ending, readJournal } from '../support/faults/checker.ts';
import { type StoppingPoint, scripts, startDoomedWorkers } from '../support/faults/doomed-worker.ts';
import { isSoak, Load, streamCount, verify } from '../support/faults/load.ts';
import { megabytes, peakWhile } from '../support/faults/resident-memory.ts';
import { replay, type StreamRecord } from '../support/faults/stream-client.ts';
import { TestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis.ts';
import { type RedisCommand, startTcpProxy } from '../support/tcp-proxy.ts';

/** Where a worker is killed, and what comes of it. */
interface Phase extends StoppingPoint {
  readonly name: string;
  /** What becomes of the job that was hit, and how often the vendor is asked for it. */
  readonly ending: Ending;
  readonly vendorCalls: number;
}

const phases: readonly Phase[] = [
  { name: 'before begin', script: 'begin', stop: 'before', call: 1, ending: 'done', vendorCalls: 1 },
  { name: 'before the first frame', script: 'append', stop: 'before', call: 1, ending: 'done', vendorCalls: 2 },
  { name: 'mid-stream', script: 'append', stop: 'after', call: 2, ending: 'stream_interrupted', vendorCalls: 1 },
  ...(['before', 'after'] as const).map((stop) => ({
    ...{ name: `${stop} frames are in its journal only`, script: 'write-journal', stop, call: 2 },
    ...{ ending: 'stream_interrupted' as const, vendorCalls: 1 },
  })),
  { name: 'right after finish', script: 'finish', stop: 'after', call: 1, ending: 'done', vendorCalls: 1 },
  { name: 'between finish and settle', script: 'settle', stop: 'before', call: 1, ending: 'done', vendorCalls: 1 },
  { name: 'right after settle', script: 'settle', stop: 'after', call: 1, ending: 'done', vendorCalls: 1 },
];

describe('streams across faults', { concurrency: isSoak ? 1 : 4 }, () => {
  test('a worker killed in any phase of a job loses no token and repeats no vendor call after its first frame', async (t) => {
    const gateway = await TestGateway.start({ workers: 0 });
    const victims: { phase: Phase; job: string }[] = [];
    const records: StreamRecord[] = [];
    try {
      for (let round = 0; round < streamCount(1, 8); round++) {
        const hit = new Set<string>();
        const { hits } = await startDoomedWorkers(gateway, phases, { WORKER_CONCURRENCY_CHAT: '4' }, hit);
        const load = new Load(gateway);
        load.add(streamCount(40, 75), { words: 20, wordsPerSecond: 20, firstTokenMs: 100 });
        // Those are begun as they are taken; these by a call of its own.
        load.add(streamCount(8, 15), { words: 20, wordsPerSecond: 20, firstTokenMs: 100, isLarge: true });
        const jobs = await hits;
        victims.push(...phases.map((phase, index) => ({ phase, job: jobs[index] as string })));
        const survivor = await gateway.startWorker();
        records.push(...(await load.records()));
        await survivor.stop();
      }
      const journal = await readJournal(gateway.sandbox.url);
      await gateway.startWorker();
      await verify(t, 'worker SIGKILL', {
        ...{ gateway, records, endings: ['done', 'stream_interrupted'], hasDeadWorkers: true },
      });
      for (const { phase, job } of victims) {
        const victim = records.find((record) => record.jobId === `job_${job}`);
        assert.ok(victim, `${phase.name}: no client has the job ${job}`);
        const last = victim.events.at(-1)?.data ?? '';
        const ending = last === '[DONE]' ? 'done' : JSON.parse(last).error.code;
        const calls = journal.get(victim.tries.at(-1) as string) ?? [];
        t.diagnostic(`worker SIGKILL ${phase.name}: ended ${ending}, ${calls.length} vendor calls`);
        assert.equal(ending, phase.ending, phase.name);
        assert.equal(calls.length, phase.vendorCalls, `vendor calls: ${phase.name}`);
      }
    } finally {
      await gateway.stop();
    }
  });

  test('a worker frozen longer than its lock and lease cannot harm the jobs that others took over', async (t) => {
    const count = streamCount(8, 100);
    // As many places as jobs: each worker gets half of them.
    const gateway = await TestGateway.start({ workers: 2, settings: { WORKER_CONCURRENCY_CHAT: String(count) } });
    try {
      const load = new Load(gateway);
      for (let pair = 0; pair < count; pair++) {
        load.add(1, { words: 60, wordsPerSecond: 5 });
        // Begun but silent when the worker freezes, so run again; the answers of both attempts overlap when it is back. Silent, and
        // the others at work, for longer than a slow machine takes to begin them all.
        load.add(1, { words: 60, wordsPerSecond: 5, firstTokenMs: 10_000 });
      }
      await load.reached(count, 3);
      const frozen = gateway.workers[0];
      frozen?.child.kill('SIGSTOP');
      await delay(26_000);
      frozen?.child.kill('SIGCONT');
      const records = await load.records();
      const summary = await verify(t, 'worker SIGSTOP 26 s', {
        gateway,
        records,
        endings: ['done', 'stream_interrupted'],
      });
      assert.ok(summary.rerun > 0, 'no job was taken over: the test did not hit what it is for');
      assert.ok(summary.interrupted > 0, 'no stream was interrupted: the test did not hit what it is for');
    } finally {
      await gateway.stop();
    }
  });

  test('streams survive 5 s without any connection to Redis', async (t) => {
    const redis = await startRedis();
    const proxy = await startTcpProxy(redis.port);
    const gateway = await TestGateway.start({ redisUrl: proxy.url });
    try {
      const load = new Load(gateway);
      const count = streamCount(14, 250);
      load.add(count, { words: 40, wordsPerSecond: 10 });
      await load.reached(count, 5);
      proxy.cut();
      load.add(Math.ceil(count / 4), { words: 10, wordsPerSecond: 10 });
      await delay(5000);
      proxy.restore();
      const records = await load.records();
      await verify(t, 'Redis cut off for 5 s', { gateway, records, endings: ['done'], redisUrl: redis.url });
    } finally {
      await gateway.stop();
      await proxy.close();
      await redis.stop();
    }
  });

  test('Redis commands whose replies were lost are sent again and change nothing', async (t) => {
    const redis = await startRedis();
    const proxy = await startTcpProxy(redis.port);
    const gateway = await TestGateway.start({ redisUrl: proxy.url });
    try {
      const load = new Load(gateway);
      for (const script of [
        'admit',
        'enqueue',
        'claim-jobs',
        'begin',
        'append',
        'write-journal',
        'append',
        'finish',
        'settle',
      ]) {
        // Of the queue that the load is in: workers wait for the jobs of each.
        const isOurs = (command: RedisCommand): boolean =>
          script !== 'claim-jobs' || /\{q-chat\}/.test(`${command[3]}`);
        const matches = (command: RedisCommand): boolean => scripts.nameOf(command) === script && isOurs(command);
        const lost = proxy.stopAt({ stop: 'reset', matches });
        // Small requests are queued with their admission.
        const isLarge = script === 'enqueue' || script === 'begin';
        load.add(streamCount(2, 20), { words: 15, wordsPerSecond: 20, isLarge });
        await lost;
      }
      const records = await load.records();
      await verify(t, 'lost answers of Redis', { gateway, records, endings: ['done'], redisUrl: redis.url });
    } finally {
      await gateway.stop();
      await proxy.close();
      await redis.stop();
    }
  });

  test('streams survive a Redis that is killed and comes back with its append-only file', async (t) => {
    const gateway = await TestGateway.start({ aof: true });
    try {
      const load = new Load(gateway);
      const count = streamCount(14, 250);
      load.add(count, { words: 40, wordsPerSecond: 10 });
      load.add(Math.ceil(count / 4), { words: 10, wordsPerSecond: 10, firstTokenMs: 2000 });
      await load.reached(count, 5);
      await gateway.redis?.kill();
      await delay(1000);
      await gateway.redis?.restart();
      const records = await load.records();
      await verify(t, 'Redis SIGKILL, back with AOF', { gateway, records, endings: ['done'] });
    } finally {
      await gateway.stop();
    }
  });

  test('streams of a killed api continue at another api', async (t) => {
    const gateway = await TestGateway.start({ apis: 2 });
    try {
      const load = new Load(gateway);
      const count = streamCount(16, 350);
      // None ends before the last has begun.
      load.add(count, { words: 40, wordsPerSecond: 5 });
      // These have no status yet when it dies: their clients do not know their jobs, and ask again.
      load.add(Math.ceil(count / 4), { words: 10, wordsPerSecond: 10, firstTokenMs: 4000 });
      await load.reached(count, 5);
      await gateway.apis[0]?.kill();
      const records = await load.records();
      const summary = await verify(t, 'ingress SIGKILL', { gateway, records, endings: ['done'] });
      assert.ok(summary.resumed >= Math.floor(count / 2), 'too few streams were resumed');
    } finally {
      await gateway.stop();
    }
  });

  test('a request whose api dies before it is queued is sent again, and leaves nothing behind', async (t) => {
    const gateway = await TestGateway.start({ workers: 1 });
    const proxy = await startTcpProxy(gateway.redis?.port as number);
    try {
      // The API key is known to Redis from here on: else admission takes two steps, and some would die between them.
      const first = new Load(gateway);
      first.add(1, { words: 1 });
      await first.records();
      const doomed = await gateway.startApi({ REDIS_URL: proxy.url });
      const stopped = proxy.stopAt({
        stop: 'before',
        matches: (command) => scripts.nameOf(command) === 'enqueue',
      });
      const load = new Load(gateway);
      const count = streamCount(4, 50);
      const isAlive = () => doomed.child.signalCode === null;
      load.add(count, { words: 5, isLarge: true, apis: () => [isAlive() ? doomed.url : gateway.url] });
      await stopped;
      await doomed.kill();
      const summary = await verify(t, 'ingress SIGKILL before the queue', {
        ...{ gateway, records: await load.records(), endings: ['done'] as const },
      });
      assert.ok(summary.sentAgain > 0);
    } finally {
      await gateway.stop();
      await proxy.close();
    }
  });

  test('clients that reset their connection resume at any api, and cancel without x-sluice-on-disconnect: continue', async (t) => {
    const gateway = await TestGateway.start({ apis: 2 });
    try {
      const load = new Load(gateway);
      const resets = new Set([4, 5, 19, 41]);
      load.add(streamCount(16, 350), {
        // No answer is sent whole before its first reset: it would be kept for 5 s only.
        words: 40,
        wordsPerSecond: 5,
        headers: { 'x-sluice-on-disconnect': 'continue' },
        onEvent: (count, connection) => {
          if (resets.has(count)) connection.reset();
        },
      });
      const records = await load.records();
      for (const record of records.slice(0, 3)) {
        const again = await replay(record, gateway.url);
        assert.deepEqual(again.events.map(identity), record.events.map(identity), 'a replay shows the same events');
      }
      await verify(t, 'client RST, continue', { gateway, records, endings: ['done'] });
      const leavers = new Load(gateway);
      leavers.add(streamCount(4, 50), {
        words: 100,
        wordsPerSecond: 5,
        onEvent: (count, connection) => {
          if (count === 6) connection.reset();
        },
      });
      const cancelled = await leavers.records();
      await verify(t, 'client RST, plain', { gateway, records: cancelled, endings: ['cancelled'] });
    } finally {
      await gateway.stop();
    }
  });

  test('clients that stop reading lose nothing, and the api does not hold their answers in memory', async (t) => {
    const gateway = await TestGateway.start({ apis: 0 });
    try {
      // A heap that the unread answers would not fit into. A small young generation, so that the figure shows what is held.
      const api = await gateway.startApi({ NODE_OPTIONS: '--max-old-space-size=96 --max-semi-space-size=1' });
      const load = new Load(gateway);
      load.add(streamCount(5, 20), {
        words: streamCount(100_000, 25_000),
        onEvent: (events, connection) => {
          if (events === 50) connection.pause(6000);
        },
      });
      const peak = await peakWhile(api, load.records());
      const records = await load.records();
      const size = records.reduce((sum, { events }) => sum + events.reduce((all, { data }) => all + data.length, 0), 0);
      assert.ok(size > 100_000_000, 'the answers would have fitted');
      assert.equal(api.child.exitCode ?? api.child.signalCode, null, api.output().slice(-2000));
      t.diagnostic(`slow reader: ${megabytes(size)} MB of events, ingress at most ${megabytes(peak)} MB resident`);
      await verify(t, 'slow reader', { gateway, records, endings: ['done'] });
    } finally {
      await gateway.stop();
    }
  });
});

function identity(event: { id: string; data: string }): string {
  return `${event.id} ${event.data}`;
}
