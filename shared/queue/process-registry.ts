import { processesKey } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { untilAccepted } from '../redis/script.ts';
import type { Logger } from '../runtime/log.ts';
import { readVersions, type VersionRange, writeFor } from '../runtime/wire-version.ts';
import { withTimeout } from '../runtime/with-timeout.ts';

/** Interval of reports. */
const everyMs = 5000;
/** A process silent for this long is gone: three reports. */
export const silenceMs = 15_000;
/** How long the removal may take; a process that is not removed falls silent. */
const closeMs = 1000;

export interface ProcessReportsOptions {
  readonly redis: RedisClient;
  readonly processId: string;
  readonly log: Logger;
  /** Override of what this build reads, for tests. */
  readonly versions?: VersionRange;
}

/** Reports which versions this process reads, and sets the version that it writes to what all running processes read. */
export class ProcessReports {
  readonly #options: ProcessReportsOptions;
  readonly #versions: VersionRange;
  readonly #timer: NodeJS.Timeout;
  #reporting: Promise<void> | undefined;
  #isWarned = false;

  private constructor(options: ProcessReportsOptions) {
    this.#options = options;
    this.#versions = options.versions ?? readVersions;
    this.#timer = setInterval(() => {
      this.#reporting ??= this.report()
        .catch((error) => options.log.warn({ err: error }, 'reporting the versions that are read failed'))
        .finally(() => {
          this.#reporting = undefined;
        });
    }, everyMs);
    this.#timer.unref();
  }

  /** Reports once before it returns: what is written from then on suits the processes that run. */
  static async open(options: ProcessReportsOptions): Promise<ProcessReports> {
    const reports = new ProcessReports(options);
    await untilAccepted(() => reports.report());
    return reports;
  }

  /** Reports this process, and reads the reports of all. */
  async report(): Promise<void> {
    const { redis, log } = this.#options;
    // By Redis's clock: a process whose own clock is ahead would remove all others.
    const now = Number((await redis.time())[0]) * 1000;
    const replies = await redis
      .multi()
      .zadd(processesKey, now, this.#member)
      .zremrangebyscore(processesKey, '-inf', now - silenceMs)
      .zrange(processesKey, '0', '-1')
      .pexpire(processesKey, silenceMs)
      .exec();
    const [error, members] = replies?.[2] ?? [];
    if (error || !Array.isArray(members)) throw error ?? new Error('Redis has not answered');
    const isReadByAll = writeFor(members.map(readMember), this.#versions);
    if (!isReadByAll && !this.#isWarned) {
      log.error('processes that are more than one release apart run together: some leave the work of others undone');
    }
    this.#isWarned = !isReadByAll;
  }

  /** Removes this process from the registry. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    // A report under way must not arrive after the removal. Where Redis is away, it would be waited for without end.
    const removed = Promise.resolve(this.#reporting).then(() => this.#options.redis.zrem(processesKey, this.#member));
    await withTimeout(
      removed.catch(() => undefined),
      closeMs,
    );
  }

  get #member(): string {
    return `${this.#options.processId} ${this.#versions.oldest} ${this.#versions.newest}`;
  }
}

/** Sets the version that this process writes to what the running ones read, before it reports itself. */
export async function readReports(redis: RedisClient): Promise<void> {
  const now = Number((await redis.time())[0]) * 1000;
  writeFor((await readMembers(redis, now)).map(readMember));
}

/** Ids of the processes that run. @param now by Redis's clock */
export async function runningProcesses(redis: RedisClient, now: number): Promise<string[]> {
  return (await readMembers(redis, now)).map((member) => member.split(' ', 1)[0] as string);
}

function readMembers(redis: RedisClient, now: number): Promise<string[]> {
  return redis.zrangebyscore(processesKey, now - silenceMs, '+inf');
}

function readMember(member: unknown): VersionRange {
  const [, oldest, newest] = String(member).split(' ');
  return { oldest: Number(oldest), newest: Number(newest) };
}
