import { setTimeout as delay } from 'node:timers/promises';
import { type JobRecord, parseRecord } from '../../shared/jobs/outbox.ts';
import type { Logger } from '../../shared/log.ts';
import { within } from '../../shared/within.ts';
import type { OutboxBatch, OutboxEntry, OutboxGroup } from './outbox-group.ts';

/** How long to wait before looking again when there was little or nothing; on a Cluster looking costs 64 commands. */
const idleMs = 250;
const clusterIdleMs = 1000;
/** How often to look for what others have left lying, and for the names of the dead. */
const takeOverRoundMs = 10_000;
const forgetRoundMs = 60_000;
/** Records written in one transaction. */
const batchRecords = 500;
/** The wait after a failure: the first, and the longest. */
const firstRetryMs = 250;
const longestRetryMs = 5000;

export interface OutboxConsumerOptions {
  readonly group: OutboxGroup;
  readonly isCluster: boolean;
  /** Writes records; must tolerate those it has written before. @throws while the database is away. */
  readonly write: (records: readonly JobRecord[]) => Promise<void>;
  readonly log: Logger;
  /** Another time than the usual one (10 s), for tests. */
  readonly takeOverRoundMs?: number;
}

/**
 * Brings the records of ended jobs from the outboxes into the database, batch by batch. An entry leaves its outbox only
 * after the commit, and writing twice changes nothing: so whatever dies in between, every record is written exactly once.
 */
export class OutboxConsumer {
  readonly #options: OutboxConsumerOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** Closing: what is there is still written, while there is time. */
  #isDraining = false;
  #takeOverAt = 0;
  #forgetAt = Date.now() + forgetRoundMs;
  #failures = 0;

  /** Starts at once. */
  constructor(options: OutboxConsumerOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Writes what is there, for at most `ms`. What it does not manage stays in the outbox. */
  async close(ms: number): Promise<void> {
    this.#isDraining = true;
    this.#wake();
    await within(this.#running, ms);
    this.#closing.abort();
    await within(this.#running, ms);
  }

  #wake: () => void = () => undefined;

  async #run(): Promise<void> {
    const { log, group } = this.#options;
    while (!this.#closing.signal.aborted) {
      try {
        const { entries, isFull } = await this.#next();
        await this.#store(entries);
        this.#failures = 0;
        if (isFull) continue;
        if (this.#isDraining) {
          await group.leave();
          return;
        }
        await this.#pause(this.#options.isCluster ? clusterIdleMs : idleMs);
      } catch (error) {
        log.warn({ err: error }, 'job records cannot be read');
        await this.#pauseAfterFailure();
      }
    }
  }

  /** What others left lying, now and then, else what is new. */
  async #next(): Promise<OutboxBatch> {
    const { group } = this.#options;
    const now = Date.now();
    if (now >= this.#forgetAt) {
      this.#forgetAt = now + forgetRoundMs;
      await group.forgetDead();
    }
    if (now < this.#takeOverAt) return await group.read();
    const fresh = await group.read();
    if (fresh.isFull) return fresh;
    const left = await group.takeOver();
    // Where something was left there may be more.
    if (left.entries.length === 0) this.#takeOverAt = now + (this.#options.takeOverRoundMs ?? takeOverRoundMs);
    return { entries: [...fresh.entries, ...left.entries], isFull: left.isFull };
  }

  /** Writes entries and takes them out of their outboxes, each batch when it is written. */
  async #store(entries: readonly OutboxEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += batchRecords) {
      const batch = entries.slice(start, start + batchRecords);
      if (!(await this.#write(this.#recordsOf(batch)))) return;
      await this.#options.group.acknowledge(batch);
    }
  }

  /** Tries until the records are written; answers false when there is no time left for that. */
  async #write(records: readonly JobRecord[]): Promise<boolean> {
    if (records.length === 0) return true;
    while (!this.#closing.signal.aborted) {
      try {
        await this.#options.write(records);
        return true;
      } catch (error) {
        this.#options.log.warn({ err: error, records: records.length }, 'job records cannot be written, trying again');
        await this.#pauseAfterFailure();
      }
    }
    return false;
  }

  #recordsOf(entries: readonly OutboxEntry[]): JobRecord[] {
    return entries.flatMap(({ key, id, text, charge }) => {
      if (text === undefined) return [];
      const record = parseRecord(text, charge);
      if (record !== undefined) return record;
      // It would come back for ever. Where the job was in the database before, it is ended there as one that was lost.
      this.#options.log.error({ outbox: key, entry: id }, 'an entry of the outbox is no job record, and is dropped');
      return [];
    });
  }

  async #pauseAfterFailure(): Promise<void> {
    const ms = Math.min(firstRetryMs * 2 ** this.#failures, longestRetryMs);
    this.#failures = Math.min(this.#failures + 1, 10);
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  async #pause(ms: number): Promise<void> {
    if (this.#isDraining) return;
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await within(woken, ms);
  }
}
