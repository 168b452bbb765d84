import { Cluster } from 'ioredis';
import { jobKeys } from '../redis/keys.ts';
import type { RedisClient } from '../redis/redis.ts';
import { chunksOf, groupBy } from '../runtime/group-by.ts';

/**
 * Groups of jobs for one script call each, those of a tag one after the other; on a Cluster all of a group are of one tag.
 * @param most jobs of a group
 */
export function groupByTag<Job extends { readonly jobId: string }>(
  redis: RedisClient,
  jobs: readonly Job[],
  most: number,
): Job[][] {
  const byTag = [...groupBy(jobs, ({ jobId }) => jobKeys.tag(jobId)).values()];
  const runs = redis instanceof Cluster ? byTag : [byTag.flat()];
  return runs.flatMap((run) => chunksOf(run, most));
}
