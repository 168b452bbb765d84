import type { Counter } from 'prom-client';
import type { Logger } from './log.ts';

/** A step of closing; it gets a signal that is aborted when the time for closing is over. */
type Closer = (signal: AbortSignal) => Promise<void> | void;

/** A terminal's Ctrl-C may come twice: from the terminal itself, and passed on by npm. */
const sameSignalMs = 1000;

/** How a process closes. */
export interface ClosingOptions {
  readonly close: Closer;
  /** How long `close` may take, in ms. */
  readonly timeoutMs: number;
  readonly log: Logger;
  readonly flush: () => void;
  /** Counts errors that nothing in the process took. */
  readonly faults: Counter<'kind'>;
}

/**
 * Runs `close` once on SIGTERM or SIGINT (or when a parent that started this process through an IPC channel is gone),
 * gives it `timeoutMs`, and ends the process. A second signal ends it at once.
 *
 * A promise that rejects and an exception that is thrown where nobody takes it are defects: what one request broke may be
 * anything, so the process takes no new work and is replaced. It closes in order, because hundreds of other requests that
 * have nothing to do with it are still under way; its exit code is 1.
 */
export function closeOnSignal({ close, timeoutMs, log, flush, faults }: ClosingOptions): void {
  let closingSince: number | undefined;
  let code = 0;
  const stop = async (reason: string): Promise<void> => {
    if (closingSince !== undefined) {
      if (Date.now() - closingSince < sameSignalMs) return;
      flush();
      process.exit(1);
    }
    closingSince = Date.now();
    log.info({ reason }, 'shutting down');
    // The grace lets the closers notice the aborted signal and leave things tidy before the process ends.
    const hardStop = setTimeout(() => {
      log.error('shutdown timed out');
      flush();
      process.exit(1);
    }, timeoutMs + 5000);
    hardStop.unref();
    try {
      await close(AbortSignal.timeout(timeoutMs));
    } catch (error) {
      log.error({ err: error }, 'shutdown failed');
      code = 1;
    }
    log.info('shutdown complete');
    flush();
    process.exit(code);
  };
  const onFault = (kind: 'unhandled_rejection' | 'uncaught_exception', error: unknown): void => {
    faults.inc({ kind });
    code = 1;
    log.error({ err: error, kind }, 'unhandled error; the process shuts down');
    if (closingSince === undefined) void stop(kind);
  };
  process.on('unhandledRejection', (error) => onFault('unhandled_rejection', error));
  process.on('uncaughtException', (error) => onFault('uncaught_exception', error));
  process.on('SIGTERM', () => void stop('SIGTERM'));
  process.on('SIGINT', () => void stop('SIGINT'));
  process.on('disconnect', () => void stop('parent gone'));
}
