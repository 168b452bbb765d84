/** Minimum and maximum of the limits that the file, and the environment as `SLUICE_<NAME>`, may set. */
export const limitBounds = {
  queue_limit: [1, 10_000_000],
  queue_wait_seconds: [1, 86_400],
  key_concurrency: [1, 1_000_000],
  deadline_seconds: [1, 86_400],
  background_deadline_seconds: [1, 604_800],
  vendor_silence_seconds: [1, 86_400],
} as const;
