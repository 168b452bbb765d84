import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { eventStream } from '../../reference/operation.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkImage } from './check-image.ts';
import { imageView } from './image-view.ts';
import { parseImageEdit } from './parse-image.ts';
import { parseImageEditForm } from './parse-image-form.ts';

/** `POST /v1/images/edits`, a form or JSON (https://platform.openai.com/docs/api-reference/images/createEdit). */
export const imagesEdits = defineEndpoint({
  name: 'images.edits',
  path: '/v1/images/edits',
  capability: 'image',
  operation: {
    id: 'editImage',
    tag: 'Images',
    summary: 'Edit images',
    description: 'As a form with files (`image` up to 16 times), or as JSON with links and data URLs.',
    json: 'ImageEditRequest',
    form: 'ImageEditForm',
    answer: { json: 'Images', types: [eventStream] },
    example: { model: 'image', form: { prompt: 'Add a lighthouse', image: '@harbour.png' } },
  },
  defaultModel: 'image',
  parse: parseImageEdit,
  parseForm: parseImageEditForm,
  check: withFieldCheck('image', checkImage('edit')),
  view: imageView('image_edit'),
});
