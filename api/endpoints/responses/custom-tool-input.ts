const opening = /^\s*\{\s*"input"\s*:\s*"/;
/** Whole characters and escapes of a JSON string; stops before an escape that is cut. */
const whole = /^(?:[^"\\]+|\\[^u]|\\u[0-9a-fA-F]{4})*/;
const halfPair = /(?:[\ud800-\udbff]|(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2})$/;
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * The free text of a custom tool out of the arguments of the function that stands for it over a chat, `{"input": "…"}`, as
 * they come in pieces. Arguments of another form are the text themselves.
 */
export class CustomToolInput {
  /** All that has been said of the text. */
  text = '';
  #rest = '';
  #place: 'before' | 'inside' | 'after' = 'before';

  /** Takes a piece of the arguments and answers what it adds to the text. */
  push(piece: string): string {
    if (this.#place === 'after') return '';
    this.#rest += piece;
    if (this.#place === 'before') {
      const start = opening.exec(this.#rest);
      if (start === null) return '';
      this.#place = 'inside';
      this.#rest = this.#rest.slice(start[0].length);
    }
    return this.#add(this.#decode());
  }

  /** No piece comes any more. Returns what of the text has not been told. */
  end(): string {
    if (this.#place === 'after') return '';
    const rest = this.#rest;
    const told = this.#place === 'before' ? readInput(rest) : rest;
    this.#place = 'after';
    return this.#add(told);
  }

  #decode(): string {
    const [ready = ''] = whole.exec(this.#rest) ?? [];
    const isClosed = this.#rest[ready.length] === '"';
    // Half a surrogate pair is no text: it waits for its other half.
    const held = isClosed ? 0 : (halfPair.exec(ready)?.[0].length ?? 0);
    const told = ready.slice(0, ready.length - held);
    this.#rest = this.#rest.slice(told.length);
    if (isClosed) this.#place = 'after';
    return unescaped(told);
  }

  #add(text: string): string {
    this.text += text;
    return text;
  }
}

function unescaped(text: string): string {
  return text.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code: string | undefined, letter: string) =>
    code === undefined ? (escapes[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

function readInput(text: string): string {
  try {
    const { input } = JSON.parse(text) as { input?: unknown };
    return typeof input === 'string' ? input : text;
  } catch {
    return text;
  }
}
