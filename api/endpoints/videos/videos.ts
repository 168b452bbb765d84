import { defineEndpoint, type Resolve } from '../../pipeline/endpoint.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkVideo } from './check-video.ts';
import { parseVideo, parseVideoForm, type VideoFacts, type VideoRequirements, withDefaults } from './parse-video.ts';
import { videoView } from './video-view.ts';

/** Adds the model's default size and length, so that the video object has them from the start, and its vendor no others. */
const fillIn: Resolve<VideoRequirements, VideoFacts> = async (read, { services }) => {
  const row = services.catalogue.find(read.model)?.video;
  const [size, seconds] = [row?.sizes[0], row?.seconds[0]];
  return withDefaults(read, {
    ...(read.viewOptions.size === undefined && size !== undefined && { size }),
    ...(read.viewOptions.seconds === undefined && seconds !== undefined && { seconds }),
  });
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
