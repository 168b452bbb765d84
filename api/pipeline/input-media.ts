import type { Extent } from './parsed-request.ts';

/**
 * The images and documents that a request shows its model, counted where it is taken apart: each stands at a place where its
 * endpoint has images or documents, so that nothing else in the request can pass for one.
 */
export class InputMedia {
  imageInputs = 0;
  imageBytes = 0;
  documents = 0;

  /** @param url a link, a data URL, or nothing where the image is named by an id */
  addImage(url: unknown): void {
    this.imageInputs++;
    // A character of it is at least one byte of the request.
    if (typeof url === 'string' && imageData.test(url)) this.imageBytes += url.length;
  }

  /** @param data a data URL or base64, or nothing where the document is named by a link or an id */
  addDocument(data: unknown): void {
    // A text has no more tokens than bytes; what other documents hold (a PDF is compressed) nobody knows.
    if (typeof data !== 'string' || !textData.test(data)) this.documents++;
  }

  /** The same as facts that a hold is reckoned by. */
  get extent(): MediaExtent {
    const { imageInputs, imageBytes, documents } = this;
    return imageInputs + documents === 0 ? undefined : { imageInputs, imageBytes, documents };
  }
}

/** The facts of images and documents; undefined where there are none. */
export type MediaExtent = Pick<Extent, 'imageInputs' | 'imageBytes' | 'documents'> | undefined;

/** Those of two parts of a request together. */
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
