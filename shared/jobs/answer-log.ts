import { jobKeys } from '../keys.ts';
import type { RedisClient } from '../redis.ts';
import { type Batch, parseBatch } from './frames.ts';

/** Batches read at a time: bounds what a reader holds of a long log. */
const pageSize = 16;

/**
 * Reads what the log of a job holds after `cursor` (the last sequence number one has), oldest first.
 * @returns up to 16 batches; fewer means that the log holds no more for now.
 */
export async function readLog(
  redis: RedisClient,
  jobId: string,
  cursor: number,
): Promise<{ batches: Batch[]; isLast: boolean }> {
  const entries = await redis.xrange(jobKeys.log(jobId), `(${cursor}-0`, '+', 'COUNT', pageSize);
  const batches = entries.map(([, fields]) => parseBatch(fields[1] as string));
  return { batches, isLast: entries.length < pageSize };
}

/** Whether the log of a job is still there. */
export async function hasLog(redis: RedisClient, jobId: string): Promise<boolean> {
  return (await redis.exists(jobKeys.log(jobId))) === 1;
}
