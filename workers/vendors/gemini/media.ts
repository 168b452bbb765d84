import type { Upload } from '../../../shared/blobs/upload.ts';
import type { Downloader } from '../../http/download.ts';
import { type InlineFile, InlineMedia, isLink } from '../support/inline-media.ts';
import type { JsonObject } from '../support/json-object.ts';
import type { VendorCall } from '../vendor.ts';

/** The files of one request as Gemini's parts: inlineData, in base64 (https://ai.google.dev/api/caching#Blob). */
export class GeminiMedia {
  private readonly files: InlineMedia;

  constructor(call: VendorCall, download: Downloader) {
    this.files = new InlineMedia(call, download);
  }

  /** The part of a document: a data URL as it is, a link to a PDF fetched. @throws ApiError 400 naming `param` if it is neither. */
  async fromDocument(url: string, param: string): Promise<JsonObject> {
    return toPart(isLink(url) ? await this.files.fromPdfLink(url, param) : this.files.fromDataUrl(url, param));
  }

  fromBase64(data: string, mimeType: string): JsonObject {
    return { inlineData: { mimeType, data } };
  }

  /** The part of an image: a data URL as it is, a link fetched, because Gemini takes no links to the web. */
  async fromImageUrl(url: string, param: string): Promise<JsonObject> {
    return toPart(await this.files.fromImageUrl(url, param));
  }

  /** The part of an uploaded file. */
  async fromUpload(upload: Upload, param: string): Promise<JsonObject> {
    return toPart(await this.files.fromUpload(upload, param));
  }
}

/** Gemini refuses the common misspelling of JPEG's type. */
function toPart({ type, data }: InlineFile): JsonObject {
  return { inlineData: { mimeType: type === 'image/jpg' ? 'image/jpeg' : type, data } };
}
