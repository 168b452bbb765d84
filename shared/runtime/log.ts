import { write, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

const stdout = 1;
/** Characters of one write, unless more wait. */
const batchCharacters = 64_000;
const batchMs = 1000;
/** Characters that may wait for stdout; so many may be in the write under way. */
const maxWaiting = 8 * 1024 * 1024;
/** How long `flush` waits for stdout, in ms. */
const flushMs = 2000;
/** Pause after stdout could take nothing at once, in ms. */
const retryMs = 20;

/** Writes what waits. Resolves to whether stdout has taken it, or failed to, within two seconds. */
export type Flush = () => Promise<boolean>;

/**
 * The process's logger: JSON lines on stdout. Lines are batched and written at most a second later, because a write per request
 * is a system call per request; `flush` them before exit. Never log bodies, prompts or headers.
 *
 * Of warnings and errors with the same message a second has a few lines only: what fails a thousand times a second has one cause.
 * A stdout that is not read, is closed or is a file on a full disk costs lines, and neither memory nor the process.
 */
export function createLogger(level: string, role: string): { log: Logger; flush: Flush } {
  const lines = new BatchedLines((dropped) => {
    log.warn({ lines: dropped }, 'lines of this log were dropped, because stdout did not take them');
  });
  const destination = new RepeatedLines(lines, (like, repeated) => {
    log.warn({ like, lines: repeated }, 'lines like others of the same second were left out of this log');
  });
  const log = pino({ level, base: { role }, timestamp: isoTime, serializers: { err: loggedError } }, destination);
  const head = `,"role":${JSON.stringify(role)},`;
  eventWriters.set(log, (fields, message) => {
    lines.write(`{"level":30${isoTime()}${head}${JSON.stringify(fields).slice(1, -1)},"msg":"${message}"}\n`);
  });
  const flush = (): Promise<boolean> => {
    destination.tell();
    return lines.flush();
  };
  return { log, flush };
}

/** Write a line of level info on a logger's own stdout. */
const eventWriters = new WeakMap<Logger, (fields: object, message: string) => void>();

/**
 * Logs a line of level info that each request or job has. It is the logger's own, at half its cost: the logger looks at each field by
 * itself, as one may be an error.
 * @param fields at least one, and no errors
 * @param message without quotes
 */
export function logEvent(log: Logger, fields: object, message: string): void {
  if (!log.isLevelEnabled('info')) return;
  const write = eventWriters.get(log);
  if (write === undefined) log.info(fields, message);
  else write(fields, message);
}

/** Lines with the same message in a second. */
const maxAlike = 20;
/** Messages that are told apart in a second: some have texts of their own. */
const maxMessages = 200;

/** Lines on their way to stdout: of warnings and errors with the same message only the first ones of each second. */
class RepeatedLines implements DestinationStream {
  readonly #lines: DestinationStream;
  readonly #onRepeated: (message: string, lines: number) => void;
  readonly #alike = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** @param onRepeated called after a second that had more lines with a message, with how many more */
  constructor(lines: DestinationStream, onRepeated: (message: string, lines: number) => void) {
    this.#lines = lines;
    this.#onRepeated = onRepeated;
  }

  write(line: string): void {
    // `{"level":30` and less is of every request, and is passed on as it is.
    if (line[levelAt] === '4' || line[levelAt] === '5') {
      const message = /"msg":"(.*)"\}\n$/.exec(line.slice(Math.max(0, line.lastIndexOf('"msg":"'))))?.[1] ?? '';
      const known = this.#alike.has(message) || this.#alike.size < maxMessages ? message : 'other messages';
      const count = (this.#alike.get(known) ?? 0) + 1;
      this.#alike.set(known, count);
      this.#timer ??= setTimeout(() => this.tell(), 1000).unref();
      if (count > maxAlike) return;
    }
    this.#lines.write(line);
  }

  /** Tells what was left out since the last time. */
  tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const alike = [...this.#alike];
    this.#alike.clear();
    for (const [message, count] of alike) {
      // As it stands in a line: its quotes are escaped.
      if (count > maxAlike) this.#onRepeated(JSON.parse(`"${message}"`), count - maxAlike);
    }
  }
}

/** Index of the first digit of a line's level. */
const levelAt = '{"level":'.length;

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

/**
 * Lines for stdout, in larger writes, one at a time. pino's own destination keeps what is not taken without bound, measures its
 * whole buffer at every line, takes an error of stdout for one of the process, and at exit waits for it for ever.
 */
class BatchedLines implements DestinationStream {
  readonly #onDropped: (lines: number) => void;
  #lines: string[] = [];
  #characters = 0;
  #isWriting = false;
  #dropped = 0;

  /** @param onDropped called when stdout takes lines again, with how many it has not taken */
  constructor(onDropped: (lines: number) => void) {
    this.#onDropped = onDropped;
    setInterval(() => this.#write(), batchMs).unref();
    process.on('exit', () => this.#writeAtExit());
  }

  write(line: string): void {
    if (this.#characters + line.length > maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= batchCharacters) this.#write();
  }

  async flush(): Promise<boolean> {
    const deadline = AbortSignal.timeout(flushMs);
    for (;;) {
      this.#write();
      if (!this.#isWriting) return true;
      if (deadline.aborted) return false;
      await delay(5);
    }
  }

  #take(): Buffer {
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    return Buffer.from(text);
  }

  #write(): void {
    if (this.#isWriting || this.#lines.length === 0) return;
    this.#isWriting = true;
    const lines = this.#lines.length;
    this.#writeBytes(this.#take(), lines);
  }

  /** Through the thread pool, because a pipe that is full would hold the process up. */
  #writeBytes(bytes: Buffer, lines: number): void {
    write(stdout, bytes, 0, bytes.length, null, (error, written) => {
      if (error === null && written < bytes.length) {
        this.#writeBytes(bytes.subarray(written), lines);
      } else if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#writeBytes(bytes, lines), retryMs).unref();
      } else {
        this.#isWriting = false;
        if (error !== null) this.#dropped += lines;
        else this.#tellDropped();
        if (this.#characters >= batchCharacters) this.#write();
      }
    });
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#onDropped(lines);
  }

  /** The last lines of a process that ends without `flush`, such as one that cannot start. */
  #writeAtExit(): void {
    try {
      for (let rest = this.#take(); rest.length > 0; ) rest = rest.subarray(writeSync(stdout, rest));
    } catch {
      // Nobody is left to tell.
    }
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
