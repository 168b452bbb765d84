import { routeName } from '../../shared/catalogue/catalogue.ts';
import type { RoutingSettings } from '../../shared/config/routing-settings.ts';
import { ApiError } from '../../shared/errors.ts';
import type { KeyRefusal } from '../../shared/queue/worker-registry.ts';
import { UnreachableError } from '../http/connection-errors.ts';
import { toldLimits } from '../http/told-limits.ts';
import type { Pacer } from '../pacing/pacer.ts';
import { SaturatedError } from '../pacing/saturated-error.ts';
import type { RequestBody } from '../vendors/request-body.ts';
import { type Failure, isRefusedKey } from './failure.ts';
import { refusalSentence } from './key-refusal.ts';
import type { RouteTarget } from './route-plan.ts';
import type { SharedHealth } from './shared-health.ts';
import type { VendorPool } from './vendor-pool.ts';

/** How long a key cools down: after a limit without a given time, after a limit at least and at most, and after a refusal. */
const limitedMs = 5000;
const minLimitedMs = 100;
const maxLimitedMs = 3_600_000;
const refusedMs = 60_000;

/** Dependencies of `Refusals`. */
export interface RefusalsOptions {
  readonly pool: VendorPool;
  readonly pacer?: Pacer;
  readonly health?: Pick<SharedHealth, 'refuse'>;
  readonly settings: () => RoutingSettings;
  /** Calls that a route gets of this worker. */
  readonly callsPerMinute: (route: string) => number;
  /** Called when a vendor refuses a key, once until the vendor accepts it again. */
  readonly onRefused?: (vendor: string, refusal: KeyRefusal) => void;
}

/** What vendors' refusals mean for the next calls: of their limits, and of the operator's keys. */
export class Refusals {
  readonly #options: RefusalsOptions;

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  /**
   * Notes a failure. A limited key cools down for the model, and so does one without the right to it; a refused key cools down
   * for all models.
   */
  note({ account, routed }: RouteTarget, { reason, error }: Failure, request: RequestBody | undefined): void {
    const { pool, health } = this.#options;
    const { model } = routed.route;
    if (isRefusedKey(error)) {
      const forModel = error.vendorStatus === 403 ? model : undefined;
      pool.coolDown(account, refusedMs, forModel);
      health?.refuse({ vendor: account.vendor.name, account: account.id, model: forModel }, refusedMs);
      this.#refuse({ account, routed }, error, request);
    }
    if (reason === 'limit') this.#limit({ account, routed }, error);
  }

  /**
   * Why a job whose call was refused must wait: for a limit, or as the key was refused and the others are limited; undefined if it
   * may not, or need not.
   * @param limitedMs for how long the route may not be called
   */
  saturation(
    { routed }: RouteTarget,
    { reason, error }: Failure,
    limitedMs: number,
    isSpent: boolean,
  ): SaturatedError | undefined {
    const { pacer, settings } = this.#options;
    const isLimit = reason === 'limit';
    if (!(isLimit || (reason === 'key' && limitedMs > 0))) return undefined;
    if (pacer === undefined || !isMeant({ routed })) return undefined;
    const { route } = routed;
    const isSet = pacer.hasLimits(route.vendor);
    if (isSpent && !isSet) return undefined;
    const waitMs = Math.max(Math.ceil(limitedMs), minLimitedMs);
    const full = {
      waitMs,
      intervalMs: 0,
      callMs: pacer.callMs(route),
      ...(!isSet && { maxWaitMs: settings().maxRetryAfterMs }),
    };
    return new SaturatedError(routeName(route), full, isLimit ? error : undefined);
  }

  #limit({ account, routed }: RouteTarget, error: ApiError): void {
    const { pool, pacer, callsPerMinute } = this.#options;
    const { vendor, model } = routed.route;
    // Whatever the vendor asks for.
    const ms = Math.min(Math.max(error.retryAfterMs ?? limitedMs, minLimitedMs), maxLimitedMs);
    if (!isMeant({ routed })) {
      pool.coolDown(account, ms, model);
      return;
    }
    pool.limit(account, ms, model);
    // A route's keys share its calls.
    const ofKey = callsPerMinute(routeName(routed.route)) / pool.keysOf(vendor);
    void pacer?.learned.learn({ vendor, account: account.id, model }, ms, toldLimits(error), ofKey);
  }

  #refuse({ account, routed }: RouteTarget, error: ApiError, request: RequestBody | undefined): void {
    const status = error.vendorStatus as number;
    const refusal = { status, message: refusalSentence(error, request), at: Date.now() };
    const model = status === 403 ? routed.route.model : undefined;
    if (!this.#options.pool.refuse(account, { ...refusal, model })) return;
    this.#options.onRefused?.(account.vendor.name, refusal);
  }
}

/** Whether a limit says anything about the next calls: the sandbox limits only those that ask for it. */
function isMeant({ routed }: Pick<RouteTarget, 'routed'>): boolean {
  return routed.vendorRow.name !== 'sandbox';
}

/** Whether the vendor has refused a call, for a limit or as invalid, or was not reached, and so spent nothing on it. */
export function isUnspent(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  const { vendorStatus: status = 0 } = error instanceof ApiError ? error : {};
  return status >= 400 && status < 500 && status !== 408;
}
