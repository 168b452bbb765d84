import type { Database } from '../../../shared/database/database.ts';
import type { JobIdentity, Outcome } from '../../../shared/jobs/job-state.ts';
import { readErrorDetails } from '../../../shared/jobs/settlement/error-details.ts';
import { toDollars } from '../../../shared/money/cost.ts';
import { recordedTier } from '../../../shared/money/service-tier.ts';
import type { RedisClient } from '../../../shared/redis/redis.ts';
import type { ListedRow } from '../../ledger/job-list.ts';
import { openJobRow } from '../../ledger/job-rows.ts';
import { type JobStatus, jobStatus } from '../../replies/view.ts';
import { type JobProgress, readProgress } from './live-jobs.ts';

/** A job as shown in the console and to operators. Times are ms since 1970, costs dollars. */
export interface ConsoleJob {
  readonly id: string;
  readonly object: 'job';
  readonly status: JobStatus;
  readonly account_id: string;
  readonly endpoint: string;
  readonly capability: string;
  readonly model: string;
  /** The fallback model that served it. */
  readonly served_model: string | null;
  readonly vendor: string | null;
  readonly key: { readonly id: string; readonly name: string | null };
  readonly stream: boolean;
  readonly attempts: number;
  readonly created_at: number;
  readonly began_at: number | null;
  /** When the first piece of the answer arrived. */
  readonly first_at: number | null;
  readonly ended_at: number | null;
  readonly error_code: string | null;
  /** The error message that its caller got; null if it is not stored. */
  readonly error_message: string | null;
  /** The request field at fault. */
  readonly error_param: string | null;
  /** The HTTP status of the vendor, if the vendor caused the error. */
  readonly vendor_status: number | null;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cost: number | null;
  /** The cost that its vendor reports. */
  readonly vendor_cost: number | null;
  /** The vendor's usage, unchanged. */
  readonly usage: unknown;
  /** The service tier that served it, if it was asked for or its vendor has used another than the standard one. */
  readonly service_tier: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  /** Whether its request and answer are still stored. */
  readonly has_body: boolean;
}

/** Converts a row. @param progress from its state, if the row has no end */
export function consoleJob(row: ListedRow, progress?: JobProgress): ConsoleJob {
  const outcome: Outcome | undefined = row.outcome ?? progress?.outcome;
  const attempts = row.outcome === null ? (progress?.attempt ?? row.attempts) : row.attempts;
  const details = readErrorDetails(row.error_details ?? progress?.errorDetails);
  const usage: unknown = row.usage === null ? null : JSON.parse(row.usage);
  return {
    id: `job_${row.id}`,
    object: 'job',
    status: jobStatus({ outcome, attempt: attempts }),
    account_id: row.account_id,
    endpoint: row.endpoint,
    capability: row.capability,
    model: row.model,
    served_model: row.served_model,
    vendor: row.vendor === '' ? null : row.vendor,
    key: { id: row.api_key_id, name: row.key_name },
    stream: row.stream === 1,
    attempts,
    created_at: row.created_at,
    began_at: row.began_at ?? progress?.beganAt ?? null,
    first_at: row.first_at ?? progress?.firstAt ?? null,
    ended_at: row.ended_at ?? progress?.endedAt ?? null,
    error_code: row.error_code ?? progress?.errorCode ?? null,
    error_message: details?.message ?? null,
    error_param: details?.param ?? null,
    vendor_status: details?.vendorStatus ?? null,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost: row.cost === null ? null : toDollars(row.cost),
    vendor_cost: row.vendor_cost === null ? null : toDollars(row.vendor_cost),
    usage,
    service_tier: recordedTier(usage),
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    has_body: row.has_body === 1,
  };
}

/** Makes a row from a job's state, for jobs that the database does not have yet. */
export function rowOfState(state: JobIdentity, keyName: string | null): ListedRow {
  return { ...openJobRow(state), key_name: keyName, has_body: 0 };
}

/** Converts rows, newest first; unfinished ones with their progress in Redis. */
export async function consoleJobs(redis: RedisClient, rows: readonly ListedRow[]): Promise<ConsoleJob[]> {
  return await Promise.all(
    rows.map(async (row) => consoleJob(row, row.outcome === null ? await readProgress(redis, row.id) : undefined)),
  );
}

/** Names of API keys by id. */
export async function keyNames(db: Database, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const keys = await db
    .selectFrom('api_keys')
    .select(['id', 'name'])
    .where('id', 'in', [...new Set(ids)])
    .execute();
  return new Map(keys.map(({ id, name }) => [id, name]));
}
