import { askedSearchContext } from '../../shared/money/cost.ts';
import type { Extent } from './parsed-request.ts';

/**
 * The images and documents of a request, counted while it is parsed. Only fields in which the endpoint has images or
 * documents count, so that nothing else in the request passes for one.
 */
export class InputMedia {
  imageInputs = 0;
  imageBytes = 0;
  documents = 0;

  /** @param url a link, a data URL, or nothing if the image is referenced by id */
  addImage(url: unknown): void {
    this.imageInputs++;
    // A character of it is at least one byte of the request.
    if (typeof url === 'string' && imageData.test(url)) this.imageBytes += url.length;
  }

  /** @param data a data URL or base64, or nothing if the document is referenced by a link or an id */
  addDocument(data: unknown): void {
    // A text has at most as many tokens as bytes; other documents (a PDF is compressed) cannot be estimated.
    if (typeof data !== 'string' || !textData.test(data)) this.documents++;
  }

  /** The same as facts for the estimate of a hold. */
  get extent(): MediaExtent {
    const { imageInputs, imageBytes, documents } = this;
    return imageInputs + documents === 0 ? undefined : { imageInputs, imageBytes, documents };
  }
}

/** The facts of images and documents; undefined if there are none. */
export type MediaExtent = Pick<Extent, 'imageInputs' | 'imageBytes' | 'documents'> | undefined;

/** Adds the facts of two parts of a request. */
export function joinedMedia(one: MediaExtent, other: MediaExtent): MediaExtent {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    imageInputs: (one.imageInputs ?? 0) + (other.imageInputs ?? 0),
    imageBytes: (one.imageBytes ?? 0) + (other.imageBytes ?? 0),
    documents: (one.documents ?? 0) + (other.documents ?? 0),
  };
}

const imageData = /^data:image\/[\w.+-]{1,64};base64,/i;
const textData = /^data:text\//i;

/**
 * The extent of a request for text.
 * @param outputTokens the caller's limit for each answer
 * @param choices number of answers
 */
export function extentOf(outputTokens: number | null | undefined, choices?: number | null): Extent {
  return { outputTokens: outputTokens ?? undefined, choices: choices ?? undefined };
}

/**
 * Facts of a text request for prices per request; empty for most.
 * @param requests number of requests that it counts as
 */
export function feeExtent(options: unknown, requests = 1): Pick<Extent, 'fee'> {
  const searchContext = options === undefined ? undefined : askedSearchContext(options);
  if (searchContext === undefined && requests === 1) return {};
  return { fee: { ...(searchContext && { searchContext }), ...(requests !== 1 && { requests }) } };
}

/** Facts of an image request for prices per image. Values that no price can name are omitted. */
export function imageFeeExtent({ size, quality }: { size?: unknown; quality?: unknown }): Pick<Extent, 'fee'> {
  const [imageSize, imageQuality] = [nameOf(size), nameOf(quality)];
  if (imageSize === undefined && imageQuality === undefined) return {};
  return { fee: { ...(imageSize && { imageSize }), ...(imageQuality && { imageQuality }) } };
}

function nameOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\w-]{1,31}$/.test(value) ? value : undefined;
}
