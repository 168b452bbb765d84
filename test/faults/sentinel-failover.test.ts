import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { Callers, endings } from '../support/faults/callers.ts';
import { isSoak, Load, streamCount, verify } from '../support/faults/load.ts';
import { TestGateway } from '../support/gateway.ts';
import type { TestRedis } from '../support/redis.ts';
import { startSentinel, type TestSentinel } from '../support/redis-kinds/redis-sentinel.ts';

/** How long a killed master may keep all callers from success. */
const maxSilenceMs = 8000;
/** Work goes on for so long after the failover. */
const afterwardsMs = isSoak ? 5000 : 1000;

interface Fault {
  readonly name: string;
  /** Makes the master go. */
  begin(sentinel: TestSentinel): Promise<void>;
  /** Undoes what would hold up the end of the test. */
  end?(master: TestRedis): void;
  readonly maxSilenceMs?: number;
}

const faults: readonly Fault[] = [
  { name: 'is killed', begin: ({ servers: [master] }) => master.kill(), maxSilenceMs },
  ...(isSoak
    ? [
        { name: 'is told to hand over', begin: (sentinel: TestSentinel) => sentinel.failover(), maxSilenceMs },
        {
          name: 'hangs with its connections open',
          begin: async ({ servers: [master] }: TestSentinel) => void process.kill(master.pid, 'SIGSTOP'),
          end: (master: TestRedis) => void process.kill(master.pid, 'SIGCONT'),
        },
      ]
    : []),
];

async function survive(t: TestContext, fault: Fault, sentinel: TestSentinel, gateway: TestGateway): Promise<void> {
  const [master, replica] = sentinel.servers;
  const callers = new Callers(gateway, streamCount(1, 5), streamCount(2, 10));
  const load = new Load(gateway);
  const count = streamCount(6, 50);
  load.add(count, { words: 100, wordsPerSecond: 10 });
  await load.reached(count, 5);
  const successesBefore = callers.successes.length;
  await fault.begin(sentinel);
  await eventually(async () => assert.equal(await sentinel.masterPort(), replica.port), 30_000);
  const atFailover = callers.successes.length;
  await eventually(() => assert.ok(callers.successes.length > atFailover + 2, 'no answer since the failover'), 30_000);
  await delay(afterwardsMs);
  fault.end?.(master);
  await callers.stop();
  const records = await load.records();
  const { accepted, successes, failures, silenceMs } = callers;
  const ended = await endings(gateway, accepted);
  t.diagnostic(
    `a master that ${fault.name}: ${accepted.length} accepted jobs ${JSON.stringify(ended)}, ${successes.length} held answers, ${failures} refused, ${Math.round(silenceMs)} ms without success`,
  );
  assert.ok(successesBefore > 0 && accepted.length > 0);
  assert.deepEqual(ended, { completed: accepted.length });
  if (isSoak && fault.maxSilenceMs !== undefined) assert.ok(silenceMs <= fault.maxSilenceMs, `${silenceMs} ms`);
  const options = { redisUrl: replica.url, hasLostWrites: true };
  await verify(t, `a master that ${fault.name}`, { gateway, records, endings: ['done'], ...options });
}

describe('a failover by Sentinels', { concurrency: 1 }, () => {
  for (const fault of faults) {
    test(`no accepted job and no stream is lost when the master ${fault.name}`, { timeout: 240_000 }, async (t) => {
      const sentinel = await startSentinel({ sentinels: 3, aof: true });
      try {
        const settings = { WORKER_CONCURRENCY_CHAT: '1000' };
        const gateway = await TestGateway.start({ redisUrl: sentinel.url, apis: 2, workers: 2, settings });
        try {
          await survive(t, fault, sentinel, gateway);
        } finally {
          await gateway.stop();
        }
      } finally {
        await sentinel.stop();
      }
    });
  }
});
