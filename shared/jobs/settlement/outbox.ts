import { z } from 'zod';
import { type Capability, capabilities } from '../../capabilities/capability.ts';
import type { ErrorCode } from '../../errors.ts';
import { isReadable, versionOf } from '../../runtime/wire-version.ts';
import type { JobState, Outcome } from '../job-state.ts';
import { callsFor, readTask } from '../vendor-task.ts';

/** An ended job as the usage ledger keeps it. Times are milliseconds since 1970. */
export interface JobRecord {
  readonly id: string;
  readonly account: string;
  readonly apiKeyId: string;
  readonly endpoint: string;
  readonly capability: Capability;
  /** The model as the caller named it. */
  readonly model: string;
  /** Name of the vendor called; '' if none was, or if the process that ended the job does not know it. */
  readonly vendor: string;
  readonly stream: boolean;
  readonly createdAt: number;
  /** When its last attempt began; undefined if no worker claimed it. */
  readonly beganAt: number | undefined;
  readonly endedAt: number;
  readonly outcome: Outcome;
  readonly errorCode: ErrorCode | undefined;
  /** Why it failed, as JSON text, see `errorDetails`. */
  readonly errorDetails?: string | undefined;
  /** Number of vendor calls made to do the job; polls of a task do not count. */
  readonly attempts: number;
  /** The vendor's usage as JSON text, unchanged; with `estimated: true` the gateway counted it. */
  readonly usage: string | undefined;
  /** How long the answer is kept, in ms. Over 0, the database also keeps request and answer. */
  readonly retentionMs: number;
  /** The amount charged, in nano-dollars; undefined if nothing was. Stored apart from the rest (see `chargeField`). */
  readonly cost?: number | undefined;
  /** What its vendor's prompt cache saved, in nano-dollars: see `savedBy`; left out: nothing, or unknown. */
  readonly saved?: number | undefined;
  /** The request's tags as JSON text, see `JobIdentity`. */
  readonly metadata?: string | undefined;
  /** The model that replaced the requested one. */
  readonly servedModel?: string | undefined;
  /** When the first frame of the answer was written; undefined if the process that ended the job does not know it. */
  readonly firstAt?: number | undefined;
  /** Whether Redis has not charged it yet, because the hold was lost there. See `lateField`. */
  readonly isLate?: boolean | undefined;
}

/** Field of an outbox entry that holds the record. */
export const recordField = 'r';
/** Field with the amount that settlement charged for the job: nano-dollars, decimal; left out if nothing was charged. */
export const chargeField = 'c';
/**
 * Field of a job that was settled without a hold, which Redis had lost, so that Redis does not count its charge. Once the
 * database has the record, and had none of this job before, the account is raised to the ledger.
 */
export const lateField = 'l';

/** A record in the outbox: JSON, written once by the process that settles the job. Its cost is not included. */
export function recordText(job: JobRecord): string {
  const head = JSON.stringify({
    v: versionOf(),
    id: job.id,
    account: job.account,
    key: job.apiKeyId,
    endpoint: job.endpoint,
    capability: job.capability,
    model: job.model,
    vendor: job.vendor,
    stream: job.stream,
    created: job.createdAt,
    began: job.beganAt,
    ended: job.endedAt,
    outcome: job.outcome,
    error: job.errorCode,
    attempts: job.attempts,
    retention: job.retentionMs,
    served: job.servedModel,
    first: job.firstAt,
    saved: job.saved || undefined,
  });
  const details = job.errorDetails ? `,"details":${job.errorDetails}` : '';
  const tags = job.metadata ? `,"metadata":${job.metadata}` : '';
  // Usage, tags and details are JSON text already.
  return `${head.slice(0, -1)}${details}${tags},"usage":${job.usage || 'null'}}`;
}

/**
 * Builds a job's record from its state, which knows no vendor except a task's; '' if the job has not ended. Other facts of the
 * run that the state lacks come from the caller.
 */
export function recordOfState(state: JobState & Pick<JobRecord, 'servedModel'>, vendor = ''): string {
  const { outcome } = state;
  if (outcome === undefined) return '';
  const endedAt = state.endedAt ?? Date.now();
  if (state.task === undefined) return recordText({ ...state, vendor, outcome, attempts: state.attempt, endedAt });
  const task = readTask(state.task);
  return recordText({ ...state, vendor: task.vendor, outcome, attempts: callsFor(task), endedAt });
}

const time = z.int().min(0);

const wireRecord = z.compile(
  z.object({
    v: z.int().optional(),
    id: z.string().regex(/^[0-9a-f]{32}$/),
    account: z.string(),
    key: z.string(),
    endpoint: z.string(),
    capability: z.enum(capabilities),
    model: z.string(),
    vendor: z.string(),
    stream: z.boolean(),
    created: time,
    began: time.optional(),
    ended: time,
    outcome: z.enum(['completed', 'failed', 'cancelled']),
    error: z.string().optional(),
    details: z.unknown().optional(),
    attempts: z.int().min(0),
    retention: z.number().min(0),
    served: z.string().optional(),
    first: time.optional(),
    saved: z.int().min(0).optional(),
    metadata: z.record(z.string(), z.string()).optional(),
    usage: z.unknown(),
  }),
);

/**
 * Parses a record; undefined if the text is not one, which means a defect or another version's entry.
 * @param charge the entry's `chargeField`, if any
 * @param late the entry's `lateField`, if any
 */
export function parseRecord(text: string, charge?: string, late?: string): JobRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!wireRecord.validate(value) || !isReadable(value.v)) return undefined;
  // Named one by one: a rest and a spread would cost more than parsing the text.
  return {
    id: value.id,
    account: value.account,
    apiKeyId: value.key,
    endpoint: value.endpoint,
    capability: value.capability,
    model: value.model,
    vendor: value.vendor,
    stream: value.stream,
    createdAt: value.created,
    beganAt: value.began,
    endedAt: value.ended,
    outcome: value.outcome,
    errorCode: value.error as ErrorCode | undefined,
    errorDetails: value.details === undefined ? undefined : JSON.stringify(value.details),
    attempts: value.attempts,
    usage: value.usage === null || value.usage === undefined ? undefined : JSON.stringify(value.usage),
    retentionMs: value.retention,
    cost: readCharge(charge),
    metadata: value.metadata === undefined ? undefined : JSON.stringify(value.metadata),
    servedModel: value.served,
    firstAt: value.first,
    saved: value.saved,
    isLate: late === '1',
  };
}

function readCharge(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const charge = Number(text);
  return Number.isSafeInteger(charge) ? charge : undefined;
}
