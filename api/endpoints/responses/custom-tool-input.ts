const opening = /^\s*\{\s*"input"\s*:\s*"/;
/** Characters in which the text begins: to look for it again in all that has come, at each piece, would take hours. */
const maxOpening = 1024;
/** Complete characters and escapes of a JSON string; stops before a truncated escape. */
const whole = /^(?:[^"\\]+|\\[^u]|\\u[0-9a-fA-F]{4})*/;
const halfPair = /(?:[\ud800-\udbff]|(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2})$/;
const escapeLength = 6;
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Extracts the free text of a custom tool from the streamed arguments of its stand-in function in a chat, `{"input": "…"}`.
 * Arguments of another form are the text themselves.
 */
export class CustomToolInput {
  /** The whole text so far. */
  text = '';
  #rest = '';
  #position: 'before' | 'inside' | 'after' = 'before';
  /** Whether what follows is kept until the end: it does not begin like such an object, or has an escape that is none. */
  #isKept = false;

  /** Adds a piece of the arguments and returns the new part of the text. */
  push(piece: string): string {
    if (this.#position === 'after') return '';
    this.#rest += piece;
    if (this.#isKept) return '';
    if (this.#position === 'before') {
      const start = opening.exec(this.#rest);
      this.#isKept = start === null && this.#rest.length > maxOpening;
      if (start === null) return '';
      this.#position = 'inside';
      this.#rest = this.#rest.slice(start[0].length);
    }
    return this.#add(this.#decode());
  }

  /** Ends the input. Returns the rest of the text. */
  end(): string {
    if (this.#position === 'after') return '';
    const rest = this.#rest;
    const told = this.#position === 'before' ? readInput(rest) : rest;
    this.#position = 'after';
    return this.#add(told);
  }

  #decode(): string {
    const [ready = ''] = whole.exec(this.#rest) ?? [];
    const isClosed = this.#rest[ready.length] === '"';
    this.#isKept = !isClosed && this.#rest.length - ready.length >= escapeLength;
    // Half a surrogate pair waits for its other half.
    const held = isClosed ? 0 : (halfPair.exec(ready)?.[0].length ?? 0);
    const told = ready.slice(0, ready.length - held);
    this.#rest = this.#rest.slice(told.length);
    if (isClosed) this.#position = 'after';
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
