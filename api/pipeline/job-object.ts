import type { Capability } from '../../shared/capabilities/capability.ts';
import type { ApiError } from '../../shared/errors.ts';
import type { JobIdentity, JobState } from '../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../shared/jobs/settlement/end-job.ts';
import { recordedError } from '../../shared/jobs/settlement/error-details.ts';
import { costOfEnded } from '../../shared/jobs/settlement/settle.ts';
import { toDollars } from '../../shared/money/cost.ts';
import { recordedTier } from '../../shared/money/service-tier.ts';
import { readVendorCost } from '../../shared/money/vendor-cost.ts';
import type { QueuePlace } from '../../shared/queue/reading/queue-reader.ts';
import type { LoadGauge } from '../admission/load-gauge.ts';
import type { BaseUrls } from '../http/request-address.ts';
import { type JobStatus, jobStatus } from '../replies/view.ts';
import type { Context } from '../state.ts';

/** Dependencies of `jobObject`. */
export interface JobObjectDependencies {
  readonly queue: EndJobContext['queue'];
  readonly load: LoadGauge;
  readonly baseUrls: BaseUrls;
}

/** A job as `GET /v1/jobs/{id}` shows it; `result` and `error` once it has ended. Times are seconds since 1970. */
export interface JobObject {
  readonly id: string;
  readonly object: 'job';
  readonly status: JobStatus;
  readonly endpoint: string;
  readonly model: string;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  /** Jobs before this one in its queue; null when it does not wait. */
  readonly queue_position: number | null;
  /** Seconds until a worker begins it, as its queue drains now; null when it does not wait, and if that is not known. */
  readonly expected_wait_seconds: number | null;
  readonly urls: { readonly self: string; readonly events: string; readonly ws: string; readonly cancel: string };
  readonly usage: unknown;
  /** The service tier that served it, if it was asked for or its vendor has used another than the standard one. */
  readonly service_tier: string | null;
  /** Dollars; null until it has ended, and if unknown. */
  readonly cost: number | null;
  /** The cost reported by its vendor, in dollars; null if not reported. */
  readonly vendor_cost: number | null;
  readonly error: { readonly type: string; readonly code: string; readonly message: string } | null;
  readonly result: unknown;
}

/** Makes the job object of a state; `result` is the endpoint's own body, if known. @param ctx of the request */
export async function jobObject(
  { ctx, services }: { readonly ctx: Context; readonly services: JobObjectDependencies },
  state: JobState,
  result: unknown,
  error?: ApiError,
): Promise<JobObject> {
  const status = jobStatus(state);
  const { queue, load } = services;
  const place =
    status === 'queued' ? await queue(state).reader.place(state.id, load.highShare, state.shards) : undefined;
  const cost = state.outcome === undefined ? undefined : costOfEnded(state);
  const usage = state.usage ? (JSON.parse(state.usage) as Record<string, unknown>) : null;
  const vendorCost = usage === null ? undefined : readVendorCost(usage);
  const seconds = (time: number | undefined): number | null => (time === undefined ? null : Math.floor(time / 1000));
  return {
    id: `job_${state.id}`,
    object: 'job',
    status,
    endpoint: state.endpoint,
    model: state.model,
    created_at: Math.floor(state.createdAt / 1000),
    started_at: seconds(state.beganAt),
    finished_at: seconds(state.endedAt),
    queue_position: place?.ahead ?? null,
    expected_wait_seconds: place === undefined ? null : expectedWait(load, state.capability, place),
    urls: jobUrls(services.baseUrls.of(ctx.req), state),
    usage,
    service_tier: recordedTier(usage),
    cost: cost === undefined ? null : toDollars(cost),
    vendor_cost: vendorCost === undefined ? null : toDollars(vendorCost),
    error: error
      ? describeError(error)
      : state.errorCode
        ? describeError(recordedError(state.errorCode, state.errorDetails))
        : null,
    result,
  };
}

/** The wait in seconds of a job that waits there. */
function expectedWait(load: LoadGauge, capability: Capability, { ahead, startsInMs }: QueuePlace): number | null {
  const waitMs = startsInMs ?? load.drainMs(capability, ahead + 1);
  return waitMs === undefined ? null : Math.round(waitMs) / 1000;
}

/** URLs to read, follow (by SSE or WebSocket) and cancel (by DELETE) a job. */
export function jobUrls(baseUrl: string, job: Pick<JobIdentity, 'id'>): JobObject['urls'] {
  const self = `${baseUrl}/v1/jobs/job_${job.id}`;
  return { self, events: `${self}/events`, ws: `${self.replace(/^http/, 'ws')}/ws`, cancel: self };
}

/** An error in the format of a job. */
export function describeError(error: ApiError): NonNullable<JobObject['error']> {
  const { type, code, message } = error.toWire().error;
  return { type, code, message };
}
