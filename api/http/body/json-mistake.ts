const space = /[\t\n\r ]/;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const name = /true|false|null/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Describes the position at which text that `JSON.parse` refuses is malformed: `at line 2, column 5`. Quotes nothing of the text. */
export function mistakePosition(text: string): string {
  const at = mistakeAt(text);
  if (at >= text.length) return 'at its end: it is not complete';
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return `at line ${line}, column ${at - before.lastIndexOf('\n')}`;
}

/**
 * The index of the first invalid character; the text's length if it is truncated or valid. V8 reports it for some mistakes
 * only, and quotes the text. Only for texts within the nesting limit of requests.
 */
export function mistakeAt(text: string): number {
  const reader = new Reader(text);
  if (!reader.value()) return reader.at;
  reader.skip();
  return reader.at;
}

/** Reads JSON from left to right. Each method returns whether it matched; if not, `at` is the mistake. */
class Reader {
  at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  skip(): void {
    while (space.test(this.#text[this.at] ?? '')) this.at++;
  }

  value(): boolean {
    this.skip();
    const first = this.#text[this.at];
    if (first === '"') return this.#string();
    if (first === '{') return this.#items('}', () => this.#member());
    if (first === '[') return this.#items(']', () => this.value());
    return this.#token(number) || this.#token(name);
  }

  #items(end: string, item: () => boolean): boolean {
    this.at++;
    if (this.#is(end)) return true;
    do if (!item()) return false;
    while (this.#is(','));
    return this.#is(end);
  }

  #member(): boolean {
    this.skip();
    return this.#text[this.at] === '"' && this.#string() && this.#is(':') && this.value();
  }

  #is(letter: string): boolean {
    this.skip();
    if (this.#text[this.at] !== letter) return false;
    this.at++;
    return true;
  }

  #string(): boolean {
    for (this.at++; this.at < this.#text.length; ) {
      const letter = this.#text.charCodeAt(this.at);
      if (letter === 0x22) {
        this.at++;
        return true;
      }
      if (letter < 0x20) return false;
      if (letter !== 0x5c) this.at++;
      else if (!this.#token(escaped)) return false;
    }
    return false;
  }

  #token(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }
}
