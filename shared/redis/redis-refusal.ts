import { setTimeout as delay } from 'node:timers/promises';

/** What Redis answers where it takes no commands, or no writes, for now; refusal.lua has the same. */
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

/** How long a refused command is tried again: longer than a failover takes, and than a worker's lease. */
const patienceMs = 15_000;
const shortestPauseMs = 20;
const maxPauseMs = 250;

/** Up to Redis 6.2 the position in a script comes before the code. */
const refused = new RegExp(`(?:^|[\\s-])(?:${refusalCodes.join('|')}) `);

/** Whether an error means that Redis refuses for now, and has changed nothing: the same command may succeed a moment later. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && refused.test(error.message);
}

/**
 * Makes a call of Redis, and again while that refuses, with pauses that grow.
 * @param call must tolerate a repeat
 * @param ms how long it is tried again
 * @throws what the call throws, a refusal only once the time is over
 */
export async function untilAccepted<T>(call: () => Promise<T>, ms = patienceMs): Promise<T> {
  try {
    return await call();
  } catch (error) {
    return await retryRefused(error, call, ms);
  }
}

/** The same for a call that has failed once already. */
export async function retryRefused<T>(failure: unknown, call: () => Promise<T>, ms = patienceMs): Promise<T> {
  const giveUpAt = performance.now() + ms;
  let error = failure;
  for (let pauseMs = shortestPauseMs; isRefusal(error); pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
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
