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
/** The gateways are started so often, as starts of the same build differ by a tenth, and measured in turns, to and fro. */
const starts = isSoak ? 5 : 1;
const rounds = isSoak ? 4 : 1;
const requests = isSoak ? 2000 : 1500;
const warmUp = isSoak ? 2000 : 100;
/** Requests under way at a time. */
const callers = 48;
const accounts = 24;
/** One for each master. */
const shards = 3;
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

/** A gateway on some nodes, with keys of many accounts, whose cost is added up over all that was measured of it. */
class MeasuredGateway {
  readonly #gateway: TestGateway;
  readonly #keys: readonly string[];
  readonly #clients: readonly Redis[];
  readonly #pids: readonly number[];
  readonly #used: number[];
  readonly #commands: number[];
  #requests = 0;

  private constructor(gateway: TestGateway, keys: readonly string[], nodes: readonly TestRedis[]) {
    this.#gateway = gateway;
    this.#keys = keys;
    this.#clients = nodes.map(({ url }) => new Redis(url));
    this.#pids = [gateway.apis[0]?.pid as number, gateway.workers[0]?.pid as number, ...nodes.map(({ pid }) => pid)];
    this.#used = this.#pids.map(() => 0);
    this.#commands = nodes.map(() => 0);
  }

  static async start(
    redisUrl: string,
    nodes: readonly TestRedis[],
    settings: Record<string, string>,
  ): Promise<MeasuredGateway> {
    const gateway = await TestGateway.start({ redisUrl, settings: { LOG_LEVEL: 'warn', ...settings } });
    const keys: string[] = [];
    for (let index = 0; index < accounts; index++) {
      keys.push(await makeApiKey(gateway, { accountId: `account-${index}` }));
    }
    const measured = new MeasuredGateway(gateway, keys, nodes);
    await measured.#send(warmUp);
    return measured;
  }

  /** Sends held requests of all accounts, and adds what they cost. */
  async measure(): Promise<void> {
    const counts = this.#clients.map((client) => new CommandCounts(client));
    await Promise.all(counts.map((one) => one.start()));
    const before = this.#pids.map(cpuMicroseconds);
    await this.#send(requests);
    for (const [index, pid] of this.#pids.entries()) {
      this.#used[index] = (this.#used[index] as number) + cpuMicroseconds(pid) - (before[index] as number);
    }
    for (const [index, one] of counts.entries()) {
      const calls = [...(await one.since()).values()].reduce((sum, count) => sum + count, 0);
      this.#commands[index] = (this.#commands[index] as number) + calls;
    }
    this.#requests += requests;
  }

  get cost(): Cost {
    const [api = 0, worker = 0, ...redis] = this.#used.map((used) => used / this.#requests);
    const sum = (parts: readonly number[]): number => parts.reduce((all, part) => all + part, 0);
    return {
      ...{ api, worker, redis: sum(redis), shares: sharesOf(redis) },
      ...{ commands: sum(this.#commands) / this.#requests, commandShares: sharesOf(this.#commands) },
    };
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    await this.#gateway.stop();
  }

  async #send(count: number): Promise<void> {
    let left = count;
    const call = async (): Promise<void> => {
      while (left-- > 0) {
        const authorization = `Bearer ${this.#keys[left % accounts]}`;
        const body = JSON.stringify(held('Hi', { max_tokens: 5 }));
        const init = { method: 'POST', headers: { authorization }, body };
        const response = await this.#gateway.fetch('/v1/chat/completions', init);
        assert.equal(response.status, 200, await response.text());
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
  }
}

function tell(t: TestContext, name: string, cost: Cost): void {
  const percents = (shares: readonly number[]) => shares.map((share) => `${Math.round(share * 100)} %`).join(', ');
  t.diagnostic(
    `${name}: api ${cost.api.toFixed(0)} µs, worker ${cost.worker.toFixed(0)} µs, Redis ${cost.redis.toFixed(0)} µs ` +
      `(${percents(cost.shares)}), ${cost.commands.toFixed(1)} commands (${percents(cost.commandShares)})`,
  );
}

/** Measures a gateway on three masters and, in the soak, one on one Redis in turns. @param opened what is to be stopped, the last first */
async function compare(
  opened: { stop(): Promise<void> }[],
): Promise<{ readonly three: Cost; readonly one: Cost | undefined }> {
  const open = <Opened extends { stop(): Promise<void> }>(started: Opened): Opened => {
    opened.push(started);
    return started;
  };
  const cluster = open(await startRedisCluster());
  const settings = { SLUICE_QUEUE_SHARDS: String(shards) };
  const onThree = open(await MeasuredGateway.start(cluster.url, cluster.nodes, settings));
  const server = isSoak ? open(await startRedis()) : undefined;
  const onOne = server && open(await MeasuredGateway.start(server.url, [server], {}));
  for (let round = 0; round < rounds; round++) {
    const inTurn = round % 2 === 0 ? [onThree, onOne] : [onOne, onThree];
    for (const gateway of inTurn) await gateway?.measure();
  }
  return { three: onThree.cost, one: onOne?.cost };
}

describe('the load of three masters', () => {
  const ratios: { readonly api: number; readonly worker: number }[] = [];

  for (let start = 1; start <= starts; start++) {
    it(`of ${rounds * requests} held requests the hottest of three masters has at most ${maxShare * 100} % of the commands, start ${start}`, async (t) => {
      const opened: { stop(): Promise<void> }[] = [];
      t.after(async () => {
        for (const one of opened.reverse()) await one.stop();
      });
      const { three, one } = await compare(opened);
      tell(t, 'three masters', three);
      assert.ok(Math.max(...three.commandShares) <= maxShare, String(three.commandShares));
      if (one === undefined) return;
      tell(t, 'one Redis', one);
      assert.ok(Math.max(...three.shares) <= maxShare, String(three.shares));
      ratios.push({ api: three.api / one.api, worker: three.worker / one.worker });
    });
  }

  if (isSoak) {
    it(`on three masters a request costs api and worker at most ${maxRatio} of what it does on one Redis`, (t) => {
      assert.equal(ratios.length, starts);
      const mean = (of: 'api' | 'worker'): number => ratios.reduce((sum, one) => sum + one[of], 0) / starts;
      const each = ratios.map(({ api, worker }) => `${api.toFixed(2)} ${worker.toFixed(2)}`).join(', ');
      t.diagnostic(`ratios: api ${mean('api').toFixed(2)}, worker ${mean('worker').toFixed(2)} (${each})`);
      assert.ok(mean('api') <= maxRatio && mean('worker') <= maxRatio);
    });
  }
});
