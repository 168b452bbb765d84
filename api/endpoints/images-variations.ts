import { checkImage } from './check-image.ts';
import { withFieldCheck } from './check-media-fields.ts';
import type { Endpoint } from './endpoint.ts';
import { imageView } from './image-view.ts';
import { prepareImageVariation } from './prepare-image-form.ts';

/** `POST /v1/images/variations` (https://platform.openai.com/docs/api-reference/images/createVariation). */
export const imagesVariations: Endpoint = {
  name: 'images.variations',
  path: '/v1/images/variations',
  capability: 'image',
  defaultModel: 'image',
  prepareForm: prepareImageVariation,
  check: withFieldCheck('image', checkImage('variation')),
  view: imageView('image_variation'),
};
