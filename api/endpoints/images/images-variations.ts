import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkImage } from './check-image.ts';
import { imageView } from './image-view.ts';
import { parseImageVariation } from './parse-image-form.ts';

/** `POST /v1/images/variations` (https://platform.openai.com/docs/api-reference/images/createVariation). */
export const imagesVariations = defineEndpoint({
  name: 'images.variations',
  path: '/v1/images/variations',
  capability: 'image',
  operation: {
    id: 'varyImage',
    tag: 'Images',
    summary: 'Create variations of an image',
    form: 'ImageVariationForm',
    answer: { json: 'Images' },
    example: { model: 'image', form: { image: '@harbour.png' } },
  },
  defaultModel: 'image',
  parseForm: parseImageVariation,
  check: withFieldCheck('image', checkImage('variation')),
  view: imageView('image_variation'),
});
