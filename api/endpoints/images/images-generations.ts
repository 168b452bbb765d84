import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { eventStream } from '../../reference/operation.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkImage } from './check-image.ts';
import { imageView } from './image-view.ts';
import { parseImageGeneration } from './parse-image.ts';

/** `POST /v1/images/generations` (https://platform.openai.com/docs/api-reference/images/create). */
export const imagesGenerations = defineEndpoint({
  name: 'images.generations',
  path: '/v1/images/generations',
  capability: 'image',
  operation: {
    id: 'createImage',
    tag: 'Images',
    summary: 'Create images',
    json: 'ImageGenerationRequest',
    answer: { json: 'Images', types: [eventStream] },
    example: { model: 'image', json: { prompt: 'A harbour at dawn' } },
  },
  defaultModel: 'image',
  parse: parseImageGeneration,
  check: withFieldCheck('image', checkImage('generation')),
  view: imageView('image_generation'),
});
