import type { Upload } from '../../../shared/blobs/upload.ts';
import { imageEditForm, imageVariationForm } from '../../../shared/capabilities/image.ts';
import { type FieldKind, invalidField, readFormFields } from '../../http/body/form-fields.ts';
import type { Form, ParseForm } from '../../pipeline/parsed-request.ts';
import { checked, composeImageJob, type ImageRequirements } from './parse-image.ts';

/** Types of the fields of image forms. */
const fields: Readonly<Record<string, FieldKind>> = {
  image: 'file',
  mask: 'file',
  model: 'text',
  prompt: 'text',
  n: 'integer',
  size: 'text',
  quality: 'text',
  response_format: 'text',
  background: 'text',
  moderation: 'text',
  input_fidelity: 'text',
  output_format: 'text',
  output_compression: 'integer',
  stream: 'boolean',
  partial_images: 'integer',
  user: 'text',
};

/** Parses the form of `POST /v1/images/edits`: `image` (or `image[]`) up to 16 times, `mask`, and the fields. */
export const parseImageEditForm: ParseForm<ImageRequirements> = (form) => {
  const { image, mask, ...request } = checked(imageEditForm, { ...readFormFields(form, fields), ...readFiles(form) });
  return composeImageJob('edit', request, { uploads: mask === undefined ? image : [...image, mask] });
};

/** Parses the form of `POST /v1/images/variations`: one `image`, and the fields. */
export const parseImageVariation: ParseForm<ImageRequirements> = (form) => {
  const { image, ...request } = checked(imageVariationForm, { ...readFormFields(form, fields), ...readFiles(form) });
  return composeImageJob('variation', request, { uploads: image });
};

/** The uploads: every `image` in order, and the `mask`. */
function readFiles({ files }: Form): { image?: Upload[]; mask?: Upload } {
  const image: Upload[] = [];
  let mask: Upload | undefined;
  for (const file of files) {
    const { field } = file;
    if (file.bytes === 0) throw invalidField(field, 'the file is empty');
    if (field === 'image') image.push(file);
    else if (field !== 'mask') throw invalidField(field, 'a file is not expected here');
    else if (mask !== undefined) throw invalidField(field, 'it is given more than once');
    else mask = file;
  }
  return { ...(image.length > 0 && { image }), ...(mask && { mask }) };
}
