import type { Config } from '../config/config.ts';
import { limitJobTags } from '../ids.ts';
import { queueShardsKey } from '../redis/keys.ts';
import type { RedisClient, RedisHandle } from '../redis/redis.ts';
import type { Logger } from '../runtime/log.ts';

/** Interval of looks at the numbers of other processes. */
const everyMs = 5000;
/** From this version on, processes know shards: others would look for a job in the first one, and take it for lost. */
export const shardedVersion = 2;

/** Number of shards on a Cluster, unless the setting says otherwise. */
const clusterShards = 1;

interface QueueShardsOptions {
  readonly redis: RedisClient;
  /** Number of shards of each queue by this process's settings. */
  readonly shards: number;
  readonly log: Logger;
}

/**
 * How many shards each capability's queue has. A job names the number that it was accepted with, so processes with other settings,
 * and a change of the setting, lose none: all numbers ever used stay noted in Redis, and workers serve the shards of the largest.
 */
export class QueueShards {
  /** Number of shards for new jobs, from `shardedVersion` on; undefined: they are put into shard 0. */
  readonly forNewJobs: number | undefined;
  readonly #options: QueueShardsOptions;
  readonly #timer: NodeJS.Timeout;
  #count: number;
  #reading: Promise<void> | undefined;

  private constructor(options: QueueShardsOptions) {
    this.#options = options;
    this.forNewJobs = options.shards > 1 ? options.shards : undefined;
    this.#count = options.shards;
    this.#timer = setInterval(() => {
      this.#reading ??= this.#read()
        .catch((error) => options.log.warn({ err: error }, 'reading the number of queue shards failed'))
        .finally(() => {
          this.#reading = undefined;
        });
    }, everyMs);
    this.#timer.unref();
  }

  /**
   * Notes this process's number before a job can have it.
   * @param config the setting; undefined: the default for this kind of Redis
   */
  static async open(
    { queueShards }: Pick<Config, 'queueShards'>,
    { client, isCluster }: Pick<RedisHandle, 'client' | 'isCluster'>,
    log: Logger,
  ): Promise<QueueShards> {
    const count = queueShards ?? (isCluster ? clusterShards : 1);
    const shards = new QueueShards({ redis: client, shards: count, log });
    if (count > 1) limitJobTags(count);
    await shards.#read();
    return shards;
  }

  /** Number of queues of a capability that may have jobs: shard 0, and all others if there are any. */
  get count(): number {
    return this.#count > 1 ? this.#count + 1 : 1;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #read(): Promise<void> {
    const { redis, shards } = this.#options;
    const noted = await redis.smembers(queueShardsKey);
    // Again, too, if Redis was emptied: workers with another setting would leave this process's jobs in their shards.
    if (shards > 1 && !noted.includes(String(shards))) await redis.sadd(queueShardsKey, shards);
    this.#count = Math.max(shards, ...noted.map(Number).filter(Number.isSafeInteger));
  }
}
