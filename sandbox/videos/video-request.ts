import type { IncomingHttpHeaders } from 'node:http';
import { checkFileNames, type Form } from '../form.ts';
import type { ImageHeader } from '../image-header.ts';
import { readImageReference, type SourceImage, toSourceImage } from '../images/source-image.ts';
import { findModel, type SandboxModel } from '../models.ts';
import { type CallOptions, RequestFields, readCallOptions } from '../request-fields.ts';
import { joinOptions, jsonFaults } from '../request-options.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import { readVideoOptions, type VideoOptions } from './video-options.ts';

const landscape = ['1280x720', '1792x1024'] as const;
const portrait = ['720x1280', '1024x1792'] as const;

/** `width x height` in pixels, in OpenAI's notation. */
type VideoSize = (typeof landscape)[number] | (typeof portrait)[number];

/** A validated request for a video with its defaults filled in. */
export interface VideoRequest extends CallOptions {
  model: SandboxModel;
  prompt: string;
  size: VideoSize;
  seconds: 4 | 8 | 12;
  reference: SourceImage | undefined;
  remixedFrom: string | null;
  /** How the video progresses. */
  video: VideoOptions;
}

const names = ['prompt', 'size', 'seconds', 'input_reference'];
/** The form field for the URL inside the reference object. */
const REFERENCE_URL = 'input_reference[image_url]';
const MAXIMUM_PROMPT = 32_000;

/** Parses `POST /v1/videos` as JSON, its reference as `{image_url: "data:…"}`. */
export function readJsonVideo(body: string, headers: IncomingHttpHeaders): VideoRequest {
  const fields = RequestFields.fromJson(body);
  fields.allowOnly(names);
  const reference = fields.raw('input_reference');
  return readVideo(fields, headers, reference === undefined ? reference : readReference(reference));
}

/** Parses `POST /v1/videos` as a form, its reference as a file or as in JSON. */
export function readFormVideo(form: Form<ImageHeader | undefined>, headers: IncomingHttpHeaders): VideoRequest {
  const fields = RequestFields.fromForm(form.fields);
  fields.allowOnly([...names, REFERENCE_URL]);
  checkFileNames(form, ['input_reference']);
  const url = fields.text(REFERENCE_URL);
  const given = [
    ...form.files.map(toSourceImage),
    ...[fields.object('input_reference'), url === undefined ? url : { image_url: url }]
      .filter((reference) => reference !== undefined)
      .map(readReference),
  ];
  if (given.length > 1) throw invalidParameter('input_reference', "'input_reference' may be given once.");
  return readVideo(fields, headers, given[0]);
}

/** Parses `POST /v1/videos/{id}/remix`: everything except the prompt is the source's. */
export function readRemix(
  body: string,
  headers: IncomingHttpHeaders,
  source: { readonly id: string; readonly request: VideoRequest },
): VideoRequest {
  const fields = RequestFields.fromJson(body);
  fields.allowOnly(['prompt']);
  if (fields.raw('model') !== undefined) {
    throw new WireError(400, "Unknown parameter: 'model'.", { code: 'unknown_parameter', param: 'model' });
  }
  const { model, size, seconds, reference } = source.request;
  return { ...readCommon(fields, headers), model, size, seconds, reference, remixedFrom: source.id };
}

function readVideo(
  fields: RequestFields,
  headers: IncomingHttpHeaders,
  reference: SourceImage | undefined,
): VideoRequest {
  const model = findModel(fields.text('model') ?? 'sandbox-video', 'video');
  const sizes: readonly VideoSize[] = model.id === 'sandbox-video' ? landscape : portrait;
  const size = fields.choice('size', sizes) ?? (sizes[0] as VideoSize);
  if (reference !== undefined && `${reference.header.width}x${reference.header.height}` !== size) {
    // OpenAI's wording, which names no parameter; here the error does.
    throw invalidParameter('input_reference', 'Inpaint image must match the requested width and height');
  }
  const seconds = Number(fields.choice('seconds', ['4', '8', '12']) ?? '4') as VideoRequest['seconds'];
  return { ...readCommon(fields, headers), model, size, seconds, reference, remixedFrom: null };
}

function readCommon(fields: RequestFields, headers: IncomingHttpHeaders) {
  return {
    prompt: fields.requiredText('prompt', MAXIMUM_PROMPT),
    ...readCallOptions(fields, headers, jsonFaults),
    video: readVideoOptions(joinOptions(fields.object('sandbox'), headers['x-sandbox']).video),
  };
}

function readReference(reference: unknown): SourceImage {
  return readImageReference(reference, 'input_reference');
}
