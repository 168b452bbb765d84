import type { Redis } from 'ioredis';

/** Counts the commands that Redis runs, those inside scripts too. */
export class CommandCounts {
  readonly #redis: readonly Redis[];
  #before = new Map<string, number>();

  /** @param redis a connection to each node, by which nothing else is sent meanwhile */
  constructor(...redis: readonly Redis[]) {
    this.#redis = redis;
  }

  /** Begins to count. */
  async start(): Promise<void> {
    this.#before = await this.#read();
  }

  /** The commands since the start, without those of counting. */
  async since(): Promise<Map<string, number>> {
    const now = await this.#read();
    const counts = [...now].map(([name, calls]) => [name, calls - (this.#before.get(name) ?? 0)] as const);
    return new Map(counts.filter(([name, calls]) => calls > 0 && name !== 'info'));
  }

  async #read(): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (const redis of this.#redis) {
      for (const [, name, calls] of (await redis.info('commandstats')).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
        counts.set(name as string, (counts.get(name as string) ?? 0) + Number(calls));
      }
    }
    return counts;
  }
}
