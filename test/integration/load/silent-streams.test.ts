import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { streamed } from '../../support/chat-requests.ts';
import { CommandCounts } from '../../support/command-counts.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

const isSoak = process.env.SLUICE_SOAK === '1';
const streams = isSoak ? 4000 : 500;
/** Several rounds of leases, claims, readers and the sweeper. */
const windowMs = isSoak ? 60_000 : 12_000;
/** Commands a second that an open stream may cost Redis while its vendor is silent, with those inside scripts. */
const maxCommands = 0.3;
const tags = 64;

describe('streams whose vendors are silent', () => {
  let gateway: TestGateway;
  let redis: Redis;
  const left = new AbortController();
  before(async () => {
    gateway = await TestGateway.start({
      settings: { WORKER_CONCURRENCY_CHAT: '10000' },
    });
    redis = new Redis(gateway.redisUrl);
  });
  after(async () => {
    left.abort();
    redis?.disconnect();
    await gateway?.stop();
  });

  /** Opens a stream, and waits for its first token. */
  async function open(): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const request = streamed('WORDS:20', { sandbox: { fault: { kind: 'silence', after_tokens: 1 } } });
    const init = { method: 'POST', body: JSON.stringify(request), signal: left.signal };
    const response = await gateway.fetch('/v1/chat/completions', init);
    assert.equal(response.status, 200);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    assert.equal((await reader.read()).done, false);
    return reader;
  }

  async function silentJobs(): Promise<number> {
    const keys = Array.from({ length: tags }, (_, tag) => `sluice:{a${tag}}:leases`);
    const counts = await Promise.all(keys.map((key) => redis.hlen(key)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Commands a second in a window of time, by name. */
  async function commandRates(): Promise<Map<string, number>> {
    const counts = new CommandCounts(redis);
    await counts.start();
    await delay(windowMs);
    return new Map([...(await counts.since())].map(([name, calls]) => [name, (calls * 1000) / windowMs]));
  }

  it(`each of ${streams} silent streams costs Redis at most ${maxCommands} commands a second, and all end with their callers`, async (t) => {
    const idle = await commandRates();
    const readers: ReadableStreamDefaultReader<Uint8Array>[] = [];
    while (readers.length < streams) readers.push(...(await Promise.all(Array.from({ length: 50 }, open))));
    await eventually(async () => assert.equal(await silentJobs(), streams), 60_000);
    const busy = await commandRates();
    assert.equal(await silentJobs(), streams);
    const costs = [...busy].map(([name, rate]) => [name, (rate - (idle.get(name) ?? 0)) / streams] as const);
    const sum = costs.reduce((all, [, cost]) => all + cost, 0);
    const shown = costs.filter(([, cost]) => cost > 0.001).map(([name, cost]) => `${name} ${cost.toFixed(3)}`);
    t.diagnostic(`${sum.toFixed(3)} commands a second and stream: ${shown.join(', ')}`);
    assert.ok(sum <= maxCommands, `${sum}`);
    left.abort();
    await eventually(async () => assert.equal(await silentJobs(), 0), 60_000);
  });
});
