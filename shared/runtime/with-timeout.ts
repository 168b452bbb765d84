/**
 * What a promise becomes, or undefined when that takes longer than `ms`. The promise itself goes on. A process that stood
 * still past the time first hears what has come meanwhile: timers are looked at before what was received.
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve, undefined), ms);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
