import { jobKeys } from '../keys.ts';
import type { RedisClient } from '../redis.ts';
import { type Batch, parseBatch } from './frames.ts';

/** The most batches that are read at a time: bounds what a reader holds of a long log. */
export const longestPage = 16;

/**
 * Reads what the log of a job holds after `cursor` (the last sequence number one has), oldest first.
 * @param count batches to read at most
 * @returns `isLast` tells that the log holds no more for now.
 */
export async function readLog(
  redis: RedisClient,
  jobId: string,
  cursor: number,
  count = longestPage,
): Promise<{ batches: Batch[]; isLast: boolean }> {
  const entries = await redis.xrange(jobKeys.log(jobId), `(${cursor}-0`, '+', 'COUNT', count);
  const batches = entries.map(([, fields]) => parseBatch(fields[1] as string));
  return { batches, isLast: entries.length < count };
}

/** Whether the log of a job is still there. */
export async function hasLog(redis: RedisClient, jobId: string): Promise<boolean> {
  return (await redis.exists(jobKeys.log(jobId))) === 1;
}
