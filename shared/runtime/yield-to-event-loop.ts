const waiting: (() => void)[] = [];

/**
 * Calls back when it is the caller's turn: of all uploads together one chunk is handled per turn of the event loop, first
 * come, first served. A hundred uploads at a time would otherwise hold every other request up for a hundred chunks.
 */
export function yieldToEventLoop(turn: () => void): void {
  waiting.push(turn);
  if (waiting.length === 1) setImmediate(run);
}

function run(): void {
  const [turn] = waiting;
  try {
    turn?.();
  } finally {
    // Also after one that fails: the uploads behind it have theirs.
    waiting.shift();
    if (waiting.length > 0) setImmediate(run);
  }
}
