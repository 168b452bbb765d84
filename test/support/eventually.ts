import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

/** How much longer a wait may become on a busy machine, and beyond which length none does: tests end at some time. */
const mostTimes = 10;
const mostMs = 120_000;

/**
 * Waits until `check` stops throwing and answers its value: for what other processes do in their own time and announce to
 * nobody. Give `assert.ok` a message in it: to make one up Node parses the caller's whole file, which takes seconds.
 * @throws the last error of `check`, `ms` after the start, or later on a busy machine.
 */
export async function eventually<T>(check: () => T | Promise<T>, ms = 10_000): Promise<T> {
  const begun = Date.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const waited = Date.now() - begun;
      if (waited > onThisMachine(ms)) throw error;
      // What comes soon is seen soon, and what takes long does not keep this process, and what it asks, at work meanwhile.
      await delay(Math.max(10, Math.min(50, waited / 3), Math.min(250, waited / 20)));
    }
  }
}

/** How long what takes at most `ms` elsewhere may take here now, where each process has but its share of the cores. */
export function onThisMachine(ms: number): number {
  const times = Math.min(mostTimes, Math.max(1, (loadavg()[0] as number) / availableParallelism()));
  return Math.max(ms, Math.min(mostMs, ms * times));
}
