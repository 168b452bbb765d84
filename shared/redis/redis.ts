import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { ConfigError } from '../config/config.ts';
import type { Logger } from '../runtime/log.ts';
import { batchCommands } from './command-batcher.ts';

/** One Redis, or a Cluster of them; the keys are laid out for both. */
export type RedisClient = Redis | Cluster;

const connectDeadlineMs = 5000;

/**
 * Commands wait for a lost connection to return and are then resent (every script tolerates a repeat), so
 * `maxRetriesPerRequest` is off and `commandTimeout` never set: a command that "timed out" may still run. Callers bound their
 * own waits. `socketTimeout` ends a half-open connection, which would otherwise hang for over a minute.
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

/** A process's Redis connection. */
export interface RedisHandle {
  /** For commands and scripts. */
  readonly client: RedisClient;
  /** Whether channels are published and subscribed by shard. */
  readonly isCluster: boolean;
  /** Opens a separate connection for subscribing, or for blocking commands; the caller closes it. */
  subscriber(): RedisClient;
  close(): Promise<void>;
}

/**
 * Connects and detects the kind of Redis. `url` is `redis://…`, `rediss://…` or the path of a Unix socket
 * (`/run/redis.sock?password=…`); it may list several nodes of a Cluster, separated by commas.
 * @throws ConfigError when no node answers within 5 seconds.
 */
export async function connectRedis(url: string, log: Logger): Promise<RedisHandle> {
  const nodes = url.split(',').map((node) => node.trim());
  const first = nodes[0] as string;
  const isCluster = await probe(first);
  const onError = (error: Error): void => log.warn({ err: error.message }, 'Redis connection error');
  const open = (): RedisClient => {
    const client = isCluster ? openCluster(nodes) : new Redis(first, options);
    if (client instanceof Redis) batchCommands(client);
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
    // A failover takes seconds; giving up earlier would fail requests that only have to wait.
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
  cluster.on('+node', batchCommands);
  return cluster;
}

/** Redis's memory use. */
export interface RedisMemory {
  /** Share of its limit, or without a limit of the machine's memory, 0 to 1; 0 if neither is known. */
  readonly share: number;
  /** `maxmemory` in bytes; 0: no limit. */
  readonly limit: number;
}

/** Reads Redis's memory use. On a Cluster: of the fullest master, with the lowest limit. */
export async function memoryUse(redis: RedisClient): Promise<RedisMemory> {
  const uses = (await memoryInfos(redis)).map(memoryUseOf);
  return {
    share: Math.max(0, ...uses.map(({ share }) => share)),
    limit: uses.length === 0 ? 0 : Math.min(...uses.map(({ limit }) => limit)),
  };
}

function memoryUseOf(info: string): RedisMemory {
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const limit = figure('maxmemory');
  const total = limit > 0 ? limit : figure('total_system_memory');
  return { share: total > 0 ? figure('used_memory') / total : 0, limit };
}

function memoryInfos(redis: RedisClient): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  return Promise.all(nodes.map((node) => node.info('memory')));
}

/** Warnings for the operator: if this Redis may evict accepted jobs, or use all memory of its machine. */
export async function redisWarnings(redis: RedisClient): Promise<string[]> {
  const infos = await memoryInfos(redis);
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction');
  const evicting = policies.find((policy) => policy !== 'noeviction');
  const warnings: string[] = [];
  if (evicting !== undefined) {
    warnings.push(`Redis has maxmemory-policy ${evicting} and may silently lose accepted jobs: set it to noeviction.`);
  }
  // A Redis that does not report it has none to set.
  if (infos.some((info) => /^maxmemory:0\s*$/m.test(info))) {
    warnings.push(
      'Redis has no maxmemory and may take all memory of its machine: set one. New work is shed at 70 % of it.',
    );
  }
  return warnings;
}
