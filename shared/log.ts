import { type Logger, pino } from 'pino';

export type { Logger };

/**
 * The process's logger: JSON lines on stdout. Lines are gathered and written at most a second later, because a write per
 * request is a system call per request; `flush` them before exit. Never log bodies, prompts or headers.
 */
export function createLogger(level: string, role: string): { log: Logger; flush: () => void } {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 16_000, periodicFlush: 1000 });
  const log = pino({ level, base: { role }, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  return { log, flush: () => destination.flushSync() };
}
