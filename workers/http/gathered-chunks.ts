/** Chunks that are kept as they came. */
const maxRecent = 1024;

/**
 * The chunks of a body that is buffered. Many are joined now and then: a vendor may send each byte as a chunk of its own, which
 * would take a hundred times its memory.
 */
export class GatheredChunks {
  readonly #joined: Buffer[] = [];
  #recent: Buffer[] = [];

  add(chunk: Buffer): void {
    this.#recent.push(chunk);
    if (this.#recent.length < maxRecent) return;
    this.#joined.push(Buffer.concat(this.#recent));
    this.#recent = [];
  }

  /** All of them as one; a single one is not copied. */
  bytes(): Buffer {
    const [only] = this.#recent;
    if (only !== undefined && this.#recent.length === 1 && this.#joined.length === 0) return only;
    return Buffer.concat([...this.#joined, ...this.#recent]);
  }
}
