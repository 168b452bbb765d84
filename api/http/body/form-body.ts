import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { Dicer } from '@fastify/busboy';
import type { Context } from 'koa';
import { BlobStorageError } from '../../../shared/blobs/blob-storage.ts';
import type { AccountBlobs } from '../../../shared/blobs/blobs.ts';
import { Upload } from '../../../shared/blobs/upload.ts';
import { ApiError } from '../../../shared/errors.ts';
import { GatheredChunks } from '../../../shared/runtime/collections.ts';
import { yieldToEventLoop } from '../../../shared/runtime/yield-to-event-loop.ts';
import type { Form } from '../../pipeline/parsed-request.ts';
import { discardBody } from './discard-body.ts';
import { type PartHead, type PartHeaders, readBoundary, readPartHead } from './form-parts.ts';
import {
  type BodyPace,
  type BodyWatch,
  bodyTooLate,
  encodingOf,
  isTooSlow,
  leftEarly,
  usualPace,
} from './read-body.ts';

const mebibyte = 1024 * 1024;

/** Limits of a form: sizes in bytes. Its fields, unlike its files, are in memory. */
const limits = {
  fileSize: 50 * mebibyte,
  files: 17,
  fields: 200,
  /** Of a transcription they may be four samples of speakers: ten seconds each, uncompressed, in base64. */
  fieldsSize: 10 * mebibyte,
  /** Characters of a name, of a file's name and of its type, which go with the job through Redis. */
  name: 1024,
};

/** Limits of a form as a whole. */
interface FormBounds {
  /** In bytes. */
  readonly size: number;
  /** How long (ms) it may stall before it fails. Node's `requestTimeout` bounds the whole. */
  readonly silenceMs: number;
  readonly pace?: BodyPace;
}

const usualBounds: FormBounds = { size: 320 * mebibyte, silenceMs: 60_000 };

/**
 * Reads a `multipart/form-data` body. Its files are streamed into blobs with backpressure, so that none is ever whole in
 * memory. A refused form leaves nothing behind.
 * @param blobs of the caller's account
 * @param isHashed whether to compute `hash` over names, types and contents, independent of the boundary; else it is ''.
 * @param watch checks it before it is read, and as its bytes arrive
 * @throws ApiError 400 for a malformed form, 413 for one too large (at once if Content-Length says so), 415 for a compressed
 * one, `timeout`, `cancelled`, and errors of its watch.
 */
export async function readForm(
  ctx: Context,
  blobs: AccountBlobs,
  isHashed: boolean,
  bounds = usualBounds,
  watch?: BodyWatch,
): Promise<{ form: Form; hash: string }> {
  const { req } = ctx;
  const boundary = readBoundary(req.headers['content-type'] ?? '');
  const refusal = refuseByHeaders(req, boundary, bounds);
  if (refusal !== undefined) {
    discardBody(req);
    throw refusal;
  }
  const reading = new FormReading(blobs, isHashed);
  try {
    await watch?.beforeLarge();
    await receive(req, boundary as string, reading, bounds, watch);
    // Data after the form's end is ignored.
    if (!req.complete) discardBody(req);
    return await reading.end();
  } catch (error) {
    await reading.abandon();
    if (!req.complete && !req.destroyed) {
      // The rest of a stalled body may never come, so the connection cannot be reused.
      if (error instanceof ApiError && error.code === 'timeout') ctx.res.shouldKeepAlive = false;
      else discardBody(req);
    }
    throw error;
  }
}

function refuseByHeaders(req: IncomingMessage, boundary: string | undefined, bounds: FormBounds): ApiError | undefined {
  if (encodingOf(req) !== undefined) {
    return new ApiError('unsupported_media_type', 'Send the form uncompressed: Content-Encoding is not supported.');
  }
  if (boundary === undefined) return malformed('its Content-Type names no boundary');
  return Number(req.headers['content-length'] ?? 0) > bounds.size ? tooLarge('form', bounds.size) : undefined;
}

function malformed(reason: string): ApiError {
  return new ApiError('invalid_request_error', `The body is not valid multipart/form-data: ${reason}.`);
}

function tooLarge(what: string, bytes: number): ApiError {
  return new ApiError('request_too_large', `The ${what} is too large: at most ${bytes / mebibyte} MiB are accepted.`);
}

/** Passes the parts to `reading` until the form's end. @throws ApiError */
function receive(
  req: IncomingMessage,
  boundary: string,
  reading: FormReading,
  bounds: FormBounds,
  watch: BodyWatch | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const parser = new Dicer({ boundary });
    const inTurn = new Transform({
      transform: (chunk, _encoding, done) => yieldToEventLoop(() => done(null, chunk)),
    });
    const startedAt = performance.now();
    let received = 0;
    /** Parts whose head has not arrived. */
    let headless = 0;
    const settle = (error?: unknown): void => {
      clearTimeout(timer);
      req.unpipe(inTurn);
      inTurn.unpipe(parser);
      req.off('data', heard).off('close', leave).off('error', leave);
      if (error === undefined) resolve();
      else reject(error);
    };
    const leave = (): void => {
      // A complete request closes too, possibly before its last file is stored.
      if (!req.complete) settle(leftEarly());
    };
    const late = (): void => settle(bodyTooLate());
    const timer = setTimeout(late, bounds.silenceMs);
    const heard = (chunk: Buffer): void => {
      received += chunk.length;
      if (received > bounds.size) settle(tooLarge('form', bounds.size));
      else if (isTooSlow(received, startedAt, bounds.pace ?? usualPace)) late();
      else {
        timer.refresh();
        try {
          watch?.grow(chunk.length);
        } catch (error) {
          settle(error);
        }
      }
    };
    parser
      .on('part', (part) => {
        headless++;
        // A truncated part emits its own error, beside the parser's.
        part.on('error', () => undefined);
        part.on('header', (headers) => {
          headless--;
          reading.part(part, headers as PartHeaders).catch(settle);
        });
      })
      // Stays attached after settling, for late errors of the parser.
      .on('error', () => settle(malformed('it ends before its last boundary')))
      .on('finish', () => settle(headless === 0 ? undefined : malformed('a part has no end of its headers')));
    req.on('data', heard).on('close', leave).on('error', leave);
    if (req.destroyed) leave();
    else req.pipe(inTurn).pipe(parser);
  });
}

interface Field {
  readonly name: string;
  readonly value: string;
}

interface StoredFile {
  readonly file: Upload;
  readonly hash: string;
}

/** A form while it arrives. */
class FormReading {
  readonly #blobs: AccountBlobs;
  readonly #isHashed: boolean;
  readonly #parts: Promise<Field | StoredFile>[] = [];
  readonly #open = new Set<Readable>();
  #fields = 0;
  #files = 0;
  #fieldBytes = 0;
  #isAbandoned = false;

  constructor(blobs: AccountBlobs, isHashed: boolean) {
    this.#blobs = blobs;
    this.#isHashed = isHashed;
  }

  /** Reads or stores a part. @throws ApiError when the form is refused. */
  part(content: Readable, headers: PartHeaders): Promise<unknown> {
    const taken = this.#take(content, headers);
    this.#parts.push(taken);
    return taken;
  }

  /** Returns the whole form, once all its parts have arrived. */
  async end(): Promise<{ form: Form; hash: string }> {
    const hash = createHash('sha256');
    const fields = new Map<string, string[]>();
    const files: Upload[] = [];
    for (const part of await Promise.all(this.#parts)) {
      if ('file' in part) {
        files.push(part.file);
        hash.update(JSON.stringify([part.file.field, part.file.name, part.file.type, part.hash]));
      } else {
        const values = fields.get(part.name);
        if (values === undefined) fields.set(part.name, [part.value]);
        else values.push(part.value);
        hash.update(JSON.stringify([part.name, part.value]));
      }
    }
    return { form: { fields, files }, hash: this.#isHashed ? hash.digest('hex') : '' };
  }

  /** Deletes stored files, and aborts those in progress. What cannot be deleted is swept: why the form is refused matters more. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    for (const content of this.#open) content.destroy(new Error('the form is not read on'));
    for (const part of await Promise.allSettled(this.#parts)) {
      if (part.status !== 'fulfilled' || !('file' in part.value)) continue;
      await this.#blobs.delete(part.value.file.blob).catch(() => undefined);
    }
  }

  async #take(content: Readable, headers: PartHeaders): Promise<Field | StoredFile> {
    // The parser may emit further parts of a chunk whose first part was refused.
    if (this.#isAbandoned) throw new Error('the form is not read on');
    const head = readPartHead(headers);
    if (head === undefined) throw malformed('a part has no Content-Disposition: form-data with a name');
    if ([head.name, head.fileName, head.type].some((text) => (text?.length ?? 0) > limits.name)) {
      throw malformed(`a part has a name or a type of more than ${limits.name} characters`);
    }
    this.#open.add(content);
    try {
      // `image`, `image[]` and `image[0]`, as clients that name each field once write it, are the same field.
      const name = head.name.replace(/\[\d{0,4}\]$/, '');
      if (head.fileName === undefined) return { name, value: await this.#readField(content) };
      return await this.#storeFile(content, name, head);
    } finally {
      this.#open.delete(content);
    }
  }

  async #readField(content: Readable): Promise<string> {
    if (++this.#fields > limits.fields) {
      throw new ApiError('request_too_large', `The form has too many fields: at most ${limits.fields} are accepted.`);
    }
    const chunks = new GatheredChunks();
    for await (const chunk of content as AsyncIterable<Buffer>) {
      this.#fieldBytes += chunk.length;
      if (this.#fieldBytes > limits.fieldsSize) throw tooLarge('text of the form', limits.fieldsSize);
      chunks.add(chunk);
    }
    return chunks.bytes().toString('utf8');
  }

  async #storeFile(content: Readable, field: string, head: PartHead): Promise<StoredFile> {
    if (++this.#files > limits.files) {
      throw new ApiError('request_too_large', `The form has too many files: at most ${limits.files} are accepted.`);
    }
    const hash = this.#isHashed ? createHash('sha256') : undefined;
    let size = 0;
    let failure: unknown;
    async function* hashed(): AsyncGenerator<Buffer> {
      try {
        for await (const chunk of content as AsyncIterable<Buffer>) {
          size += chunk.length;
          if (size > limits.fileSize) throw tooLarge('file', limits.fileSize);
          hash?.update(chunk);
          yield chunk;
        }
      } catch (error) {
        failure = error;
        throw error;
      }
    }
    // What is not the form's fault is the storage's.
    const { id, bytes } = await this.#blobs.putStream(hashed()).catch((error) => {
      throw failure ?? new BlobStorageError(error);
    });
    const { fileName = '', type = 'application/octet-stream' } = head;
    return { file: new Upload({ blob: id, field, name: fileName, type, bytes }), hash: hash?.digest('hex') ?? '' };
  }
}
