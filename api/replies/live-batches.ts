import { type Batch, batchAfter } from '../../shared/jobs/append.ts';
import { maxUnlogged } from '../../shared/jobs/journal/write-journal.ts';

/**
 * The live batches of one answer that arrived before its delivery began, or while its log was read, which may lack them for a
 * moment: those that came first, without a gap, up to what a log may lack.
 */
export class LiveBatches {
  #batches: Batch[] = [];
  #characters = 0;
  #lastSeq = 0;

  /** Keeps what is new in a batch. Returns false, and keeps nothing, if it leaves a gap, has a frame that is a blob, or is over the bound. */
  add(batch: Batch): boolean {
    const isFirst = this.#batches.length === 0;
    const next = isFirst ? batch : batchAfter(batch, this.#lastSeq);
    if (next === undefined) return batch.firstSeq <= this.#lastSeq;
    const characters = next.frames.reduce((sum, { text }) => sum + text.length, 0);
    const hasBlob = next.frames.some(({ isBlob }) => isBlob);
    if (hasBlob || this.#characters + characters > maxUnlogged) return false;
    this.#batches.push(next);
    this.#characters += characters;
    this.#lastSeq = next.firstSeq + next.frames.length - 1;
    return true;
  }

  /** Empties it. */
  take(): readonly Batch[] {
    const batches = this.#batches;
    this.#batches = [];
    this.#characters = 0;
    return batches;
  }
}
