import type { Readable } from 'node:stream';
import {
  formatImageEnd,
  type ImageResponseFormat,
  type ImageResult,
  type ImageTask,
  type PlacedImageJob,
  type UploadedImage,
} from '../../shared/capabilities/image.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Downloader } from '../download.ts';
import { type FormFile, formFields, formUpload } from '../form-upload.ts';
import type { HttpClient, HttpUpload } from '../http.ts';
import { isObject, type JsonObject } from './json-object.ts';
import type { OpenAiAnswerReader } from './openai-answer-reader.ts';
import { OpenAiImageStream } from './openai-image-stream.ts';
import type { CallFiles, VendorAnswer, VendorCall, VendorMethod } from './vendor.ts';

const paths: Record<ImageTask, string> = {
  generation: '/images/generations',
  edit: '/images/edits',
  variation: '/images/variations',
};

/**
 * Images (https://platform.openai.com/docs/api-reference/images): one creation per call. What the vendor answers, links or
 * base64, becomes what the caller asked for; a link of the vendor's never reaches the caller.
 */
export function openAiImages(http: HttpClient, answerReader: OpenAiAnswerReader, download: Downloader): VendorMethod {
  return async (call, sink) => {
    const { path, body, wanted, count } = await composePost(call);
    const { signal, silenceMs } = call;
    const delivery = new ImageDelivery(call, wanted, download);
    const stream = new OpenAiImageStream(answerReader, sink, count);
    try {
      const onChunk = call.stream ? { onChunk: (bytes: Buffer) => stream.read(bytes) } : {};
      const text = await http.post({ path, body, signal, silenceMs, ...onChunk });
      const answer = text === null ? stream.end() : readAnswer(answerReader, text);
      return await deliver(answer, delivery);
    } catch (error) {
      throw stream.failure(error);
    } finally {
      if (typeof body !== 'string') body.content.destroy();
    }
  };
}

/** What is left of a request once it is ready to be sent: the images that its JSON may hold are in `body` alone. */
interface ImagePost {
  readonly path: string;
  readonly body: string | HttpUpload;
  readonly wanted: ImageResponseFormat;
  /** Images asked for. */
  readonly count: number;
}

async function composePost(call: VendorCall): Promise<ImagePost> {
  const job = JSON.parse(call.request) as PlacedImageJob;
  return {
    path: paths[job.task],
    body: await composeBody(call, job),
    wanted: wantedFormat(job, call.stream),
    count: Number(job.parameters.n ?? 1),
  };
}

/** What the caller gets: as asked for, else what OpenAI gives for the model, which in a stream is always base64. */
function wantedFormat(job: PlacedImageJob, isStream: boolean): ImageResponseFormat {
  return job.response_format ?? (job.takes_response_format && !isStream ? 'url' : 'b64_json');
}

/** A form where there are uploads, else JSON. */
async function composeBody(call: VendorCall, job: PlacedImageJob): Promise<string | HttpUpload> {
  const fields: JsonObject = { model: call.model, ...job.parameters };
  if (call.stream) fields.stream = true;
  // A stream is base64 anyhow. Links are asked for where they are wanted: then no image is ever whole in memory.
  else if (job.takes_response_format) fields.response_format = wantedFormat(job, false);
  if (!isUploads(job.images)) {
    const inputs = job.images.length === 0 ? {} : { images: job.images, ...(job.mask && { mask: job.mask }) };
    return JSON.stringify({ ...fields, ...inputs });
  }
  const named = job.images.map((image) => [job.images.length > 1 ? 'image[]' : 'image', image] as const);
  const uploads = job.mask === null ? named : [...named, ['mask', job.mask as UploadedImage] as const];
  return formUpload([...formFields(fields), ...(await openUploads(uploads, call.files))]);
}

function isUploads(images: PlacedImageJob['images']): images is readonly UploadedImage[] {
  return images[0] !== undefined && 'file' in images[0];
}

async function openUploads(
  uploads: readonly (readonly [field: string, image: UploadedImage])[],
  files: CallFiles,
): Promise<(readonly [field: string, file: FormFile])[]> {
  const opened: (readonly [field: string, file: FormFile])[] = [];
  try {
    for (const [field, { file, name, type }] of uploads) {
      opened.push([field, { name, type, ...(await files.open(file)) }]);
    }
    return opened;
  } catch (error) {
    for (const [, { content }] of opened) content.destroy();
    throw error;
  }
}

/** A held answer, its images checked. */
function readAnswer(answerReader: OpenAiAnswerReader, text: string): JsonObject & { data: JsonObject[] } {
  const answer = answerReader.answer(text);
  const { data } = answer;
  if (!Array.isArray(data) || data.length === 0 || !data.every(isObject)) {
    throw new ApiError('server_error', "The model's vendor answered without images.");
  }
  return Object.assign(answer, { data });
}

/** Turns every image of an answer into what the caller wants, and the answer into the end of the job. */
async function deliver(
  { created, data, ...rest }: JsonObject & { data: JsonObject[] },
  delivery: ImageDelivery,
): Promise<VendorAnswer> {
  const results: ImageResult[] = [];
  // One after the other: at most one image is in memory beside the answer itself.
  for (const image of data) results.push(await delivery.deliver(image, rest.output_format));
  const usage = isObject(rest.usage) ? rest.usage : null;
  const at = typeof created === 'number' ? created : Math.floor(Date.now() / 1000);
  const counted = usage === null ? {} : { usage };
  // The gateway's own fields come first: what else a vendor says cannot pass for the mark of `formatImageEnd`.
  return { body: formatImageEnd({ created: at, data: results, ...rest, ...counted }), usage };
}

/** How the images of one call reach their caller. */
class ImageDelivery {
  private readonly call: VendorCall;
  private readonly wanted: ImageResponseFormat;
  private readonly download: Downloader;

  constructor(call: VendorCall, wanted: ImageResponseFormat, download: Downloader) {
    this.call = call;
    this.wanted = wanted;
    this.download = download;
  }

  /** One image of the vendor's as a result. @param format the answer's `output_format`, if it has one */
  async deliver({ url, b64_json: base64, file: _, ...rest }: JsonObject, format: unknown): Promise<ImageResult> {
    if (typeof base64 === 'string' && base64 !== '') return { ...rest, ...(await this.fromBase64(base64)) };
    if (typeof url === 'string' && url !== '') return { ...rest, ...(await this.fromLink(url, format)) };
    throw new ApiError('server_error', "The model's vendor answered with an image that is empty.");
  }

  private async fromBase64(base64: string): Promise<ImageResult> {
    if (this.wanted === 'b64_json') return { b64_json: base64 };
    const bytes = Buffer.from(base64, 'base64');
    const stored = await this.call.files.save(bytes, typeOfBytes(bytes));
    // The completed event of a stream always holds base64: clients rely on it.
    return { ...(this.call.stream && { b64_json: base64 }), ...stored };
  }

  private async fromLink(url: string, format: unknown): Promise<ImageResult> {
    const { content, type } = await this.download(url, this.call);
    if (this.wanted === 'b64_json') return { b64_json: await toBase64(content) };
    return { ...(await this.call.files.save(content, imageType(type, format))) };
  }
}

async function toBase64(content: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString('base64');
}

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);

/** What a fetched image is: never anything but an image, because its link opens in browsers. */
function imageType(said: string | undefined, format: unknown): string {
  if (said !== undefined && imageTypes.has(said)) return said;
  const named = `image/${String(format)}`;
  return imageTypes.has(named) ? named : 'image/png';
}

/** What an image is, by its first bytes. @throws ApiError for what is none that vendors make. */
function typeOfBytes(bytes: Buffer): string {
  const head = bytes.toString('latin1', 0, 12);
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^RIFF.{4}WEBP/s.test(head)) return 'image/webp';
  if (head.startsWith('GIF8')) return 'image/gif';
  throw new ApiError('server_error', "The model's vendor answered with an image of an unknown kind.");
}
