const [quote, backslash, opening, closing] = [0x22, 0x5c, 0x7b, 0x7d];

/**
 * Tells whether the pieces of a text are a whole JSON object, which nothing can follow. Each character is looked at once: to parse
 * megabytes anew for each thing that a vendor sends beside them would take hours.
 */
export class ObjectPieces {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** Whether it may be an object so far. */
  #mayBeObject = true;
  #isClosed = false;
  #isEmpty = true;

  add(piece: string): void {
    if (this.#isEmpty && piece !== '') {
      this.#isEmpty = false;
      this.#mayBeObject = piece.charCodeAt(0) === opening;
    }
    let at = 0;
    for (; at < piece.length && this.#mayBeObject && !this.#isClosed; at++) this.#take(piece.charCodeAt(at));
    if (this.#isClosed && /[^\t\n\r ]/.test(piece.slice(at))) this.#mayBeObject = false;
  }

  /** Whether all its braces are closed, and nothing follows; what is between them may be no JSON. */
  get isWhole(): boolean {
    return this.#mayBeObject && this.#isClosed;
  }

  #take(code: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (this.#isInText) {
      if (code === backslash) this.#isEscaped = true;
      else if (code === quote) this.#isInText = false;
    } else if (code === quote) this.#isInText = true;
    else if (code === opening) this.#depth++;
    else if (code === closing) this.#isClosed = --this.#depth === 0;
  }
}
