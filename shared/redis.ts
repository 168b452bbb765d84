import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { ConfigError } from './config.ts';
import { gatherWrites } from './gathered-writes.ts';
import type { Logger } from './log.ts';

/** One Redis, or a Cluster of them; the keys are laid out for both. */
export type RedisClient = Redis | Cluster;

const connectDeadlineMs = 5000;

/**
 * Commands wait for a lost connection to come back and are sent again then (every script tolerates a repeat), so
 * `maxRetriesPerRequest` is off and `commandTimeout` never set: a command that "timed out" may still run. Callers bound
 * their own waits. `socketTimeout` ends a half-open connection, which would otherwise hang for over a minute.
 */
const options = {
  maxRetriesPerRequest: null,
  enableReadyCheck: true,
  keepAlive: 10_000,
  connectTimeout: connectDeadlineMs,
  socketTimeout: 15_000,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 6), 1000),
  reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
} satisfies RedisOptions;

/** What a process knows of its Redis. */
export interface RedisHandle {
  /** For commands and scripts. */
  readonly client: RedisClient;
  /** Whether channels are published and subscribed by shard. */
  readonly isCluster: boolean;
  /** A connection of its own for subscribing, or for commands that block; the caller closes it. */
  subscriber(): RedisClient;
  close(): Promise<void>;
}

/**
 * Connects and looks what kind of Redis it is. `url` is `redis://…`, `rediss://…` or the path of a
 * Unix socket (`/run/redis.sock?password=…`); it may list several nodes of a Cluster, separated by commas.
 * @throws ConfigError when no node answers within 5 seconds.
 */
export async function connectRedis(url: string, log: Logger): Promise<RedisHandle> {
  const nodes = url.split(',').map((node) => node.trim());
  const first = nodes[0] as string;
  const isCluster = await probe(first);
  const onError = (error: Error): void => log.warn({ err: error.message }, 'redis connection');
  const open = (): RedisClient => {
    const client = isCluster ? openCluster(nodes) : new Redis(first, options);
    if (client instanceof Redis) gatherWrites(client);
    client.on('error', onError);
    return client;
  };
  const client = open();
  return {
    client,
    isCluster,
    subscriber: open,
    close: async () => {
      client.disconnect();
    },
  };
}

async function probe(url: string): Promise<boolean> {
  let redis: Redis;
  try {
    redis = new Redis(url, { ...options, lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  } catch {
    throw new ConfigError('REDIS_URL is not a Redis address (redis://host:port, or the path of a socket).');
  }
  let reason = 'no answer';
  redis.on('error', (error) => {
    reason = error.message;
  });
  try {
    await redis.connect();
    const info = await redis.info();
    const version = /^redis_version:(\d+)\.(\d+)/m.exec(info);
    if (version !== null && Number(version[1]) * 100 + Number(version[2]) < 602) {
      throw new ConfigError(`Redis at ${hostOf(url)} is version ${version[1]}.${version[2]}: 6.2 or later is needed.`);
    }
    return /cluster_enabled:1/.test(info);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`Redis at ${hostOf(url)} cannot be reached: ${reason || (error as Error).message}.`);
  } finally {
    redis.disconnect();
  }
}

/** Host and port of a Redis address, or the path of its socket, without its password. */
function hostOf(url: string): string {
  if (url.startsWith('/')) return url.replace(/\?.*/, '');
  try {
    return new URL(url.includes('://') ? url : `redis://${url}`).host;
  } catch {
    return 'the given address';
  }
}

function openCluster(nodes: string[]): Cluster {
  const { retryStrategy: _, ...nodeOptions } = options;
  const address = new URL(nodes[0] as string);
  const clusterOptions = {
    shardedSubscribers: true,
    clusterRetryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 6), 1000),
    // A failover takes seconds; giving up before it is over would fail requests that only have to wait.
    maxRedirections: 64,
    retryDelayOnFailover: 200,
    retryDelayOnClusterDown: 200,
    redisOptions: {
      ...nodeOptions,
      ...(address.password ? { password: decodeURIComponent(address.password) } : {}),
      ...(address.username ? { username: decodeURIComponent(address.username) } : {}),
      ...(address.protocol === 'rediss:' ? { tls: {} } : {}),
    },
  } satisfies ClusterOptions;
  const cluster = new Cluster(nodes, clusterOptions);
  cluster.on('+node', gatherWrites);
  return cluster;
}

/** How much of its allowed memory Redis uses, 0 to 1; 0 when it has no limit. On a Cluster: of its fullest master. */
export async function memoryUse(redis: RedisClient): Promise<number> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const uses = await Promise.all(nodes.map(async (node) => memoryUseOf(await node.info('memory'))));
  return Math.max(0, ...uses);
}

function memoryUseOf(info: string): number {
  const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0);
  const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0);
  return limit > 0 ? used / limit : 0;
}

/** The sentence to warn with when this Redis may throw accepted jobs away, else undefined. */
export async function evictionWarning(redis: RedisClient): Promise<string | undefined> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  for (const node of nodes) {
    const policy = /^maxmemory_policy:(\S+)/m.exec(await node.info('memory'))?.[1];
    if (policy !== undefined && policy !== 'noeviction') {
      return `Redis has maxmemory-policy ${policy} and may silently lose accepted jobs: set it to noeviction.`;
    }
  }
  return undefined;
}
