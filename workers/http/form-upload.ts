import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { yieldToEventLoop } from '../../shared/runtime/yield-to-event-loop.ts';
import type { HttpUpload } from './http-client.ts';

/** A file of a form that is read while it is sent. */
export interface FormFile {
  readonly name: string;
  readonly type: string;
  readonly content: Readable;
  readonly bytes: number;
}

/** Part of a form: a text or a file under the name of its field. */
export type FormPart = readonly [field: string, value: string | FormFile];

/** JSON fields as parts: each item of a list becomes one `name[]`, and values other than text become JSON. */
export function formFields(fields: Readonly<Record<string, unknown>>): FormPart[] {
  return Object.entries(fields).flatMap(([name, value]): FormPart[] => {
    if (value === null || value === undefined) return [];
    if (Array.isArray(value)) return value.map((item) => [`${name}[]`, formText(item)]);
    return [[name, formText(value)]];
  });
}

function formText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * A `multipart/form-data` body (RFC 7578) of fields and files, in this order, that is never entirely in memory. Its length is
 * known in advance, which some vendors require.
 */
export function formUpload(parts: readonly FormPart[]): HttpUpload {
  const boundary = `sluice-${randomBytes(18).toString('hex')}`;
  const heads = parts.map(([field, value]) => headOf(boundary, field, value));
  const end = `--${boundary}--\r\n`;
  let bytes = end.length;
  for (const [index, [, value]] of parts.entries()) {
    bytes += Buffer.byteLength(heads[index] as string) + 2;
    bytes += typeof value === 'string' ? Buffer.byteLength(value) : value.bytes;
  }
  async function* write(): AsyncGenerator<string | Buffer> {
    for (const [index, [, value]] of parts.entries()) {
      yield heads[index] as string;
      if (typeof value === 'string') yield value;
      else yield* yielding(value.content);
      yield '\r\n';
    }
    yield end;
  }
  const content = Readable.from(write(), { objectMode: false });
  // A call that fails early leaves files unread and open.
  content.once('close', () => {
    for (const [, value] of parts) if (typeof value !== 'string') value.content.destroy();
  });
  return { type: `multipart/form-data; boundary=${boundary}`, content, bytes };
}

/** Yields to the event loop before each chunk of a file, so that many files at a time leave room for other jobs' tokens. */
async function* yielding(content: Readable): AsyncGenerator<Buffer> {
  for await (const chunk of content as AsyncIterable<Buffer>) {
    await new Promise<void>(yieldToEventLoop);
    yield chunk;
  }
}

function headOf(boundary: string, field: string, value: string | FormFile): string {
  const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(field)}"`;
  if (typeof value === 'string') return `${disposition}\r\n\r\n`;
  return `${disposition}; filename="${quoted(value.name)}"\r\nContent-Type: ${safeType(value.type)}\r\n\r\n`;
}

/** The type comes from the caller and goes into a header, so an invalid one is replaced. */
function safeType(type: string): string {
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : 'application/octet-stream';
}

/** As browsers do (WHATWG HTML, "multipart form data"), but without control characters, such as NUL, which no header may have. */
function quoted(text: string): string {
  return text
    .replace(/\r?\n|\r/g, '%0A')
    .replaceAll('"', '%22')
    .replace(/\p{Cc}/gu, '_');
}
