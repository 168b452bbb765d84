import { createContext, Script } from 'node:vm';
import { WireError } from './wire-error.ts';

/** How long (ms) the work for one request may block all others. Ordinary schemas take a few ms. */
const maxMs = 1000;

const script = new Script('work()');
/** Shared by all: each piece of work runs to its end before the next. */
const context = createContext({ work: undefined });

/**
 * Runs work whose length the caller controls, through schemas and regular expressions: one of these may backtrack for years
 * over a short text. Work still running when the time is over is stopped, including expressions.
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
