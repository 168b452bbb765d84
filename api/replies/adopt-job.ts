import { readerOf } from '../../shared/jobs/inbox.ts';
import { journaledScript } from '../../shared/jobs/journal/write-journal.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { loadScript } from '../../shared/redis/script.ts';
import type { AnswerReaders } from './answer-readers.ts';

/** Dependencies of adopting a job. */
export interface AdoptJobDependencies {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  /** This process's name on Redis channels. */
  readonly processId: string;
  readonly readers: AnswerReaders;
}

const script = loadScript<number>(new URL('./adopt-job.lua', import.meta.url), journaledScript);

/**
 * Makes this process the reader of a job that nobody reads; see adopt-job.lua. Returns whether it has become that.
 * @param retry id of the retry, unique to it
 */
export async function adoptJob(services: AdoptJobDependencies, jobId: string, retry: string): Promise<boolean> {
  const { redis, isCluster, processId, readers } = services;
  const args = [
    readerOf(processId),
    retry,
    isCluster ? 'SHARDNUMSUB' : 'NUMSUB',
    jobKeys.inboxPrefix(jobId),
    readers.isLongSubscribed ? '1' : '0',
  ];
  return (await script(redis, [jobKeys.state(jobId), jobKeys.log(jobId)], args)) === 1;
}
