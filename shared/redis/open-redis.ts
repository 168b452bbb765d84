import type { ConnectionOptions } from 'node:tls';
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { batchCommands } from './command-batcher.ts';
import type { RedisAddress, RedisNode } from './redis-address.ts';

/** How long a connection may take to be made. */
const connectDeadlineMs = 5000;
/** How long a Sentinel may take to name the master before the next one is asked. */
const sentinelDeadlineMs = 2000;

const retryDelay = (attempt: number): number => Math.min(50 * 2 ** Math.min(attempt, 6), 1000);

/**
 * Commands wait for a lost connection to return and are then resent (every script tolerates a repeat), so
 * `maxRetriesPerRequest` is off and `commandTimeout` never set: a command that "timed out" may still run. Callers bound their
 * own waits. `socketTimeout` ends a half-open connection, which would otherwise hang for over a minute. ioredis's own
 * `autoResubscribe` has no handler for a refusal, which would end the process: `Inbox` subscribes anew instead.
 */
const options = {
  maxRetriesPerRequest: null,
  enableReadyCheck: true,
  autoResubscribe: false,
  keepAlive: 10_000,
  connectTimeout: connectDeadlineMs,
  socketTimeout: 15_000,
  retryStrategy: retryDelay,
} satisfies RedisOptions;

/** Pause between connections that a client makes anew because its Redis is a replica. */
const leaveReplicaMs = 1000;

/**
 * Makes a client connect anew when it finds its Redis a replica: after a failover its address, or a Sentinel, leads to the new
 * master, but a connection that is kept stays with the old one. The refused command fails, as one that is refused for another
 * reason does; callers repeat those that they can (see `untilAccepted`).
 * @param onReplica is told of each such refusal
 */
function leaveReplicas(onReplica: () => void): (this: object, error: Error) => boolean {
  // By the options of each client: copies of them serve a Cluster's nodes, and the connections that BullMQ makes for itself.
  const leftAt = new WeakMap<object, number>();
  return function (error) {
    if (!error.message.startsWith('READONLY')) return false;
    onReplica();
    const now = performance.now();
    if (now < (leftAt.get(this) ?? Number.NEGATIVE_INFINITY) + leaveReplicaMs) return false;
    leftAt.set(this, now);
    return true;
  };
}

/** ioredis infers its replies' types from the option left out. */
type SingleOptions = Omit<RedisOptions, 'replyMapping'>;

/** How to reach a Redis. */
export interface RedisTarget {
  readonly address: RedisAddress;
  /** Options of TLS, if the address uses it: to one node, or to several. */
  readonly tls: (node?: RedisNode) => ConnectionOptions;
}

/**
 * Opens a connection to the one node of an address, or to the master that its Sentinels name.
 * @param onReplica is told of each command that is refused because the node is a replica
 */
export function openSingle(target: RedisTarget, onReplica: () => void): Redis {
  const redis = new Redis({ ...singleOptions(target), reconnectOnError: leaveReplicas(onReplica) });
  batchCommands(redis);
  return redis;
}

/**
 * Makes a connection that is neither retried nor restored, to find out what there is; `connect` opens it. Its errors are the
 * caller's.
 */
export function openOnce(target: RedisTarget, more: SingleOptions = {}): Redis {
  const once = { lazyConnect: true, retryStrategy: () => null, sentinelRetryStrategy: () => null };
  return new Redis({ ...singleOptions(target), maxRetriesPerRequest: 0, ...once, ...more });
}

function singleOptions({ address, tls }: RedisTarget): SingleOptions {
  const { nodes, path, sentinel, usesTls, login } = address;
  if (sentinel !== undefined) {
    return {
      ...options,
      ...login,
      sentinels: [...nodes],
      name: sentinel.masterName,
      ...(sentinel.username !== undefined && { sentinelUsername: sentinel.username }),
      ...(sentinel.password !== undefined && { sentinelPassword: sentinel.password }),
      // Only reads: unlike a command of Redis, one that timed out is safely asked again.
      sentinelCommandTimeout: sentinelDeadlineMs,
      ...(usesTls && { tls: tls(), sentinelTLS: tls(), enableTLSForSentinelMode: true }),
    };
  }
  return {
    ...options,
    ...login,
    ...(path === undefined ? nodes[0] : { path }),
    ...(usesTls && { tls: tls(nodes[0]) }),
  };
}

/** What a Cluster's client is for. */
export type ClusterUse = 'commands' | 'subscribing' | 'blocking';

/**
 * Opens a client of a Cluster. All nodes take the same login; a Cluster has only database 0.
 * @param onReplica is told of each command that is refused because a node is a replica
 */
export function openCluster({ address, tls }: RedisTarget, use: ClusterUse, onReplica: () => void): Cluster {
  const { retryStrategy: _, ...nodeOptions } = options;
  const { db: _db, ...login } = address.login;
  const clusterOptions = {
    // Others have no use for it, and a client that may subscribe compares all slots at each refresh, for some ms.
    shardedSubscribers: use === 'subscribing',
    // Another client tells it (see `SlotChanges`). A node that no longer has the slot says so, and one that is gone closes the connection.
    ...(use === 'blocking' && { slotsRefreshInterval: 0 }),
    clusterRetryStrategy: retryDelay,
    // Names stay names, so that certificates for them are accepted, and each connection finds their current address.
    dnsLookup: (host, found) => found(null, host),
    // A failover takes seconds; giving up earlier would fail requests that only have to wait.
    maxRedirections: 64,
    retryDelayOnFailover: 200,
    retryDelayOnClusterDown: 200,
    redisOptions: {
      ...nodeOptions,
      ...login,
      reconnectOnError: leaveReplicas(onReplica),
      ...(address.usesTls && { tls: tls() }),
    },
  } satisfies ClusterOptions;
  const cluster = new Cluster([...address.nodes], clusterOptions);
  cluster.on('+node', batchCommands);
  if (use === 'subscribing') spaceLooks(cluster);
  return cluster;
}

/** How far apart a client that subscribes looks at the slots of its Cluster, in ms. */
const looksApartMs = 500;

/**
 * Has a Cluster's client look at the slots no more often than that. One that subscribes looks at once whenever a connection to
 * subscribe by ends, and then opens another (ioredis 6.0): while a master is away, that took half a core.
 */
function spaceLooks(cluster: Cluster): void {
  const look = cluster.refreshSlotsCache.bind(cluster);
  let lookedAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let waiting: ((error?: Error | null) => void)[] = [];
  const lookNow = (): void => {
    timer = undefined;
    const answered = waiting;
    waiting = [];
    if (cluster.status === 'end') return;
    lookedAt = performance.now();
    look((error) => {
      for (const callback of answered) callback(error);
    });
  };
  cluster.refreshSlotsCache = (callback) => {
    if (callback !== undefined) waiting.push(callback);
    const waitMs = lookedAt + looksApartMs - performance.now();
    if (waitMs <= 0 && timer === undefined) lookNow();
    else timer ??= setTimeout(lookNow, waitMs).unref();
  };
}
