import { type Insertable, type RawBuilder, sql } from 'kysely';
import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { AccountBlobs, Blobs } from '../../shared/blobs/blobs.ts';
import type { Database } from '../../shared/database/database.ts';
import { selectRows } from '../../shared/database/select-rows.ts';
import type { JobBodiesTable, JobsTable } from '../../shared/database/tables.ts';
import { type JobState, readJobState, type StoredRequest } from '../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../shared/jobs/settlement/outbox.ts';
import { jobKeys } from '../../shared/redis/keys.ts';
import type { RedisClient } from '../../shared/redis/redis.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { ApiMetrics } from '../../shared/runtime/metrics.ts';
import { readViewOptions, type View } from '../replies/view.ts';
import { readFinalAnswer, UnshownAnswer } from './final-answer.ts';
import { bodyRow, changingColumns, jobColumns, recordedJobRow } from './job-rows.ts';
import { addToUsageHours } from './usage/usage-hours.ts';

/** Longer answers are stored as blobs. */
const inlineCharacters = 1024 * 1024;
/** How long Redis keeps the state and log of a job whose answer is in the database, for readers in progress. */
const afterStoredMs = 300_000;
/** Characters of answers at which a transaction takes no further record. */
const answerCharacters = 16 * 1024 * 1024;

export interface JobLedgerOptions {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly blobs: Blobs;
  /** Returns the view of an endpoint by name, or undefined if it is not (or no longer) offered. */
  readonly viewOf: (endpoint: string) => View | undefined;
  /** How long request and answer stay in the database, in ms. */
  readonly retentionMs: number;
  /** Minimum lifetime of a blob, in ms. */
  readonly blobMs: number;
  readonly metrics: Pick<ApiMetrics, 'records'>;
  readonly log: Logger;
  /** Called, after the write, with records whose jobs were not charged in Redis and had no end before. */
  readonly onLate?: (records: readonly JobRecord[]) => void;
}

/** Inserts the rows of ended jobs, and returns the ids of those without an end before. A terminal is never overwritten. */
function insertJobs(db: Database, rows: readonly Insertable<JobsTable>[]): RawBuilder<{ id: string }> {
  const names = sql.join(jobColumns.map((column) => sql.ref(column)));
  const updates = sql.join(changingColumns.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`));
  return sql<{ id: string }>`
    insert into jobs (${names}) ${selectRows(db, 'jobs', jobColumns, rows)}
    on conflict (id) do update set ${updates} where jobs.outcome is null
    returning id`;
}

/** A record on its way into the database, with the answer of a kept job if there is one. */
export interface LedgerItem {
  readonly record: JobRecord;
  readonly answer?: Insertable<JobBodiesTable>;
  /** Whether the answer of a kept job has been read: it is not read from Redis again. */
  readonly isRead?: boolean;
}

/** Rolls back the transaction of a probe. */
class ProbeDone extends Error {}

/** No job has this id: it precedes all timestamps. The account is not empty, as the sums of all accounts are stored under ''. */
const probeRecord: JobRecord = {
  ...{
    id: '0'.repeat(32),
    account: 'probe',
    apiKeyId: 'probe',
    endpoint: 'probe',
    capability: 'chat',
    model: 'probe',
    vendor: '',
  },
  ...{ stream: false, createdAt: 0, beganAt: undefined, endedAt: 0, outcome: 'completed', errorCode: undefined },
  ...{ attempts: 0, usage: undefined, retentionMs: 0, cost: 0 },
};

function needsReading({ record, isRead }: LedgerItem): boolean {
  return record.retentionMs > 0 && isRead !== true;
}

/** Writes the records of ended jobs, and the answers of kept ones, into the database. */
export class JobLedger {
  readonly #options: JobLedgerOptions;

  constructor(options: JobLedgerOptions) {
    this.#options = options;
  }

  /**
   * Writes records. Idempotent: rows with an end, and existing answers, stay as they are.
   * @returns the records that are not written because their answers cannot be read for now
   * @throws Error when the database cannot be written, or refuses one of them; then the call can be retried.
   */
  async writeItems(items: readonly LedgerItem[]): Promise<LedgerItem[]> {
    // A late record lacks the charge that another record of its job has, so it counts only if it is the only one.
    const ordered = [...items.filter(({ record }) => record.isLate), ...items.filter(({ record }) => !record.isLate)];
    // Sorted by id, so that two processes that write the same rows cannot deadlock.
    const unique = [...new Map(ordered.map((item) => [item.record.id, item])).values()];
    unique.sort(({ record: one }, { record: other }) => (one.id < other.id ? -1 : 1));
    const postponed: LedgerItem[] = [];
    let from = 0;
    while (from < unique.length) {
      let characters = 0;
      const entries: LedgerItem[] = [];
      while (from < unique.length && characters < answerCharacters) {
        const item = unique[from++] as LedgerItem;
        const entry = needsReading(item) ? await this.read(item.record) : item;
        if (entry === undefined) {
          postponed.push(item);
          continue;
        }
        characters += entry.answer?.answer?.length ?? 0;
        entries.push(entry);
      }
      await this.#insert(entries);
      await this.release(entries);
    }
    return postponed;
  }

  /** Writes records as `writeItems` does. */
  async write(records: readonly JobRecord[]): Promise<void> {
    await this.writeItems(records.map((record) => ({ record })));
  }

  /** Adds the kept answer of its job to a record. Returns undefined if the answer cannot be read for now. */
  async read(record: JobRecord): Promise<LedgerItem | undefined> {
    if (record.retentionMs === 0) return { record };
    try {
      return { ...(await this.#readAnswer(record)), isRead: true };
    } catch (error) {
      this.#options.log.warn({ err: error, job: record.id }, 'reading the answer of a job failed; retrying later');
      return undefined;
    }
  }

  /**
   * Writes a made-up record like any other, and rolls it back.
   * @throws when that fails, so that a refused record is not at fault.
   */
  async probe(): Promise<void> {
    const probing = this.#options.db.transaction().execute(async (transaction) => {
      const { rows } = await insertJobs(transaction, [recordedJobRow(probeRecord)]).execute(transaction);
      await transaction
        .insertInto('job_bodies')
        .values({ job_id: probeRecord.id, view_options: '{}', expires_at: 0 })
        .execute();
      await addToUsageHours(transaction, [recordedJobRow(probeRecord)]);
      throw new ProbeDone(String(rows.length));
    });
    await probing.catch((error) => {
      if (!(error instanceof ProbeDone)) throw error;
    });
  }

  /** Writes each record, its answer and its usage in one transaction. */
  async #insert(entries: readonly LedgerItem[]): Promise<void> {
    const answers = entries.flatMap(({ answer }) => answer ?? []);
    if (entries.length === 0) return;
    const written = await this.#options.db.transaction().execute(async (transaction) => {
      const rows = entries.map(({ record }) => recordedJobRow(record));
      const ended = await insertJobs(transaction, rows).execute(transaction);
      if (answers.length > 0) {
        await transaction
          .insertInto('job_bodies')
          .values(answers)
          .onConflict((conflict) =>
            conflict
              .column('job_id')
              .doUpdateSet(({ ref }) => ({
                answer: ref('excluded.answer'),
                answer_blob: ref('excluded.answer_blob'),
                request: sql<string | null>`coalesce(excluded.request, job_bodies.request)`,
                request_blob: ref('excluded.request_blob'),
                expires_at: ref('excluded.expires_at'),
              }))
              .where('job_bodies.answer', 'is', null)
              .where('job_bodies.answer_blob', 'is', null)
              .where('job_bodies.deleted_at', 'is', null),
          )
          .execute();
      }
      const ids = new Set(ended.rows.map(({ id }) => id));
      await addToUsageHours(
        transaction,
        rows.filter(({ id }) => ids.has(id)),
      );
      return ids;
    });
    this.#options.metrics.records.inc(written.size);
    const late = entries.flatMap(({ record }) => (record.isLate && written.has(record.id) ? record : []));
    if (late.length > 0) this.#options.onLate?.(late);
  }

  /** Returns a kept job's answer, as far as Redis still has it, and its times by Redis's clock from its state. */
  async #readAnswer(record: JobRecord): Promise<LedgerItem> {
    const { redis, viewOf, retentionMs, blobMs } = this.#options;
    const state = await readJobState(redis, record.id);
    if (state === undefined) return { record };
    const exact = { ...record, beganAt: state.beganAt, endedAt: state.endedAt ?? record.endedAt };
    const blobs = this.#options.blobs.ofRecords(state.account);
    const view = state.isDeleted ? undefined : viewOf(record.endpoint);
    const viewOptions = view && (await unlessMissing(readViewOptions(blobs, state.viewOptions)));
    const viewed = viewOptions === undefined ? undefined : { id: record.id, viewOptions: JSON.parse(viewOptions) };
    const text = viewed && view && (await this.#fold(blobs, viewed, view, record));
    if (viewOptions === undefined || text === undefined) return { record: exact };
    const isLarge = text.length > inlineCharacters;
    const request = await this.#readRequest(state);
    const row = bodyRow({ ...state, viewOptions }, retentionMs);
    const isInBlob = isLarge || request.request_blob !== null;
    return {
      record: exact,
      answer: {
        ...row,
        ...request,
        answer: isLarge ? null : text,
        answer_blob: isLarge ? await blobs.put(text) : null,
        expires_at: isInBlob ? Math.min(row.expires_at, Math.max(exact.endedAt, Date.now()) + blobMs) : row.expires_at,
      },
    };
  }

  /** Folds the answer for storage. Returns undefined if it is incomplete or its view cannot show it. */
  async #fold(
    blobs: AccountBlobs,
    job: Parameters<typeof readFinalAnswer>[1],
    view: View,
    { id, stream }: JobRecord,
  ): Promise<string | undefined> {
    const { redis, log } = this.#options;
    try {
      return await readFinalAnswer({ redis, blobs }, job, view, !stream);
    } catch (error) {
      if (!(error instanceof UnshownAnswer)) throw error;
      log.error({ job: id, error: error.message }, 'rendering the answer of a job failed; it is not stored');
      return undefined;
    }
  }

  /** Returns a resource's request. A small one is copied out of its blob, because rows live longer. */
  async #readRequest({
    account,
    request,
    requestBlob,
  }: Pick<JobState, 'account' | keyof StoredRequest>): Promise<
    Pick<Insertable<JobBodiesTable>, 'request'> & { request_blob: string | null }
  > {
    const blobs = this.#options.blobs.ofRecords(account);
    if (requestBlob === undefined) return { request: request ?? null, request_blob: null };
    const bytes = await unlessMissing(blobs.size(requestBlob));
    if (bytes === undefined) return { request: null, request_blob: null };
    if (bytes > inlineCharacters) return { request: null, request_blob: requestBlob };
    return { request: (await unlessMissing(blobs.text(requestBlob))) ?? null, request_blob: null };
  }

  /** Shortens the lifetime in Redis of answers that the database can now show. */
  async release(entries: readonly LedgerItem[]): Promise<void> {
    const { redis, log } = this.#options;
    const stored = entries.flatMap(({ answer }) => answer?.job_id ?? []);
    const keys = stored.flatMap((id) => [jobKeys.state(id), jobKeys.log(id)]);
    // They expire later on their own, so a failure does not repeat the write.
    await Promise.all(keys.map((key) => redis.pexpire(key, afterStoredMs))).catch((error) =>
      log.warn({ err: error }, 'releasing stored answers failed'),
    );
  }
}
