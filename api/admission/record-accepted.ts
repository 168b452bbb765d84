import type { Blobs } from '../../shared/blobs/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import { finishWithError } from '../../shared/jobs/attempt.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { settleNow } from '../../shared/jobs/settlement/settle.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { AcceptedJobs } from '../ledger/accepted-jobs.ts';
import type { ParsedRequest } from '../pipeline/parsed-request.ts';
import { textOf } from '../pipeline/request-text.ts';
import { readViewOptions } from '../replies/view.ts';
import type { Submission } from './submission.ts';

export interface RecordAcceptedDependencies {
  readonly redis: RedisClient;
  readonly isCluster: boolean;
  readonly blobs: Blobs;
  readonly acceptedJobs: AcceptedJobs;
}

/** Longer requests (in characters) are not stored in the database. */
const keptRequestLimit = 1024 * 1024;

/**
 * Inserts an admitted job into the database. This follows the admission, so that refused requests cost no write, and
 * precedes the queue, so that every queued job is in the database. On failure the admission is undone: a repeat waiting for
 * the job gets the error, too, and no record is made.
 * @throws ApiError 503.
 */
export async function recordAccepted(services: RecordAcceptedDependencies, { job, parsed }: Submission): Promise<void> {
  try {
    const viewOptions = await readViewOptions(services.blobs.ofRecords(job.account), job.viewOptions);
    await services.acceptedJobs.add({ ...job, viewOptions }, parsed && keptRequest(job, parsed));
  } catch (thrown) {
    const error = ApiError.from(thrown);
    const { redis, isCluster } = services;
    await finishWithError(redis, { jobId: job.id, retentionMs: 0, isCluster }, error);
    const ending = { outcome: 'failed', errorCode: error.code, began: false } as const;
    await settleNow(redis, {
      ...job,
      ...ending,
      jobId: job.id,
      retentionMs: 0,
      record: '',
      cost: undefined,
      tokens: undefined,
    });
    throw error;
  }
}

/** The text of a request that is stored with its answer. */
function keptRequest(job: JobIdentity, { request, hasMedia }: ParsedRequest): string | undefined {
  // A resource's request is stored from its state, with the answer.
  if (job.retentionMs === 0 || job.resource !== undefined || hasMedia || request.length > keptRequestLimit)
    return undefined;
  return textOf(request);
}
