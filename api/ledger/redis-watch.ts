import { Cluster } from 'ioredis';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** Interval between checks of Redis's identity, besides one after each new connection. */
const intervalMs = 5000;

export interface RedisWatchOptions {
  readonly redis: RedisClient;
  /** Called when Redis has changed: restarted, restored, failed over. */
  readonly onChange: () => Promise<void>;
  readonly log: Logger;
  /** Override of the default (5 s), for tests. */
  readonly intervalMs?: number;
}

/**
 * Detects that Redis is another process than before, or has its data from another one: it may lack the latest writes. A
 * failed `onChange` is retried.
 */
export class RedisWatch {
  readonly #options: RedisWatchOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #look = (): void => {
    this.#looking ??= this.#compare()
      .catch((error) => this.#options.log.warn({ err: error }, 'raising Redis to the ledger failed'))
      .finally(() => {
        this.#looking = undefined;
      });
  };
  #known: string;
  #looking: Promise<void> | undefined;

  private constructor(options: RedisWatchOptions, known: string) {
    this.#options = options;
    this.#known = known;
    this.#timer = setInterval(this.#look, options.intervalMs ?? intervalMs);
    this.#timer.unref();
    options.redis.on('ready', this.#look);
  }

  /**
   * Starts watching.
   * @param known result of `redisIdentity` from before Redis was last synced
   */
  static open(options: RedisWatchOptions, known: string): RedisWatch {
    return new RedisWatch(options, known);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#options.redis.off('ready', this.#look);
    await this.#looking;
  }

  async #compare(): Promise<void> {
    const identity = await redisIdentity(this.#options.redis);
    if (identity === this.#known) return;
    this.#options.log.warn('Redis was restarted or replaced; raising it to the ledger');
    await this.#options.onChange();
    this.#known = identity;
  }
}

/** Identity of a Redis, or of the masters of a Cluster, which changes with a restart or a failover. */
export async function redisIdentity(redis: RedisClient): Promise<string> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const ids = await Promise.all(
    nodes.map(async (node) => {
      const [server, replication] = await Promise.all([node.info('server'), node.info('replication')]);
      return `${/^run_id:(\S+)/m.exec(server)?.[1] ?? ''} ${/^master_replid:(\S+)/m.exec(replication)?.[1] ?? ''}`;
    }),
  );
  return ids.sort().join('\n');
}
