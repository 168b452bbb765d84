import { readFileSync } from 'node:fs';
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { ConfigError } from '../config-error.ts';
import type { Mistake } from './mistake.ts';

/** Lines that one error has at most. */
const maxLines = 10;
const maxValue = 60;

/** A place in the text; both count from 1. */
interface Place {
  readonly line: number;
  readonly column: number;
}

/** A YAML file that remembers where each of its values stands. */
export class YamlSource {
  readonly #file: string;
  readonly #lines = new LineCounter();
  readonly #document: Document;
  /** What the file says, as plain data; an empty file says `{}`. */
  readonly value: unknown;

  /** @throws ConfigError for a file that cannot be read, or is not YAML: the mistakes of its syntax, a line each. */
  constructor(file: string) {
    this.#file = file;
    this.#document = parseDocument(readText(file), {
      lineCounter: this.#lines,
      prettyErrors: false,
      stringKeys: true,
      logLevel: 'error',
    });
    const { errors, warnings } = this.#document;
    const faults = [...errors, ...warnings].map((fault) => ({
      ...this.#placeOf(fault.pos[0]),
      text: `not YAML: ${syntaxText(fault)}`,
    }));
    if (faults.length > 0) throw this.#errorOf(faults);
    this.value = this.#read();
  }

  /** One error for all of these, in the order of their lines: `sluice.yaml:3:12: models.gpt-5.prices.input: expected …`. */
  error(mistakes: readonly Mistake[]): ConfigError {
    const seen = new Set<string>();
    const lines = mistakes.flatMap(({ path, message, isKey, showsValue }) => {
      const at = pathText(path);
      // The first mistake of a value often brings others about.
      if (seen.has(at)) return [];
      seen.add(at);
      const { node, key, value } = this.#find(path);
      const text = showsValue ? message + instead(node, path) : message;
      return [{ ...this.#placeOf(isKey ? key : value), text: at === '' ? text : `${at}: ${text}` }];
    });
    return this.#errorOf(lines);
  }

  #read(): unknown {
    try {
      return this.#document.toJS() ?? {};
    } catch {
      throw this.#errorOf([{ line: 1, column: 1, text: 'not YAML: its aliases (*name) grow beyond all bounds' }]);
    }
  }

  #errorOf(faults: readonly (Place & { readonly text: string })[]): ConfigError {
    const lines = [...faults]
      .sort((a, b) => a.line - b.line || a.column - b.column)
      .map(({ line, column, text }) => `${this.#file}:${line}:${column}: ${text}`);
    const rest = lines.length - maxLines;
    return new ConfigError(
      [...lines.slice(0, maxLines), ...(rest > 0 ? [`${this.#file}: and ${rest} more`] : [])].join('\n'),
    );
  }

  /**
   * What stands at a path, and where: the last key before it, and the value, which is pointed at where it is plain, or an
   * item of a list; mappings and lists are found at their keys. What is missing is looked for at the key that should hold it.
   */
  #find(path: Mistake['path']): { node: unknown; key: number; value: number } {
    let node: unknown = this.#document.contents;
    let key = startOf(node) ?? 0;
    let value = key;
    for (const segment of path) {
      const holder = isAlias(node) ? node.resolve(this.#document) : node;
      if (isMap(holder)) {
        const pair = holder.items.find((each) => isScalar(each.key) && String(each.key.value) === String(segment));
        if (pair === undefined) return { node: undefined, key, value: key };
        node = pair.value;
        key = startOf(pair.key) ?? key;
        value = (isScalar(node) && node.source !== '' ? startOf(node) : undefined) ?? key;
      } else {
        node = isSeq(holder) ? holder.items[Number(segment)] : undefined;
        key = startOf(node) ?? key;
        value = key;
      }
    }
    return { node, key, value };
  }

  #placeOf(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { line, column: col };
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`The setting SLUICE_CONFIG cannot be used: the file ${file} cannot be read (${code}).`);
  }
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] | null } | undefined | null)?.range?.[0];
}

/** What the parser says for programmers. */
const plainWords: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'this key stands twice',
  MULTIPLE_DOCS: 'there may be one document only',
};

/** What the parser says, without what it quotes: that may be a part of a secret. */
function syntaxText({ code, message }: { code: string; message: string }): string {
  return plainWords[code] ?? (message.split(': ')[0] as string);
}

/** `models.gpt-5.routes[0].vendor` */
function pathText(path: Mistake['path']): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`;
    return text === '' ? segment : `${text}.${segment}`;
  }, '');
}

/** What is there instead. Of vendors only its kind is told: their keys are secrets, and may stand in a wrong place, too. */
function instead(node: unknown, path: Mistake['path']): string {
  if (node === undefined) return ', but it is missing';
  if (isMap(node)) return ', got a mapping';
  if (isSeq(node)) return ', got a list';
  const value = isScalar(node) ? node.value : undefined;
  if (value === null || value === undefined) return ', got nothing';
  if (typeof value !== 'string') return `, got ${value}`;
  if (path[0] === 'vendors') return ', got another text';
  return `, got ${JSON.stringify(value.length > maxValue ? `${value.slice(0, maxValue)}…` : value)}`;
}
