import { Cluster } from 'ioredis';
import { raisedKey } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';

/** Interval between checks of Redis's identity, besides one after each new connection. */
const intervalMs = 5000;

/** How long the database may take to show that it is there, before a changed Redis is not used. */
const patienceMs = 2000;

/** How long a look under way may take when the process ends. */
const closeMs = 1000;

export interface RedisWatchOptions {
  readonly redis: RedisClient;
  /** Raises Redis to the ledger. @throws an error of the database that is away */
  readonly raise: () => Promise<void>;
  /** Whether the database answers within a time, in ms. */
  readonly isDatabaseThere: (ms: number) => Promise<boolean>;
  readonly log: Logger;
  /** Override of the default (5 s), for tests. */
  readonly intervalMs?: number;
}

/**
 * Detects that Redis is another process than before, or has its data from another one: it may lack the latest writes, and
 * accounts could spend their balance twice. So it is raised to the ledger, which is retried until it succeeds. While that is
 * impossible because the database is away, or a part of Redis, it is behind, and nothing may be admitted. The identity of the
 * Redis that was raised last is kept there: one process raises it for all.
 */
export class RedisWatch {
  /** Whether Redis may lack writes that only the ledger has. A plain field: each request reads it. */
  isBehind = false;
  readonly #options: RedisWatchOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #look = (): void => {
    this.#looking ??= this.#compare()
      .catch((error) => this.#options.log.warn({ err: error }, 'raising Redis to the ledger failed'))
      .finally(() => {
        this.#looking = undefined;
      });
  };
  /** Undefined: nothing is known yet. */
  #known: string | undefined;
  #looking: Promise<void> | undefined;

  /** It watches once `raise` has succeeded, or `trust` has returned true. */
  constructor(options: RedisWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(this.#look, options.intervalMs ?? intervalMs);
    this.#timer.unref();
    options.redis.on('ready', this.#look);
  }

  /** Raises Redis to the ledger. @throws an error of the database */
  async raise(): Promise<void> {
    const identity = await redisIdentity(this.#options.redis);
    await this.#options.raise();
    await this.#noteRaised(identity);
  }

  /** Uses Redis as it is, if it is the one that was raised last. Returns whether it is. */
  async trust(): Promise<boolean> {
    const identity = await redisIdentity(this.#options.redis);
    if (!(await this.#wasRaised(identity))) return false;
    this.#known = identity;
    return true;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#options.redis.off('ready', this.#look);
    // Of a Redis that is away nothing more comes.
    await withTimeout(Promise.resolve(this.#looking), closeMs);
  }

  async #compare(): Promise<void> {
    const identity = await redisIdentity(this.#options.redis);
    if (this.#known === undefined || identity === this.#known) return;
    const { log, raise, isDatabaseThere } = this.#options;
    const isPart = isPartOf(identity, this.#known);
    log.warn(
      isPart
        ? 'a master of the Redis Cluster is away or was removed; raising Redis to the ledger'
        : 'Redis was restarted or replaced; raising it to the ledger',
    );
    const mayBeBehind = async (): Promise<boolean> => !isPart && !(await this.#wasRaised(identity));
    const raising = raise();
    try {
      // A database that is away may take long to fail.
      const isPossible = await Promise.race([raising.then(() => true), isDatabaseThere(patienceMs)]);
      if (!isPossible) this.isBehind = await mayBeBehind();
      await raising;
    } catch (error) {
      this.isBehind = await mayBeBehind();
      throw error;
    }
    await this.#noteRaised(identity);
  }

  /** A Redis that refuses the note is raised all the same: other processes do not know, and raise it themselves. */
  async #noteRaised(identity: string): Promise<void> {
    const { redis, log } = this.#options;
    await redis
      .set(raisedKey, identity)
      .catch((error) => log.warn({ err: error }, 'noting that Redis was raised failed'));
    this.#known = identity;
    this.isBehind = false;
  }

  /** Whether any api process has raised this very Redis. */
  async #wasRaised(identity: string): Promise<boolean> {
    return (await this.#options.redis.get(raisedKey).catch(() => null)) === identity;
  }
}

/**
 * Whether each Redis of an identity is one of another: also while a master of a Cluster is away. What it has nobody reads, those that
 * are left lack nothing, and when it is back it is another one, as is a replica in its place.
 */
function isPartOf(identity: string, other: string): boolean {
  const known = new Set(other.split('\n'));
  return identity.split('\n').every((one) => known.has(one));
}

/**
 * Identity of a Redis, or of the masters of a Cluster, which changes with a restart or a failover.
 * @throws an error of Redis, or one that says that no master of a Cluster is connected, which tells nothing of its identity
 */
export async function redisIdentity(redis: RedisClient): Promise<string> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  if (nodes.length === 0) throw new Error('no master of the Redis Cluster is connected');
  const ids = await Promise.all(
    nodes.map(async (node) => {
      const [server, replication] = await Promise.all([node.info('server'), node.info('replication')]);
      return `${/^run_id:(\S+)/m.exec(server)?.[1] ?? ''} ${/^master_replid:(\S+)/m.exec(replication)?.[1] ?? ''}`;
    }),
  );
  return ids.sort().join('\n');
}
