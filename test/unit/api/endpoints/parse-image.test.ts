import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkImage } from '../../../../api/endpoints/images/check-image.ts';
import { parseImageEdit, parseImageGeneration } from '../../../../api/endpoints/images/parse-image.ts';
import { parseImageEditForm, parseImageVariation } from '../../../../api/endpoints/images/parse-image-form.ts';
import type { Form, ParsedRequest } from '../../../../api/pipeline/parsed-request.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import { Upload, type UploadRecord } from '../../../../shared/blobs/upload.ts';
import type { ImageJob, ImageTask } from '../../../../shared/capabilities/image.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { routedModel } from '../../../support/routed-model.ts';

const generation = { model: 'sandbox-image', prompt: 'A lighthouse' };
const dataUrl = 'data:image/png;base64,iVBORw0KGgo=';
const edit = { ...generation, images: [{ image_url: dataUrl }] };

const bytesOf = (request: unknown): Buffer => Buffer.from(JSON.stringify(request));
const generate = (fields: object = {}) => parseImageGeneration(bytesOf({ ...generation, ...fields }));
const editJson = (fields: object = {}) => parseImageEdit(bytesOf({ ...edit, ...fields }));
const jobOf = ({ request }: ParsedRequest): ImageJob => JSON.parse(textOf(request)) as ImageJob;

/** The 400 that `work` ends with: its `param` and message. */
function refusal(work: () => unknown): { param: string | null; message: string } {
  try {
    work();
  } catch (error) {
    assert(error instanceof ApiError);
    assert.equal(error.status, 400);
    return error.toWire().error;
  }
  throw new assert.AssertionError({ message: 'accepted' });
}

let uploads = 0;
function upload(field = 'image', more: Partial<UploadRecord> = {}): Upload {
  uploads += 1;
  return new Upload({
    ...{ field, blob: `2026112100/${uploads}`, name: 'otter.png', type: 'image/png', bytes: 10 },
    ...more,
  });
}

function form(fields: Record<string, string | string[]>, files: Upload[]): Form {
  return { fields: new Map(Object.entries(fields).map(([name, value]) => [name, [value].flat()])), files };
}

const editFields = { model: 'sandbox-image', prompt: 'Make it night' };

describe('parseImageGeneration', () => {
  it('parseImageGeneration makes a job of the request with every other field, also unknown ones, among its parameters', () => {
    const fields = { n: 3, size: '512x512', quality: 'hd', style: 'vivid', user: 'u', vendor_option: { deep: [1] } };
    const parsed = generate({ ...fields, response_format: 'url' });
    assert.deepEqual(jobOf(parsed), {
      task: 'generation',
      response_format: 'url',
      images: [],
      mask: null,
      parameters: { prompt: 'A lighthouse', ...fields },
    });
    const mediaFields = ['n', 'size', 'user', 'quality', 'vendor_option'];
    assert.deepEqual(parsed.requirements, { n: 3, size: '512x512', partialImages: 0, mediaFields });
    assert.equal(parsed.model, 'sandbox-image');
    assert.equal(parsed.stream, false);
    assert.equal(parsed.hasMedia, false);
    assert.deepEqual(parsed.files, []);
  });

  it('parseImageGeneration requires only model and prompt, and treats null as a missing field', () => {
    const parsed = generate({ n: null, size: null, response_format: null, stream: null, partial_images: null });
    assert.equal(jobOf(parsed).response_format, null);
    assert.deepEqual(parsed.requirements, { n: 1, size: undefined, partialImages: 0, mediaFields: [] });
  });

  it('parseImageGeneration accepts a stream with three partial images', () => {
    const parsed = generate({ stream: true, partial_images: 3 });
    assert.equal(parsed.stream, true);
    const mediaFields = ['partial_images'];
    assert.deepEqual(parsed.requirements, { n: 1, size: undefined, partialImages: 3, mediaFields });
    assert.equal('stream' in jobOf(parsed).parameters, false);
  });

  const faults: [field: object, param: string][] = [
    [{ model: '' }, 'model'],
    [{ model: 7 }, 'model'],
    [{ prompt: undefined }, 'prompt'],
    [{ prompt: '' }, 'prompt'],
    [{ prompt: ['x'] }, 'prompt'],
    [{ prompt: 'x'.repeat(32_001) }, 'prompt'],
    [{ n: 0 }, 'n'],
    [{ n: 11 }, 'n'],
    [{ n: 1.5 }, 'n'],
    [{ n: '1' }, 'n'],
    [{ size: 1024 }, 'size'],
    [{ quality: 'ultra' }, 'quality'],
    [{ response_format: 'png' }, 'response_format'],
    [{ background: 'red' }, 'background'],
    [{ moderation: 'none' }, 'moderation'],
    [{ output_format: 'gif' }, 'output_format'],
    [{ output_compression: 101 }, 'output_compression'],
    [{ output_compression: -1 }, 'output_compression'],
    [{ style: 'dull' }, 'style'],
    [{ stream: 'true' }, 'stream'],
    [{ stream: true, partial_images: 4 }, 'partial_images'],
    [{ stream: true, partial_images: -1 }, 'partial_images'],
    [{ partial_images: 1 }, 'partial_images'],
    [{ user: 1 }, 'user'],
  ];
  for (const [fields, param] of faults) {
    it(`parseImageGeneration rejects ${JSON.stringify(fields).slice(0, 60)} with 400 and names ${param}`, () => {
      assert.equal(refusal(() => generate(fields)).param, param);
    });
  }
});

describe('parseImageEdit', () => {
  it('parseImageEdit keeps images and mask, and reports that the request holds media', () => {
    const images = [{ image_url: dataUrl }, { image_url: 'https://example.com/otter.png' }];
    const parsed = editJson({ images, mask: { image_url: dataUrl }, input_fidelity: 'high' });
    const job = jobOf(parsed);
    assert.equal(job.task, 'edit');
    assert.deepEqual(job.images, images);
    assert.deepEqual(job.mask, { image_url: dataUrl });
    assert.deepEqual(job.parameters, { prompt: 'A lighthouse', input_fidelity: 'high' });
    assert.equal(parsed.hasMedia, true);
    assert.deepEqual(parsed.files, []);
  });

  const faults: [field: object, param: string][] = [
    [{ images: undefined }, 'images'],
    [{ images: [] }, 'images'],
    [{ images: dataUrl }, 'images'],
    [{ images: Array.from({ length: 17 }, () => ({ image_url: dataUrl })) }, 'images'],
    [{ images: [dataUrl] }, 'images[0]'],
    [{ images: [{}] }, 'images[0].image_url'],
    [{ images: [{ image_url: dataUrl }, { file_id: 'file-1' }] }, 'images[1].file_id'],
    [{ images: [{ image_url: dataUrl, file_id: 'file-1' }] }, 'images[0].file_id'],
    [{ images: [{ image_url: 'http://example.com/otter.png' }] }, 'images[0].image_url'],
    [{ images: [{ image_url: 'file:///etc/passwd' }] }, 'images[0].image_url'],
    [{ images: [{ image_url: 'data:text/html;base64,AAAA' }] }, 'images[0].image_url'],
    [{ mask: { file_id: 'file-1' } }, 'mask.file_id'],
    [{ mask: {} }, 'mask.image_url'],
    [{ mask: dataUrl }, 'mask'],
    [{ prompt: undefined }, 'prompt'],
    [{ input_fidelity: 'middling' }, 'input_fidelity'],
    [{ partial_images: 2 }, 'partial_images'],
  ];
  for (const [fields, param] of faults) {
    it(`parseImageEdit rejects ${JSON.stringify(fields).slice(0, 80)} with 400 and names ${param}`, () => {
      assert.equal(refusal(() => editJson(fields)).param, param);
    });
  }
});

describe('parseImageEditForm', () => {
  it('parseImageEditForm keeps images in order and the mask, and converts fields to numbers, booleans and text', () => {
    const [first, second, mask] = [upload(), upload(), upload('mask')];
    const fields = { ...editFields, n: '2', output_compression: '50', stream: 'true', partial_images: '1' };
    const given = form({ ...fields, size: 'auto', custom: ['1', '2'] }, [first, mask, second]);
    const parsed = parseImageEditForm(given);
    const job = jobOf(parsed);
    // The uploads lie beside the job, never in it: what its text holds, a caller may have written.
    assert.deepEqual([job.images, job.mask], [[], null]);
    assert.doesNotMatch(textOf(parsed.request), /2026112100/);
    assert.deepEqual(job.parameters, {
      prompt: 'Make it night',
      n: 2,
      output_compression: 50,
      partial_images: 1,
      size: 'auto',
      custom: ['1', '2'],
    });
    assert.equal(parsed.stream, true);
    assert.equal(parsed.hasMedia, true);
    assert.deepEqual(parsed.files, [first, second, mask]);
    const mediaFields = ['n', 'output_compression', 'partial_images', 'custom', 'mask'];
    assert.deepEqual(parsed.requirements, { n: 2, size: 'auto', partialImages: 1, mediaFields });
  });

  const faults: [name: string, fields: Record<string, string | string[]>, files: () => Upload[], param: string][] = [
    ['no image', {}, () => [], 'image'],
    ['17 images', {}, () => Array.from({ length: 17 }, () => upload()), 'image'],
    ['an image that is text', { image: 'otter' }, () => [], 'image'],
    ['a mask that is text', { mask: 'otter' }, () => [upload()], 'mask'],
    ['two masks', {}, () => [upload(), upload('mask'), upload('mask')], 'mask'],
    ['an empty image', {}, () => [upload('image', { bytes: 0 })], 'image'],
    ['a file of another field', {}, () => [upload(), upload('attachment')], 'attachment'],
    ['an n that is no number', { n: 'two' }, () => [upload()], 'n'],
    ['an n with a point', { n: '1.0' }, () => [upload()], 'n'],
    ['an n with a space', { n: ' 1' }, () => [upload()], 'n'],
    ['an n that is too large', { n: '11' }, () => [upload()], 'n'],
    ['two values of n', { n: ['1', '2'] }, () => [upload()], 'n'],
    ['a stream that is 1', { stream: '1' }, () => [upload()], 'stream'],
    ['a stream that is True', { stream: 'True' }, () => [upload()], 'stream'],
    ['four partial images', { stream: 'true', partial_images: '4' }, () => [upload()], 'partial_images'],
    ['partial images without a stream', { partial_images: '1' }, () => [upload()], 'partial_images'],
    ['two prompts', { prompt: ['a', 'b'] }, () => [upload()], 'prompt'],
    ['an empty prompt', { prompt: '' }, () => [upload()], 'prompt'],
    ['an unknown response format', { response_format: 'jpg' }, () => [upload()], 'response_format'],
    ['an unknown fidelity', { input_fidelity: 'most' }, () => [upload()], 'input_fidelity'],
    ['an output compression in hexadecimal', { output_compression: '0x10' }, () => [upload()], 'output_compression'],
  ];
  for (const [name, fields, files, param] of faults) {
    it(`parseImageEditForm rejects ${name} with 400 and names ${param}`, () => {
      assert.equal(refusal(() => parseImageEditForm(form({ ...editFields, ...fields }, files()))).param, param);
    });
  }

  it('parseImageEditForm rejects a missing prompt, but accepts a missing model', () => {
    assert.equal(parseImageEditForm(form({ prompt: 'x' }, [upload()])).model, '');
    assert.equal(refusal(() => parseImageEditForm(form({ model: 'x' }, [upload()]))).param, 'prompt');
  });

  it('parseImageEditForm rejects a field named __proto__ with 400', () => {
    const fields = new Map(
      [...Object.entries(editFields), ['__proto__', 'x'] as const].map(([name, text]) => [name, [text]]),
    );
    assert.equal(refusal(() => parseImageEditForm({ fields, files: [upload()] })).param, '__proto__');
  });
});

describe('parseImageVariation', () => {
  const fields = { model: 'sandbox-image' };
  it('parseImageVariation accepts one image without a prompt', () => {
    const image = upload();
    const parsed = parseImageVariation(form({ ...fields, n: '2', user: 'u' }, [image]));
    assert.deepEqual(jobOf(parsed).parameters, { n: 2, user: 'u' });
    assert.equal(jobOf(parsed).task, 'variation');
    assert.deepEqual(parsed.files, [image]);
  });

  const faults: [more: Record<string, string>, files: () => Upload[], param: string][] = [
    [{}, () => [], 'image'],
    [{}, () => [upload(), upload()], 'image'],
    [{}, () => [upload(), upload('mask')], 'mask'],
    [{ stream: 'true' }, () => [upload()], 'stream'],
    [{ n: '0' }, () => [upload()], 'n'],
    [{ response_format: 'gif' }, () => [upload()], 'response_format'],
  ];
  for (const [more, files, param] of faults) {
    it(`parseImageVariation rejects ${JSON.stringify(more)} and ${files().length} files with 400 and names ${param}`, () => {
      assert.equal(refusal(() => parseImageVariation(form({ ...fields, ...more }, files()))).param, param);
    });
  }
});

describe('checkImage', () => {
  const check = (task: ImageTask, id: string, fields: object = {}) =>
    checkImage(task)(generate(fields), routedModel(id));

  const sizes: [model: string, allowed: string[], refused: string[]][] = [
    ['dall-e-3', ['1024x1024', '1792x1024', '1024x1792'], ['256x256', '1536x1024', 'auto', 'big', '']],
    ['dall-e-2', ['256x256', '512x512', '1024x1024'], ['1792x1024', '1024x1536', '1024X1024']],
    ['gpt-image-1', ['1024x1024', '1536x1024', '1024x1536', 'auto'], ['256x256', '1792x1024']],
    ['gpt-image-2', ['1536x864', '3840x2160', 'auto'], ['big', '1024', '1024x', '0x0', '-1x5', '1024x1024 ']],
  ];
  for (const [model, allowed, refused] of sizes) {
    it(`checkImage accepts the sizes of ${model}, and lists them in the 400 for any other size`, () => {
      for (const size of allowed) check('generation', model, { size });
      for (const size of refused) {
        const { param, message } = refusal(() => check('generation', model, { size }));
        assert.equal(param, 'size');
        const listed = model === 'gpt-image-2' ? ['1024x1024', 'auto'] : allowed;
        for (const one of listed) assert.ok(message.includes(`'${one}'`), message);
      }
    });
  }

  it('checkImage rejects more images than the model makes', () => {
    assert.equal(refusal(() => check('generation', 'dall-e-3', { n: 2 })).param, 'n');
    check('generation', 'dall-e-2', { n: 10 });
  });

  it('checkImage rejects an edit or a variation that the model does not support', () => {
    assert.equal(refusal(() => check('edit', 'dall-e-3')).param, 'model');
    assert.equal(refusal(() => check('variation', 'gpt-image-1')).param, 'model');
    check('variation', 'dall-e-2');
  });

  it('checkImage rejects a stream of a model that does not stream', () => {
    assert.equal(refusal(() => check('generation', 'dall-e-2', { stream: true })).param, 'stream');
    check('generation', 'gpt-image-1', { stream: true, partial_images: 2 });
  });
});
