import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until `check` stops throwing and answers its value: for what other processes do in their own time and announce to
 * nobody. Give `assert.ok` a message in it: to make one up Node parses the caller's whole file, which takes seconds.
 * @throws the last error of `check`, `ms` after the start.
 */
export async function eventually<T>(check: () => T | Promise<T>, ms = 10_000): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(20);
    }
  }
}
