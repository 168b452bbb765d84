import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/**
 * The process's logger: JSON lines on stdout. Lines are gathered and written at most a second later, because a write per
 * request is a system call per request; `flush` them before exit. Never log bodies, prompts or headers.
 */
export function createLogger(level: string, role: string): { log: Logger; flush: () => void } {
  const destination = pino.destination({ dest: 1, sync: false });
  const lines = new GatheredLines((text) => destination.write(text));
  const flush = (): void => {
    lines.pass();
    destination.flushSync();
  };
  // Before the destination's own listeners, which write what it has.
  process.prependListener('beforeExit', () => lines.pass());
  process.prependListener('exit', () => lines.pass());
  const serializers = { err: loggedError };
  const log = pino({ level, base: { role }, timestamp: isoTime, serializers }, lines);
  return { log, flush };
}

let second = 0;
let secondText = '';

/** What pino's own function of the name returns, without a `Date` for each line. */
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
 * Gathers lines until they are worth a write. The destination could gather them itself, but it measures, and so copies,
 * all that it has gathered at every line: that was a twelfth of all memory that an api process takes and gives back.
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

  /** Passes on what there is. */
  pass(): void {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    this.#write(text);
  }
}

/** What of an error is logged. Not whatever else it carries: those of Redis hold their command, and so prompts. */
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

/** Ids of blobs, however their slash is written, and what signs a link to one: either is half of a key to a caller's file. */
const blobId = /\b\d{10}(?:\/|%2f)[0-9a-f-]{36}(?:\.[a-z0-9]{1,5})?/gi;
const linkSignature = /\b(signature=)[^\s&"']+/gi;

/** A text without the ids of blobs and the signatures of links to them. */
export function withoutIds(text: string): string {
  return text.replace(blobId, '[blob]').replace(linkSignature, '$1[hidden]');
}
