import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/**
 * The process's logger: JSON lines on stdout. Lines are batched and written at most a second later, because a write per request
 * is a system call per request; `flush` them before exit. Never log bodies, prompts or headers.
 */
export function createLogger(level: string, role: string): { log: Logger; flush: () => void } {
  const destination = pino.destination({ dest: 1, sync: false });
  const lines = new GatheredLines((text) => destination.write(text));
  const flush = (): void => {
    lines.pass();
    destination.flushSync();
  };
  // Before the destination's own listeners, which write what it holds.
  process.prependListener('beforeExit', () => lines.pass());
  process.prependListener('exit', () => lines.pass());
  const serializers = { err: loggedError };
  const log = pino({ level, base: { role }, timestamp: isoTime, serializers }, lines);
  return { log, flush };
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

const gatheredCharacters = 16_000;
const gatheredMs = 1000;

/**
 * Batches lines into larger writes. The destination could batch them itself, but it measures, and so copies, its whole buffer
 * at every line: that was a twelfth of all memory allocated by an api process.
 */
class GatheredLines implements DestinationStream {
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #characters = 0;

  constructor(write: (text: string) => void) {
    this.#write = write;
    setInterval(() => this.pass(), gatheredMs).unref();
  }

  write(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= gatheredCharacters) this.pass();
  }

  /** Writes the buffered lines. */
  pass(): void {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    this.#write(text);
  }
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
