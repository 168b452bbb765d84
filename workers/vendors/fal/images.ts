import { choosesFormat } from '../../../shared/vendors/fal.ts';
import type { Downloader } from '../../http/download.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { deliverLinks, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { type ImageRequest, inputImages, readImageRequest, refuseCompression } from '../support/image-request.ts';
import { commonShape } from '../support/image-shape.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { afterBegin, awaitTask, contentRefused } from '../support/vendor-task-calls.ts';
import type { ImageMethod, VendorCall } from '../vendor.ts';
import { FalQueue, isCompleted } from './queue.ts';

/*
 * Images at fal (https://docs.fal.ai/model-apis/model-endpoints/queue and
 * https://docs.fal.ai/documentation/model-apis/model-arguments, read 2026-11-21).
 *
 * | OpenAI                    | fal                                                                              |
 * |---------------------------|----------------------------------------------------------------------------------|
 * | prompt                    | prompt                                                                           |
 * | n                         | num_images                                                                       |
 * | size                      | image_size {width, height}; aspect_ratio with models that have no sizes          |
 * | output_format             | output_format; refused except `png` by models that choose it themselves          |
 * | image, images             | image_url; image_urls with models that take several (links or data URLs)         |
 * | output_compression        | refused except 100                                                               |
 * | mask, stream, variations  | refused                                                                          |
 * | background, moderation, quality, style, input_fidelity | refused except their defaults                       |
 * | user                      | left out                                                                         |
 * | any other                 | as it is: seed, guidance_scale, num_inference_steps, enable_safety_checker       |
 */

/** Models that take an aspect ratio instead of a size. */
const shapeOnly = /imagen|nano-banana|gemini|ultra|kontext|luma-photon/;
/** Models that take a list of images to edit. */
const manyInputs = /nano-banana|gemini|flux-2|flux-3|multi|seedream\/v[4-9]|qwen-image-edit-(plus|2)/;

/** Images by fal's queue: a request per call, awaited inside it. */
export function falImages(http: HttpClient, download: Downloader): ImageMethod {
  const queue = new FalQueue(http);
  return async (call) => {
    const request = readImageRequest(call);
    const name = await queue.submit(call.model, await composeInput(call, request), call);
    return await afterBegin(async () => {
      await awaitTask(call, {
        ask: () => queue.status(name, call),
        read: (state) => isCompleted(state) || undefined,
        discard: (limits) => queue.cancel(name, limits),
      });
      const links = readImages(await queue.result(name, call));
      const delivery = new ImageDelivery(call, wantedFormat(request.job, false), download);
      const format = choosesFormat.test(call.model) ? undefined : request.format;
      return await deliverLinks(links, delivery, format);
    });
  };
}

async function composeInput({ model, files }: VendorCall, request: ImageRequest): Promise<JsonObject> {
  const { job, prompt, count, size, format, own } = request;
  refuseCompression(request);
  const isFormatFree = !choosesFormat.test(model);
  if (!isFormatFree && format !== undefined && format !== 'png') {
    throw unsupportedField('output_format', 'the model chooses it itself');
  }
  const isMany = manyInputs.test(model);
  if (job.images.length > 1 && !isMany) throw unsupportedField('image', 'the model takes one image');
  const images = await inputImages(job, files);
  return {
    ...own,
    prompt,
    ...(count > 1 && { num_images: count }),
    ...(size && (shapeOnly.test(model) ? { aspect_ratio: commonShape(size) } : { image_size: size })),
    ...(format && isFormatFree && { output_format: format }),
    ...(images.length > 0 && (isMany ? { image_urls: images } : { image_url: images[0] })),
  };
}

/** The links of a result: `images`, or `image` of models that make one. */
function readImages({ images, image, has_nsfw_concepts: flagged }: JsonObject): unknown[] {
  // The safety checker blackens images that it flags.
  if (Array.isArray(flagged) && flagged.length > 0 && flagged.every((flag) => flag === true)) throw contentRefused();
  const list: unknown[] = Array.isArray(images) ? images : [image];
  return list.filter(isObject).map(({ url }) => url);
}
