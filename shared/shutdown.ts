import type { Logger } from './log.ts';

/** A step of closing; it gets a signal that is aborted when the time for closing is over. */
export type Closer = (signal: AbortSignal) => Promise<void> | void;

/** A terminal's Ctrl-C may come twice: from the terminal itself, and passed on by npm. */
const sameSignalMs = 1000;

/**
 * Runs `close` once on SIGTERM or SIGINT (or when a parent that started this process through an IPC channel is gone),
 * gives it `timeoutMs`, and ends the process. A second signal ends it at once.
 */
export function closeOnSignal(options: { close: Closer; timeoutMs: number; log: Logger; flush: () => void }): void {
  const { close, timeoutMs, log, flush } = options;
  let closingSince: number | undefined;
  const stop = async (reason: string): Promise<void> => {
    if (closingSince !== undefined) {
      if (Date.now() - closingSince < sameSignalMs) return;
      flush();
      process.exit(1);
    }
    closingSince = Date.now();
    log.info({ reason }, 'closing');
    let code = 0;
    // The grace lets the closers notice the aborted signal and leave things tidy before the process ends.
    const hardStop = setTimeout(() => {
      log.error('closing took too long');
      flush();
      process.exit(1);
    }, timeoutMs + 5000);
    hardStop.unref();
    try {
      await close(AbortSignal.timeout(timeoutMs));
    } catch (error) {
      log.error({ err: error }, 'closing failed');
      code = 1;
    }
    log.info('closed');
    flush();
    process.exit(code);
  };
  process.on('SIGTERM', () => void stop('SIGTERM'));
  process.on('SIGINT', () => void stop('SIGINT'));
  process.on('disconnect', () => void stop('parent gone'));
}
