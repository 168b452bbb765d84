import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { held } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
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

/** Callers that ask again as long as they are let, and what they got. */
class Callers {
  readonly accepted: string[] = [];
  readonly successes: number[] = [];
  failures = 0;
  readonly #gateway: TestGateway;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(gateway: TestGateway, jobs: number, holders: number) {
    this.#gateway = gateway;
    for (let index = 0; index < jobs; index++) this.#running.push(this.#repeat({ prefer: 'respond-async' }, 200));
    for (let index = 0; index < holders; index++) this.#running.push(this.#repeat({}, 50));
  }

  async #repeat(headers: Record<string, string>, pauseMs: number): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const response = await this.#gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        headers,
        body: JSON.stringify(held('WORDS:5@50')),
      });
      const { id } = (await response.json()) as { id: string };
      if (!response.ok) this.failures++;
      else if (response.status === 202) this.accepted.push(id);
      else this.successes.push(performance.now());
      await delay(pauseMs);
    }
  }

  /** Resolves when the last request has been answered. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#running);
  }

  /** The longest time without a held answer, in ms. */
  get silenceMs(): number {
    const times = [...this.successes].sort((one, other) => one - other);
    return Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)));
  }
}

/** How every accepted job ended, by its status. */
async function endings(gateway: TestGateway, ids: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const id of ids) {
    const status = await eventually(async () => {
      const response = await gateway.fetch(`/v1/jobs/${id}`);
      assert.equal(response.status, 200, await response.clone().text());
      const job = (await response.json()) as { status: string };
      assert.ok(job.status !== 'queued' && job.status !== 'running' && job.status !== 'in_progress', job.status);
      return job.status;
    }, 60_000);
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

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
