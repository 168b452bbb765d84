import { spoolsKey } from '../../../shared/redis/keys.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import { loadScript } from '../../../shared/redis/script.ts';
import type { Logger } from '../../../shared/runtime/log.ts';

/** Time without a report after which the records of a spool are considered lost. */
const silentMs = 3_600_000;
/** Time without a report after which a spool is removed from Redis. Until then operators can see that its disk has records. */
const removedMs = 7 * 86_400_000;

const report = loadScript<number>(new URL('./report-spool.lua', import.meta.url));
const live = loadScript<[live: number, ...removed: string[]]>(new URL('./live-spools.lua', import.meta.url));

/** Reports to other processes whether a spool has records. Repeat it while there are some. */
export async function reportSpool(redis: RedisClient, name: string, records: number): Promise<void> {
  await report(redis, [spoolsKey], [name, records]);
}

/**
 * Whether any process has spooled records: an unfinished job may have its end there. Spools that are silent for long are removed
 * from Redis, and logged, as api processes may end with their disks. One whose disk returns is reported again.
 */
export async function isSpooledAnywhere(redis: RedisClient, log: Logger): Promise<boolean> {
  const [count, ...removed] = await live(redis, [spoolsKey], [silentMs, removedMs]);
  for (const spool of removed) {
    log.warn(
      { spool },
      'spool has been silent for a week; start an api process on its data folder to write its records',
    );
  }
  return count > 0;
}
