import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import type { FlexTerms } from '../../shared/queue/queue.ts';
import type { Shedding } from './admit.ts';

/** How long a client waits before it sends a request of low priority again, in ms. */
const retryMs = 10_000;

/** As many requests of low priority may wait as others, and an account has the same share of them. */
export function flexTerms({ flexWaitMs, queueLimit, accountQueueShare }: Config): FlexTerms {
  return { joinsAfterMs: flexWaitMs, most: queueLimit, accountMost: Math.ceil(queueLimit * accountQueueShare) };
}

/**
 * Why a request of low priority has no room in its lane, as far as that is known before it is admitted: what is refused then counts
 * against no limit. The lane itself decides.
 */
export async function flexShedding(
  { queue, config }: Pick<EndJobContext, 'queue'> & { readonly config: Config },
  job: JobIdentity,
): Promise<Shedding | undefined> {
  const { most, accountMost } = flexTerms(config);
  const { all, own } = await queue(job).reader.flexOf(job.account);
  if (all >= most) return 'flex_full';
  return own >= accountMost ? 'flex_share' : undefined;
}

/** The 429 for a request of low priority while too many wait: of all accounts (`full`), or of its own (`share`). */
export class FlexLaneFullError extends ApiError {
  constructor(whose: 'full' | 'share') {
    const many =
      whose === 'full' ? 'Too many requests of low priority are' : 'This account has too many requests of low priority';
    super('rate_limit_exceeded', `${many} waiting. Try again later.`, {
      reason: whose === 'full' ? 'queue_full' : 'queue_share',
      retryAfterMs: retryMs,
    });
  }
}
