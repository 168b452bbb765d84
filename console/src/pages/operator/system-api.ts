/** Health of a route as seen by a worker: its circuit breaker. Times in ms since 1970. */
export interface RouteHealth {
  readonly route: string;
  readonly state: 'closed' | 'half-open' | 'open';
  readonly failed_in_a_row: number;
  readonly last_error: { readonly code: string; readonly status: number | null; readonly at: number } | null;
}

/** A vendor, with its health as seen by each worker that knows it. */
export interface Vendor {
  readonly name: string;
  readonly on: boolean;
  readonly needs_key: boolean;
  /** The environment variables that turn it on, all of them together. */
  readonly settings: readonly string[];
  readonly keys: number;
  readonly base_url: string;
  readonly routes: readonly { readonly model: string; readonly route: string }[];
  readonly workers: readonly {
    readonly id: string;
    readonly host: string;
    readonly keys: number;
    readonly cooling_keys: number;
    readonly refused_keys: number;
    /** The vendor's last refusal of a key. */
    readonly refusal: { readonly status: number; readonly message: string | null; readonly at: number } | null;
    /** Results of the key checks at the worker's start: the count of each. */
    readonly key_check: Readonly<Record<string, number>> | null;
    /** Routes that are unhealthy, or were a short time ago. */
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

/** A worker process that reported recently. */
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
