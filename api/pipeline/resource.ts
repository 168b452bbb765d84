import { ApiError, type ErrorData } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/frames.ts';
import type { JobState } from '../../shared/jobs/job-state.ts';
import { recordedError } from '../../shared/jobs/settlement/error-details.ts';
import { jobStatus } from '../endpoints/jobs/job-object.ts';
import { readWhole } from '../endpoints/jobs/jobs.ts';
import { BufferedReply } from '../replies/buffered-reply.ts';
import type { ClientConnection } from '../replies/client-connection.ts';
import type { ResourceState, View } from '../replies/view.ts';
import { viewJob } from '../replies/view-job.ts';
import type { Services } from '../services.ts';
import type { Context } from '../state.ts';

/**
 * A job as the resource that it is (a response, a video), in whatever state it is.
 * @param ctx who asks for it
 * @param state as `StoredJobs.find` answered it
 * @throws ApiError 404 where the job's endpoint makes no resources, 410 or 503 when its answer cannot be read.
 */
export async function readResource(
  {
    ctx,
    services,
    connection,
  }: { readonly ctx: Context; readonly services: Services; readonly connection: ClientConnection },
  view: View,
  state: JobState,
): Promise<Record<string, unknown>> {
  if (view.resource === undefined) throw new ApiError('not_found', 'No such resource.');
  const viewed = await viewJob(services, state, services.baseUrls.of(ctx.req));
  return view.resource(viewed, await readResourceState(services, view, state, connection));
}

async function readResourceState(
  services: Services,
  view: View,
  state: JobState,
  connection: ClientConnection,
): Promise<ResourceState> {
  const known = { status: jobStatus(state), progress: state.progress, endedAt: state.endedAt };
  if (state.outcome === undefined) return { ...known, error: undefined, frames: undefined };
  try {
    const answer = new BufferedReply((all) => all, view.heldFromEnd, view.showsErrors);
    const frames = await readWhole(services, state, connection, answer);
    return { ...known, error: errorIn(frames), frames };
  } catch (thrown) {
    const error = ApiError.from(thrown);
    // A job that ended well has no error: this one is of the reading.
    if (state.outcome === 'completed' || error === connection.ended) throw error;
    const isForgotten = error.code === 'resume_expired';
    return {
      ...known,
      error: isForgotten ? recordedError(state.errorCode, state.errorDetails) : error,
      frames: undefined,
    };
  }
}

/** What a job ended with, if it failed. */
function errorIn(frames: readonly Frame[]): ApiError | undefined {
  const last = frames.at(-1);
  return last?.type === 'error' ? ApiError.fromData(JSON.parse(last.text) as ErrorData) : undefined;
}

/** All frames of a job that has completed, the end last. @throws ApiError what it ended with, 410, 503. */
export async function readFrames(
  services: Services,
  view: View,
  state: JobState,
  connection: ClientConnection,
): Promise<readonly Frame[]> {
  return await readWhole(services, state, connection, new BufferedReply((frames) => frames, view.heldFromEnd));
}
