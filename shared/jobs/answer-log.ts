import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { type Batch, parseBatch } from './frames.ts';

/** The most batches that are read at a time: bounds what a reader holds of a long log. */
export const maxPage = 16;

/**
 * Reads what the log of a job holds after `cursor` (the last sequence number one has), oldest first.
 * @param count batches to read at most
 * @returns `isLast` tells that the log holds no more for now.
 */
export async function readLog(
  redis: RedisClient,
  jobId: string,
  cursor: number,
  count = maxPage,
): Promise<{ batches: Batch[]; isLast: boolean }> {
  const { entries, isLast } = await readLogText(redis, jobId, cursor, count);
  return { batches: entries.map((text) => parseBatch(text)), isLast };
}

/** The same, each batch as the text that it is, see frames.ts. */
export async function readLogText(
  redis: RedisClient,
  jobId: string,
  cursor: number,
  count: number,
): Promise<{ entries: string[]; isLast: boolean }> {
  const entries = await redis.xrange(jobKeys.log(jobId), `(${cursor}-0`, '+', 'COUNT', count);
  return { entries: entries.map(([, fields]) => fields[1] as string), isLast: entries.length < count };
}

/** Whether the log of a job is still there. */
export async function hasLog(redis: RedisClient, jobId: string): Promise<boolean> {
  return (await redis.exists(jobKeys.log(jobId))) === 1;
}
