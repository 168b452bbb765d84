import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { startRedis, type TestRedis } from './redis.ts';

const masters = 3;
const slots = 16_384;
const readyDeadlineMs = 30_000;

/** Three Redis masters of a test suite's own that form a Cluster. */
export interface TestRedisCluster {
  /** All nodes, separated by commas: what `REDIS_URL` takes. */
  readonly url: string;
  readonly nodes: readonly TestRedis[];
  stop(): Promise<void>;
}

/** Starts a Cluster and waits until every node says that it is complete. */
export async function startRedisCluster(): Promise<TestRedisCluster> {
  const buses = await Promise.all(Array.from({ length: masters }, () => freePort()));
  const nodes = await Promise.all(
    buses.map((bus) =>
      startRedis({
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-port', String(bus)],
          ...['--cluster-node-timeout', '5000'],
        ],
      }),
    ),
  );
  const clients = nodes.map((node) => new Redis(node.url));
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    await form(nodes, buses, clients);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
  return { url: nodes.map((node) => node.url).join(','), nodes, stop };
}

async function form(nodes: readonly TestRedis[], buses: readonly number[], clients: readonly Redis[]): Promise<void> {
  for (const [index, client] of clients.entries()) {
    const first = Math.floor((slots * index) / masters);
    const last = Math.floor((slots * (index + 1)) / masters) - 1;
    await client.call('CLUSTER', 'ADDSLOTSRANGE', first, last);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
  }
  for (const [index, node] of nodes.entries()) {
    if (index > 0) await clients[0]?.call('CLUSTER', 'MEET', '127.0.0.1', node.port, buses[index] as number);
  }
  const deadline = Date.now() + readyDeadlineMs;
  for (const client of clients) {
    while (!(await isComplete(client))) {
      if (Date.now() > deadline) throw new Error('the Cluster did not form');
      await delay(50);
    }
  }
}

async function isComplete(client: Redis): Promise<boolean> {
  const info = String(await client.call('CLUSTER', 'INFO'));
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${masters}`);
}
