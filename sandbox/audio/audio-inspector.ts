import type { Inspector } from '../form.ts';
import { parseFlac, parseMp3, parseWav } from './audio-files.ts';
import { type AudioFacts, type AudioParser, ParserRun } from './audio-step.ts';
import { parseMp4, parseOgg, parseWebm } from './media-containers.ts';

const HEAD_BYTES = 12;

/** Detects an audio file's format and duration while it streams through. */
export class AudioInspector implements Inspector<AudioFacts | undefined> {
  #head = Buffer.alloc(0);
  #run: ParserRun | undefined;

  push(chunk: Buffer): void {
    if (this.#run !== undefined) {
      this.#run.push(chunk);
      return;
    }
    this.#head = Buffer.concat([this.#head, chunk]);
    if (this.#head.length >= HEAD_BYTES) this.#start();
  }

  /** Undefined if the file is not audio of a known format. */
  end(): AudioFacts | undefined {
    if (this.#run === undefined) this.#start();
    const facts = this.#run?.end();
    return facts !== undefined && Number.isFinite(facts.seconds) && facts.seconds > 0 ? facts : undefined;
  }

  #start(): void {
    this.#run = new ParserRun(parserOf(this.#head));
    this.#run.push(this.#head);
    this.#head = Buffer.alloc(0);
  }
}

/** Selects the parser by the first bytes. */
function parserOf(head: Buffer): AudioParser {
  const text = head.toString('latin1');
  if (text.startsWith('RIFF') && text.slice(8, 12) === 'WAVE') return parseWav();
  if (text.startsWith('fLaC')) return parseFlac();
  if (text.startsWith('OggS')) return parseOgg();
  if (text.slice(4, 8) === 'ftyp') return parseMp4();
  if (text.startsWith('\x1aE\xdf\xa3')) return parseWebm();
  if (text.startsWith('ID3') || /^\xff[\xe0-\xff]/.test(text)) return parseMp3();
  return noParser();
}

// biome-ignore lint/correctness/useYield: it knows its answer before the first byte.
function* noParser(): AudioParser {
  return undefined;
}
