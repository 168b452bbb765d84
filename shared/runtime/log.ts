import { type Logger, pino } from 'pino';
import { BatchedLines, type Flush } from './batched-lines.ts';

export type { Flush, Logger };

/**
 * The process's logger: JSON lines on stdout. Lines are batched and written at most a second later, because a write per request
 * is a system call per request; `flush` them before exit. Never log bodies, prompts or headers.
 *
 * A stdout that is not read, is closed or is a file on a full disk costs lines, and neither memory nor the process.
 */
export function createLogger(level: string, role: string): { log: Logger; flush: Flush } {
  const lines = new BatchedLines((dropped) => {
    log.warn({ lines: dropped }, 'lines of this log were dropped, because stdout did not take them');
  });
  const log = pino({ level, base: { role }, timestamp: isoTime, serializers: { err: loggedError } }, lines);
  return { log, flush: () => lines.flush() };
}

let second = 0;
let secondText = '';

/** Same as pino's own `isoTime`, without a `Date` per line. */
function isoTime(): string {
  const now = Date.now();
  const milliseconds = now % 1000;
  if (now - milliseconds !== second) {
    second = now - milliseconds;
    secondText = `,"time":"${new Date(second).toISOString().slice(0, -4)}`;
  }
  return `${secondText}${String(milliseconds).padStart(3, '0')}Z"`;
}

/** The logged parts of an error. Not its other properties: Redis errors contain their command, and so prompts. */
function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  return {
    type,
    message: withoutIds(message),
    stack: stack && withoutIds(stack),
    code: (error as { code?: unknown }).code,
  };
}

/** Blob ids, with a plain or encoded slash, and link signatures: either is half of the access to a caller's file. */
const blobId = /\b\d{10}(?:\/|%2f)[0-9a-f-]{36}(?:\.[a-z0-9]{1,5})?/gi;
const linkSignature = /\b(signature=)[^\s&"']+/gi;

/** Removes blob ids and link signatures from a text. */
export function withoutIds(text: string): string {
  return text.replace(blobId, '[blob]').replace(linkSignature, '$1[hidden]');
}
