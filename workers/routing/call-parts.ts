import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { Slots } from '../../shared/runtime/slots.ts';
import { abortError, waitFor } from '../http/aborted.ts';
import type { Pacer } from '../pacing/pacer.ts';
import type { RequestBody } from '../vendors/request-body.ts';
import { type Failure, readFailure } from './failure.ts';
import type { Refusals } from './refusals.ts';
import { pauseMs, type RouteTarget } from './route-plan.ts';

/**
 * Makes one call of a job that takes several.
 * @param signal ends it: the job's, or that of a failed call beside it
 * @param mayRepeat whether nothing of its answer was passed on
 * @throws ApiError of the call, if it may not be repeated
 */
export type CallPart = <Answer>(
  call: () => Promise<Answer>,
  signal: AbortSignal,
  mayRepeat?: () => boolean,
) => Promise<Answer>;

/** What bounds the repetition of calls, as the router's own. */
interface RepetitionRules {
  readonly settings: RoutingSettings;
  readonly pacer?: Pick<Pacer, 'hasLimits' | 'parallelCalls' | 'reserveFurther' | 'reserveBeside'> | undefined;
  readonly refusals: Pick<Refusals, 'note'>;
  /** Takes one retry from what the process may make; false if none is left. */
  readonly mayRetry: (job: RepeatableJob, target: RouteTarget, failure: Failure) => boolean;
}

/** A job whose calls may be repeated. */
export interface RepeatableJob {
  /** The account whose job it is. */
  readonly owner: string;
  /** Whether its work may be repeated. */
  readonly repeatable: boolean;
  /** Its deadline, in ms since 1970. */
  readonly deadlineAt: number;
  /** Its text, of which operators are shown nothing. */
  readonly request?: RequestBody | undefined;
}

/** Shortest wait for a further call that could not be reserved, in ms: others may have taken what there was. */
const minFullMs = 50;

/**
 * The calls of a job that takes several, all on one route with one key. Once one of them was answered, a failed one is repeated alone:
 * to begin the job anew would have its vendor do, and bill, the others again, and of a vendor that takes fewer calls a minute it would
 * never end. Before that, its failure is the router's, who may know another key or route. The first call is the one that the router has
 * reserved; each other one waits for the requests a minute that are set for the vendor. Where its calls at a time are limited, a job has
 * one of them, and makes its calls one after the other, but for those that run beside it while more than half of the limit is free.
 */
export function callParts(rules: RepetitionRules, job: RepeatableJob, target: RouteTarget): CallPart {
  let hasAnswer = false;
  let isReserved = true;
  const isLimited = Number.isFinite(rules.pacer?.parallelCalls(target.routed.route) ?? Number.POSITIVE_INFINITY);
  const own = isLimited ? new Slots(1) : undefined;
  return async (call, signal, mayRepeat = () => true) => {
    const make = async () => {
      // It has waited for others, which may have failed meanwhile.
      if (signal.aborted) throw abortError(signal);
      if (!isReserved) await reserveFurther(rules, target, signal);
      isReserved = false;
      return await call();
    };
    const makeInTurn = async (slots: Slots) => {
      const beside = slots.isIdle
        ? undefined
        : await rules.pacer?.reserveBeside(target.routed.route, target.account.id);
      if (beside === undefined) return await slots.run(make);
      try {
        return await make();
      } finally {
        beside.end(0);
      }
    };
    for (let calls = 1; ; calls++) {
      try {
        const answer = await (own === undefined ? make() : makeInTurn(own));
        hasAnswer = true;
        return answer;
      } catch (thrown) {
        const failure = hasAnswer && !signal.aborted && mayRepeat() ? readFailure(thrown, job.repeatable) : undefined;
        const waitMs = failure && waitBefore(rules, job, target, failure, calls);
        if (failure === undefined || waitMs === undefined) throw thrown;
        rules.refusals.note(target, failure, job.request);
        await waitFor(waitMs, signal);
      }
    }
  };
}

/** Waits until a further call may be made within its vendor's limits. */
async function reserveFurther(
  { pacer }: RepetitionRules,
  { routed: { route }, account }: RouteTarget,
  signal: AbortSignal,
): Promise<void> {
  if (pacer === undefined || !pacer.hasLimits(route.vendor)) return;
  for (;;) {
    const { isReserved, waitMs } = await pacer.reserveFurther(route, account.id);
    if (isReserved && waitMs === 0) return;
    await waitFor(isReserved ? waitMs : Math.max(waitMs, minFullMs), signal);
    if (isReserved) return;
  }
}

/** How long (ms) to wait before a failed call is repeated; undefined: it is not. */
function waitBefore(
  { settings, pacer, mayRetry }: RepetitionRules,
  job: RepeatableJob,
  target: RouteTarget,
  failure: Failure,
  calls: number,
): number | undefined {
  const { sameRoute, reason, error } = failure;
  const waitMs = Math.max(error.retryAfterMs ?? 0, pauseMs(calls));
  if (!sameRoute || Date.now() + waitMs >= job.deadlineAt) return undefined;
  // As jobs wait for a vendor whose limits are set: up to their deadline, however often.
  if (reason === 'limit' && pacer?.hasLimits(target.routed.route.vendor)) return waitMs;
  if (calls >= settings.attempts || waitMs > settings.maxRetryAfterMs) return undefined;
  return mayRetry(job, target, failure) ? waitMs : undefined;
}
