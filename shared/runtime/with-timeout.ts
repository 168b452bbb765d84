/**
 * Resolves to the promise's value, or to undefined after `ms`. The promise itself continues. A process that was blocked past
 * the timeout first handles what arrived meanwhile: timers run before received data.
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, undefined), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
