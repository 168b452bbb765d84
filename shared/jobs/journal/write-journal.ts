import { jobKeys, journalKeys } from '../../redis/keys.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { loadScript, untilAccepted } from '../../redis/script.ts';

const script = loadScript<string[] | null>(new URL('./write-journal.lua', import.meta.url));

/** Characters of a job's frames that its log may lack. */
export const maxUnlogged = 64 * 1024;

/** How long the journal of a dead worker stays. Others end its jobs within seconds; they may be away themselves for a while. */
const journalMs = 600_000;

/** The script fragment for those that end jobs or add readers: their frames may be in a journal only. */
export const journaledScript = new URL('./journaled.lua', import.meta.url);

/** An entry of a journal: what a worker writes at once of all its jobs. */
export interface JournalEntry {
  /** The journal's name. */
  readonly journal: string;
  /** From 1, without a gap. */
  readonly number: number;
  /** The oldest entry that has frames which a log lacks. */
  readonly oldestNeeded: number;
  /** A job of the entry. */
  readonly jobId: string;
  /** Jobs that earlier calls have told to have ended: the caller writes no more of them. */
  readonly forgotten: readonly string[];
  /** What each reader gets: `<job> <batch>` of each job. */
  readonly messages: ReadonlyMap<string, readonly string[]>;
}

/**
 * Writes an entry and publishes it; see write-journal.lua. Idempotent.
 * @returns the jobs that others have ended, of which nothing is written; undefined if Redis has lost entries, and nothing is written
 */
export async function writeJournal(redis: RedisClient, entry: JournalEntry): Promise<readonly string[] | undefined> {
  const { journal, number, oldestNeeded, jobId, forgotten, messages } = entry;
  const args = [number, oldestNeeded, journalMs, jobKeys.inboxPrefix(jobId), forgotten.join(' ')];
  for (const [reader, batches] of messages) args.push(reader, batches.join('\n\n'));
  const reply = await untilAccepted(() =>
    script(redis, [journalKeys.entries(journal), journalKeys.head(journal)], args),
  );
  return reply ?? undefined;
}
