import type { Insertable, Selectable } from 'kysely';
import type { Capability } from '../../shared/capabilities/capability.ts';
import type { JobBodiesTable, JobsTable } from '../../shared/database/tables.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { JobIdentity, JobState } from '../../shared/jobs/job-state.ts';
import type { JobRecord } from '../../shared/jobs/settlement/outbox.ts';
import { readTokenCounts } from '../../shared/money/token-counts.ts';
import { readVendorCost } from '../../shared/money/vendor-cost.ts';

type JobRow = Selectable<JobsTable>;

/** Columns that a job's end sets. */
export const changingColumns = [
  ...(['vendor', 'began_at', 'ended_at', 'outcome', 'error_code', 'attempts', 'error_details'] as const),
  ...(['input_tokens', 'output_tokens', 'cached_tokens', 'usage', 'cost', 'saved', 'vendor_cost'] as const),
  ...(['served_model', 'first_at'] as const),
] satisfies (keyof JobRow)[];

export const jobColumns = [
  ...(['id', 'account_id', 'api_key_id', 'endpoint', 'capability', 'model', 'stream', 'created_at'] as const),
  ...(['retention_ms', 'metadata'] as const),
  ...changingColumns,
] satisfies (keyof JobRow)[];

/** The row of an unfinished job. */
export function openJobRow(job: JobIdentity): JobRow {
  return {
    id: job.id,
    account_id: job.account,
    api_key_id: job.apiKeyId,
    endpoint: job.endpoint,
    capability: job.capability,
    model: job.model,
    vendor: '',
    stream: job.stream ? 1 : 0,
    created_at: job.createdAt,
    began_at: null,
    ended_at: null,
    outcome: null,
    error_code: null,
    error_details: null,
    attempts: 0,
    input_tokens: null,
    output_tokens: null,
    cached_tokens: null,
    usage: null,
    vendor_cost: null,
    retention_ms: job.retentionMs,
    cost: null,
    saved: null,
    metadata: job.metadata ?? null,
    served_model: null,
    first_at: null,
  };
}

/** The row of an ended job. */
export function recordedJobRow(record: JobRecord): JobRow {
  return {
    id: record.id,
    account_id: record.account,
    api_key_id: record.apiKeyId,
    endpoint: record.endpoint,
    capability: record.capability,
    model: record.model,
    vendor: record.vendor,
    stream: record.stream ? 1 : 0,
    created_at: record.createdAt,
    began_at: record.beganAt ?? null,
    ended_at: record.endedAt,
    outcome: record.outcome,
    error_code: record.errorCode ?? null,
    error_details: record.errorDetails ?? null,
    attempts: record.attempts,
    ...usageColumns(record.usage),
    usage: record.usage ?? null,
    retention_ms: record.retentionMs,
    cost: record.cost ?? null,
    saved: record.saved ?? null,
    metadata: record.metadata ?? null,
    served_model: record.servedModel ?? null,
    first_at: record.firstAt ?? null,
  };
}

/** The numbers of a usage. Counts that it lacks stay null; the others are those that are charged. */
function usageColumns(
  text: string | undefined,
): Pick<JobRow, `${'input' | 'output' | 'cached'}_tokens` | 'vendor_cost'> {
  if (text === undefined) return { input_tokens: null, output_tokens: null, cached_tokens: null, vendor_cost: null };
  const usage = JSON.parse(text) as Record<string, unknown>;
  const counts = readTokenCounts(usage, false);
  const hasInput = Number.isSafeInteger(usage.prompt_tokens ?? usage.input_tokens);
  return {
    input_tokens: hasInput ? (counts?.input ?? null) : null,
    cached_tokens: hasInput ? (counts?.cached ?? null) : null,
    output_tokens: Number.isSafeInteger(usage.completion_tokens ?? usage.output_tokens)
      ? (counts?.output ?? null)
      : null,
    vendor_cost: readVendorCost(usage) ?? null,
  };
}

/** The row of a kept job's bodies, without the bodies. */
export function bodyRow(
  job: Pick<JobIdentity, 'id' | 'createdAt' | 'viewOptions'>,
  retentionMs: number,
): Insertable<JobBodiesTable> {
  return { job_id: job.id, view_options: job.viewOptions, expires_at: job.createdAt + retentionMs };
}

/** Converts a row to a job state. Fields that only a state has keep their initial values. */
export function stateOfRow(row: JobRow, viewOptions: string): JobState {
  return {
    id: row.id,
    account: row.account_id,
    apiKeyId: row.api_key_id,
    capability: row.capability as Capability,
    endpoint: row.endpoint,
    model: row.model,
    stream: row.stream === 1,
    createdAt: row.created_at,
    deadlineAt: row.created_at,
    retentionMs: row.retention_ms,
    idempotency: '',
    viewOptions,
    readers: [],
    attempt: row.attempts,
    beganAt: row.began_at ?? undefined,
    endedAt: row.ended_at ?? undefined,
    outcome: row.outcome ?? undefined,
    errorCode: (row.error_code ?? undefined) as ErrorCode | undefined,
    errorDetails: row.error_details ?? undefined,
    usage: row.usage ?? undefined,
    cost: row.cost ?? undefined,
    saved: row.saved ?? undefined,
    seq: 0,
    hasDelta: false,
    leaseUntil: 0,
    progress: row.outcome === 'completed' ? 100 : 0,
    task: undefined,
    isDeleted: false,
  };
}
