import { jobKeys } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { inBatches, loadScript, shareNode } from '../../redis/script.ts';
import { journaledScript } from './write-journal.ts';

const script = loadScript<number[]>(new URL('./published-seq.lua', import.meta.url), journaledScript);

/** The number of the last frame of a job that readers can have, whether in its log or in its worker's journal only; 0: none. */
export const publishedSeq = inBatches(publishedSeqs, shareNode);

async function publishedSeqs(redis: RedisClient, calls: readonly { readonly jobId: string }[]): Promise<number[]> {
  const ids = calls.map(({ jobId }) => jobId);
  return await script(redis, ids.map(jobKeys.state), ids);
}
