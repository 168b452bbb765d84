import type { Config } from '../../shared/config/config.ts';
import { ApiError } from '../../shared/errors.ts';
import type { FlexTerms } from '../../shared/queue/queue.ts';

/** How long a client waits before it sends a request of low priority again, in ms. */
const retryMs = 10_000;

/** As many requests of low priority may wait as others, and an account has the same share of them. */
export function flexTerms({ flexWaitMs, queueLimit, accountQueueShare }: Config): FlexTerms {
  return { joinsAfterMs: flexWaitMs, most: queueLimit, accountMost: Math.ceil(queueLimit * accountQueueShare) };
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
