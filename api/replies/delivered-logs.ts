import { jobKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { groupBy } from '../../shared/runtime/group-by.ts';
import type { Logger } from '../../shared/runtime/log.ts';

/** How long a delivered answer can still be resumed, as the client may lack the last bytes. */
const graceMs = 5000;
const roundMs = 1000;

/**
 * Deletes the logs of plain jobs some time after their delivery, many in one command: at a thousand answers per second their
 * logs would otherwise fill Redis. Those of a dead process expire on their own.
 */
export class DeliveredLogs {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #recent: string[] = [];
  readonly #rounds: { at: number; jobIds: string[] }[] = [];

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    this.#timer = setInterval(() => this.#round(Date.now()), roundMs);
    this.#timer.unref();
  }

  add(jobId: string): void {
    this.#recent.push(jobId);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #round(now: number): void {
    if (this.#recent.length > 0) {
      this.#rounds.push({ at: now, jobIds: this.#recent });
      this.#recent = [];
    }
    while (this.#rounds[0] !== undefined && now - this.#rounds[0].at >= graceMs) {
      this.#remove((this.#rounds.shift() as { jobIds: string[] }).jobIds);
    }
  }

  #remove(jobIds: string[]): void {
    for (const group of groupBy(jobIds, jobKeys.tag).values()) {
      this.#redis
        .unlink(...group.map((jobId) => jobKeys.log(jobId)))
        .catch((error) => this.#log.warn({ err: error }, 'removing delivered logs failed'));
    }
  }
}
