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
