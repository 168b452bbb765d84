import { setTimeout as delay } from 'node:timers/promises';

/** Error codes of a Redis that accepts no commands, or no writes, for now; refusal.lua has the same. */
export const refusalCodes = [
  'READONLY',
  'NOREPLICAS',
  'MISCONF',
  'OOM',
  'LOADING',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'MASTERDOWN',
  'BUSY',
] as const;

/** How long a refused command is retried: longer than a failover, and than a worker's lease. */
const patienceMs = 15_000;
const minPauseMs = 20;
const maxPauseMs = 250;

/** Up to Redis 6.2 the position in a script precedes the code. */
const refused = new RegExp(`(?:^|[\\s-])(?:${refusalCodes.join('|')}) `);

/** Whether an error means that Redis refuses for now, and has changed nothing: the same command may succeed a moment later. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && refused.test(error.message);
}

/**
 * Calls Redis, and retries with growing pauses while Redis refuses.
 * @param call must tolerate a repeat
 * @param ms how long to retry
 * @throws what the call throws; a refusal only once the time is over
 */
export async function untilAccepted<T>(call: () => Promise<T>, ms = patienceMs): Promise<T> {
  try {
    return await call();
  } catch (error) {
    return await retryRefused(error, call, ms);
  }
}

/** Same as `untilAccepted`, for a call that has already failed once. */
export async function retryRefused<T>(failure: unknown, call: () => Promise<T>, ms = patienceMs): Promise<T> {
  const giveUpAt = performance.now() + ms;
  let error = failure;
  for (let pauseMs = minPauseMs; isRefusal(error); pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    if (performance.now() + pauseMs > giveUpAt) break;
    await delay(pauseMs);
    try {
      return await call();
    } catch (thrown) {
      error = thrown;
    }
  }
  throw error;
}
