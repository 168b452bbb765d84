import type { RoutedModel } from '../../shared/catalogue/catalogue.ts';
import type { JobState } from '../../shared/jobs/job-state.ts';
import { costOf, savedBy } from '../../shared/money/cost.ts';
import {
  isStandardTier,
  type PricedTier,
  type TierFacts,
  tierName,
  tiersToCharge,
} from '../../shared/money/service-tier.ts';
import {
  hasCounts,
  hasImpossibleAmount,
  readTokenCounts,
  sumOf,
  type TokenCounts,
} from '../../shared/money/token-counts.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { sumUsage } from '../vendors/support/sum-usage.ts';
import type { AnsweredCall, JobAnswer, OpenAnswer, VendorUsage } from '../vendors/vendor.ts';
import type { WorkerContext } from '../worker-context.ts';
import { recordedUsage } from './billed-quantities.ts';
import { hasTokens, isChargedWhenCut } from './estimate-usage.ts';

/** A dollar, in the unit of costs. */
const nanoDollars = 1e9;

/** The usage of a job, and its cost. */
export interface Charge {
  /** JSON text, as it is recorded; undefined if unknown. */
  readonly usage: string | undefined;
  /** Nano-dollars; undefined if unknown, and then what was held is charged. */
  readonly cost: number | undefined;
  /** What the vendor's prompt cache saved, in nano-dollars; left out: nothing. */
  readonly saved?: number | undefined;
  /** All tokens, of input and output; undefined if none were counted. */
  readonly tokens: number | undefined;
  /** The same by kind. */
  readonly counts?: TokenCounts | undefined;
}

/** The charge of a failure of the vendor, or of the gateway, before any output: nothing. */
export const nothing: Charge = { usage: undefined, cost: 0, tokens: undefined };

/** The charge if nothing could be counted. */
export const unknown: Charge = { usage: undefined, cost: undefined, tokens: undefined };

/** What a charge takes of a model by the route that served it. */
type ChargedRow = Pick<RoutedModel, 'prices'> & Partial<Pick<RoutedModel, 'chat' | 'vendorRow' | 'legacyCompletions'>>;

/** Whether an answer's usage can be charged by; false: the gateway counts its tokens in the vendor's place. */
export function isCounted(
  job: Pick<QueuedJob, 'capability' | 'endpoint'>,
  { usage }: Pick<JobAnswer, 'usage'>,
): boolean {
  return (usage !== null && hasCounts(usage, job.capability === 'embedding')) || !hasTokens(job);
}

/**
 * The charge for an answer.
 * @param row the model by the route that served it; undefined: no longer known
 */
export function chargeFor(
  row: ChargedRow | undefined,
  job: Pick<QueuedJob, 'fee' | 'maxCost'> & Partial<Pick<QueuedJob, 'endpoint'>>,
  answer: Pick<JobAnswer, 'usage' | 'calls' | 'quantities' | 'tier'>,
): Charge {
  // Vendors count for free. It has no usage, and a cost that is not known is what was held.
  if (job.endpoint === 'messages.count_tokens') return nothing;
  return chargeAt(row, job, answer, false);
}

/**
 * The charge for a chat or embeddings that did not finish.
 * @param answer its usage is null if it could not be counted; `tier` is what its first chunk says
 */
export function chargeForInterrupted(
  row: RoutedModel | undefined,
  job: Pick<QueuedJob, 'fee' | 'maxCost'>,
  answer: Pick<JobAnswer, 'usage' | 'calls'> & { readonly tier: unknown },
): Charge {
  return chargeAt(row, job, answer, true);
}

/**
 * The charge for a request of several calls that fails because its vendor refuses one of them as invalid: that of the calls which the
 * vendor has answered, or a caller could have it do them at the operator's cost, again and again.
 * @returns undefined if it has not counted each of them, or not plausibly: these are yet to be counted here
 */
export function chargeForAnswered(
  row: RoutedModel | undefined,
  job: Pick<QueuedJob, 'fee' | 'maxCost' | 'capability' | 'endpoint'>,
  answered: readonly AnsweredCall[] = [],
): Charge | undefined {
  const calls = countedCalls(job, answered);
  if (calls.length < answered.length) return undefined;
  return calls.length === 0 ? nothing : chargeAt(row, job, { usage: sumUsage(calls), calls }, false);
}

/** The answer of such a request whose vendor has not counted each call: only the inputs of those count here, beside its own counts. */
export function uncountedOf(
  job: Pick<QueuedJob, 'capability' | 'endpoint'>,
  { answered = [] }: Pick<OpenAnswer, 'answered'>,
): OpenAnswer {
  const uncounted = answered.filter((call) => countedCalls(job, [call]).length === 0);
  const inputsSent = new Set(uncounted.flatMap(({ inputs }) => inputs));
  return { usageSoFar: () => null, inputsSent, counted: countedCalls(job, answered) };
}

/** The usages that a vendor has reported of calls, where they can be charged by and may be true. */
function countedCalls(
  job: Pick<QueuedJob, 'capability' | 'endpoint'>,
  answered: readonly AnsweredCall[],
): NonNullable<VendorUsage>[] {
  const counted = answered.filter((call) => isCounted(job, call) && !hasImpossibleAmount(call.usage));
  return counted.map(({ usage }) => usage).filter((usage) => usage !== null);
}

function chargeAt(
  row: ChargedRow | undefined,
  { fee, maxCost }: Pick<QueuedJob, 'fee' | 'maxCost'>,
  { usage, calls, quantities, tier }: Pick<JobAnswer, 'usage' | 'calls' | 'quantities' | 'tier'>,
  isInterrupted: boolean,
): Charge {
  const { prices } = row ?? {};
  const counts = usage === null ? undefined : readTokenCounts(usage, false);
  const recorded = quantities === undefined ? usage : recordedUsage(usage, quantities, prices);
  // Nearly every answer is of the standard tier.
  const isPlain = fee?.tier === undefined && (tier == null || tier === 'default');
  // A vendor that refuses hints was not sent the mark of an hour.
  const isMarkSent = row?.chat?.hints !== false && row?.vendorRow?.chat?.hints !== false;
  const marked = fee?.hourCache && !isMarkSent ? { ...fee, hourCache: undefined } : fee;
  // A vendor's own legacy completion is one call, however many prompts it has.
  const several = row?.legacyCompletions ? undefined : calls;
  const fees = several !== undefined && fee?.requests !== undefined ? { ...marked, requests: several.length } : marked;
  // Without a call there is a usage all the same, of nothing.
  const counted = several?.length === 0 ? undefined : several;
  const priced = (each: PricedTier) => ({ ...each, cost: costOf(each.prices, usage, quantities, fees, counted) });
  const said = isPlain ? [] : [...(tier instanceof Set ? tier : [tier])].map(tierName);
  const facts = { asked: fee?.tier, said, auto: row?.vendorRow?.autoTier, isInterrupted };
  const charged = isPlain
    ? priced({ tier: undefined, prices })
    : tiersToCharge(prices, facts)
        .map(priced)
        .reduce((one, other) => ((other.cost ?? 0) > (one.cost ?? 0) ? other : one));
  const shown = isPlain || recorded === null ? recorded : withTier(recorded, facts, charged);
  return {
    usage: shown === null ? undefined : JSON.stringify(shown),
    // As it is settled: what is shown of it must not be more.
    cost: maxCost !== undefined && charged.cost !== undefined ? Math.min(maxCost, charged.cost) : charged.cost,
    saved: several === undefined ? savedBy(charged.prices, counts) : savedByAll(charged.prices, several),
    tokens: sumOf(counts),
    counts,
  };
}

/** What the vendor's cache saved in several calls. */
function savedByAll(prices: PricedTier['prices'], calls: NonNullable<JobAnswer['calls']>): number {
  return calls.reduce((sum, usage) => sum + savedBy(prices, readTokenCounts(usage, false)), 0);
}

/**
 * The usage as recorded, with the service tier that the vendor says it has used, else the one that is charged. Where nothing but the
 * standard tier is asked for and said, it is left out.
 */
function withTier(
  usage: Record<string, unknown>,
  { asked, said }: Pick<TierFacts, 'asked' | 'said'>,
  { tier }: PricedTier,
): Record<string, unknown> {
  const used = (said.length === 1 ? said[0] : undefined) ?? tier ?? 'default';
  return asked === undefined && isStandardTier(used) ? usage : { ...usage, service_tier: used };
}

/**
 * Whether a job has ended because its caller waits no longer: it has left, or its own timeout is over. Client libraries do both at the
 * same time, and what is charged must not depend on which is faster. The gateway's own deadline is no caller's doing.
 */
export function hasCallerLeft(
  { deadlineAt, isOwnDeadline }: Pick<QueuedJob, 'deadlineAt' | 'isOwnDeadline'>,
  { outcome, errorCode, endedAt = deadlineAt }: Partial<Pick<JobState, 'outcome' | 'errorCode' | 'endedAt'>>,
): boolean {
  if (outcome === 'cancelled') return true;
  return errorCode === 'timeout' && (endedAt < deadlineAt || isOwnDeadline === true);
}

/**
 * The charge for a job whose vendor answered after another process had ended it. A caller that has left is charged, because the
 * gateway is; a job that failed, by the gateway's deadline for example, is only charged for earlier output, if that is text or sound. A
 * video or an image, which no caller gets then, has the charge of one that did not come (see `cutMedia`): it must not depend on
 * which of the two was faster.
 * @param isLeft see `hasCallerLeft`
 */
export function chargeForLate(
  row: RoutedModel | undefined,
  job: QueuedJob,
  { isLeft, hasDelta }: Pick<JobState, 'hasDelta'> & { readonly isLeft: boolean },
  answer: JobAnswer,
): Charge {
  if (job.capability === 'video' || job.capability === 'image') return nothing;
  const charge = chargeFor(row, job, answer);
  const isCharged = isLeft || (hasDelta && (hasTokens(job) || isChargedWhenCut(job)));
  return isCharged ? charge : { ...charge, cost: 0, saved: 0 };
}

/** The model by the route that served a job, found by names alone; undefined if it is no longer in the catalogue. */
export function routeServed(
  { catalogue }: Pick<WorkerContext, 'catalogue'>,
  { model, capability }: Pick<QueuedJob, 'model' | 'capability'>,
  { vendor, standIn, vendorModel }: { vendor: string; standIn?: string | undefined; vendorModel?: string | undefined },
): RoutedModel | undefined {
  const routes = catalogue.routes(model, capability).filter(({ route }) => route.vendor === vendor);
  const ofModel = routes.filter(({ id }) => id === (standIn ?? model));
  if (vendorModel === undefined) return ofModel[0];
  return [...ofModel, ...routes].find(({ route }) => route.model === vendorModel);
}

/**
 * Counts the tokens and the cost of a settled job in this worker's metrics.
 * @param vendor as a label
 * @param model id of the model that served it; undefined: unknown. Ids of open vendors' models come from callers, who must not
 * grow the series: only listed ones are labels
 */
export function countCharge(
  { metrics, catalogue }: Pick<WorkerContext, 'metrics' | 'catalogue'>,
  vendor: string,
  model: string | undefined,
  { cost, counts }: Charge,
): void {
  const label = model !== undefined && catalogue.find(model) !== undefined ? model : 'other';
  if (cost !== undefined && cost > 0) metrics.cost.inc({ vendor, model: label }, cost / nanoDollars);
  if (counts === undefined) return;
  const { input, cached, output } = counts;
  if (input > 0) metrics.tokens.inc({ vendor, model: label, kind: 'input' }, input);
  if (cached > 0) metrics.tokens.inc({ vendor, model: label, kind: 'cached_input' }, cached);
  if (output > 0) metrics.tokens.inc({ vendor, model: label, kind: 'output' }, output);
}
