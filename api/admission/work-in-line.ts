import { readQueueWeight } from '../../shared/accounts/account-money.ts';
import type { Catalogue } from '../../shared/catalogue/catalogue.ts';
import { highestCostOf } from '../../shared/money/hold.ts';
import { workOfCost, workOfText } from '../../shared/queue/work.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import { untilAccepted } from '../../shared/redis/script.ts';
import { maximumCost } from './ask-admission.ts';
import type { Submission } from './submission.ts';

interface WorkInLineDependencies {
  readonly redis: RedisClient;
  readonly catalogue: Catalogue;
}

/** What a job counts as in its account's line: its expected work over the account's weight. */
export async function workInLine(services: WorkInLineDependencies, submission: Submission): Promise<number> {
  const weight = await untilAccepted(() => readQueueWeight(services.redis, submission.job.account));
  return expectedWork(services, submission) / weight;
}

/** Work of a text by its length, of media by what it may cost. */
function expectedWork({ catalogue }: WorkInLineDependencies, submission: Submission): number {
  const { job, parsed } = submission;
  if (job.capability === 'chat' || job.capability === 'embedding') {
    const { outputTokens, choices = 1 } = parsed?.extent ?? {};
    const output = job.capability === 'embedding' ? 0 : outputTokens && outputTokens * choices;
    return workOfText(parsed?.request.length ?? 0, output);
  }
  const cost = maximumCost({ catalogue }, submission);
  return workOfCost(cost === 'unpriced' ? undefined : highestCostOf(cost));
}
