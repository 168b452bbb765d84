import type { VideoJob, VideoVariant } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import { createDownloader, type Downloader, FileTooLongError } from '../../http/download.ts';
import { requestText } from '../request-body.ts';
import type { StoredFile, TaskCall, TaskState, VendorCall } from '../vendor.ts';
import { aspectRatio, type ImageSize, readSize, toDataUrl } from './image-request.ts';
import type { JsonObject } from './json-object.ts';
import { refuseNoFilm, withHead } from './refuse-text.ts';
import { refuseDelivery, unsupportedField } from './unsupported-field.ts';

/** Maximum size of a stored film, in bytes. */
const maxFilm = 512 * 1024 * 1024;

/** A video job for vendors that do not speak OpenAI's dialect. */
export interface VideoRequest {
  readonly prompt: string;
  /** Undefined, like the two below: the model's default. */
  readonly size: ImageSize | undefined;
  /** `16:9` */
  readonly aspectRatio: string | undefined;
  /** Lines of the picture, its shorter side: `720p`. */
  readonly resolution: string | undefined;
  /** A whole number of seconds. */
  readonly seconds: string | undefined;
  /** The picture that the video starts with, a link or a base64 data URL. */
  readonly input: string | undefined;
  /** The vendor's own fields, passed unchanged. */
  readonly own: JsonObject;
}

/**
 * Reads a video job. `user`, a hint, is left out.
 * @throws ApiError 400 for a remix, which these vendors do not support, and for a result sent elsewhere.
 */
export async function readVideoRequest({ request, uploads, files }: VendorCall): Promise<VideoRequest> {
  const { prompt, size, seconds, input, remixed, parameters } = JSON.parse(requestText(request)) as VideoJob;
  if (remixed !== null) throw unsupportedField('video_id', "the model's vendor does not remix videos");
  const { user: _, ...own } = parameters;
  refuseDelivery(own);
  const shape = readSize(size);
  const [upload] = uploads;
  return {
    prompt,
    size: shape,
    aspectRatio: shape && aspectRatio(shape),
    resolution: shape && `${Math.min(shape.width, shape.height)}p`,
    seconds,
    input: upload === undefined ? input?.image_url : await toDataUrl(upload, files),
    own,
  };
}

/** A downloader for the films of one vendor. @param headers sent to the vendor's own origin only */
export function createFilmDownloader(
  baseUrl: string,
  maxBytes = maxFilm,
  headers: Readonly<Record<string, string>> = {},
): Downloader {
  return createDownloader({
    trustedOrigin: new URL(baseUrl).origin,
    trustedHeaders: headers,
    longest: maxBytes,
    toError: (cause) =>
      cause instanceof FileTooLongError
        ? new ApiError('request_too_large', `The video has more than ${maxBytes} bytes.`, { cause })
        : new ApiError('server_error', "A file of the model's vendor could not be fetched.", { cause }),
  });
}

/** Stores the film that a vendor names by a link. There is no other variant of it. */
export async function fetchFilm(
  call: TaskCall,
  variant: VideoVariant,
  download: Downloader,
  findLink: () => Promise<unknown>,
): Promise<StoredFile | undefined> {
  if (variant !== 'video') return undefined;
  const link = await findLink();
  if (typeof link !== 'string') throw withoutVideo();
  const { content, type = '' } = await download(link, call);
  try {
    const { head, whole } = await withHead(content);
    if (head.length === 0) throw withoutVideo();
    refuseNoFilm(type, head);
    return await call.files.save(whole, type === 'video/webm' ? type : 'video/mp4');
  } catch (error) {
    content.destroy();
    throw error;
  }
}

/** The state of a task that has finished, from the link to its film. */
export function madeVideo(link: unknown): TaskState {
  return typeof link === 'string' ? { status: 'completed' } : { status: 'failed', error: withoutVideo() };
}

/**
 * The error of a task that failed through no fault of its request. Vendors' messages about it may contain anything, so the caller
 * gets a code at most.
 */
export function failedVideo(code?: unknown): ApiError {
  const vendorCode = typeof code === 'string' && /^[\w.:-]{1,100}$/.test(code) ? code : null;
  return new ApiError('server_error', "The model's vendor could not make the video.", { vendorCode });
}

function withoutVideo(): ApiError {
  return new ApiError('server_error', "The model's vendor answered without a video.");
}
