import { Upload } from '../../../shared/blobs/upload.ts';
import type { ShownImage } from '../../../shared/capabilities/image.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { deliverImages, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { type ImageRequest, readImageRequest } from '../support/image-request.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { ImageMethod } from '../vendor.ts';
import type { GeminiAnswerReader } from './answer-reader.ts';
import { isBlocked } from './candidate.ts';
import { toImageConfig } from './image-size.ts';
import { GeminiMedia } from './media.ts';
import { modelPath } from './request.ts';

/**
 * Images of the models that paint by `generateContent` (https://ai.google.dev/gemini-api/docs/image-generation): one image per
 * call, made from the prompt and, for an edit, the images before it. Gemini always returns base64.
 */
export function geminiImages(http: HttpClient, reader: GeminiAnswerReader, download: Downloader): ImageMethod {
  return async (call) => {
    const { model, signal, silenceMs, holder } = call;
    const request = readImageRequest(call);
    const body = JSON.stringify(await toRequest(request, new GeminiMedia(call, download)));
    const text = await http.post({ path: modelPath(model, 'generateContent'), body, signal, silenceMs, holder });
    const answer = reader.answer(text ?? '');
    const { data, mimeType } = imageOf(answer);
    const usage = toImageUsage(answer.usageMetadata);
    const shown = { data: [{ b64_json: data }], output_format: mimeType.slice('image/'.length), ...usage };
    return await deliverImages(shown, new ImageDelivery(call, wantedFormat(request.job, call.stream), download));
  };
}

async function toRequest(request: ImageRequest, media: GeminiMedia): Promise<JsonObject> {
  refuseForeignFields(request);
  const { job, prompt, size } = request;
  const imageConfig = size === undefined ? {} : { imageConfig: toImageConfig(size) };
  const images: JsonObject[] = [];
  for (const [index, image] of job.images.entries()) images.push(await toPart(image, media, index));
  return {
    contents: [{ role: 'user', parts: [...images, { text: prompt }] }],
    generationConfig: { responseModalities: ['IMAGE'], ...imageConfig },
  };
}

/** Gemini chooses the file type itself: only the defaults are accepted. */
function refuseForeignFields({ count, format, compression, own }: ImageRequest): void {
  // A creation is never repeated, and one call makes one image.
  if (count !== 1) throw unsupportedField('n', "the model's vendor makes one image at a time");
  if (format !== undefined && format !== 'png') throw unsupportedField('output_format', reason);
  if (compression !== undefined && compression !== 100) throw unsupportedField('output_compression', reason);
  const [name] = Object.keys(own);
  if (name !== undefined) throw unsupportedField(name, reason);
}

const reason = "the model's vendor does not have it";

async function toPart(image: ShownImage, media: GeminiMedia, index: number): Promise<JsonObject> {
  if (image instanceof Upload) return await media.fromUpload(image, 'image');
  return await media.fromImageUrl(image.image_url ?? '', `images[${index}].image_url`);
}

/** Media types that a link to a stored image may open in a browser. */
const imageTypes = new Set(['image/png', 'image/jpeg', 'image/webp']);

/** The image of an answer. Images painted while thinking are drafts. @throws ApiError with the reason if there is none */
function imageOf(answer: JsonObject): { readonly data: string; readonly mimeType: string } {
  const [candidate] = Array.isArray(answer.candidates) ? answer.candidates : [];
  const { parts } = isObject(candidate) && isObject(candidate.content) ? candidate.content : {};
  for (const part of Array.isArray(parts) ? parts : []) {
    if (!isObject(part) || part.thought === true || !isObject(part.inlineData)) continue;
    const { data, mimeType } = part.inlineData;
    if (typeof data !== 'string' || data === '') continue;
    if (typeof mimeType === 'string' && imageTypes.has(mimeType)) return { data, mimeType };
    throw new ApiError('server_error', "The model's vendor answered with an image of an unknown kind.");
  }
  throw noImage(answer, candidate);
}

/** Finish reasons by Google's policies; the others (NO_IMAGE, OTHER, …) are the model's own failures. */
const policies = new Set([
  ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
  ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION'],
]);

function noImage(answer: JsonObject, candidate: unknown): ApiError {
  const isFiltered = isObject(candidate) && policies.has(String(candidate.finishReason));
  if (!isFiltered && !isBlocked(answer)) {
    return new ApiError('server_error', "The model's vendor answered without an image.");
  }
  return new ApiError('invalid_request_error', "The request was rejected by the safety system of the model's vendor.", {
    vendorCode: 'content_policy_violation',
  });
}

/** `usageMetadata` as the usage of OpenAI's images. Left out if it does not count the image, which would then cost nothing. */
function toImageUsage(metadata: unknown): { readonly usage?: JsonObject } {
  if (!isObject(metadata)) return {};
  const count = (value: unknown): number => (typeof value === 'number' ? value : 0);
  const ofModality = (details: unknown, name: string): number =>
    (Array.isArray(details) ? details.filter(isObject) : []).reduce(
      (sum, { modality, tokenCount }) => sum + (modality === name ? count(tokenCount) : 0),
      0,
    );
  const { promptTokensDetails: asked, candidatesTokensDetails: said } = metadata;
  const input = count(metadata.promptTokenCount);
  const thoughts = count(metadata.thoughtsTokenCount);
  // Some answers have it in the total alone.
  const painted = count(metadata.candidatesTokenCount) || count(metadata.totalTokenCount) - input - thoughts;
  if (painted <= 0) return {};
  const output = painted + thoughts;
  const images = ofModality(said, 'IMAGE');
  // If the details are missing, the images are all output except the thoughts.
  const ofImages = images > 0 ? images : painted;
  const outputDetails = { output_tokens_details: { text_tokens: output - ofImages, image_tokens: ofImages } };
  const usage = {
    input_tokens: input,
    output_tokens: output,
    total_tokens: count(metadata.totalTokenCount) || input + output,
    input_tokens_details: { text_tokens: ofModality(asked, 'TEXT'), image_tokens: ofModality(asked, 'IMAGE') },
    ...outputDetails,
  };
  return { usage };
}
