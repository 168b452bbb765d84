import type { IncomingMessage } from 'node:http';
import { releaseMemory } from '../../../shared/runtime/collections.ts';

/**
 * How much of a refused body is still read, so that its sender gets the response instead of a connection reset; `bytesPerMs`
 * is of all together. Discarded data must not cost others: every 64 MiB that a process reads cause one long garbage
 * collection.
 */
const linger = { bytes: 64 * 1024 * 1024, ms: 30_000, bytesPerMs: 32 * 1024, burstMs: 100 };

/** Time by which the bytes discarded so far are due at that pace (ms, as `performance.now`). */
let discardedUntil = 0;

const discarded = new WeakSet<IncomingMessage>();

/**
 * Reads the rest of a refused body while the response is sent, up to a limit; beyond it the connection is closed. Closing at
 * once would reset the connection, and a client that is still sending would see the reset instead of the response. Does nothing
 * when it is called again.
 */
export function discardBody(req: IncomingMessage): void {
  if (req.destroyed || discarded.has(req)) return;
  discarded.add(req);
  let left = linger.bytes;
  const cut = (): void => {
    req.destroy();
  };
  const timer = setTimeout(cut, linger.ms);
  timer.unref();
  let pause: NodeJS.Timeout | undefined;
  req.on('data', (chunk: Buffer) => {
    const { length } = chunk;
    left -= length;
    if (left < 0) cut();
    releaseMemory(chunk);
    const now = performance.now();
    discardedUntil = Math.max(discardedUntil, now - linger.burstMs) + length / linger.bytesPerMs;
    // While Node has read nothing for this listener but what was there before, the end of the response would take it off, and read
    // the rest as fast as it comes.
    if (discardedUntil <= now || req.readableLength > 0) return;
    req.pause();
    pause = setTimeout(() => req.resume(), discardedUntil - now);
  });
  req.on('error', () => undefined);
  req.once('close', () => {
    clearTimeout(timer);
    clearTimeout(pause);
  });
  // A stream that was piped is paused since.
  req.resume();
}
