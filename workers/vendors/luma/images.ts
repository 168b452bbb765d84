import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { deliverLinks, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { type ImageRequest, readImageRequest, refuseCompression, refuseSeveral } from '../support/image-request.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { awaitTask } from '../support/vendor-task-calls.ts';
import type { ImageMethod } from '../vendor.ts';
import { createGeneration, generationRequest, lumaRatio, readAssets } from './generation.ts';

/*
 * Images at Luma (https://docs.lumalabs.ai/docs/image-generation, read 2026-11-21): a generation that is awaited.
 *
 * | OpenAI                    | Luma                                                                  |
 * |---------------------------|-----------------------------------------------------------------------|
 * | prompt                    | prompt                                                                |
 * | size                      | aspect_ratio; `auto`: left out                                        |
 * | output_format             | format, `jpg` for `jpeg`; `webp` is refused                           |
 * | n, output_compression     | refused except 1 and 100                                              |
 * | image, mask, stream, variations | refused: the vendor takes only links to pictures                |
 * | background, moderation, quality, style, input_fidelity | refused except their defaults            |
 * | user                      | left out                                                              |
 * | any other                 | as it is: image_ref, style_ref, character_ref, modify_image_ref       |
 */

const formats = new Map([
  ['png', 'png'],
  ['jpeg', 'jpg'],
]);

/** Images by Luma's generations. */
export function lumaImages(http: HttpClient, download: Downloader): ImageMethod {
  return async (call) => {
    const request = readImageRequest(call);
    const id = await createGeneration(http, 'image', composeFields(call.model, request), call);
    const { image } = await awaitTask(call, {
      ask: () => http.get(generationRequest(id, call)),
      read: readAssets,
      discard: (limits) => http.delete(generationRequest(id, limits)),
    });
    const delivery = new ImageDelivery(call, wantedFormat(request.job, false), download);
    return await deliverLinks(typeof image === 'string' ? [image] : [], delivery, request.format);
  };
}

function composeFields(model: string, request: ImageRequest): JsonObject {
  const { job, prompt, size, format, own } = request;
  refuseSeveral(request);
  if (job.images.length > 0) throw unsupportedField('image', "the model's vendor takes links to pictures only");
  refuseCompression(request);
  const named = format === undefined ? undefined : formats.get(format);
  if (format !== undefined && named === undefined)
    throw unsupportedField('output_format', "it must be 'png' or 'jpeg'");
  return {
    ...own,
    model,
    prompt,
    ...(size && { aspect_ratio: lumaRatio(size) }),
    ...(named && { format: named }),
  };
}
