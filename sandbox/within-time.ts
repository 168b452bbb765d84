import { createContext, Script } from 'node:vm';
import { WireError } from './wire-error.ts';

/** How long (ms) the work for one request may hold up all others. Ordinary schemas take a few of them. */
const maxMs = 1000;

const script = new Script('work()');
/** One for all: whatever it calls runs by itself, one piece of work after the other. */
const context = createContext({ work: undefined });

/**
 * Does work whose length a caller decides, by schemas and regular expressions of its own: one of these may go back and
 * forth for years over a short text. Whatever is still running when the time is over is stopped, expressions too.
 * @throws WireError 400 when the time is over.
 */
export function withinTime<Result>(work: () => Result, ms = maxMs): Result {
  context.work = work;
  try {
    return script.runInContext(context, { timeout: ms }) as Result;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new WireError(400, 'The schemas or patterns of this request take too long to follow.');
  } finally {
    context.work = undefined;
  }
}
