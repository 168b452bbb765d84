import { routeName } from '../../shared/catalogue/catalogue.ts';
import type { ParkedRoute } from '../../shared/queue/parking/parked-jobs.ts';
import { waitFor } from '../http/aborted.ts';
import type { CallSlot, FullRoute, Pacer } from '../pacing/pacer.ts';
import { aheadMs } from '../pacing/reserve-call.ts';
import { SaturatedError } from '../pacing/saturated-error.ts';
import type { RoutePlan, RouteTarget } from './route-plan.ts';

/** A line whose next job is released later than this, in ms, and than two of its jobs take, waits for a time that was told. */
const toldMs = 5000;

/** Jobs that wait for a route. */
export type JobLine = Pick<ParkedRoute, 'nextMs' | 'waiting' | 'intervalMs'>;

/** What a job needs of its vendor. */
export interface CallDemand {
  /** Tokens of the request, roughly. */
  readonly inputTokens: number;
  /** Maximum output tokens; undefined: unlimited. */
  readonly maxOutput: number | undefined;
  /** How long a vendor's own time is waited for, if its limits are not set, in ms. */
  readonly maxRetryAfterMs: number;
  /** The jobs that wait for a route, behind which this one must wait; undefined if there are none. */
  readonly lineOf: (route: string) => JobLine | undefined;
}

/** A call that may be made now. */
export interface AdmittedCall {
  readonly target: RouteTarget;
  /** Undefined if its route has no limits. */
  readonly slot: CallSlot | undefined;
}

/**
 * Waits until a call may be made within its vendor's limits, on another route or with another key if the first has no capacity.
 * @throws SaturatedError if no route has capacity soon
 */
export async function admitCall(
  pacer: Pacer,
  plan: RoutePlan,
  first: RouteTarget,
  demand: CallDemand,
  signal: AbortSignal,
): Promise<AdmittedCall> {
  let soonest:
    | {
        readonly target: RouteTarget;
        readonly full: FullRoute;
        readonly isLimited: boolean;
        readonly startsInMs: number;
      }
    | undefined;
  for (let target: RouteTarget | undefined = first; target !== undefined; target = plan.besides(target)) {
    const { route } = target.routed;
    const limitedMs = plan.limitedMs(target);
    const isPaced = pacer.isPaced(route);
    if (!isPaced && limitedMs === 0) return { target, slot: undefined };
    const line = demand.lineOf(routeName(route));
    const reserved =
      behind(line) ?? limited(pacer, route.vendor, limitedMs, demand) ?? (await reserve(pacer, plan, target, demand));
    if ('end' in reserved) {
      const account = plan.account(target, reserved.account);
      await untilStart(reserved, signal);
      return { target: { routed: target.routed, account }, slot: reserved };
    }
    const startsInMs = reserved.waitMs + (line === undefined ? 0 : line.waiting * line.intervalMs);
    if (soonest === undefined || startsInMs < soonest.startsInMs) {
      soonest = { target, full: reserved, isLimited: limitedMs > 0, startsInMs };
    }
  }
  const { target, full, isLimited } = soonest as NonNullable<typeof soonest>;
  if (!isLimited || full.waitMs > aheadMs) {
    const { route } = target.routed;
    throw new SaturatedError(routeName(route), { ...full, callMs: pacer.callMs(route) });
  }
  await waitFor(full.waitMs, signal);
  return await admitCall(pacer, plan, target, demand, signal);
}

/** A new job waits behind those of a line, unless that waits so long that capacity may have come meanwhile: it asks then. */
function behind(line: JobLine | undefined): FullRoute | undefined {
  if (line === undefined || line.nextMs > toldMs + 2 * line.intervalMs) return undefined;
  return { waitMs: line.nextMs, intervalMs: 0, isLine: true };
}

/** All keys of the route are limited for some time. */
function limited(pacer: Pacer, vendor: string, ms: number, { maxRetryAfterMs }: CallDemand): FullRoute | undefined {
  if (ms === 0) return undefined;
  const full = { waitMs: Math.ceil(ms), intervalMs: 0 };
  return pacer.hasLimits(vendor) ? full : { ...full, maxWaitMs: maxRetryAfterMs };
}

async function reserve(
  pacer: Pacer,
  plan: RoutePlan,
  target: RouteTarget,
  { inputTokens, maxOutput }: CallDemand,
): Promise<CallSlot | FullRoute> {
  const { vendor, model } = target.routed.route;
  return await pacer.reserve({ vendor, model }, plan.eligible(target), inputTokens, maxOutput);
}

async function untilStart(slot: CallSlot, signal: AbortSignal): Promise<void> {
  if (slot.waitMs === 0) return;
  try {
    await waitFor(slot.waitMs, signal);
  } catch (error) {
    slot.end(0);
    throw error;
  }
}
