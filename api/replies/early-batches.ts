import type { Batch } from '../../shared/jobs/frames.ts';

/** Characters kept per answer. An answer that begins before its admission's reply arrives is rarely longer. */
const maxCharacters = 64 * 1024;

/** The live batches of one answer that arrived before its delivery began: its beginning, without a gap, up to a bound. */
export class EarlyBatches {
  #batches: Batch[] = [];
  #characters = 0;
  #lastSeq = 0;

  /** Keeps a batch. Returns false, and keeps nothing, if it leaves a gap, has a frame that is a blob, or is over the bound. */
  add(batch: Batch): boolean {
    const characters = batch.frames.reduce((sum, { text }) => sum + text.length, 0);
    const follows = batch.firstSeq === this.#lastSeq + 1 && !batch.frames.some(({ isBlob }) => isBlob);
    if (!follows || this.#characters + characters > maxCharacters) return false;
    this.#batches.push(batch);
    this.#characters += characters;
    this.#lastSeq += batch.frames.length;
    return true;
  }

  /** Empties it. */
  take(): readonly Batch[] {
    const batches = this.#batches;
    this.#batches = [];
    return batches;
  }
}
