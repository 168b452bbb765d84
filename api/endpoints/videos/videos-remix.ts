import { ApiError } from '../../../shared/errors.ts';
import { defineEndpoint, type Resolve } from '../../pipeline/endpoint.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkVideo } from './check-video.ts';
import { findVideoJob, requireVideoEnd } from './find-video.ts';
import {
  parseVideoRemix,
  parseVideoRemixForm,
  type VideoFacts,
  type VideoRequirements,
  withFacts,
} from './parse-video.ts';
import { videoView } from './video-view.ts';

/** A prompt is bounded, and a remix has no other large field (characters). */
const maxRequest = 256 * 1024;

/** Makes a prompt the remix of the video in the path, by the video's vendor, which still has it. */
const resolveSource: Resolve<VideoRequirements, VideoFacts> = async (read, context) => {
  if (typeof read.request !== 'string' || read.request.length > maxRequest)
    throw new ApiError('request_too_large', 'The request body is too large for a remix.');
  const job = await findVideoJob(context, context.params.id);
  const { vendor, account, task, ...made } = await requireVideoEnd(context, job, 'remixed');
  // What its vendor does not tell is as it was requested.
  const asked = JSON.parse(job.viewOptions) as VideoFacts;
  const { size = asked.size, seconds = asked.seconds } = made;
  const shape = { ...(size !== undefined && { size }), ...(seconds !== undefined && { seconds }) };
  const facts = { ...shape, remixedFrom: `video_${job.id}` };
  return withFacts(
    { ...read, request: read.request },
    facts,
    // The vendor takes them from the video; the charge is by its length.
    { ...shape, remixed: { vendor, ...(account && { account }), task } },
    job.model,
  );
};

/** `POST /v1/videos/{id}/remix`, JSON or a form (https://platform.openai.com/docs/api-reference/videos/remix). */
export const videosRemix = defineEndpoint({
  name: 'videos.remix',
  path: '/v1/videos/:id/remix',
  capability: 'video',
  operation: {
    id: 'remixVideo',
    tag: 'Videos',
    summary: 'Remix a completed video',
    json: 'VideoRemixRequest',
    answer: { json: 'Video' },
    example: { json: { prompt: 'The same at night' } },
  },
  parse: parseVideoRemix,
  parseForm: parseVideoRemixForm,
  resolve: resolveSource,
  check: withFieldCheck('video', checkVideo),
  view: videoView,
});
