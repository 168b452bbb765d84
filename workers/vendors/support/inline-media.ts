import type { Readable } from 'node:stream';
import type { Upload } from '../../../shared/blobs/upload.ts';
import { ApiError } from '../../../shared/errors.ts';
import { GatheredChunks } from '../../../shared/runtime/collections.ts';
import type { Downloader } from '../../http/download.ts';
import type { VendorCall } from '../vendor.ts';

/** Limit of the fetched or opened files of one request in bytes: more than vendors accept, in base64. */
const maxBytes = 64 * 1024 * 1024;

const dataUrl = /^data:([\w.+-]+\/[\w.+-]+)(?:;[\w-]+=[^;,]*)*;base64,/i;

const mediaType = /^[\w.+-]+\/[\w.+-]+$/;

/** Whether it is a link to the web. */
export function isLink(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

function invalid(param: string, message: string): ApiError {
  return new ApiError('invalid_request_error', `Invalid '${param}': ${message}.`, { param });
}

/** How images begin, as Latin-1. */
const beginnings: readonly (readonly [type: string, beginning: RegExp])[] = [
  ['image/png', /^\x89PNG/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/webp', /^RIFF.{4}WEBP/s],
  ['image/gif', /^GIF8/],
  ['image/avif', /^.{4}ftypavi[fs]/s],
];

/** The type of an image by its first bytes; undefined for other kinds. */
export function typeOfImage(bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1', 0, 16);
  return beginnings.find(([, beginning]) => beginning.test(text))?.[0];
}

/** The same of an image in base64. */
export function typeOfBase64(data: string): string | undefined {
  return typeOfImage(Buffer.from(data.slice(0, 64), 'base64'));
}

/** The type of an uploaded image. Clients that are given a stream of bytes say nothing of it, and vendors refuse that. */
export function typeOfUpload({ type }: Pick<Upload, 'type'>, bytes: Buffer): string {
  return /^image\/[\w.+-]+$/.test(type) ? type : (typeOfImage(bytes) ?? 'image/png');
}

/** A file embedded in a request. */
export interface InlineFile {
  /** Its media type, in lower case. */
  readonly type: string;
  /** In base64. */
  readonly data: string;
}

/** The files of one request, for vendors that take no links and no uploads: all of them are embedded in it. */
export class InlineMedia {
  private readonly call: VendorCall;
  private readonly download: Downloader;
  private bytes = 0;

  constructor(call: VendorCall, download: Downloader) {
    this.call = call;
    this.download = download;
  }

  /** The file of a data URL. @throws ApiError 400 naming `param` if it is invalid. */
  fromDataUrl(url: string, param: string): InlineFile {
    const [head, type] = dataUrl.exec(url) ?? [];
    if (head === undefined || type === undefined) throw invalid(param, 'it is no base64 data URL');
    return { type: type.toLowerCase(), data: url.slice(head.length) };
  }

  /** An image: that of a data URL, a link fetched. Vendors refuse one of another type than is said, so its own counts. */
  async fromImageUrl(url: string, param: string): Promise<InlineFile> {
    const isData = /^data:/i.test(url);
    const { type, data } = isData ? this.fromDataUrl(url, param) : await this.fromLink(url, param, 'image');
    return { type: typeOfBase64(data) ?? type, data };
  }

  /** A PDF that a link leads to. */
  async fromPdfLink(url: string, param: string): Promise<InlineFile> {
    const file = await this.fromLink(url, param, undefined);
    if (file.type === 'application/pdf') return file;
    throw invalid(param, 'the server of the link does not say that it is a PDF');
  }

  /** The file that a link leads to. @param kind `image`, `video` or `audio`; undefined: any */
  async fromLink(url: string, param: string, kind: string | undefined): Promise<InlineFile> {
    const { content, type = '' } = await this.fetch(url, param);
    if (!mediaType.test(type) || (kind !== undefined && !type.startsWith(`${kind}/`))) {
      content.destroy();
      const expected = kind === undefined ? 'what it is' : `that it is ${kind === 'video' ? 'a' : 'an'} ${kind}`;
      throw invalid(param, `the server of the link does not say ${expected}`);
    }
    return { type, data: await this.read(content, param, true) };
  }

  /** An uploaded image. */
  async fromUpload(upload: Upload, param: string): Promise<InlineFile> {
    const { content } = await this.call.files.open(upload);
    const data = await this.read(content, param, false);
    return { type: typeOfUpload(upload, Buffer.from(data.slice(0, 64), 'base64')), data };
  }

  private async fetch(url: string, param: string): ReturnType<Downloader> {
    try {
      return await this.download(url, this.call);
    } catch (error) {
      throw named(error, param);
    }
  }

  /** @param isFetched whether it has no room in memory yet, as uploads have */
  private async read(content: Readable, param: string, isFetched: boolean): Promise<string> {
    const chunks = new GatheredChunks();
    try {
      for await (const chunk of content) {
        this.bytes += chunk.length;
        if (isFetched) this.call.memory?.addFile(chunk.length);
        if (this.bytes > maxBytes) throw invalid(param, `the files of a request may have ${maxBytes} bytes together`);
        chunks.add(chunk);
      }
    } catch (error) {
      throw named(error, param);
    }
    return chunks.bytes().toString('base64');
  }
}

/** Adds the name of a link's field to its failure. */
function named(thrown: unknown, param: string): ApiError {
  const error = ApiError.from(thrown);
  if (error.code !== 'invalid_request_error') return error;
  return new ApiError(error.code, error.message, { param, cause: error.cause });
}
