import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import type { Context } from 'koa';
import type { Blobs } from '../../shared/blobs.ts';
import { ApiError } from '../../shared/errors.ts';
import type { Form, UploadedFile } from '../endpoints/prepared-request.ts';
import { discard } from './json-body.ts';

/** What a form may hold. */
const limits = { fileSize: 50 * 1024 * 1024, files: 17, fields: 200, fieldSize: 1024 * 1024, fieldNameSize: 200 };
/** How long a form may stand still before its sender is given up. Node's `requestTimeout` bounds the whole. */
const silenceMs = 60_000;

/** Whether the request's body is a form. */
export function isForm(ctx: Context): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(ctx.req.headers['content-type'] ?? '');
}

/**
 * Reads a `multipart/form-data` body; its files go straight into blobs, so that none is ever whole in memory. The hash is
 * of names and contents, whatever boundary the client chose. Nothing stays behind of a form that is refused.
 * @throws ApiError 400 for a malformed form, 413 for one too large, `timeout`, `cancelled`.
 */
export async function readForm(ctx: Context, blobs: Blobs): Promise<{ form: Form; hash: string }> {
  const { req } = ctx;
  let parser: BusboyInstance;
  try {
    parser = new Busboy({ headers: req.headers as { 'content-type': string }, limits });
  } catch {
    discard(req);
    throw malformed();
  }
  const reading = new FormReading(blobs);
  try {
    await receive(req, parser, reading);
    return await reading.end();
  } catch (error) {
    await reading.abandon();
    if (!req.complete && !req.destroyed) discard(req);
    throw error;
  }
}

function malformed(): ApiError {
  return new ApiError('invalid_request_error', 'The body is no complete multipart/form-data.');
}

function tooLarge(what: string): ApiError {
  return new ApiError('request_too_large', `The form is too large: ${what}.`);
}

/** Lets the parser read the request to its end. */
function receive(req: IncomingMessage, parser: BusboyInstance, reading: FormReading): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown): void => {
      clearTimeout(timer);
      req.unpipe(parser);
      req.off('data', heard).off('close', leave).off('error', leave);
      // What it still has to say comes too late.
      parser.on('error', () => undefined);
      if (error === undefined) resolve();
      else reject(error);
    };
    const leave = (): void => settle(new ApiError('cancelled', 'The client left before its request was complete.'));
    const late = (): void => settle(new ApiError('timeout', 'The request body did not arrive in time.'));
    const timer = setTimeout(late, silenceMs);
    const heard = (): void => void timer.refresh();
    parser
      .on('field', (name, value, isNameCut, isCut) => {
        if (isNameCut || isCut) settle(tooLarge(`a field has at most ${limits.fieldSize} bytes`));
        else reading.field(name, value);
      })
      .on('file', (name, content, fileName, _encoding, type) => {
        content.once('limit', () => settle(tooLarge(`a file has at most ${limits.fileSize} bytes`)));
        reading.file(name, content, fileName, type).catch(settle);
      })
      .on('filesLimit', () => settle(tooLarge(`at most ${limits.files} files`)))
      .on('fieldsLimit', () => settle(tooLarge(`at most ${limits.fields} fields`)))
      .on('error', () => settle(malformed()))
      .on('finish', () => settle());
    req.on('data', heard).on('close', leave).on('error', leave);
    req.pipe(parser);
  });
}

/** A form as far as it has come. */
class FormReading {
  readonly #blobs: Blobs;
  readonly #fields = new Map<string, string[]>();
  readonly #hash: Hash = createHash('sha256');
  readonly #files: Promise<UploadedFile & { hash: string }>[] = [];
  readonly #open = new Set<Readable>();

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  field(name: string, value: string): void {
    const key = withoutBrackets(name);
    this.#hash.update(JSON.stringify([key, value]));
    const values = this.#fields.get(key);
    if (values === undefined) this.#fields.set(key, [value]);
    else values.push(value);
  }

  /** Stores a file while it comes. */
  file(field: string, content: Readable, name: string, type: string): Promise<unknown> {
    const hash = createHash('sha256');
    const through = new PassThrough();
    this.#open.add(through);
    content.on('data', (chunk: Buffer) => hash.update(chunk)).once('error', (error) => through.destroy(error));
    content.pipe(through);
    const stored = this.#blobs.putStream(through).then(({ id, bytes }) => {
      this.#open.delete(through);
      return { field: withoutBrackets(field), file: id, name: name ?? '', type, bytes, hash: hash.digest('hex') };
    });
    this.#files.push(stored);
    return stored;
  }

  async end(): Promise<{ form: Form; hash: string }> {
    const files = await Promise.all(this.#files);
    for (const { field, name, hash } of files) this.#hash.update(JSON.stringify([field, name, hash]));
    return {
      form: { fields: this.#fields, files: files.map(({ hash: _, ...file }) => file) },
      hash: this.#hash.digest('hex'),
    };
  }

  /** Removes what was stored, and ends what is being stored. */
  async abandon(): Promise<void> {
    for (const content of this.#open) content.destroy(new Error('the form is not read on'));
    for (const stored of await Promise.allSettled(this.#files)) {
      if (stored.status === 'fulfilled') await this.#blobs.delete(stored.value.file);
    }
  }
}

/** `image[]` and `image` are the same field. */
function withoutBrackets(name: string): string {
  return name.replace(/\[\]$/, '');
}
