import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { aspectRatio, type ImageSize } from '../support/image-request.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { beginTask, contentRefused, readTaskName } from '../support/vendor-task-calls.ts';
import type { VendorCall } from '../vendor.ts';

type Limits = Pick<VendorCall, 'signal' | 'silenceMs' | 'holder'>;

/** Aspect ratios of videos and images alike. */
const ratios = ['1:1', '16:9', '9:16', '4:3', '3:4', '21:9', '9:21'];

/** Reasons of failures by the vendor's rules (https://docs.lumalabs.ai/docs/errors). */
const refusals = /moderation failed|blacklisted/i;
const unreadableInput = /failed to read user input/i;

/** Creates a generation, once. @returns its name @throws ApiError as `beginTask` does */
export async function createGeneration(
  http: HttpClient,
  kind: 'image' | 'video',
  fields: JsonObject,
  { signal, silenceMs }: Limits,
): Promise<string> {
  const path = `/generations/${kind}`;
  return readTaskName((await beginTask(http, { path, body: JSON.stringify(fields), signal, silenceMs })).id);
}

/** The request about a generation: GET polls it, DELETE removes it. */
export function generationRequest(id: string, { signal, silenceMs, holder }: Limits) {
  const path = `/generations/${encodeURIComponent(id)}`;
  return { path, notFound: "The model's vendor does not know the generation.", signal, silenceMs, holder };
}

/** The files of a generation, `{video}` or `{image}`; undefined while it runs. @throws ApiError for one that failed */
export function readAssets(generation: JsonObject): JsonObject | undefined {
  const { state, assets } = generation;
  switch (state) {
    case 'queued':
    case 'dreaming':
      return undefined;
    case 'completed':
      return isObject(assets) ? assets : {};
    case 'failed':
      throw generationError(generation);
    default:
      throw new ApiError('server_error', "The model's vendor answered with a generation of an unknown state.");
  }
}

/** Why a generation failed. Reasons are sentences: the caller is not shown the vendor's internal ones. */
export function generationError({ failure_reason: reason }: JsonObject): ApiError {
  const text = typeof reason === 'string' ? reason : '';
  if (refusals.test(text)) return contentRefused();
  if (!unreadableInput.test(text)) return new ApiError('server_error', "The model's vendor could not do it.");
  const message = "The model's vendor cannot reach the picture: the link must lead to it directly.";
  return new ApiError('invalid_request_error', message, { param: 'input_reference' });
}

/** A size as one of Luma's aspect ratios. @throws ApiError 400 for another */
export function lumaRatio(size: ImageSize): string {
  const ratio = aspectRatio(size);
  // 21:9 in its smallest numbers.
  const named = ratio.replace(/^7:3$/, '21:9').replace(/^3:7$/, '9:21');
  if (ratios.includes(named)) return named;
  throw unsupportedField('size', `its shape must be one of ${ratios.join(', ')}`);
}
