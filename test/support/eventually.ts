import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until `check` stops throwing and answers its value: for what other processes do in their own time and announce to
 * nobody. Give `assert.ok` a message in it: to make one up Node parses the caller's whole file, which takes seconds.
 * @throws the last error of `check`, `ms` after the start.
 */
export async function eventually<T>(check: () => T | Promise<T>, ms = 10_000): Promise<T> {
  const begun = Date.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      const waited = Date.now() - begun;
      if (waited > ms) throw error;
      // What comes soon is seen soon, and what takes long does not keep this process, and what it asks, at work meanwhile.
      await delay(Math.max(10, Math.min(50, waited / 3), Math.min(250, waited / 20)));
    }
  }
}
