const waiting: (() => void)[] = [];

/**
 * Calls back in a later pass of the event loop: all uploads and large answers together handle one chunk, or one answer, per pass, first
 * come, first served. A hundred concurrent ones would otherwise delay every other request by a hundred of them.
 */
export function yieldToEventLoop(callback: () => void): void {
  waiting.push(callback);
  if (waiting.length === 1) setImmediate(run);
}

function run(): void {
  const [callback] = waiting;
  try {
    callback?.();
  } finally {
    // Also after a callback that throws, so that those behind it continue.
    waiting.shift();
    if (waiting.length > 0) setImmediate(run);
  }
}
