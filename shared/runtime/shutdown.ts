import type { Counter } from 'prom-client';
import type { Flush, Logger } from './log.ts';
import { onNpmShellGone } from './npm-shell.ts';

/** A shutdown step; its signal is aborted when the shutdown timeout is over. */
type Closer = (signal: AbortSignal) => Promise<void> | void;

/** A terminal's Ctrl-C may arrive twice: from the terminal itself, and forwarded by npm. */
const sameSignalMs = 1000;

/** How long the closers may take once their signal is aborted: less than what ends processes adds (see docs/guides/upgrade.md). */
export const graceMs = 8000;

/** Shutdown settings of a process. */
export interface ClosingOptions {
  /** Runs before `close`, and before its timeout, on SIGTERM only; its signal is aborted when there is no time for it. */
  readonly leave?: Closer;
  readonly close: Closer;
  /** Timeout for `close`, in ms. */
  readonly timeoutMs: number;
  readonly log: Logger;
  readonly flush: Flush;
  /** Counts unhandled errors. */
  readonly faults: Counter<'kind'>;
}

/**
 * Runs `close` once on SIGTERM or SIGINT (or when a parent that started this process through an IPC channel, or npm, is gone), with
 * `timeoutMs` as timeout, and ends the process. A second signal ends it at once. SIGTERM comes from what runs many processes,
 * and gives `leave` its time; SIGINT is a Ctrl-C.
 *
 * Unhandled rejections and uncaught exceptions are defects: they may have broken any state, so the process accepts no new work
 * and is replaced. It shuts down gracefully, because hundreds of unrelated requests are still in flight; its exit code is 1.
 */
export function closeOnSignal({ leave, close, timeoutMs, log, flush, faults }: ClosingOptions): void {
  let closingSince: number | undefined;
  let code = 0;
  const hurry = new AbortController();
  // A process whose stdout is not read would wait in its exit for ever: there a thread is left that writes.
  const end = async (exitCode: number): Promise<void> => {
    if (await flush()) process.exit(exitCode);
    process.kill(process.pid, 'SIGKILL');
  };
  const stop = async (reason: string): Promise<void> => {
    if (closingSince !== undefined) {
      if (Date.now() - closingSince < sameSignalMs) return;
      return end(1);
    }
    closingSince = Date.now();
    log.info({ reason }, 'shutting down');
    if (reason === 'SIGTERM') await leave?.(hurry.signal);
    const hardStop = setTimeout(() => {
      log.error('shutdown timed out');
      void end(1);
    }, timeoutMs + graceMs);
    hardStop.unref();
    try {
      await close(AbortSignal.timeout(timeoutMs));
    } catch (error) {
      log.error({ err: error }, 'shutdown failed');
      code = 1;
    }
    log.info('shutdown complete');
    await end(code);
  };
  const onFault = (kind: 'unhandled_rejection' | 'uncaught_exception', error: unknown): void => {
    faults.inc({ kind });
    code = 1;
    log.error({ err: error, kind }, 'unhandled error; the process shuts down');
    hurry.abort();
    if (closingSince === undefined) void stop(kind);
  };
  process.on('unhandledRejection', (error) => onFault('unhandled_rejection', error));
  process.on('uncaughtException', (error) => onFault('uncaught_exception', error));
  process.on('SIGTERM', () => void stop('SIGTERM'));
  process.on('SIGINT', () => void stop('SIGINT'));
  process.on('disconnect', () => void stop('parent gone'));
  onNpmShellGone(() => {
    // A Ctrl-C ends the shell, too.
    if (closingSince === undefined) void stop('SIGTERM');
  });
}
