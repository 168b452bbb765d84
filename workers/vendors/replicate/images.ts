import type { Downloader } from '../../http/download.ts';
import { deliverLinks, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { type ImageRequest, inputImages, readImageRequest } from '../support/image-request.ts';
import { commonShape } from '../support/image-shape.ts';
import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { afterBegin, awaitTask, type DiscardLimits } from '../support/vendor-task-calls.ts';
import type { ImageMethod, VendorCall } from '../vendor.ts';
import { cancelPrediction, createPrediction, getPrediction, type ReplicateApi, readOutput } from './prediction.ts';

/*
 * Images at Replicate (https://replicate.com/docs/reference/http and the models' own schemas, such as
 * https://replicate.com/black-forest-labs/flux-schnell/api/schema, read 2026-11-21).
 *
 * | OpenAI                    | Replicate (`input`)                                                          |
 * |---------------------------|------------------------------------------------------------------------------|
 * | prompt                    | prompt                                                                       |
 * | n                         | num_outputs with the models that have it; else refused except 1              |
 * | size                      | aspect_ratio; width and height with Stable Diffusion                         |
 * | output_format             | output_format, `jpg` for `jpeg`                                              |
 * | output_compression        | output_quality                                                               |
 * | image, images             | image; by model input_image, input_images or image_input                     |
 * | mask, stream, variations  | refused                                                                      |
 * | background, moderation, quality, style, input_fidelity | refused except their defaults                   |
 * | user                      | left out                                                                     |
 * | any other                 | as it is: seed, go_fast, guidance, disable_safety_checker                    |
 */

/** Models that make several images of one prompt. */
const manyOutputs = /flux-(schnell|dev)|sdxl|stable-diffusion|playground-v2/;
/** Models whose size is a number of pixels. */
const pixelSizes = /sdxl|\/stable-diffusion$|playground-v2/;
/** The models' fields for images to edit, and whether the field is a list. */
const inputFields: readonly { model: RegExp; field: string; isList: boolean }[] = [
  { model: /kontext/, field: 'input_image', isList: false },
  { model: /flux-[23]/, field: 'input_images', isList: true },
  { model: /nano-banana|seedream/, field: 'image_input', isList: true },
  { model: /./, field: 'image', isList: false },
];

/**
 * Images at Replicate: a prediction per call, awaited inside it.
 * @param waiting its client is the one for which the vendor delays its answer briefly, in case the image is ready soon
 */
export function replicateImages(waiting: ReplicateApi, api: ReplicateApi, download: Downloader): ImageMethod {
  const { http, secret } = api;
  return async (call) => {
    const request = readImageRequest(call);
    const { id, output } = await createPrediction(waiting, call.model, await composeInput(call, request), call);
    return await afterBegin(async () => {
      const polls = {
        ask: () => getPrediction(http, id, call),
        read: (answer: JsonObject) => readOutput(answer, secret),
        discard: (limits: DiscardLimits) => cancelPrediction(http, id, limits),
      };
      const made = output ?? (await awaitTask(call, polls));
      const delivery = new ImageDelivery(call, wantedFormat(request.job, false), download);
      return await deliverLinks(Array.isArray(made) ? made : [made], delivery, request.format);
    });
  };
}

async function composeInput({ model, files }: VendorCall, request: ImageRequest): Promise<JsonObject> {
  const { prompt, count, size, format, compression, own } = request;
  if (count > 1 && !manyOutputs.test(model)) throw unsupportedField('n', 'the model makes one image per request');
  return {
    ...own,
    prompt,
    ...(count > 1 && { num_outputs: count }),
    ...(size && (pixelSizes.test(model) ? size : { aspect_ratio: commonShape(size) })),
    ...(format && { output_format: format === 'jpeg' ? 'jpg' : format }),
    ...(compression !== undefined && { output_quality: compression }),
    ...(await composeImages(model, request, files)),
  };
}

async function composeImages(model: string, { job }: ImageRequest, files: VendorCall['files']): Promise<JsonObject> {
  const { field, isList } = inputFields.find((row) => row.model.test(model)) as (typeof inputFields)[number];
  if (job.images.length === 0) return {};
  if (job.images.length > 1 && !isList) throw unsupportedField('image', 'the model takes one image');
  const images = await inputImages(job, files);
  return { [field]: isList ? images : images[0] };
}
