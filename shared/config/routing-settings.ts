/** Settings for retries and circuit breakers. Times are milliseconds. */
export interface RoutingSettings {
  /** Maximum number of calls per claim of a job, including the first. */
  readonly attempts: number;
  /** Share of the calls that may be retries: keeps retries from amplifying a vendor's failure. */
  readonly retryBudget: number;
  /** Longest Retry-After of a vendor that is waited for; beyond it, another route or an error is used. */
  readonly maxRetryAfterMs: number;
  /** Share of failed calls, among the last `breakerCalls`, at which a route's breaker opens. */
  readonly breakerThreshold: number;
  readonly breakerCalls: number;
  /** How long a breaker stays open before one call tests the route. */
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
