import { defineEndpoint, type Resolve } from '../../pipeline/endpoint.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkVideo } from './check-video.ts';
import { parseVideo, parseVideoForm, type VideoFacts, type VideoRequirements, withFacts } from './parse-video.ts';
import { videoView } from './video-view.ts';

/** Adds the model's default size and length, so that the video object has them from the start. */
const fillIn: Resolve<VideoRequirements, VideoFacts> = async (read, { services }) => {
  const row = services.catalogue.find(read.model)?.video;
  const { size = row?.sizes[0], seconds = row?.seconds[0] } = read.viewOptions;
  const shape = { ...(size !== undefined && { size }), ...(seconds !== undefined && { seconds }) };
  // The prompt is bounded, but a picture in the JSON is not: such a request stays as it is.
  if (typeof read.request !== 'string') return { ...read, viewOptions: { ...read.viewOptions, ...shape } };
  return withFacts({ ...read, request: read.request }, shape, shape);
};

/** `POST /v1/videos`, JSON or a form (https://platform.openai.com/docs/api-reference/videos/create). */
export const videos = defineEndpoint({
  name: 'videos',
  path: '/v1/videos',
  capability: 'video',
  operation: {
    id: 'createVideo',
    tag: 'Videos',
    summary: 'Create a video',
    description: 'The video is made in the background: read it until its `status` is `completed`.',
    json: 'VideoRequest',
    form: 'VideoForm',
    answer: { json: 'Video' },
    example: { model: 'video', json: { prompt: 'A harbour at dawn' } },
  },
  defaultModel: 'video',
  parse: parseVideo,
  parseForm: parseVideoForm,
  resolve: fillIn,
  check: withFieldCheck('video', checkVideo),
  view: videoView,
});
