import { readFileSync } from 'node:fs';
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { codeOf } from '../../runtime/error-code.ts';
import { ConfigError } from '../config-error.ts';
import type { Mistake } from './mistake.ts';

/** Maximum number of lines in one error. */
const maxLines = 10;
const maxValue = 60;

/** A position in the text; both count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** A YAML file that knows the position of each of its values. */
export class YamlSource {
  readonly #file: string;
  readonly #lines = new LineCounter();
  readonly #document: Document;
  /** The file's content as plain data; `{}` for an empty file. */
  readonly value: unknown;
  /** Whether there is nothing in it, not even a comment. */
  readonly isEmpty: boolean;

  /**
   * Parses the file.
   * @throws ConfigError for a file that cannot be read, or is not YAML: the syntax errors, one per line.
   */
  constructor(file: string) {
    this.#file = file;
    const text = readText(file);
    this.isEmpty = text.trim() === '';
    this.#document = parseDocument(text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      stringKeys: true,
      // Those of `!!set` and the like: what they make is no mapping, and would be passed over.
      resolveKnownTags: false,
      logLevel: 'error',
    });
    const { errors, warnings } = this.#document;
    const faults = [...errors, ...warnings].map((fault) => ({
      ...this.#positionOf(fault.pos[0]),
      text: `not YAML: ${syntaxText(fault)}`,
    }));
    if (faults.length > 0) throw this.#errorOf(faults);
    this.value = this.#read();
  }

  /** One error for all of these, ordered by line: `sluice.yaml:3:12: models.gpt-5.prices.input: expected …`. */
  error(mistakes: readonly Mistake[]): ConfigError {
    const seen = new Set<string>();
    const lines = mistakes.flatMap(({ path, message, isKey, showsValue }) => {
      const at = pathText(path);
      // One mistake in a value often causes others.
      if (seen.has(at)) return [];
      seen.add(at);
      const { node, key, value } = this.#find(path);
      const text = showsValue ? message + instead(node, path) : message;
      return [{ ...this.#positionOf(isKey ? key : value), text: at === '' ? text : `${at}: ${text}` }];
    });
    return this.#errorOf(lines);
  }

  #read(): unknown {
    try {
      return this.#document.toJS() ?? {};
    } catch {
      const lost = this.#lostAlias();
      if (lost === undefined) {
        throw this.#errorOf([{ line: 1, column: 1, text: 'not YAML: its aliases (*name) grow beyond all bounds' }]);
      }
      const text =
        'not YAML: no anchor (&name) of this name stands before, and a text that begins with a star needs quotes';
      throw this.#errorOf([{ ...this.#positionOf(lost), text }]);
    }
  }

  /** The offset of the first alias without an anchor. */
  #lostAlias(): number | undefined {
    let offset: number | undefined;
    visit(this.#document, {
      Alias: (_key, alias) => {
        if (alias.resolve(this.#document) !== undefined) return undefined;
        offset = startOf(alias);
        return visit.BREAK;
      },
    });
    return offset;
  }

  #errorOf(faults: readonly (Position & { readonly text: string })[]): ConfigError {
    const lines = [...faults]
      .sort((a, b) => a.line - b.line || a.column - b.column)
      .map(({ line, column, text }) => `${this.#file}:${line}:${column}: ${text}`);
    const rest = lines.length - maxLines;
    return new ConfigError(
      [...lines.slice(0, maxLines), ...(rest > 0 ? [`${this.#file}: and ${rest} more`] : [])].join('\n'),
    );
  }

  /**
   * The node at a path, and its positions: of the last key before it, and of the value if it is a scalar or a list item;
   * mappings and lists are located at their keys. A missing node is located at the key that should hold it.
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

  #positionOf(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line, column: col };
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(
      `The setting SLUICE_CONFIG cannot be used: the file ${file} cannot be read (${codeOf(error)}).`,
    );
  }
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] | null } | undefined | null)?.range?.[0];
}

/** Replacements for the parser's messages aimed at programmers. */
const plainMessages: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'this key stands twice',
  MULTIPLE_DOCS: 'there may be one document only',
};

/** The parser's message without its quotes from the file: they may be part of a secret. */
function syntaxText({ code, message }: { code: string; message: string }): string {
  return plainMessages[code] ?? (message.split(': ')[0] as string);
}

/** `models.gpt-5.routes[0].vendor`. Below vendors `api_key:sk-1`, without a space, is a name that is shown up to its colon. */
function pathText(path: Mistake['path']): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === 'number') return `${text}[${segment}]`;
    const name = path[0] === 'vendors' ? segment.replace(/:.*/s, ':…') : segment;
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** The actual value. For vendors only its kind is reported: their keys are secrets, and may also be misplaced. */
function instead(node: unknown, path: Mistake['path']): string {
  if (node === undefined) return ', but it is missing';
  if (isMap(node)) return ', got a mapping';
  if (isSeq(node)) return node.items.length === 0 ? ', got an empty list' : ', got a list';
  const value = isScalar(node) ? node.value : undefined;
  if (value === null || value === undefined) return ', got nothing';
  // A file of another kind, such as a .env, is one text with the secrets in it.
  if (path.length === 0) return `, got a ${typeof value === 'string' ? 'text' : typeof value}`;
  if (path[0] === 'vendors') return insteadOfSecret(value, path);
  if (typeof value !== 'string') return `, got ${value}`;
  return `, got ${JSON.stringify(value.length > maxValue ? `${value.slice(0, maxValue)}…` : value)}`;
}

function insteadOfSecret(value: unknown, path: Mistake['path']): string {
  if (typeof value === 'string') return ', got another text';
  if (typeof value === 'boolean') return ', got true or false';
  const isKey = path[2] === 'api_key' || path[2] === 'api_keys';
  return isKey ? ', got a number: a key of digits needs quotes' : ', got another number';
}
