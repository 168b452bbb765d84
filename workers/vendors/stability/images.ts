import { Readable } from 'node:stream';
import { Upload } from '../../../shared/blobs/upload.ts';
import type { ShownImage } from '../../../shared/capabilities/image.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import { type FormFile, type FormPart, formFields, formUpload } from '../../http/form-upload.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { deliverImages, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { type ImageRequest, readImageRequest } from '../support/image-request.ts';
import { type InlineFile, InlineMedia } from '../support/inline-media.ts';
import type { JsonObject } from '../support/json-object.ts';
import { toBlackAndWhite } from '../support/png-mask.ts';
import { beginTask, contentRefused } from '../support/vendor-task-calls.ts';
import type { ImageMethod, JobAnswer, VendorCall } from '../vendor.ts';
import { composeStabilityFields, type StabilityService, stabilityService } from './service.ts';

/** Images by Stability AI: a form per call, answered once the image is made. For the translation of OpenAI's fields see service.ts. */
export function stabilityImages(http: HttpClient, download: Downloader): ImageMethod {
  return async (call) => {
    const request = readImageRequest(call, { masks: true });
    const service = stabilityService(call.model);
    const fields = composeStabilityFields(service, request);
    const files = await openFiles(service, request, call, new InlineMedia(call, download));
    const body = formUpload([...formFields(fields), ...files]);
    const { signal, silenceMs, holder } = call;
    try {
      const answer = await beginTask(http, { path: service.path, body, signal, silenceMs, holder });
      return await deliver(answer, request, new ImageDelivery(call, wantedFormat(request.job, false), download));
    } finally {
      body.content.destroy();
    }
  };
}

/** The image to be edited, and its mask, which is read before the image is opened because it may be refused. */
async function openFiles(
  { takesMask }: StabilityService,
  { job: { images, mask } }: ImageRequest,
  call: VendorCall,
  media: InlineMedia,
): Promise<FormPart[]> {
  const [image] = images;
  if (image === undefined) return [];
  const parts: FormPart[] = [];
  if (mask !== null && takesMask) {
    const { data } = await readImage(mask, media, 'mask');
    const converted = await toBlackAndWhite(Buffer.from(data, 'base64'));
    parts.push(['mask', formFile('mask.png', 'image/png', converted)]);
  }
  if (image instanceof Upload) {
    const { name, type } = image;
    return [...parts, ['image', { name, type, ...(await call.files.open(image)) }]];
  }
  const { type, data } = await readImage(image, media, 'images[0]');
  return [...parts, ['image', formFile('image', type, Buffer.from(data, 'base64'))]];
}

function readImage(image: ShownImage, media: InlineMedia, param: string): Promise<InlineFile> {
  if (image instanceof Upload) return media.fromUpload(image, param);
  return media.fromImageUrl(image.image_url ?? '', `${param}.image_url`);
}

function formFile(name: string, type: string, bytes: Buffer): FormFile {
  return { name, type, content: Readable.from([bytes]), bytes: bytes.length };
}

/** `{image, finish_reason, seed}`. */
async function deliver(
  { image, finish_reason: reason, seed }: JsonObject,
  { format = 'png' }: ImageRequest,
  delivery: ImageDelivery,
): Promise<JobAnswer> {
  // The vendor blurs filtered images.
  if (reason === 'CONTENT_FILTERED') throw contentRefused();
  if (typeof image !== 'string') throw new ApiError('server_error', "The model's vendor answered without images.");
  const made = { b64_json: image, ...(typeof seed === 'number' && { seed }) };
  return await deliverImages({ data: [made], output_format: format }, delivery);
}
