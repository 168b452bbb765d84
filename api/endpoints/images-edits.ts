import { checkImage } from './check-image.ts';
import { withFieldCheck } from './check-media-fields.ts';
import type { Endpoint } from './endpoint.ts';
import { imageView } from './image-view.ts';
import { prepareImageEdit } from './prepare-image.ts';
import { prepareImageEditForm } from './prepare-image-form.ts';

/** `POST /v1/images/edits`, a form or JSON (https://platform.openai.com/docs/api-reference/images/createEdit). */
export const imagesEdits: Endpoint = {
  name: 'images.edits',
  path: '/v1/images/edits',
  capability: 'image',
  defaultModel: 'image',
  prepare: prepareImageEdit,
  prepareForm: prepareImageEditForm,
  check: withFieldCheck('image', checkImage('edit')),
  view: imageView('image_edit'),
};
