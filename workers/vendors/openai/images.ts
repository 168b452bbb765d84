import { Upload } from '../../../shared/blobs/upload.ts';
import type { ImageResponseFormat, ImageTask, PlacedImageJob } from '../../../shared/capabilities/image.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Downloader } from '../../http/download.ts';
import { maxBody } from '../../http/exchange.ts';
import { type FormFile, formFields, formUpload } from '../../http/form-upload.ts';
import type { HttpClient, HttpUpload } from '../../http/http-client.ts';
import { deliverImages, ImageDelivery, wantedFormat } from '../support/image-delivery.ts';
import { readImageJob } from '../support/image-request.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { CallFiles, ImageMethod, VendorCall } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { isBase64 } from './base64-text.ts';
import { OpenAiImageStream } from './image-stream.ts';
import { quote, takeValues } from './take-values.ts';

const paths: Record<ImageTask, string> = {
  generation: '/images/generations',
  edit: '/images/edits',
  variation: '/images/variations',
};

/**
 * Images (https://platform.openai.com/docs/api-reference/images): one creation per call. The vendor's links or base64 are
 * converted to the format that the caller requested; a link of the vendor never reaches the caller.
 */
export function openAiImages(http: HttpClient, answerReader: OpenAiAnswerReader, download: Downloader): ImageMethod {
  return async (call, sink) => {
    const { path, body, wanted, count } = await composePost(call);
    const { signal, silenceMs, holder } = call;
    const delivery = new ImageDelivery(call, wanted, download);
    const stream = new OpenAiImageStream(answerReader, sink, count);
    try {
      const request = { path, body, signal, silenceMs, holder };
      if (!call.stream) {
        const bytes = await http.postForBytes(request);
        return { ...(await deliverImages(readAnswer(answerReader, bytes), delivery)), memory: bytes };
      }
      const post = http.post({ ...request, onChunk: (bytes) => stream.read(bytes) });
      const text = await post.catch((error) => stream.keepMade(error, signal));
      const answer = text === null ? stream.end() : readAnswer(answerReader, Buffer.from(text));
      return await deliverImages(answer, delivery);
    } catch (error) {
      throw stream.failure(error);
    } finally {
      if (typeof body !== 'string') body.content.destroy();
    }
  };
}

/** The parts of a request that sending needs: images in its JSON are in `body` alone. */
interface ImagePost {
  readonly path: string;
  readonly body: string | HttpUpload;
  readonly wanted: ImageResponseFormat;
  /** Number of requested images. */
  readonly count: number;
}

async function composePost(call: VendorCall): Promise<ImagePost> {
  const job = readImageJob(call);
  refuseOversized(job, call.stream);
  return {
    path: paths[job.task],
    body: await composeBody(call, job),
    wanted: wantedFormat(job, call.stream),
    count: Number(job.parameters.n ?? 1),
  };
}

/** Characters of base64 for one pixel of 24 bits that a PNG cannot compress. */
const charactersPerPixel = 4;

/**
 * Refuses images that may be too large together for one answer, before the vendor makes and bills them. Links are no part of the
 * answer's size; JPEG and WebP are a fraction of a PNG.
 * @throws ApiError 400
 */
function refuseOversized(job: PlacedImageJob, isStream: boolean): void {
  const { n, size, output_format: format } = job.parameters;
  const [, width = 0, height = 0] = /^(\d{1,5})x(\d{1,5})$/.exec(String(size)) ?? [];
  const [count, pixels] = [Number(n ?? 1), Number(width) * Number(height)];
  const areLinks = job.takes_response_format && wantedFormat(job, isStream) === 'url';
  if (areLinks || count === 1 || format === 'jpeg' || format === 'webp') return;
  if (count * pixels * charactersPerPixel <= maxBody) return;
  const fitting = Math.max(1, Math.floor(maxBody / (pixels * charactersPerPixel)));
  const message = `Invalid 'n': PNG images of ${size} may be too large for one answer. Request at most ${fitting}, or 'output_format' jpeg or webp.`;
  throw new ApiError('invalid_request_error', message, { param: 'n' });
}

/** A form if there are uploads, else JSON. */
async function composeBody(call: VendorCall, job: PlacedImageJob): Promise<string | HttpUpload> {
  const fields: JsonObject = { model: call.model, ...job.parameters };
  if (call.stream) fields.stream = true;
  // A stream is base64 anyway. Links are requested if they are wanted: then no image is ever entirely in memory.
  else if (job.takes_response_format) fields.response_format = wantedFormat(job, false);
  if (!(job.images[0] instanceof Upload)) {
    const inputs = job.images.length === 0 ? {} : { images: job.images, ...(job.mask && { mask: job.mask }) };
    return JSON.stringify({ ...fields, ...inputs });
  }
  const { images, mask } = job;
  const named = images.map((image) => [images.length > 1 ? 'image[]' : 'image', image as Upload] as const);
  const uploads = mask instanceof Upload ? [...named, ['mask', mask] as const] : named;
  return formUpload([...formFields(fields), ...(await openUploads(uploads, call.files))]);
}

async function openUploads(
  uploads: readonly (readonly [field: string, image: Upload])[],
  files: CallFiles,
): Promise<(readonly [field: string, file: FormFile])[]> {
  const opened: (readonly [field: string, file: FormFile])[] = [];
  try {
    for (const [field, upload] of uploads) {
      const { name, type } = upload;
      opened.push([field, { name, type, ...(await files.open(upload)) }]);
    }
    return opened;
  } catch (error) {
    for (const [, { content }] of opened) content.destroy();
    throw error;
  }
}

/** An answer without streaming, its images checked. Their base64, megabytes of it, is passed on as it came, and never parsed. */
function readAnswer(answerReader: OpenAiAnswerReader, bytes: Buffer): JsonObject & { data: JsonObject[] } {
  const { found, rest } = takeValues(bytes, 'b64_json', readBase64);
  const answer = answerReader.answer(rest);
  const data = Array.isArray(answer.data) ? answer.data.filter(isObject) : [];
  if (data.length === 0) throw new ApiError('server_error', "The model's vendor answered without images.");
  for (const image of data) if (typeof image.b64_json === 'number') image.b64_json = found[image.b64_json];
  return Object.assign(answer, { data });
}

/** The base64 of a string, without its quotes; undefined for anything else, such as a data URL. */
function readBase64(value: Buffer): Buffer | undefined {
  const inside = value.subarray(1, -1);
  return value[0] === quote && isBase64(inside) ? inside : undefined;
}
