import type { IncomingHttpHeaders } from 'node:http';
import { checkFileNames, type Form } from '../form.ts';
import type { ImageHeader } from '../image-header.ts';
import { findModel, type SandboxModel } from '../models.ts';
import { type CallOptions, RequestFields, readCallOptions } from '../request-fields.ts';
import { jsonFaults } from '../request-options.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import { type ImageFormat, imageFormats } from './draw-image.ts';
import { checkMask, readImageReference, type SourceImage, toSourceImage } from './source-image.ts';

const standardSizes = ['1024x1024', '1536x1024', '1024x1536'] as const;
const sizes = ['auto', ...standardSizes, '256x256', '512x512', '1792x1024', '1024x1792'] as const;
const qualities = ['auto', 'low', 'medium', 'high', 'standard', 'hd'] as const;

/** A validated image request with its defaults filled in. */
export interface ImageRequest extends CallOptions {
  task: 'generation' | 'edit' | 'variation';
  model: SandboxModel;
  /** Empty for variations. */
  prompt: string;
  images: number;
  width: number;
  height: number;
  quality: 'low' | 'medium' | 'high';
  background: 'opaque' | 'transparent';
  format: ImageFormat;
  asUrl: boolean;
  stream: boolean;
  partialImages: number;
  /** Other requested options, for display. */
  wishes: readonly string[];
  sources: readonly SourceImage[];
  mask: SourceImage | undefined;
}

const commonNames = ['prompt', 'n', 'size', 'quality', 'response_format', 'output_format', 'output_compression'];
const drawingNames = [...commonNames, 'background', 'moderation', 'stream', 'partial_images'];

/** Parses `POST /v1/images/generations`. */
export function readGeneration(body: string, headers: IncomingHttpHeaders): ImageRequest {
  const fields = RequestFields.fromJson(body);
  fields.allowOnly([...drawingNames, 'style']);
  return readDrawing(fields, headers, 'generation', [], undefined);
}

/** Parses `POST /v1/images/edits` as JSON, its images as data URLs. */
export function readJsonEdit(body: string, headers: IncomingHttpHeaders): ImageRequest {
  const fields = RequestFields.fromJson(body);
  fields.allowOnly([...drawingNames, 'input_fidelity', 'images', 'mask']);
  const images = fields.raw('images');
  if (!Array.isArray(images)) throw invalidParameter('images', "'images' must be an array.");
  const sources = images.slice(0, 17).map((image, index) => readImageReference(image, `images[${index}]`));
  const mask = fields.raw('mask');
  return readEdit(fields, headers, 'images', sources, mask === undefined ? mask : readImageReference(mask, 'mask'));
}

/** Parses `POST /v1/images/edits` as a form. */
export function readFormEdit(form: Form<ImageHeader | undefined>, headers: IncomingHttpHeaders): ImageRequest {
  const fields = RequestFields.fromForm(form.fields);
  fields.allowOnly([...drawingNames, 'input_fidelity']);
  checkFileNames(form, ['image', 'mask']);
  const masks = form.files.filter(({ field }) => field === 'mask').map(toSourceImage);
  if (masks.length > 1) throw invalidParameter('mask', "'mask' may be given once.");
  const sources = form.files.filter(({ field }) => field === 'image').map(toSourceImage);
  return readEdit(fields, headers, 'image', sources, masks[0]);
}

function readEdit(
  fields: RequestFields,
  headers: IncomingHttpHeaders,
  name: string,
  sources: SourceImage[],
  mask: SourceImage | undefined,
): ImageRequest {
  const [first] = sources;
  if (first === undefined) {
    const details = { code: 'missing_required_parameter', param: name };
    throw new WireError(400, `Missing required parameter: '${name}'.`, details);
  }
  if (sources.length > 16) throw invalidParameter(name, `'${name}' may hold at most 16 images.`);
  if (mask !== undefined) checkMask(mask, first);
  return readDrawing(fields, headers, 'edit', sources, mask);
}

/** Parses `POST /v1/images/variations`. */
export function readVariation(form: Form<ImageHeader | undefined>, headers: IncomingHttpHeaders): ImageRequest {
  const fields = RequestFields.fromForm(form.fields);
  fields.allowOnly(['n', 'size', 'response_format']);
  checkFileNames(form, ['image']);
  const sources = form.files.map(toSourceImage);
  const [image] = sources;
  if (image === undefined || sources.length > 1) throw invalidParameter('image', "'image' must be given once.");
  const { format, width, height } = image.header;
  if (format !== 'PNG' || image.bytes >= 4 * 1024 * 1024) {
    throw invalidParameter('image', 'Uploaded image must be a PNG and less than 4 MB.');
  }
  if (width !== height) throw invalidParameter('image', 'Uploaded image must be square.');
  const size = fields.choice('size', ['256x256', '512x512', '1024x1024']) ?? '1024x1024';
  return {
    ...readRequester(fields, headers),
    ...{
      task: 'variation',
      format: 'png',
      prompt: '',
      ...toPixels(size),
      quality: 'medium',
      background: 'opaque',
      wishes: [],
    },
    images: fields.number('n', 1, 10, 'integer') ?? 1,
    asUrl: fields.choice('response_format', ['url', 'b64_json']) === 'url',
    ...{ stream: false, partialImages: 0, sources, mask: undefined },
  };
}

function readDrawing(
  fields: RequestFields,
  headers: IncomingHttpHeaders,
  task: 'generation' | 'edit',
  sources: SourceImage[],
  mask: SourceImage | undefined,
): ImageRequest {
  const format = readFormat(fields);
  const size = fields.choice('size', sizes) ?? 'auto';
  const wishes = [
    ['style', fields.choice('style', ['vivid', 'natural'])],
    ['input fidelity', fields.choice('input_fidelity', ['high', 'low'])],
    ['moderation', fields.choice('moderation', ['low', 'auto'])],
  ];
  const request: ImageRequest = {
    ...readRequester(fields, headers),
    task,
    format,
    prompt: fields.requiredText('prompt', 32_000),
    images: fields.number('n', 1, 10, 'integer') ?? 1,
    ...toPixels(size === 'auto' ? '1024x1024' : size),
    quality: toQuality(fields.choice('quality', qualities) ?? 'auto'),
    background:
      fields.choice('background', ['auto', 'opaque', 'transparent']) === 'transparent' ? 'transparent' : 'opaque',
    asUrl: fields.choice('response_format', ['url', 'b64_json']) === 'url',
    stream: fields.flag('stream') ?? false,
    partialImages: fields.number('partial_images', 0, 3, 'integer') ?? 0,
    wishes: wishes.filter(([, value]) => value !== undefined).map(([name, value]) => `${name} ${value}`),
    sources,
    mask,
  };
  if (request.partialImages > 0 && !request.stream) {
    throw invalidParameter('partial_images', "'partial_images' is only allowed when 'stream' is enabled.");
  }
  if (request.asUrl && request.stream) {
    throw invalidParameter('response_format', "'response_format' must be 'b64_json' when 'stream' is enabled.");
  }
  if (request.stream && !hasStandardSize(request)) {
    const message = `'size' must be one of ${standardSizes.join(', ')} and auto when 'stream' is enabled.`;
    throw invalidParameter('size', message);
  }
  return request;
}

/**
 * Whether OpenAI's responses can contain the size: its older models, which have the others, leave it out of their responses
 * and do not stream (https://platform.openai.com/docs/api-reference/images-streaming).
 */
export function hasStandardSize({ width, height }: ImageRequest): boolean {
  return standardSizes.some((size) => size === `${width}x${height}`);
}

function readRequester(fields: RequestFields, headers: IncomingHttpHeaders): CallOptions & { model: SandboxModel } {
  return {
    model: findModel(fields.text('model') ?? 'sandbox-image', 'image'),
    ...readCallOptions(fields, headers, jsonFaults),
  };
}

function readFormat(fields: RequestFields): ImageFormat {
  const wanted = fields.choice('output_format', ['png', 'jpeg', 'webp']) ?? 'png';
  const format = imageFormats.find((name) => name === wanted);
  if (format === undefined) {
    throw invalidParameter('output_format', `The sandbox makes PNG and WebP: 'output_format' cannot be '${wanted}'.`);
  }
  const compression = fields.number('output_compression', 0, 100, 'integer') ?? 100;
  // WebP is lossless here, whatever is requested.
  if (format === 'png' && compression < 100) {
    const message = 'Compression less than 100 is not supported for PNG output format.';
    throw invalidParameter('output_compression', message);
  }
  return format;
}

function toPixels(size: string): { width: number; height: number } {
  const [width, height] = size.split('x').map(Number) as [number, number];
  return { width, height };
}

function toQuality(quality: (typeof qualities)[number]): ImageRequest['quality'] {
  if (quality === 'auto' || quality === 'standard') return 'medium';
  return quality === 'hd' ? 'high' : quality;
}
