import { Upload } from '../../../shared/blobs/upload.ts';
import { type RequestBody, requestText } from '../../../workers/vendors/request-body.ts';

/** A request, and the caller's files beside it. */
interface RequestWithUploads {
  readonly request: RequestBody;
  readonly uploads: readonly Upload[];
}

interface WrittenUpload {
  readonly file: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
}

/** Takes the uploads out of a request into which a test has written them, as `{file, name, type, bytes}`. */
export function liftUploads(body: RequestBody): RequestWithUploads {
  const request = JSON.parse(requestText(body)) as Record<string, unknown>;
  const uploads: Upload[] = [];
  const lift = (field: string, value: unknown): boolean => {
    if (!isWrittenUpload(value)) return false;
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

function isWrittenUpload(value: unknown): value is WrittenUpload {
  return typeof value === 'object' && value !== null && 'file' in value;
}
