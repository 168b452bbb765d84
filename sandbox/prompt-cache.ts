import { tokenEnd } from './tokens.ts';

const BLOCK_TOKENS = 64;
const MAXIMUM_BLOCKS = 65_536;

/**
 * Counts the tokens of one prompt and hashes it at the same time: after each block of 64 tokens the hash of everything so far
 * is stored, so that two prompts share hashes exactly as far as they share a beginning.
 */
export class PromptReader {
  tokens = 0;
  readonly blockHashes: number[] = [];
  #first = 0x811c9dc5;
  #second = 0x9747b28c;

  /** @param model prompts of different models share nothing. */
  constructor(model: string) {
    this.#hash(model, 0, model.length);
  }

  addText(text: string): void {
    for (let start = 0; start < text.length; ) {
      const end = tokenEnd(text, start);
      this.#hash(text, start, end);
      this.#countToken();
      start = end;
    }
  }

  /** A part that is not text (an image, audio): it costs a fixed number of tokens, and is distinguished by `identity`. */
  addOpaque(identity: string, tokens: number): void {
    this.#hash(identity, 0, identity.length);
    for (let count = 0; count < tokens; count += 1) this.#countToken();
  }

  #hash(text: string, start: number, end: number): void {
    let first = this.#first;
    let second = this.#second;
    for (let index = start; index < end; index += 1) {
      const code = text.charCodeAt(index);
      first = Math.imul(first ^ code, 0x01000193);
      second = Math.imul(second ^ code, 0x5bd1e995) ^ (second >>> 15);
    }
    this.#first = first;
    this.#second = second;
  }

  #countToken(): void {
    this.tokens += 1;
    if (this.tokens % BLOCK_TOKENS === 0) {
      // 53 bits: the largest key a Map holds without a heap number beyond a double.
      this.blockHashes.push((this.#first >>> 0) * 0x20_0000 + (this.#second & 0x1f_ffff));
    }
  }
}

/** Remembers the beginnings of recent prompts, as vendors do to bill them at a lower price; the oldest are evicted first. */
export class PromptCache {
  readonly #blocks = new Set<number>();

  /** The number of tokens at the start of this prompt seen before (a multiple of 64); adds all of it to the cache. */
  cachedTokens(prompt: PromptReader): number {
    let cachedBlocks = 0;
    for (const hash of prompt.blockHashes) {
      if (!this.#blocks.has(hash)) break;
      cachedBlocks += 1;
    }
    for (const hash of prompt.blockHashes) {
      this.#blocks.delete(hash);
      this.#blocks.add(hash);
    }
    for (const oldest of this.#blocks) {
      if (this.#blocks.size <= MAXIMUM_BLOCKS) break;
      this.#blocks.delete(oldest);
    }
    return cachedBlocks * BLOCK_TOKENS;
  }
}
