import type { Readable } from 'node:stream';
import { ApiError } from '../../shared/errors.ts';
import type { Downloader } from '../download.ts';
import type { JsonObject } from './json-object.ts';
import type { VendorCall } from './vendor.ts';

/** The bytes that one request may hold of files which are fetched or opened for it: Gemini takes 100 MB, in base64. */
const mostBytes = 64 * 1024 * 1024;

const dataUrl = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w-]+=[^;,]*)*;base64,/i;

function invalid(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', `Invalid '${param}': ${message}.`, { param });
}

/** The files of one request as parts of Gemini's: inlineData, in base64 (https://ai.google.dev/api/caching#Blob). */
export class GeminiMedia {
  private readonly call: VendorCall;
  private readonly download: Downloader;
  private bytes = 0;

  constructor(call: VendorCall, download: Downloader) {
    this.call = call;
    this.download = download;
  }

  /** The part of a data URL. @throws ApiError 400 that names `param` where it is none. */
  fromDataUrl(url: string, param: string): JsonObject {
    const [head, type] = dataUrl.exec(url) ?? [];
    if (head === undefined || type === undefined) throw invalid(param, 'it is no base64 data URL');
    return this.fromBase64(url.slice(head.length), type.toLowerCase());
  }

  fromBase64(data: string, mimeType: string): JsonObject {
    return { inlineData: { mimeType, data } };
  }

  /** The part of an image: a data URL as it is, a link fetched, because Gemini takes no links to the web. */
  async fromImageUrl(url: string, param: string): Promise<JsonObject> {
    if (/^data:/i.test(url)) return this.fromDataUrl(url, param);
    const { content, type } = await this.fetch(url, param);
    if (type === undefined || !type.startsWith('image/')) {
      content.destroy();
      throw invalid(param, 'the server of the link does not say that it is an image');
    }
    return this.fromBase64(await this.read(content, param), type);
  }

  /** The part of an uploaded file. */
  async fromUpload(file: string, type: string, param: string): Promise<JsonObject> {
    const { content } = await this.call.files.open(file);
    return this.fromBase64(await this.read(content, param), type);
  }

  private async fetch(url: string, param: string): ReturnType<Downloader> {
    try {
      return await this.download(url, this.call);
    } catch (error) {
      throw named(error, param);
    }
  }

  private async read(content: Readable, param: string): Promise<string> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of content) {
        this.bytes += chunk.length;
        if (this.bytes > mostBytes) throw invalid(param, `the files of a request may have ${mostBytes} bytes together`);
        chunks.push(chunk);
      }
    } catch (error) {
      throw named(error, param);
    }
    return Buffer.concat(chunks).toString('base64');
  }
}

/** A link's failure with the field that holds it. */
function named(thrown: unknown, param: string): ApiError {
  const error = ApiError.from(thrown);
  if (error.code !== 'invalid_request_error') return error;
  return new ApiError(error.code, error.message, { param, cause: error.cause });
}
