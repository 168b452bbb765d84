/** An audio file's metadata. */
export interface AudioFacts {
  /** For display, such as WAV or Ogg Opus. */
  format: string;
  seconds: number;
  /** Samples per second; undefined if the container does not specify it. */
  sampleRate: number | undefined;
  channels: number | undefined;
}

interface Step {
  kind: 'take' | 'skip';
  bytes: number;
}

/** Reads a value from a file, step by step. */
export type Reading<Result> = Generator<Step, Result, Buffer | number>;

/**
 * Reads a file from its first byte to its last, step by step, holding no more than one step's bytes. Ends early once it knows
 * enough; returns undefined for a file that is not of the detected format.
 */
export type AudioParser = Reading<AudioFacts | undefined>;

/** Returns the next bytes; fewer at the end of the file. Only for small numbers: they are held in memory. */
export function* take(bytes: number): Reading<Buffer> {
  return bytes > 0 ? ((yield { kind: 'take', bytes }) as Buffer) : Buffer.alloc(0);
}

/** Skips bytes; returns how many there were. */
export function* skip(bytes: number): Reading<number> {
  return bytes > 0 ? ((yield { kind: 'skip', bytes }) as number) : 0;
}

/** Runs a parser over a file that arrives in pieces. */
export class ParserRun {
  readonly #parser: AudioParser;
  #step: IteratorResult<Step, AudioFacts | undefined>;
  readonly #taken: Buffer[] = [];
  /** Number of bytes processed in the current step. */
  #bytes = 0;

  constructor(parser: AudioParser) {
    this.#parser = parser;
    this.#step = parser.next(0);
  }

  push(chunk: Buffer): void {
    for (let start = 0; start < chunk.length && !this.#step.done; ) {
      const { kind, bytes } = this.#step.value;
      const part = chunk.subarray(start, start + bytes - this.#bytes);
      if (kind === 'take') this.#taken.push(part);
      this.#bytes += part.length;
      start += part.length;
      if (this.#bytes === bytes) this.#finishStep(kind);
    }
  }

  /** The result at the end of the file; a step that waits for more gets the available bytes. */
  end(): AudioFacts | undefined {
    while (!this.#step.done) this.#finishStep(this.#step.value.kind);
    return this.#step.value;
  }

  #finishStep(kind: Step['kind']): void {
    const answer = kind === 'take' ? Buffer.concat(this.#taken) : this.#bytes;
    this.#taken.length = 0;
    this.#bytes = 0;
    this.#step = this.#parser.next(answer);
  }
}
