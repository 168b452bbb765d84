import { type Logger, pino } from 'pino';

export type { Logger };

/**
 * The process's logger: JSON lines on stdout. Lines are gathered and written at most a second later, because a write per
 * request is a system call per request; `flush` them before exit. Never log bodies, prompts or headers.
 */
export function createLogger(level: string, role: string): { log: Logger; flush: () => void } {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 16_000, periodicFlush: 1000 });
  const serializers = { err: loggedError };
  const log = pino({ level, base: { role }, timestamp: pino.stdTimeFunctions.isoTime, serializers }, destination);
  return { log, flush: () => destination.flushSync() };
}

/** What of an error is logged. Not whatever else it carries: those of Redis hold their command, and so prompts. */
function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  return { type, message, stack, code: (error as { code?: unknown }).code };
}
