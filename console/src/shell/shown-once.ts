import { useBlocker } from '@tanstack/react-router';
import { useEffect } from 'react';
import { onForget } from '../api/tab-storage.ts';

/** Parts of the page that show a text which the gateway tells only once, such as a new key. */
const shown = new Set<symbol>();
/** What is done when the last of them is gone. */
let waiting: (() => void) | undefined;

// Whoever signs out, in this tab or another one, leaves nothing to be read.
onForget(() => {
  shown.clear();
});

/** Leads away from the page, once it shows nothing that would be lost. */
export function leaveWhenRead(leave: () => void): void {
  if (shown.size === 0) leave();
  else waiting = leave;
}

/** Keeps the page for as long as it shows a text that is told only once, also when the session ends meanwhile. */
export function useShownOnce(isShown = true): void {
  useEffect(() => {
    if (!isShown) return;
    const part = Symbol('shown once');
    shown.add(part);
    return () => {
      shown.delete(part);
      if (shown.size > 0) return;
      const leave = waiting;
      waiting = undefined;
      leave?.();
    };
  }, [isShown]);
}

/** The same for a dialog, over which nothing else can be reached: neither does the browser's Back lead away, and a reload asks. */
export function useShownOnceInDialog(): void {
  useBlocker({ shouldBlockFn: () => true });
  useShownOnce();
}
