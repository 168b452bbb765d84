import { ApiError } from '../../shared/errors.ts';
import { errorOf, type Frame } from '../../shared/jobs/append.ts';
import type { JobState } from '../../shared/jobs/job-state.ts';
import { recordedError } from '../../shared/jobs/settlement/error-details.ts';
import { type BodyShare, type BodyShares, shareOfReply } from '../bounds/body-shares.ts';
import { readMs } from '../bounds/bounded-reads.ts';
import type { BaseUrls } from '../http/request-address.ts';
import type { AnswerReaders } from '../replies/answer-readers.ts';
import { BufferedReply } from '../replies/buffered-reply.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import {
  jobStatus,
  type ResourceState,
  type View,
  type ViewedJob,
  type ViewJobDependencies,
  viewJob,
} from '../replies/view.ts';
import type { Context } from '../state.ts';
import { type AttachDependencies, attachTo } from './follow-job.ts';

/** Dependencies of reading a job's whole answer. */
export interface ResourceDependencies extends AttachDependencies, ViewJobDependencies {
  readonly readers: AnswerReaders;
  readonly baseUrls: BaseUrls;
  readonly bodies: BodyShares;
}

/** Whether an error is of the reading of a job, and no job has it: there is too much under way. */
export function isTooMuch({ refusalReason }: ApiError): boolean {
  return refusalReason === 'bodies';
}

/** A request that reads a job's answer, and its share. */
interface Reading {
  readonly services: ResourceDependencies;
  readonly connection: ClientConnection;
  /** Left out if the answer is small, whatever is in it. */
  readonly share?: Pick<BodyShare, 'grow'>;
}

/**
 * Reads a job as its resource (a response, a video), in any state.
 * @param ctx of the request
 * @param state as `StoredJobs.find` returned it
 * @param known the job as seen by its view, if that has been read already
 * @throws ApiError 404 if the job's endpoint makes no resources, 410 or 503 when its answer cannot be read.
 */
export async function readResource(
  {
    ctx,
    services,
    connection,
  }: { readonly ctx: Context; readonly services: ResourceDependencies; readonly connection: ClientConnection },
  view: View,
  state: JobState,
  known?: ViewedJob,
): Promise<Record<string, unknown>> {
  if (view.resource === undefined) throw new ApiError('not_found', 'No such resource.');
  const share = shareOfReply(services.bodies, ctx, state);
  const viewed = known ?? (await viewJob(services, state, services.baseUrls.of(ctx.req), share));
  return view.resource(viewed, await readResourceState({ services, connection, share }, view, state));
}

async function readResourceState(
  { services, connection, share }: Reading,
  view: View,
  state: JobState,
): Promise<ResourceState> {
  const known = { status: jobStatus(state), progress: state.progress, endedAt: state.endedAt };
  if (state.outcome === undefined) return { ...known, error: undefined, frames: undefined };
  try {
    const reply = new BufferedReply((all) => all, view.heldFromEnd, view.showsErrors, share);
    const frames = await readWhole(services, state, connection, reply);
    const last = frames.at(-1);
    return { ...known, error: last && errorOf(last), frames };
  } catch (thrown) {
    const error = ApiError.from(thrown);
    // A completed job has no error: this one occurred while reading.
    if (state.outcome === 'completed' || error === connection.ended || isTooMuch(error)) throw error;
    const isForgotten = error.code === 'resume_expired';
    return {
      ...known,
      error: isForgotten ? recordedError(state.errorCode, state.errorDetails) : error,
      frames: undefined,
    };
  }
}

/** Reads all that an ended job has said. @throws ApiError what it ended with; 410 when that is no longer kept. */
export async function readWhole<Body>(
  services: ResourceDependencies,
  state: JobState,
  connection: ClientConnection,
  reply: BufferedReply<Body>,
): Promise<Body> {
  const reader = services.readers.open(state, reply);
  try {
    await connection.wait(attachTo(services, state, reader), readMs);
    return await connection.wait(reply.body, readMs);
  } finally {
    reader.close();
  }
}

/** Reads all frames of a completed job, the end last. @throws ApiError the job's error, 410, 429, 503. */
export async function readFrames(
  { services, connection, share }: Reading,
  view: View,
  state: JobState,
): Promise<readonly Frame[]> {
  const reply = new BufferedReply((frames) => frames, view.heldFromEnd, false, share);
  return await readWhole(services, state, connection, reply);
}
