import { FairTurns } from '../../shared/fairness/fair-turns.ts';
import { callerLeft } from '../../shared/jobs/end-errors.ts';
import { withTimeout } from '../../shared/runtime/with-timeout.ts';
import { yieldToEventLoop } from '../../shared/runtime/yield-to-event-loop.ts';

/** Ends that are read at a time. What becomes of one before it is sent is several times as long. */
const atATime = 4;
/** Maximum length (ms) of a turn: four reads whose store hangs would keep all others waiting. They go on without one. */
const turnMs = 10_000;
/** What waits for its turn keeps nothing in memory. */
const unlimited = { tasks: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

const reading = new FairTurns(atATime, unlimited, { tooMany: callerLeft, tooLate: callerLeft });

/**
 * Reads the end of a large answer when it is its account's turn, and returns it when the event loop has come round since the one before it
 * was shown. A hundred may complete at once: together they take gigabytes, and all other clients would wait until each is shown.
 * @param signal comes when its reader leaves
 * @throws ApiError when it has left before; what `read` throws
 */
export async function readLargeEnd<End>(account: string, signal: AbortSignal, read: () => Promise<End>): Promise<End> {
  const shown = async (): Promise<End> => {
    const end = await read();
    await new Promise<void>(yieldToEventLoop);
    return end;
  };
  const { end } = await reading.run({ account, bytes: 0 }, signal, async () => {
    // In an object: the turn would last as long as a promise that it returns.
    const begun = { end: shown() };
    await withTimeout(begun.end, turnMs);
    return begun;
  });
  return await end;
}
