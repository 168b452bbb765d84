import { type JobIdentity, newStateFields, newStateLifetime, type StoredRequest } from '../../shared/jobs/job-state.ts';
import { loadScript } from '../../shared/jobs/script.ts';
import { holdMember } from '../../shared/jobs/settle.ts';
import { sweepAfterMs } from '../../shared/jobs/sweeper.ts';
import { accountKeys, jobKeys } from '../../shared/keys.ts';
import type { RedisClient } from '../../shared/redis.ts';

/** How long an idempotency key stays bound to its job. */
export const idempotencyMs = 24 * 3_600_000;

const script = loadScript<[string, string, number]>('admit', new URL('./admit.lua', import.meta.url));

/** Why new work is refused whoever asks. */
export type Shedding = 'shed' | 'queue_full';

export interface AdmitCall {
  readonly job: JobIdentity;
  /** Unfinished jobs the API key may have. */
  readonly concurrency: number;
  /** Hash of the request's body; used only with an idempotency key. */
  readonly bodyHash: string;
  readonly shedding: Shedding | undefined;
  /** The process that waits for the answer, when the job's state is to be made with the admission (not on a Cluster). */
  readonly reader: string | undefined;
  /** A resource's request, for its state. */
  readonly stored?: StoredRequest | undefined;
}

export interface AdmitReply {
  readonly verdict: 'admitted' | 'replay' | 'reused' | 'unknown' | 'revoked' | 'concurrency' | Shedding;
  /** The job that an idempotency key is bound to; else ''. */
  readonly boundJobId: string;
  /** Unfinished jobs of the API key, this one counted. */
  readonly running: number;
}

/** Asks for admission; see admit.lua. An admitted job holds its place until it is settled. */
export async function admit(redis: RedisClient, call: AdmitCall): Promise<AdmitReply> {
  const { job, reader } = call;
  const now = Date.now();
  const running = accountKeys.running(job.account, job.apiKeyId);
  const [verdict, boundJobId, count] = await script(
    redis,
    [
      accountKeys.keyActive(job.account, job.apiKeyId),
      running,
      accountKeys.holds(job.account),
      job.idempotency ? accountKeys.idempotency(job.account, job.idempotency) : running,
      ...(reader === undefined ? [] : [jobKeys.state(job.id)]),
    ],
    [
      job.id,
      holdMember({ jobId: job.id, account: job.account, apiKeyId: job.apiKeyId }),
      call.concurrency,
      now,
      now + sweepAfterMs,
      call.shedding ?? '',
      job.idempotency ? call.bodyHash : '',
      idempotencyMs,
      ...(reader === undefined ? [] : [newStateLifetime(job), ...newStateFields(job, reader, call.stored)]),
    ],
  );
  return { verdict: verdict as AdmitReply['verdict'], boundJobId, running: count };
}
