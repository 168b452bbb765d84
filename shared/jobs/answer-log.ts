import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { type Batch, parseBatch, type StoredFrame } from './append.ts';

/** Maximum number of batches per read. Bounds the memory a reader needs for a long log. */
export const maxPage = 16;

/**
 * Reads a job's log after `cursor` (the last sequence number the reader has), oldest first.
 * @param count maximum number of batches to read
 * @returns `isLast` is true if the log holds no more for now.
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

/** A page of a log: batches as stored text, see append.ts. */
export interface LogPage {
  readonly entries: readonly string[];
  /** The log holds no more for now. */
  readonly isLast: boolean;
}

/** Same as `readLog`, with each batch as stored text. */
export async function readLogText(redis: RedisClient, jobId: string, cursor: number, count: number): Promise<LogPage> {
  const entries = await redis.xrange(jobKeys.log(jobId), `(${cursor}-0`, '+', 'COUNT', count);
  return { entries: entries.map(([, fields]) => fields[1] as string), isLast: entries.length < count };
}

/** Whether a job's log still exists. */
export async function hasLog(redis: RedisClient, jobId: string): Promise<boolean> {
  return (await redis.exists(jobKeys.log(jobId))) === 1;
}

/** Yields the frames that the log of a job has now, in order. Whoever stops reads no more of it. */
export async function* framesInLog(redis: RedisClient, jobId: string): AsyncGenerator<StoredFrame> {
  for (let cursor: number | undefined = 0; cursor !== undefined; ) {
    const { batches, isLast } = await readLog(redis, jobId, cursor);
    for (const frame of batches.flatMap((batch) => batch.frames)) {
      cursor = frame.seq;
      yield frame;
    }
    if (isLast) cursor = undefined;
  }
}
