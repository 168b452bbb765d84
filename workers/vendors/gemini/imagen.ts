import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { deliverImages, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { type ImageRequest, readImageRequest } from '../support/image-request.ts';
import { nearestResolution, nearestShape } from '../support/image-shape.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { beginTask, contentRefused } from '../support/vendor-task-calls.ts';
import type { ImageMethod } from '../vendor.ts';
import { modelPath } from './request.ts';

/*
 * Imagen by `predict` (https://ai.google.dev/gemini-api/docs/imagen; names of the parameters as @google/genai 1.30.0 sends
 * them). Google shut Imagen 4 down on 2026-08-17 (https://ai.google.dev/gemini-api/docs/changelog, 2026-06-15), so the
 * catalogue has none of its models: this adapter is for other addresses that still serve them.
 *
 * | OpenAI                    | Imagen                                                                  |
 * |---------------------------|-------------------------------------------------------------------------|
 * | prompt                    | instances[0].prompt                                                     |
 * | n                         | parameters.sampleCount, up to 4                                         |
 * | size                      | parameters.aspectRatio, and sampleImageSize for 2K                      |
 * | output_format             | parameters.outputOptions.mimeType; no webp                              |
 * | output_compression        | parameters.outputOptions.compressionQuality with jpeg; else only 100    |
 * | edits, variations, stream | refused                                                                 |
 * | background, moderation, quality, style, input_fidelity | refused except their defaults              |
 * | user                      | left out                                                                |
 * | any other                 | as it is, in parameters: personGeneration, guidanceScale, safetySetting |
 */

const shapes = ['1:1', '3:4', '4:3', '9:16', '16:9'] as const;
const maxImages = 4;

/** Whether the model is an Imagen model, by its name. */
export function isImagen(model: string): boolean {
  return model.startsWith('imagen-');
}

/** Images by Imagen, all of a request by one call. It always returns base64. */
export function geminiImagen(http: HttpClient, download: Downloader): ImageMethod {
  return async (call) => {
    const { model, signal, silenceMs, holder } = call;
    const request = readImageRequest(call);
    const body = JSON.stringify(toRequest(request));
    const answer = await beginTask(http, { path: modelPath(model, 'predict'), body, signal, silenceMs, holder });
    const data = imagesOf(answer);
    const { format = 'png' } = request;
    const delivery = new ImageDelivery(call, wantedFormat(request.job, false), download);
    return await deliverImages({ data, output_format: format }, delivery);
  };
}

function toRequest({ job, prompt, count, size, format, compression, own }: ImageRequest): JsonObject {
  if (job.images.length > 0) throw unsupportedField('image', 'the model takes no images');
  if (count > maxImages) throw unsupportedField('n', `the model makes up to ${maxImages} images per request`);
  if (own.sampleCount !== undefined) throw unsupportedField('sampleCount', "the number of images is 'n'");
  if (format === 'webp') throw unsupportedField('output_format', 'the model has png and jpeg');
  const isJpeg = format === 'jpeg';
  if (compression !== undefined && compression !== 100 && !isJpeg) {
    throw unsupportedField('output_compression', 'the model has it for jpeg alone');
  }
  const output = {
    ...(format !== undefined && { mimeType: `image/${format}` }),
    ...(isJpeg && compression !== undefined && { compressionQuality: compression }),
  };
  const resolution = size === undefined ? '1K' : nearestResolution(size, '2K');
  return {
    instances: [{ prompt }],
    parameters: {
      ...own,
      sampleCount: count,
      // Otherwise a filtered image leaves no trace.
      includeRaiReason: true,
      ...(size !== undefined && { aspectRatio: nearestShape(size, shapes) }),
      ...(resolution !== '1K' && { sampleImageSize: resolution }),
      ...(Object.keys(output).length > 0 && { outputOptions: output }),
    },
  };
}

/** The images; filtered ones are left out. @throws ApiError if there are none at all */
function imagesOf({ predictions }: JsonObject): JsonObject[] {
  const list = Array.isArray(predictions) ? predictions.filter(isObject) : [];
  const made = list.filter(({ bytesBase64Encoded: data }) => typeof data === 'string' && data !== '');
  if (made.length > 0) return made.map(({ bytesBase64Encoded }) => ({ b64_json: bytesBase64Encoded }));
  const reason = list.map(({ raiFilteredReason }) => raiFilteredReason).find((said) => typeof said === 'string');
  if (reason !== undefined) throw contentRefused(reason.slice(0, 4000));
  throw new ApiError('server_error', "The model's vendor answered without images.");
}
