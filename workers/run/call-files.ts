import { Readable } from 'node:stream';
import type { AccountBlobs } from '../../shared/blobs/account-blobs.ts';
import type { Blobs } from '../../shared/blobs/blobs.ts';
import { extensionOf } from '../../shared/blobs/media-types.ts';
import { Upload } from '../../shared/blobs/upload.ts';
import type { QueuedJob } from '../../shared/queue/queue.ts';
import { type RequestBody, requestText } from '../vendors/request-body.ts';
import type { CallFiles } from '../vendors/vendor.ts';

/** The files of one call: blobs of its job's account, and of no other. */
export function callFiles(blobs: Blobs, account: string): CallFiles {
  const own: AccountBlobs = blobs.ofRecords(account);
  return {
    open: (upload) => own.read(upload.blob),
    save: async (content, type) => {
      const stream = content instanceof Uint8Array ? Readable.from([content]) : content;
      const { id, bytes } = await own.putStream(stream, { extension: extensionOf(type) });
      return { file: id, type, bytes };
    },
  };
}

/** A job's request and the caller's files beside it. */
export interface RequestWithUploads {
  readonly request: RequestBody;
  readonly uploads: readonly Upload[];
}

/** The uploads of a job, from its own record. */
export function withUploads(
  { uploads, files }: Pick<QueuedJob, 'uploads' | 'files'>,
  request: RequestBody,
): RequestWithUploads {
  if (uploads !== undefined) return { request, uploads: uploads.map((record) => new Upload(record)) };
  return files === undefined || files.length === 0 ? { request, uploads: [] } : liftUploads(requestText(request));
}

interface OldUpload {
  readonly file: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
}

/**
 * Extracts the uploads from a request that the previous release has queued: they are in it as `{file, name, type, bytes}`. A
 * value with a link is JSON from a caller, whatever else it holds, and is no upload.
 */
function liftUploads(text: string): RequestWithUploads {
  const request = JSON.parse(text) as Record<string, unknown>;
  const uploads: Upload[] = [];
  const lift = (field: string, value: unknown): boolean => {
    if (!isOldUpload(value)) return false;
    const { file: blob, name, type, bytes } = value;
    uploads.push(new Upload({ blob, field, name, type, bytes }));
    return true;
  };
  const { images, mask, input, file, ...rest } = request;
  const left: Record<string, unknown> = { ...rest };
  if (Array.isArray(images)) left.images = images.filter((image) => !lift('image', image));
  for (const [name, field, value] of [
    ['mask', 'mask', mask],
    ['input', 'input_reference', input],
    ['file', 'file', file],
  ] as const) {
    if (value !== undefined) left[name] = lift(field, value) ? null : value;
  }
  return { request: JSON.stringify(left), uploads };
}

function isOldUpload(value: unknown): value is OldUpload {
  return typeof value === 'object' && value !== null && 'file' in value && !('image_url' in value);
}
