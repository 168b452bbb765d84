import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { cpuMicroseconds } from '../../bench/process-usage.ts';
import { held } from '../../support/chat-requests.ts';
import { CommandCounts } from '../../support/command-counts.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const isSoak = process.env.SLUICE_SOAK === '1';
const requests = isSoak ? 30_000 : 1500;
const warmUp = isSoak ? 3000 : 100;
/** Requests under way at a time. */
const callers = 48;
const accounts = 24;
const shards = 16;
/** Bars: the share of the hottest of three masters, and what a request may cost beside one Redis. */
const maxShare = 0.38;
const maxRatio = 1.25;

/** What a request costs, in microseconds of CPU, and the shares of the nodes in Redis's. */
interface Cost {
  readonly api: number;
  readonly worker: number;
  readonly redis: number;
  readonly commands: number;
  readonly shares: readonly number[];
  readonly commandShares: readonly number[];
}

function sharesOf(parts: readonly number[]): number[] {
  const sum = parts.reduce((all, part) => all + part, 0);
  return parts.map((part) => part / sum);
}

/** Sends held requests of many accounts to a gateway on these nodes, and measures what they cost. */
async function measure(redisUrl: string, nodes: readonly TestRedis[], settings: Record<string, string>): Promise<Cost> {
  const gateway = await TestGateway.start({ redisUrl, settings: { LOG_LEVEL: 'warn', ...settings } });
  const clients = nodes.map(({ url }) => new Redis(url));
  try {
    const names = Array.from({ length: accounts }, (_, index) => `account-${index}`);
    const keys: string[] = [];
    for (const accountId of names) keys.push(await makeApiKey(gateway, { accountId }));
    const send = async (count: number): Promise<void> => {
      let left = count;
      const call = async (): Promise<void> => {
        while (left-- > 0) {
          const authorization = `Bearer ${keys[left % keys.length]}`;
          const body = JSON.stringify(held('Hi', { max_tokens: 5 }));
          const init = { method: 'POST', headers: { authorization }, body };
          const response = await gateway.fetch('/v1/chat/completions', init);
          assert.equal(response.status, 200, await response.text());
          if (!response.bodyUsed) await response.arrayBuffer();
        }
      };
      await Promise.all(Array.from({ length: callers }, call));
    };
    await send(warmUp);
    const pids = [gateway.apis[0]?.pid as number, gateway.workers[0]?.pid as number, ...nodes.map(({ pid }) => pid)];
    const counts = clients.map((client) => new CommandCounts(client));
    await Promise.all(counts.map((one) => one.start()));
    const before = pids.map(cpuMicroseconds);
    await send(requests);
    const used = pids.map((pid, index) => (cpuMicroseconds(pid) - (before[index] as number)) / requests);
    const commands = await Promise.all(
      counts.map(async (one) => [...(await one.since()).values()].reduce((sum, calls) => sum + calls, 0)),
    );
    const [api = 0, worker = 0, ...redis] = used;
    return {
      ...{ api, worker, redis: redis.reduce((sum, part) => sum + part, 0), shares: sharesOf(redis) },
      commands: commands.reduce((sum, part) => sum + part, 0) / requests,
      commandShares: sharesOf(commands),
    };
  } finally {
    for (const client of clients) client.disconnect();
    await gateway.stop();
  }
}

function tell(t: TestContext, name: string, cost: Cost): void {
  const percents = (shares: readonly number[]) => shares.map((share) => `${Math.round(share * 100)} %`).join(', ');
  t.diagnostic(
    `${name}: api ${cost.api.toFixed(0)} µs, worker ${cost.worker.toFixed(0)} µs, Redis ${cost.redis.toFixed(0)} µs ` +
      `(${percents(cost.shares)}), ${cost.commands.toFixed(1)} commands (${percents(cost.commandShares)})`,
  );
}

describe('the load of three masters', () => {
  it(`of ${requests} held requests the hottest of three masters has at most ${maxShare * 100} % of the commands`, async (t) => {
    const cluster = await startRedisCluster();
    const settings = { SLUICE_QUEUE_SHARDS: process.env.SHARDS ?? String(shards) };
    const three = await measure(cluster.url, cluster.nodes, settings).finally(() => cluster.stop());
    tell(t, 'three masters', three);
    assert.ok(Math.max(...three.commandShares) <= maxShare, String(three.commandShares));
    if (!isSoak) return;
    const server = await startRedis();
    const one = await measure(server.url, [server], {}).finally(() => server.stop());
    tell(t, 'one Redis', one);
    t.diagnostic(`ratios: api ${(three.api / one.api).toFixed(2)}, worker ${(three.worker / one.worker).toFixed(2)}`);
    assert.ok(Math.max(...three.shares) <= maxShare);
    assert.ok(three.api <= maxRatio * one.api && three.worker <= maxRatio * one.worker);
  });
});
