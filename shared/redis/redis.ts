import { Cluster, type Redis } from 'ioredis';
import type { RedisTlsSettings } from '../config/redis-settings.ts';
import type { Logger } from '../runtime/log.ts';
import { withTimeout } from '../runtime/with-timeout.ts';
import { type ClusterUse, openCluster, openSingle, type RedisTarget } from './open-redis.ts';
import { explained, probeRedis } from './probe-redis.ts';
import { describeAddress, parseRedisUrl } from './redis-address.ts';
import { redisTls } from './redis-tls.ts';
import { SlotChanges } from './slot-changes.ts';

/** A Cluster's client first asks a node for the others, and connects to them. */
const completeDeadlineMs = 10_000;

/** A Redis that refuses writes as a replica is logged so often at most: each command says so. */
const replicaLogMs = 30_000;

/** One Redis, or a Cluster of them; the keys are laid out for both. */
export type RedisClient = Redis | Cluster;

/** A process's Redis connection. */
export interface RedisHandle {
  /** For commands and scripts. */
  readonly client: RedisClient;
  /** Whether channels are published and subscribed by shard. */
  readonly isCluster: boolean;
  /** Opens a separate connection for subscribing; the caller closes it. */
  subscriber(): RedisClient;
  /** Opens a separate connection for blocking commands; the caller closes it. */
  blocking(): RedisClient;
  close(): Promise<void>;
}

/**
 * Connects to the Redis of `REDIS_URL` (see `parseRedisUrl`), a Cluster if it is one: the only way to a Redis that is not this
 * process's own.
 * @throws ConfigError when it cannot be used, or no node answers within 5 seconds.
 */
export async function connectRedis(url: string, log: Logger, tls: RedisTlsSettings = {}): Promise<RedisHandle> {
  const target = { address: parseRedisUrl(url), tls: redisTls(tls, log) };
  const { isCluster } = await probeRedis(target);
  const onError = (error: Error): void => log.warn({ err: error.message }, 'Redis connection error');
  const onReplica = tellOfReplica(log);
  const open = (use: ClusterUse): RedisClient => {
    const client = isCluster ? openCluster(target, use, onReplica) : openSingle(target, onReplica);
    client.on('error', onError);
    return client;
  };
  const client = open('commands');
  const changes = client instanceof Cluster ? new SlotChanges(client) : undefined;
  if (client instanceof Cluster) await untilComplete(client, target);
  return {
    client,
    isCluster,
    subscriber: () => open('subscribing'),
    blocking: () => {
      const blocking = open('blocking');
      if (blocking instanceof Cluster) changes?.tell(blocking);
      return blocking;
    },
    close: async () => {
      client.disconnect();
    },
  };
}

function tellOfReplica(log: Logger): () => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now < toldAt + replicaLogMs) return;
    toldAt = now;
    log.warn('Redis takes no writes (READONLY): is REDIS_URL a replica? It must name the master');
  };
}

/** A Cluster's client knows no nodes before it is ready, so that nothing could be asked of all of them. */
async function untilComplete(cluster: Cluster, target: RedisTarget): Promise<void> {
  let reason = new Error('a part of its slots is served by no node');
  const onError = (error: Error): void => {
    reason = error;
  };
  cluster.on('node error', onError);
  const ready = new Promise<true>((resolve) => {
    cluster.once('ready', () => resolve(true));
  });
  const isReady = await withTimeout(ready, completeDeadlineMs);
  cluster.off('node error', onError);
  if (isReady) return;
  cluster.disconnect();
  throw explained(reason, `The Cluster at ${describeAddress(target.address)}`, target.address.usesTls);
}
