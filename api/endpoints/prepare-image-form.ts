import { imageEditForm, imageVariationForm, type UploadedImage } from '../../shared/capabilities/image.ts';
import { ApiError } from '../../shared/errors.ts';
import { checked, composeImageJob } from './prepare-image.ts';
import type { Form, PrepareForm } from './prepared-request.ts';

/** Fields of image forms that are no text. */
const integers = new Set(['n', 'output_compression', 'partial_images']);
const booleans = new Set(['stream']);

/** Fields of which there is one. Others may be the vendor's own, and come as often as they like. */
const singles = new Set([
  ...integers,
  ...booleans,
  'model',
  'prompt',
  'size',
  'quality',
  'response_format',
  'background',
  'moderation',
  'input_fidelity',
  'output_format',
  'user',
]);

/** Prepares the form of `POST /v1/images/edits`: `image` (or `image[]`) up to 16 times, `mask`, and the fields. */
export const prepareImageEditForm: PrepareForm = (form) => {
  const { image, mask, ...request } = checked(imageEditForm, { ...readFields(form), ...readFiles(form) });
  return composeImageJob('edit', request, image, mask ?? null);
};

/** Prepares the form of `POST /v1/images/variations`: one `image`, and the fields. */
export const prepareImageVariation: PrepareForm = (form) => {
  const { image, ...request } = checked(imageVariationForm, { ...readFields(form), ...readFiles(form) });
  return composeImageJob('variation', request, image);
};

/** A form's fields as JSON has them: numbers and booleans where the field is one, else text. */
function readFields({ fields }: Form): Record<string, unknown> {
  return Object.fromEntries(
    [...fields].map(([name, values]) => {
      if (name === 'image' || name === 'mask') throw invalid(name, 'expected a file');
      // JSON bodies are refused for the same name.
      if (name === '__proto__') throw invalid(name, 'it is not allowed');
      const [value = '', another] = values;
      if (another === undefined) return [name, readValue(name, value)];
      if (singles.has(name)) throw invalid(name, 'it is given more than once');
      return [name, values];
    }),
  );
}

function readValue(name: string, text: string): unknown {
  if (integers.has(name)) {
    if (!/^-?\d{1,9}$/.test(text)) throw invalid(name, 'expected an integer');
    return Number(text);
  }
  if (booleans.has(name)) {
    if (text !== 'true' && text !== 'false') throw invalid(name, "expected 'true' or 'false'");
    return text === 'true';
  }
  return text;
}

/** The uploads: every `image` in order, and the `mask`. */
function readFiles({ files }: Form): { image?: UploadedImage[]; mask?: UploadedImage } {
  const image: UploadedImage[] = [];
  let mask: UploadedImage | undefined;
  for (const { field, ...file } of files) {
    if (file.bytes === 0) throw invalid(field, 'the file is empty');
    if (field === 'image') image.push(file);
    else if (field !== 'mask') throw invalid(field, 'a file is not expected here');
    else if (mask !== undefined) throw invalid(field, 'it is given more than once');
    else mask = file;
  }
  return { ...(image.length > 0 && { image }), ...(mask && { mask }) };
}

function invalid(name: string, fault: string): ApiError {
  // A name may be anything that a caller's form holds.
  const param = /^\w{1,64}$/.test(name) ? name : null;
  return new ApiError('invalid_request_error', `Invalid '${param ?? 'field'}': ${fault}.`, { param });
}
