/**
 * Processes every item, at most `limit` at a time, and returns the results in the items' order. The first failure aborts running
 * items and starts no more; it is thrown once all have ended.
 * @param signal aborts all of them.
 */
export async function runInOrder<Item, Result>(
  items: readonly Item[],
  limit: number,
  signal: AbortSignal,
  work: (item: Item, index: number, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failed = new AbortController();
  const abort = (): void => failed.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort);
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const runNext = async (): Promise<void> => {
    while (next < items.length && failure === undefined) {
      const index = next++;
      try {
        results[index] = await work(items[index] as Item, index, failed.signal);
      } catch (error) {
        failure ??= { error };
        failed.abort(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, runNext));
  signal.removeEventListener('abort', abort);
  if (failure !== undefined) throw (failure as { readonly error: unknown }).error;
  return results;
}
