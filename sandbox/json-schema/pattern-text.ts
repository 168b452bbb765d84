import { compilePattern, SchemaError } from './schema.ts';

/** A part of a regular expression: one character's choice, a sequence, alternatives, or a repetition. */
type Node =
  | { kind: 'character'; samples: readonly string[] }
  | { kind: 'sequence'; nodes: Node[] }
  | { kind: 'choice'; options: Node[] }
  | { kind: 'repeat'; node: Node; minimum: number; maximum: number };

/** Mixed kinds first, so that a run of arbitrary characters contains an upper and a lower case letter, a digit and a mark. */
const samples = [
  ...'aA1!bB2-cC3_dD4.',
  ...'efghijklmnopqrstuvwxyzEFGHIJKLMNOPQRSTUVWXYZ567890 @#$%&*+=/?,:;~^|\'"`<>()[]{}\\',
  '\n',
  '\t',
  'é',
  '中',
  '😀',
];

const MAXIMUM_STEPS = 100_000;

/**
 * Texts that match a pattern, shortest first; none if the pattern is not supported (look-arounds and back references are
 * skipped; each text is tested against the whole pattern).
 * @param shift varies the characters chosen.
 */
export function* patternTexts(pattern: string, shift = 0, minimumLength = 0): Generator<string> {
  const expression = compilePattern(pattern);
  const node = new PatternReader(pattern, expression.flags).read();
  const write = (extra: number, option: number) => new PatternWriter(extra, option, shift).write(node);
  const seen = new Set<string>();
  for (let option = 0; option < 4; option += 1) {
    const shortest = write(0, option).length;
    const growth = write(1, option).length - shortest;
    const needed = growth > 0 ? Math.max(0, Math.ceil((minimumLength - shortest) / growth)) : 0;
    for (const extra of [needed, needed + 1, needed + 2, needed + 7]) {
      const text = write(extra, option);
      if (!seen.has(text) && expression.test(text)) yield text;
      seen.add(text);
    }
  }
}

/** Writes a text for a pattern: `extra` more repetitions than needed, alternatives chosen by `option`. */
class PatternWriter {
  readonly #extra: number;
  readonly #option: number;
  readonly #shift: number;
  #characters = 0;
  #steps = 0;

  constructor(extra: number, option: number, shift: number) {
    this.#extra = extra;
    this.#option = option;
    this.#shift = shift;
  }

  write(node: Node): string {
    switch (node.kind) {
      case 'character': {
        const position = this.#shift + this.#characters;
        this.#characters += 1;
        this.#countStep();
        return node.samples[position % node.samples.length] ?? '';
      }
      case 'sequence':
        return node.nodes.map((part) => this.write(part)).join('');
      case 'choice':
        return this.write(node.options[this.#option % node.options.length] as Node);
      case 'repeat': {
        let text = '';
        const count = Math.min(node.maximum, node.minimum + this.#extra);
        for (let done = 0; done < count; done += 1) {
          this.#countStep();
          text += this.write(node.node);
        }
        return text;
      }
    }
  }

  #countStep(): void {
    this.#steps += 1;
    if (this.#steps > MAXIMUM_STEPS) throw new SchemaError('a pattern asks for too long a text');
  }
}

/** Parses the source of a regular expression that is known to compile. */
class PatternReader {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  read(): Node {
    const options = [this.#readSequence()];
    while (this.#source[this.#at] === '|') {
      this.#at += 1;
      options.push(this.#readSequence());
    }
    return options.length === 1 ? (options[0] as Node) : { kind: 'choice', options };
  }

  #readSequence(): Node {
    const nodes: Node[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] as string)) {
      const node = this.#readAtom();
      const repeated = this.#readRepeat(node ?? { kind: 'sequence', nodes: [] });
      if (node !== undefined) nodes.push(repeated);
    }
    return { kind: 'sequence', nodes };
  }

  /** Undefined for zero-width parts: anchors and look-arounds. */
  #readAtom(): Node | undefined {
    if (this.#take(/[\^$]|\\[bB]/y) !== undefined) return undefined;
    const group = this.#take(/\((?:\?(?:<?[=!]|:|<[^>]*>))?/y);
    if (group !== undefined) {
      const node = this.read();
      this.#at += 1;
      return /^\(\?<?[=!]/.test(group) ? undefined : node;
    }
    const character =
      this.#take(/\[(?:\\.|[^\]\\])*\]/sy) ??
      this.#take(/\\(?:u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|c[a-zA-Z]|.)/sy) ??
      (this.#take(/./suy) as string);
    return { kind: 'character', samples: this.#samplesOf(character) };
  }

  #samplesOf(character: string): readonly string[] {
    const one = new RegExp(`^(?:${character})$`, this.#flags);
    const matching = samples.filter((sample) => one.test(sample));
    // A literal outside the samples represents itself.
    if (matching.length > 0) return matching;
    const range = this.#searchCodePoints(one);
    return range === undefined ? [] : [range];
  }

  #searchCodePoints(one: RegExp): string | undefined {
    for (let code = 0; code < 0x1_1000; code += 1) {
      const character = String.fromCodePoint(code);
      if (one.test(character)) return character;
    }
    return undefined;
  }

  #readRepeat(node: Node): Node {
    const repeat = this.#take(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/y);
    if (repeat === undefined) return node;
    if (repeat.startsWith('*')) return { kind: 'repeat', node, minimum: 0, maximum: Number.POSITIVE_INFINITY };
    if (repeat.startsWith('+')) return { kind: 'repeat', node, minimum: 1, maximum: Number.POSITIVE_INFINITY };
    if (repeat.startsWith('?')) return { kind: 'repeat', node, minimum: 0, maximum: 1 };
    const [, minimum, comma, maximum] = /\{(\d+)(,?)(\d*)\}/.exec(repeat) ?? [];
    const upper = comma === '' ? Number(minimum) : maximum === '' ? Number.POSITIVE_INFINITY : Number(maximum);
    return { kind: 'repeat', node, minimum: Number(minimum), maximum: upper };
  }

  #take(token: RegExp): string | undefined {
    token.lastIndex = this.#at;
    const match = token.exec(this.#source);
    if (match === null) return undefined;
    this.#at = token.lastIndex;
    return match[0];
  }
}
