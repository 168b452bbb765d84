import type { VideoEnd } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import { jobIdFromWire } from '../../../shared/ids.ts';
import type { JobState } from '../../../shared/jobs/job-state.ts';
import { readMs } from '../../bounds/bounded-reads.ts';
import type { ResolveContext } from '../../pipeline/endpoint.ts';
import { shownId } from '../../pipeline/missing.ts';
import { readFrames } from '../../pipeline/resource.ts';
import { readVideoEnd, videoView } from './video-view.ts';

/** The endpoints that make videos. */
export const videoEndpoints: readonly string[] = ['videos', 'videos.remix'];

/** The caller. */
type Asking = Pick<ResolveContext, 'services' | 'account' | 'connection'>;

/** Finds the job of a video. @throws ApiError 404 if the account has none of that id, 410 if all except its row has expired. */
export async function findVideoJob({ services, account, connection }: Asking, id = ''): Promise<JobState> {
  const jobId = jobIdFromWire(id);
  const job = jobId && (await connection.wait(services.storedJobs.find(jobId), readMs));
  if (!job || job.account !== account || !(videoEndpoints as readonly string[]).includes(job.endpoint)) {
    throw new ApiError('not_found', `Video with id '${shownId(id)}' not found.`);
  }
  // Every stored video has a prompt.
  if (job.viewOptions === '{}') throw new ApiError('resume_expired', 'This video has expired.');
  return job;
}

/** Returns a completed video. @param purpose of the request, for the error @throws ApiError 400 while it is not completed. */
export async function requireVideoEnd(
  { services, connection }: Asking,
  job: JobState,
  purpose: string,
): Promise<VideoEnd> {
  if (job.outcome !== 'completed') {
    throw new ApiError('invalid_request_error', `The video is not completed, so it cannot be ${purpose}.`);
  }
  return readVideoEnd(await readFrames({ services, connection }, videoView, job));
}
