import { checkImage } from './check-image.ts';
import { withFieldCheck } from './check-media-fields.ts';
import type { Endpoint } from './endpoint.ts';
import { imageView } from './image-view.ts';
import { prepareImageGeneration } from './prepare-image.ts';

/** `POST /v1/images/generations` (https://platform.openai.com/docs/api-reference/images/create). */
export const imagesGenerations: Endpoint = {
  name: 'images.generations',
  path: '/v1/images/generations',
  capability: 'image',
  defaultModel: 'image',
  prepare: prepareImageGeneration,
  check: withFieldCheck('image', checkImage('generation')),
  view: imageView('image_generation'),
};
