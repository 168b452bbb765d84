/** How a route fares with a worker: its circuit breaker. Times in ms since 1970. */
export interface RouteHealth {
  readonly route: string;
  readonly state: 'closed' | 'half-open' | 'open';
  readonly failed_in_a_row: number;
  readonly last_error: { readonly code: string; readonly status: number | null; readonly at: number } | null;
}

/** A vendor, and how it fares with each worker that knows it. */
export interface Vendor {
  readonly name: string;
  readonly on: boolean;
  readonly needs_key: boolean;
  readonly keys: number;
  readonly base_url: string;
  readonly routes: readonly { readonly model: string; readonly route: string }[];
  readonly workers: readonly {
    readonly id: string;
    readonly host: string;
    readonly keys: number;
    readonly cooling_keys: number;
    readonly refused_keys: number;
    /** What the vendor said of the key that it refused last. */
    readonly refusal: { readonly status: number; readonly message: string | null; readonly at: number } | null;
    /** What came of asking, at the worker's start, whether its keys are accepted: how many of each. */
    readonly key_check: Readonly<Record<string, number>> | null;
    /** Those that are not well, or were not a short time ago. */
    readonly routes: readonly RouteHealth[];
  }[];
}

export interface Queue {
  readonly capability: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly oldest_wait_seconds: number;
}

/** A worker process that said a short time ago that it is there. */
export interface Worker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly region: string | null;
  readonly started_at: number;
  readonly seen_at: number;
  readonly capabilities: readonly string[];
  readonly running: Readonly<Record<string, number>>;
  readonly concurrency: Readonly<Record<string, number>>;
  readonly event_loop_lag_ms: number;
  /** Share of one core. */
  readonly cpu: number;
  /** Bytes. */
  readonly memory: number;
}
