/** How a call ended: the whole answer was handed to the network, the client disconnected first, or a requested fault ended it. */
export type CallEnd = 'completed' | 'client_closed' | 'fault';

/** One call as seen by the sandbox. Times are Unix milliseconds. */
export interface JournalEntry {
  /** From 1, in the order of arrival. */
  sequence: number;
  /** The request's `metadata.test_id`, else its `user`; for a media request, else its header `x-sandbox-test-id`. */
  test_id: string | null;
  model: string;
  stream: boolean;
  received_at: number;
  /** Tokens written so far; for media: images, pieces of audio, or videos. */
  tokens: number;
  /** The fault that occurred, if any, whatever ended the call. */
  fault: string | null;
  ended: CallEnd | null;
  ended_at: number | null;
  /** Only if a video was created, even if the response never arrived. */
  video?: VideoRecord;
}

/** A video started by a call, with its later calls, which have no entries of their own. */
export interface VideoRecord {
  id: string;
  /** Number of requests for its state, and for its content, whatever the response. */
  polls: number;
  downloads: number;
}

const MAXIMUM_ENTRIES = 10_000;

/** A record of the sandbox's calls, for tests that compare it with what clients received. Contains the last 10,000 calls. */
export class Journal {
  readonly keepsEntries: boolean;
  readonly #entries = new Map<number, JournalEntry>();
  readonly #open = new Set<JournalEntry>();
  #sequence = 0;

  /** @param keepsEntries false: only the open calls are known. */
  constructor(keepsEntries: boolean) {
    this.keepsEntries = keepsEntries;
  }

  begin(about: { testId: string | null; model: string; stream: boolean }): JournalEntry {
    this.#sequence += 1;
    const entry: JournalEntry = {
      sequence: this.#sequence,
      test_id: about.testId,
      model: about.model,
      stream: about.stream,
      received_at: Date.now(),
      tokens: 0,
      fault: null,
      ended: null,
      ended_at: null,
    };
    this.#open.add(entry);
    if (this.keepsEntries) {
      this.#entries.set(entry.sequence, entry);
      this.#entries.delete(entry.sequence - MAXIMUM_ENTRIES);
    }
    return entry;
  }

  end(entry: JournalEntry, ended: CallEnd): void {
    entry.ended = ended;
    entry.ended_at = Date.now();
    this.#open.delete(entry);
  }

  /** One JSON line per call, oldest first. */
  toLines(testId: string | null): string {
    let lines = '';
    for (const entry of this.#entries.values()) {
      if (testId === null || entry.test_id === testId) lines += `${JSON.stringify(entry)}\n`;
    }
    return lines;
  }

  /** The number of calls being answered now. */
  countOpen(testId: string | null): number {
    if (testId === null) return this.#open.size;
    let count = 0;
    for (const entry of this.#open) if (entry.test_id === testId) count += 1;
    return count;
  }
}
