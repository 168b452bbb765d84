import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { adminTls, type ServerTls, startRedis, type TestRedis } from './redis.ts';

const masters = 3;
const slots = 16_384;
const readyDeadlineMs = 30_000;

/** Three Redis masters of a test suite's own that form a Cluster, and maybe a replica of each. */
export interface TestRedisCluster {
  /** All nodes, separated by commas: what `REDIS_URL` takes. */
  readonly url: string;
  /** The masters. */
  readonly nodes: readonly TestRedis[];
  /** The replica of each master; none without the option. */
  readonly replicas: readonly TestRedis[];
  stop(): Promise<void>;
}

export interface TestRedisClusterOptions {
  readonly tls?: ServerTls;
  /** The name under which the nodes announce themselves, instead of by their address. */
  readonly announced?: string;
  /** Whether each master has a replica, and keeps its data on disk. */
  readonly hasReplicas?: boolean;
  /** Further arguments of each node. */
  readonly args?: readonly string[];
  /** Another program than `redis-server`. */
  readonly program?: string | undefined;
}

/** Starts a Cluster and waits until every node says that it is complete. */
export async function startRedisCluster(options: TestRedisClusterOptions = {}): Promise<TestRedisCluster> {
  const { tls, announced, args = [], program, hasReplicas = false } = options;
  const count = hasReplicas ? 2 * masters : masters;
  const buses = await Promise.all(Array.from({ length: count }, () => freePort()));
  const all = await Promise.all(
    buses.map((bus) =>
      startRedis({
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-port', String(bus)],
          ...['--cluster-node-timeout', hasReplicas ? '2000' : '5000', ...args],
          ...(tls === undefined ? [] : ['--tls-cluster', 'yes']),
          ...(announced === undefined ? [] : ['--cluster-announce-hostname', announced]),
          ...(announced === undefined ? [] : ['--cluster-preferred-endpoint-type', 'hostname']),
        ],
        aof: hasReplicas,
        program,
        ...(tls !== undefined && { tls }),
      }),
    ),
  );
  const [nodes, replicas] = [all.slice(0, masters), all.slice(masters)];
  const clients = all.map((node) => new Redis(node.url, tls === undefined ? {} : { tls: adminTls(tls) }));
  const stop = async (): Promise<void> => {
    await Promise.all(all.map((node) => node.stop()));
  };
  try {
    await form(all, buses, clients);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    for (const client of clients) client.disconnect();
  }
  const urls = nodes.map(({ url }) => (announced === undefined ? url : url.replace('127.0.0.1', announced)));
  return { url: urls.join(','), nodes, replicas, stop };
}

async function form(nodes: readonly TestRedis[], buses: readonly number[], clients: readonly Redis[]): Promise<void> {
  for (const [index, client] of clients.slice(0, masters).entries()) {
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
    while (!(await isComplete(client, nodes.length))) {
      if (Date.now() > deadline) throw new Error('the Cluster did not form');
      await delay(50);
    }
  }
  const replicas = clients.slice(masters);
  for (const [index, replica] of replicas.entries()) {
    await replica.call('CLUSTER', 'REPLICATE', String(await clients[index]?.call('CLUSTER', 'MYID')));
  }
  for (const replica of replicas) {
    while (!(await replica.info('replication')).includes('master_link_status:up')) {
      if (Date.now() > deadline) throw new Error('a replica does not follow its master');
      await delay(50);
    }
  }
}

async function isComplete(client: Redis, nodes: number): Promise<boolean> {
  const info = String(await client.call('CLUSTER', 'INFO'));
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${nodes}`);
}
