/** How vendors are tried. Times are milliseconds. */
export interface RoutingSettings {
  /** Calls that one claim of a job may make, the first one included. */
  readonly attempts: number;
  /** Share of the calls that may be repeats: what keeps a vendor's trouble from growing by what is tried again. */
  readonly retryBudget: number;
  /** The longest a vendor's Retry-After is waited for; where it asks for more, another route or an error answers. */
  readonly maxRetryAfterMs: number;
  /** Share of failed calls, among the last `breakerCalls`, at which a route is left alone. */
  readonly breakerThreshold: number;
  readonly breakerCalls: number;
  /** How long a route is left alone before one call tries it again. */
  readonly breakerPauseMs: number;
}

export const routingDefaults: RoutingSettings = {
  attempts: 4,
  retryBudget: 0.1,
  maxRetryAfterMs: 10_000,
  breakerThreshold: 0.3,
  breakerCalls: 20,
  breakerPauseMs: 10_000,
};
