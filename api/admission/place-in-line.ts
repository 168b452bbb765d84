import { type QueueTerms, readQueueTerms } from '../../shared/accounts/account-money.ts';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import { highestCostOf } from '../../shared/money/hold.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { workOfCost, workOfText } from '../../shared/queue/work.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import { expectedInputTokens } from './ask-admission.ts';
import { maximumCost } from './maximum-cost.ts';
import type { Submission } from './submission.ts';

interface PlaceInLineDependencies {
  readonly redis: RedisClient;
  readonly catalogue: Catalogue;
}

/**
 * How a job waits in its account's line: it counts as its expected work over the account's weight.
 * @param known the account's terms; left out: they are read
 */
export async function placeInLine(
  services: PlaceInLineDependencies,
  submission: Submission,
  known?: QueueTerms,
): Promise<Pick<QueuedJob, 'work' | 'sharesByKey'>> {
  const terms = known ?? (await untilAccepted(() => readQueueTerms(services.redis, submission.job.account)));
  const work = expectedWork(services, submission) / terms.queueWeight;
  return terms.queueByKey ? { work, sharesByKey: true } : { work };
}

/** Work of a text by its length, of media by what it may cost. */
function expectedWork({ catalogue }: PlaceInLineDependencies, submission: Submission): number {
  const { job, parsed } = submission;
  if (job.capability === 'chat' || job.capability === 'embedding') {
    const { outputTokens, choices = 1 } = parsed?.extent ?? {};
    const output = job.capability === 'embedding' ? 0 : outputTokens && outputTokens * choices;
    return workOfText(expectedInputTokens(parsed), output);
  }
  const cost = maximumCost({ catalogue }, submission);
  return workOfCost(cost === 'unpriced' ? undefined : highestCostOf(cost));
}
