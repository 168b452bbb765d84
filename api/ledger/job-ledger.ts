import { type Insertable, type RawBuilder, sql } from 'kysely';
import { unlessMissing } from '../../shared/blobs/blob-storage.ts';
import type { Blobs } from '../../shared/blobs.ts';
import type { Database } from '../../shared/database/database.ts';
import { selectRows } from '../../shared/database/select-rows.ts';
import type { JobBodiesTable, JobsTable } from '../../shared/database/tables.ts';
import { type JobState, readJobState, type StoredRequest } from '../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../shared/jobs/outbox.ts';
import { jobKeys } from '../../shared/keys.ts';
import type { ApiMetrics } from '../../shared/metrics.ts';
import type { RedisClient } from '../../shared/redis.ts';
import type { View } from '../endpoints/endpoint.ts';
import { readViewOptions } from '../view-options.ts';
import { readFinalAnswer } from './final-answer.ts';
import { bodyRow, changingColumns, jobColumns, recordedJobRow } from './job-rows.ts';
import { addToUsageHours } from './usage-hours.ts';

/** Answers above this many characters are stored as blobs. */
const inlineCharacters = 1024 * 1024;
/** How long Redis keeps state and log of a job whose answer is in the database: whoever is reading them reads on. */
const afterStoredMs = 300_000;
/** What one transaction takes at most of answers, in characters, beyond the one that reaches it. */
const answerCharacters = 16 * 1024 * 1024;

export interface JobLedgerOptions {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly blobs: Blobs;
  /** The view of an endpoint by its name; undefined where it is not offered (any more). */
  readonly viewOf: (endpoint: string) => View | undefined;
  /** How long request and answer stay in the database, in ms. */
  readonly retentionMs: number;
  /** How long a blob is sure to stay, in ms. */
  readonly blobMs: number;
  readonly metrics: Pick<ApiMetrics, 'records'>;
}

/**
 * Inserts the rows of ended jobs, and answers the ids of those that had no end before. What has ended has ended: a terminal
 * is never overwritten.
 */
function insertJobs(db: Database, rows: readonly Insertable<JobsTable>[]): RawBuilder<{ id: string }> {
  const names = sql.join(jobColumns.map((column) => sql.ref(column)));
  const updates = sql.join(changingColumns.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`));
  return sql<{ id: string }>`
    insert into jobs (${names}) ${selectRows(db, 'jobs', jobColumns, rows)}
    on conflict (id) do update set ${updates} where jobs.outcome is null
    returning id`;
}

/** A record on its way into the database, with the answer of a kept job where there is one. */
interface Entry {
  readonly record: JobRecord;
  readonly answer?: Insertable<JobBodiesTable>;
}

/** Writes the records of ended jobs into the database, and the answers of those that are kept. */
export class JobLedger {
  readonly #options: JobLedgerOptions;

  constructor(options: JobLedgerOptions) {
    this.#options = options;
  }

  /**
   * Writes records. Doing it again changes nothing: a row that has its end, and an answer that is there, stay as they are.
   * @throws Error when the database cannot be written; then the same call may be made again.
   */
  async write(records: readonly JobRecord[]): Promise<void> {
    // In the order of their ids: two processes that write the same ones wait for each other, but never in a ring.
    const unique = [...new Map(records.map((record) => [record.id, record])).values()];
    unique.sort((one, other) => (one.id < other.id ? -1 : 1));
    let from = 0;
    while (from < unique.length) {
      let characters = 0;
      const entries: Entry[] = [];
      while (from < unique.length && characters < answerCharacters) {
        const record = unique[from++] as JobRecord;
        const entry = record.retentionMs === 0 ? { record } : await this.#readAnswer(record);
        characters += entry.answer?.answer?.length ?? 0;
        entries.push(entry);
      }
      await this.#insert(entries);
      await this.#releaseRedis(entries);
    }
  }

  /** One transaction: a record, its answer and what it adds to the usage are there together. */
  async #insert(entries: readonly Entry[]): Promise<void> {
    const answers = entries.flatMap(({ answer }) => answer ?? []);
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
      return ids.size;
    });
    this.#options.metrics.records.inc(written);
  }

  /** A kept job's answer, as far as Redis can still tell it; and its times by Redis's clock, as its state showed them. */
  async #readAnswer(record: JobRecord): Promise<Entry> {
    const { redis, viewOf, retentionMs, blobMs } = this.#options;
    const state = await readJobState(redis, record.id);
    if (state === undefined) return { record };
    const exact = { ...record, beganAt: state.beganAt, endedAt: state.endedAt ?? record.endedAt };
    const blobs = this.#options.blobs.ofRecords(state.account);
    const view = state.isDeleted ? undefined : viewOf(record.endpoint);
    const viewOptions = view && (await unlessMissing(readViewOptions(blobs, state.viewOptions)));
    const viewed = viewOptions === undefined ? undefined : { id: record.id, viewOptions: JSON.parse(viewOptions) };
    const text = viewed && view && (await readFinalAnswer({ redis, blobs }, viewed, view, !record.stream));
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
        expires_at: isInBlob ? Math.min(row.expires_at, Date.now() + blobMs) : row.expires_at,
      },
    };
  }

  /** A resource's request. What fits is taken out of its blob: rows stay longer. */
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

  /** From here on the database can show these answers: Redis need not keep them for their whole time. */
  async #releaseRedis(entries: readonly Entry[]): Promise<void> {
    const { redis } = this.#options;
    const stored = entries.flatMap(({ answer }) => answer?.job_id ?? []);
    const keys = stored.flatMap((id) => [jobKeys.state(id), jobKeys.log(id)]);
    await Promise.all(keys.map((key) => redis.pexpire(key, afterStoredMs)));
  }
}
