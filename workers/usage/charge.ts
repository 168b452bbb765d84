import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { JobState } from '../../shared/jobs/job-state.ts';
import { costOf } from '../../shared/money/cost.ts';
import { countAllTokens } from '../../shared/money/token-counts.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import type { VendorAnswer, VendorUsage } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { recordedUsage } from './billed-quantities.ts';
import { hasTokens } from './estimate-usage.ts';

/** What a job took, and what that costs. */
export interface Charge {
  /** JSON text, as it is recorded; undefined where nothing is known. */
  readonly usage: string | undefined;
  /** Nano-dollars; undefined where it is not known, and then nothing is charged. */
  readonly cost: number | undefined;
  /** All tokens, of input and output; undefined where none were counted. */
  readonly tokens: number | undefined;
}

/** What costs nothing: a failure of the vendor's, or ours, that nothing was said before. */
export const nothing: Charge = { usage: undefined, cost: 0, tokens: undefined };

/** What nobody could count. */
export const unknown: Charge = { usage: undefined, cost: undefined, tokens: undefined };

/**
 * What an answer took.
 * @param row the model by the route that has served it; undefined: it is not known any more
 */
export function chargeFor(
  row: RoutedModel | undefined,
  { fee }: Pick<QueuedJob, 'fee'>,
  { usage, quantities }: Pick<VendorAnswer, 'usage' | 'quantities'>,
): Charge {
  const told = quantities === undefined ? usage : recordedUsage(usage, quantities, row?.prices);
  return {
    usage: told === null ? undefined : JSON.stringify(told),
    cost: costOf(row?.prices, usage, quantities, fee),
    tokens: countAllTokens(usage),
  };
}

/**
 * What was taken of a chat or of embeddings that came to no end.
 * @param usage null: it could not be counted, and a price of the request is all that is known
 */
export function chargeForInterrupted(
  row: RoutedModel | undefined,
  job: Pick<QueuedJob, 'fee'>,
  usage: VendorUsage,
): Charge {
  return chargeFor(row, job, { usage });
}

/**
 * What a job is charged whose vendor had answered when somebody else had ended it. Its caller has left, and is charged, for
 * so is the gateway; or it failed by its deadline, say, and then it costs what was said before, if that is text.
 */
export function chargeForLate(
  row: RoutedModel | undefined,
  job: QueuedJob,
  { outcome, hasDelta }: Pick<JobState, 'outcome' | 'hasDelta'>,
  answer: VendorAnswer,
): Charge {
  const charge = chargeFor(row, job, answer);
  const isCharged = outcome !== 'failed' || (hasDelta && hasTokens(job));
  return isCharged ? charge : { ...charge, cost: 0 };
}

/**
 * The model by the route that has served a job, for whoever knows no more of it than names; undefined where the catalogue
 * has it no more.
 */
export function routeServed(
  { catalogue }: Pick<WorkerContext, 'catalogue'>,
  { model, capability }: Pick<QueuedJob, 'model' | 'capability'>,
  { vendor, standIn, vendorModel }: { vendor: string; standIn?: string | undefined; vendorModel?: string },
): RoutedModel | undefined {
  const routes = catalogue.routes(model, capability).filter(({ route }) => route.vendor === vendor);
  if (vendorModel !== undefined) return routes.find(({ route }) => route.model === vendorModel);
  return routes.find(({ id }) => id === (standIn ?? model));
}
