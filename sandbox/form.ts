import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { WireError } from './wire-error.ts';

/** Examines a file while it streams through, holding no more of it than needed. */
export interface Inspector<Facts> {
  push(chunk: Buffer): void;
  end(): Facts;
}

/** A file of a form after reading: its bytes are not kept. */
export interface FormFile<Facts> {
  /** The name of its field, without `[]`. */
  field: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  facts: Facts;
}

/** A `multipart/form-data` body; `name[]` and `name` are one field. */
export interface Form<Facts> {
  fields: Map<string, string[]>;
  files: FormFile<Facts>[];
}

/** A route's limits, and its inspection of files. */
export interface FormRules<Facts> {
  maximumFileBytes: number;
  maximumFiles: number;
  inspect: () => Inspector<Facts>;
}

const MAXIMUM_FIELDS = 200;
const MAXIMUM_FIELD_BYTES = 1024 * 1024;

/** Whether the body is a form. */
export function isForm(request: IncomingMessage): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(request.headers['content-type'] ?? '');
}

/**
 * Reads a form as it arrives; of each file only size, hash and facts stay in memory.
 * @throws WireError 400 for an incomplete form, 413 for one that is too large (the rest is then unread).
 */
export function readForm<Facts>(request: IncomingMessage, rules: FormRules<Facts>): Promise<Form<Facts>> {
  const form: Form<Facts> = { fields: new Map(), files: [] };
  return new Promise((resolve, reject) => {
    const parser = openParser(request, rules);
    const settle = (error?: Error): void => {
      request.unpipe(parser);
      request.off('close', leave);
      // Further events come too late.
      parser.on('error', () => undefined);
      if (error === undefined) resolve(form);
      else reject(error);
    };
    const leave = (): void => {
      // A complete body closes, too: then the parser reports the result.
      if (!request.complete) settle(new Error('the client left in the middle of its form'));
    };
    parser
      .on('field', (name, value, nameCut, valueCut) => {
        if (nameCut || valueCut) return settle(tooLarge(MAXIMUM_FIELD_BYTES));
        const key = withoutBrackets(name);
        form.fields.set(key, [...(form.fields.get(key) ?? []), value]);
      })
      .on('file', (name, content) => {
        content.once('limit', () => settle(tooLarge(rules.maximumFileBytes)));
        readFile(withoutBrackets(name), content, rules.inspect(), (file) => form.files.push(file));
      })
      .on('filesLimit', () => settle(new WireError(400, `At most ${rules.maximumFiles} files may be sent.`)))
      .on('fieldsLimit', () => settle(new WireError(400, `At most ${MAXIMUM_FIELDS} fields may be sent.`)))
      .on('error', () => settle(malformed()))
      .on('finish', () => settle());
    request.once('close', leave).pipe(parser);
  });
}

/**
 * Checks the field names of files.
 * @throws WireError 400 for a file in an unknown field.
 */
export function checkFileNames(form: Form<unknown>, known: readonly string[]): void {
  const unknown = form.files.find(({ field }) => !known.includes(field))?.field.slice(0, 200);
  if (unknown === undefined) return;
  throw new WireError(400, `Unknown parameter: '${unknown}'.`, { code: 'unknown_parameter', param: unknown });
}

function openParser(request: IncomingMessage, rules: FormRules<unknown>): BusboyInstance {
  try {
    return new Busboy({
      headers: request.headers as { 'content-type': string },
      limits: {
        fileSize: rules.maximumFileBytes,
        files: rules.maximumFiles,
        fields: MAXIMUM_FIELDS,
        fieldSize: MAXIMUM_FIELD_BYTES,
      },
    });
  } catch {
    throw malformed();
  }
}

function readFile<Facts>(
  field: string,
  content: Readable,
  inspector: Inspector<Facts>,
  done: (file: FormFile<Facts>) => void,
): void {
  const hash = createHash('sha256');
  let bytes = 0;
  content
    .on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      hash.update(chunk);
      inspector.push(chunk);
    })
    // The parser reports a truncated file itself.
    .on('error', () => undefined)
    .once('end', () => done({ field, bytes, sha256: hash.digest('hex'), facts: inspector.end() }));
}

function withoutBrackets(name: string): string {
  return name.replace(/\[\]$/, '');
}

function malformed(): WireError {
  return new WireError(400, 'Could not parse multipart form.');
}

function tooLarge(limit: number): WireError {
  return new WireError(413, `Maximum content size limit (${limit}) exceeded.`);
}
