import { type JobState, readJobState } from '../../shared/jobs/job-state.ts';
import { accountKeys } from '../../shared/keys.ts';
import type { RedisClient } from '../../shared/redis.ts';

/** Holds looked at per command; those of other accounts that share the key are passed over there. */
const scanCount = 1000;
/** Holds looked at in all. */
const mostHolds = 10_000;

/**
 * An account's unfinished jobs, newest first, as Redis knows them: each has a hold until it is settled.
 * @returns at most `limit`, and whether there are more
 */
export async function readLiveJobs(
  redis: RedisClient,
  account: string,
  limit: number,
): Promise<{ readonly jobs: JobState[]; readonly hasMore: boolean }> {
  const ids = await readHeldIds(redis, account);
  const newest = [...ids].sort((one, other) => (one < other ? 1 : -1));
  const states = await Promise.all(newest.slice(0, limit).map((id) => readJobState(redis, id)));
  return {
    // Between its end and its settlement a job has a hold yet.
    jobs: states.filter((state) => state !== undefined && state.outcome === undefined) as JobState[],
    hasMore: newest.length > limit,
  };
}

async function readHeldIds(redis: RedisClient, account: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  const match = `* ${account.replace(/[\\*?[\]]/g, '\\$&')} *`;
  let cursor = '0';
  do {
    const [next, pairs] = await redis.zscan(accountKeys.holds(account), cursor, 'MATCH', match, 'COUNT', scanCount);
    cursor = next;
    // Member and score take turns. A member is `job account key capability`.
    for (let index = 0; index < pairs.length; index += 2) {
      const [job, owner] = (pairs[index] as string).split(' ');
      if (job !== undefined && owner === account) ids.add(job);
    }
  } while (cursor !== '0' && ids.size < mostHolds);
  return ids;
}
