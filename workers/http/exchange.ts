import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { ApiError } from '../../shared/errors.ts';
import { GatheredChunks, isReleasable, releaseMemory } from '../../shared/runtime/collections.ts';
import { readRetryAfter, readVendorError } from '../vendors/support/read-vendor-error.ts';
import { vendorError } from '../vendors/vendor-error.ts';
import { abortError } from './aborted.ts';
import { type AnswerHolder, countAnswer, freeBytes, type LongAnswer } from './answer-memory.ts';
import { connectionFailed, LostAnswerError, wasSilent } from './connection-errors.ts';
import { keepToldLimits } from './told-limits.ts';

/** Maximum bytes of a buffered body: of an answer, and of an error. */
export const maxBody = 64 * 1024 * 1024;
const maxErrorBody = 64 * 1024;
/** How long (ms) a vendor may go on with a body whose answer is complete, before its connection is closed. */
const lingerMs = 2000;

/**
 * The result of handling a chunk: a promise pauses the vendor's socket until it resolves; a number are the bytes that the reader
 * may still keep, if they are many; `finished` means that the answer is complete, whatever the vendor may still send.
 */
export type Reading = Promise<void> | number | 'finished' | undefined;

/** One request without a body. */
export interface HttpRequest {
  /** Appended to the base URL: `/chat/completions`. */
  readonly path: string;
  /** Closes the connection at once. Its reason is what the call throws if it is an ApiError. */
  readonly signal: AbortSignal;
  /** Longest time (ms) without a byte from the vendor, before as well as inside the answer. */
  readonly silenceMs: number;
  /**
   * Takes a successful body that is not JSON as it arrives (the reader may keep chunks), and its Content-Type. Anything it throws
   * ends the call. Without it every body is buffered.
   */
  readonly onChunk?: (chunk: Buffer, type: string) => Reading;
  /** Keeps the answer in memory until its job is over; omitted: it is done with once it is read. */
  readonly holder?: AnswerHolder | undefined;
  /** Message of a 404 if the path names an object of the vendor; omitted: the vendor lacks the path or the model. */
  readonly notFound?: string;
  /** Sent in addition to the vendor's own, such as a signature. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An HTTP client's settings for its vendor. */
export interface HttpClientOptions {
  /** The vendor's name, for the operator. */
  readonly vendor: string;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The vendor's key, which no error may contain. */
  readonly secret: string;
  /** Reads the errors of a vendor whose shape differs from OpenAI's, as `vendorError` reads OpenAI's. */
  readonly toStatusError?: (status: number, body: string, headers: HttpHeaders) => ApiError;
}

/** Headers of an answer, their names in lower case. */
export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Codings that change the bytes of a body. */
const compressions = /\b(?:gzip|compress|deflate|br|zstd)\b/i;

/** Whether a body is compressed, which no request asks for: what it says would be unreadable, and a file another one. */
export function isCompressed({ 'content-encoding': coding }: HttpHeaders): boolean {
  return coding !== undefined && compressions.test(String(coding));
}

/** A text without the byte order mark that servers on Windows put in front of it. JSON has none. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** Releases a chunk that was copied, once undici, which is still reading it, has returned. */
function releaseLater(chunk: Buffer): void {
  // Asked before: what is read at once may be hundreds of thousands of chunks of a byte.
  if (isReleasable(chunk)) setImmediate(releaseMemory, chunk);
}

/** One request and its answer: undici's handler, which avoids a Readable and its events for every chunk. */
export class Exchange<Answer> implements Dispatcher.DispatchHandler {
  private readonly options: HttpClientOptions;
  private readonly request: HttpRequest;
  private readonly readBody: (body: Buffer) => Answer;
  private readonly resolve: (answer: Answer | null) => void;
  private readonly reject: (error: ApiError) => void;
  /** Known once the request is written to a connection. */
  private controller: Dispatcher.DispatchController | undefined;
  /** Known while a connection is made for this request alone. */
  private connecting: Socket | undefined;
  private settled = false;
  /** Runs between the end of the answer and that of its body. */
  private lingering: NodeJS.Timeout | undefined;
  /** Runs from the first interim answer, such as 103 with hints, to the answer: they begin undici's own limit anew, as often as they come. */
  private interim: NodeJS.Timeout | undefined;
  private status = 0;
  private headers: Record<string, string | string[] | undefined> = {};
  private onChunk: HttpRequest['onChunk'];
  private readonly gathered = new GatheredChunks(releaseLater);
  private bytes = 0;
  /** Of a body of which much is kept. */
  private answer: LongAnswer | undefined;

  constructor(
    options: HttpClientOptions,
    request: HttpRequest,
    readBody: (body: Buffer) => Answer,
    resolve: (answer: Answer | null) => void,
    reject: (error: ApiError) => void,
  ) {
    this.options = options;
    this.request = request;
    this.readBody = readBody;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Starts to listen to the signal; false when it is too late to send anything. */
  start(): boolean {
    if (this.request.signal.aborted) this.onAbort();
    else this.request.signal.addEventListener('abort', this.onAbort);
    return !this.settled;
  }

  /** For a listener that is an object Node makes a function itself, among V8's old objects: see build.mjs. */
  private readonly onAbort = (): void => {
    this.fail(abortError(this.request.signal));
  };

  onConnecting(socket: Socket): void {
    this.connecting = socket;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    this.connecting = undefined;
    // Aborted while it waited for its connection: nothing is sent.
    if (this.settled) controller.abort(new Error('aborted'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) {
      this.interim ??= setTimeout(() => this.fail(wasSilent(this.request.silenceMs)), this.request.silenceMs);
      return;
    }
    clearTimeout(this.interim);
    this.status = status;
    this.headers = headers;
    if (status > 299) return;
    if (isCompressed(headers)) {
      this.fail(
        new ApiError('server_error', "The model's vendor answered in a compressed form that it was not asked for."),
      );
      return;
    }
    if (!/^application\/json\b/i.test(String(headers['content-type']))) this.onChunk = this.request.onChunk;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.settled) {
      // The rest is read so that the connection can be reused, unless the vendor keeps sending.
      if (this.bytes > maxErrorBody) controller.abort(new Error('too much after the end'));
    } else if (this.onChunk) {
      this.handOver(controller, chunk, this.onChunk);
    } else if (this.bytes <= (this.status > 299 ? maxErrorBody : maxBody)) {
      this.gathered.add(chunk);
      if (this.bytes > freeBytes) this.count(controller, this.bytes);
    } else if (this.status > 299) {
      this.fail(this.statusError());
    } else {
      this.fail(new ApiError('server_error', `The vendor's answer is larger than ${maxBody} bytes.`));
    }
  }

  onResponseEnd(): void {
    clearTimeout(this.lingering);
    if (this.settled) return;
    if (this.status > 299) this.fail(this.statusError());
    else this.succeed(this.onChunk ? null : this.readBody(withoutMark(this.gathered.bytes())));
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    clearTimeout(this.lingering);
    if (this.settled) return;
    const { vendor } = this.options;
    const { silenceMs } = this.request;
    this.fail(connectionFailed(error, { vendor, isSent: this.controller !== undefined, silenceMs }));
  }

  private count(controller: Dispatcher.DispatchController, bytes: number): void {
    // Room is made by other answers, while undici reads them, and it reads one connection at a time.
    this.answer ??= countAnswer(
      this.request.holder,
      () => queueMicrotask(() => controller.resume()),
      () => this.fail(new LostAnswerError('timeout', "The model's vendor has stopped in the middle of a long answer.")),
    );
    const hasRoom = this.answer.growTo(bytes);
    // Of a whole answer nothing more comes, and a vendor that closes its connection meanwhile would have failed it.
    const isWhole = this.bytes === Number(this.headers['content-length']);
    if (!hasRoom && !isWhole) controller.pause();
  }

  private handOver(
    controller: Dispatcher.DispatchController,
    chunk: Buffer,
    onChunk: NonNullable<HttpRequest['onChunk']>,
  ): void {
    try {
      const reading = onChunk(chunk, String(this.headers['content-type']));
      if (reading === 'finished') {
        this.bytes = 0;
        this.succeed(null);
        this.lingering = setTimeout(() => controller.abort(new Error('no end of the body')), lingerMs);
        this.lingering.unref();
      } else if (typeof reading === 'number') {
        this.count(controller, reading);
      } else if (reading === undefined) {
        // What was kept has become frames.
        this.answer?.end(false);
        this.answer = undefined;
      } else {
        controller.pause();
        reading.then(() => controller.resume()).catch((error) => this.fail(ApiError.from(error)));
      }
    } catch (error) {
      this.fail(ApiError.from(error));
    }
  }

  private succeed(answer: Answer | null): void {
    this.answer?.end(true);
    this.settle();
    this.resolve(answer);
  }

  private fail(error: ApiError): void {
    if (this.settled) return;
    this.answer?.end(false);
    this.settle();
    this.controller?.abort(error);
    // With an error, because undici would wait forever for a socket that closes without one.
    this.connecting?.destroy(error);
    this.reject(error);
  }

  private settle(): void {
    this.settled = true;
    clearTimeout(this.interim);
    this.request.signal.removeEventListener('abort', this.onAbort);
  }

  private statusError(): ApiError {
    const { vendor, secret, toStatusError } = this.options;
    const { notFound } = this.request;
    if (this.status === 404 && notFound !== undefined) return new ApiError('not_found', notFound);
    const body = withoutMark(this.gathered.bytes()).toString();
    const error =
      toStatusError === undefined
        ? vendorError(vendor, this.status, readVendorError(body, secret), readRetryAfter(this.headers))
        : toStatusError(this.status, body, this.headers);
    return this.status === 429 ? keepToldLimits(error, this.headers) : error;
  }
}
