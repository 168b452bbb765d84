import type { Endpoint } from '../../pipeline/endpoint.ts';
import type { ParsedRequest } from '../../pipeline/parsed-request.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkVideo } from './check-video.ts';
import { parseVideo, parseVideoForm, withFacts } from './parse-video.ts';
import { videoView } from './video-view.ts';

/** Fills in the size and the length that are usual for the model: the video says at once what it will be. */
const fillIn: NonNullable<Endpoint['resolve']> = async (read, { services }) => {
  const row = services.catalogue.find(read.model)?.video;
  const { size = row?.sizes[0], seconds = row?.seconds[0] } = read.viewOptions as { size?: string; seconds?: string };
  const shape = { ...(size !== undefined && { size }), ...(seconds !== undefined && { seconds }) };
  // Its prompt is bounded, but not so a picture in its JSON: that is left as it is.
  if (typeof read.request !== 'string') return { ...read, viewOptions: { ...read.viewOptions, ...shape } };
  return withFacts(read as ParsedRequest, shape, shape);
};

/** `POST /v1/videos`, JSON or a form (https://platform.openai.com/docs/api-reference/videos/create). */
export const videos: Endpoint = {
  name: 'videos',
  path: '/v1/videos',
  capability: 'video',
  defaultModel: 'video',
  parse: parseVideo,
  parseForm: parseVideoForm,
  resolve: fillIn,
  check: withFieldCheck('video', checkVideo),
  view: videoView,
};
