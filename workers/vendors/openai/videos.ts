import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { VideoJob, VideoVariant } from '../../../shared/capabilities/video.ts';
import { ApiError } from '../../../shared/errors.ts';
import { LostAnswerError } from '../../http/connection-errors.ts';
import { formFields, formUpload } from '../../http/form-upload.ts';
import type { HttpClient, HttpUpload } from '../../http/http-client.ts';
import { requestText } from '../request-body.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import type { VendorErrorDetails } from '../support/read-vendor-error.ts';
import { headBytes, refuseNoFilm, refuseText } from '../support/refuse-text.ts';
import { isLength } from '../support/transcript-answer.ts';
import type { StoredFile, TaskCall, TaskState, VendorCall, VideoTasks } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';

/** Maximum size of a stored video file, in bytes. */
const maxFile = 512 * 1024 * 1024;

const unknownTask = "The model's vendor does not know the video.";

/** Types of files for which the vendor reports none; never anything that a browser would run. */
const usualTypes: Record<VideoVariant, string> = {
  video: 'video/mp4',
  thumbnail: 'image/webp',
  spritesheet: 'image/jpeg',
};
const fileTypes = new Set(['video/mp4', 'image/webp', 'image/jpeg', 'image/png']);

/** Codes of a failed video that mean a request that is not allowed: the caller's fault, not the vendor's. */
const refusals = /moderation|content_policy|content_filter|policy_violation|_block(ed)?$|^invalid_/;

/** Videos (https://platform.openai.com/docs/api-reference/videos), each a background task of the vendor. */
export function openAiVideos(
  http: HttpClient,
  answerReader: OpenAiAnswerReader,
  maxBytes = maxFile,
): Required<VideoTasks> {
  return {
    create: (call) => create(http, answerReader, call),
    async poll(call) {
      const text = await http.get({ path: pathOf(call), notFound: unknownTask, ...limitsOf(call) });
      return readState(parseObject(text), () => answerReader.details(text ?? ''));
    },
    fetch: (call, variant) => fetchFile(http, call, variant, maxBytes),
    async discard(call) {
      await http.delete({ path: pathOf(call), notFound: unknownTask, ...limitsOf(call) });
    },
  };
}

function pathOf({ task }: TaskCall): string {
  return `/videos/${encodeURIComponent(task)}`;
}

function limitsOf({ signal, silenceMs }: Pick<VendorCall, 'signal' | 'silenceMs'>) {
  return { signal, silenceMs };
}

async function create(http: HttpClient, answerReader: OpenAiAnswerReader, call: VendorCall): Promise<string> {
  const job = JSON.parse(requestText(call.request)) as VideoJob;
  const path = job.remixed === null ? '/videos' : `/videos/${encodeURIComponent(job.remixed.task)}/remix`;
  const missing = job.remixed === null ? {} : { notFound: "The model's vendor no longer knows the video to remix." };
  const body = await composeBody(call, job);
  let text: string | null;
  try {
    text = await http.post({ path, body, ...missing, ...limitsOf(call) });
  } catch (error) {
    if (!(error instanceof LostAnswerError)) throw error;
    throw unknown("The model's vendor was lost while it began the video, and it must not be asked twice.", error.cause);
  } finally {
    // A call that fails before it is sent leaves the file open.
    if (typeof body !== 'string') body.content.destroy();
  }
  return readName(answerReader, text ?? '');
}

/** A form if there is an upload, else JSON. A remix takes everything but the prompt from the original. */
async function composeBody({ model, uploads, files }: VendorCall, job: VideoJob): Promise<string | HttpUpload> {
  const { prompt, size, seconds, input, remixed, parameters } = job;
  if (remixed !== null) return JSON.stringify({ ...parameters, prompt });
  const fields: JsonObject = { ...parameters, model, prompt, size, seconds };
  const [upload] = uploads;
  if (upload === undefined) return JSON.stringify({ ...fields, ...(input && { input_reference: input }) });
  const { name, type } = upload;
  return formUpload([...formFields(fields), ['input_reference', { name, type, ...(await files.open(upload)) }]]);
}

/** The name of a started task. A task without a name cannot be found again. */
function readName(answerReader: OpenAiAnswerReader, text: string): string {
  let answer: JsonObject;
  try {
    answer = parseObject(text);
  } catch (error) {
    throw unknown("The model's vendor began the video, but its answer cannot be read.", error);
  }
  const { id, error } = answer;
  // It becomes a segment of a path, in which only dots would lead elsewhere.
  if (typeof id === 'string' && /^(?!\.{1,2}$)[\x21-\x7e]+$/.test(id)) return id;
  // An error under a status of success. (A video has an `error`, too: null as long as it has not failed.)
  if (error) throw answerReader.reportedError(text);
  throw unknown("The model's vendor began the video, but did not say what it is called.");
}

function unknown(message: string, cause?: unknown): ApiError {
  return new ApiError('outcome_unknown', message, cause === undefined ? {} : { cause });
}

/** @param error reads why it has failed @throws ApiError for anything but a video. */
function readState({ status, progress, size, seconds }: JsonObject, error: () => VendorErrorDetails): TaskState {
  switch (status) {
    case 'queued':
    case 'in_progress':
      return { status: 'running', progress: typeof progress === 'number' ? progress : 0 };
    case 'completed':
      return {
        status,
        ...(isShort(size) && { size }),
        ...(isShort(`${seconds}`) && isLength(Number(seconds)) && { seconds: String(seconds) }),
      };
    case 'failed':
      return { status, error: taskError(error()) };
    default:
      throw new ApiError('server_error', "The model's vendor answered with a video of an unknown status.");
  }
}

/** Whether it can be a size or a length: both are kept, and shown with the video. */
function isShort(said: unknown): said is string {
  return typeof said === 'string' && said.length <= 32;
}

/** Why a video failed, from its `error`. */
function taskError({ code: vendorCode, message: said }: VendorErrorDetails): ApiError {
  const options = { vendorCode, isQuoted: said !== null };
  if (vendorCode !== null && refusals.test(vendorCode)) {
    return new ApiError('invalid_request_error', said ?? "The model's vendor refused the request.", options);
  }
  return new ApiError('server_error', said ?? "The model's vendor could not make the video.", options);
}

/** Streams a file into the store: only a few chunks of a video are ever in memory. */
async function fetchFile(
  http: HttpClient,
  call: TaskCall,
  variant: VideoVariant,
  maxBytes: number,
): Promise<StoredFile | undefined> {
  const file = new IncomingFile(call, variant, maxBytes);
  const path = `${pathOf(call)}/content?variant=${variant}`;
  try {
    const onChunk = (chunk: Buffer, type: string) => file.write(chunk, type);
    const text = await http.get({ path, notFound: 'no such variant', onChunk, ...limitsOf(call) });
    if (text !== null) throw new ApiError('server_error', "The model's vendor answered with JSON in place of a file.");
    return await file.end();
  } catch (error) {
    await file.discard();
    if (error instanceof ApiError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** A file that is stored as it arrives. */
class IncomingFile {
  private readonly call: TaskCall;
  private readonly variant: VideoVariant;
  private readonly maxBytes: number;
  private readonly content = new PassThrough();
  private saved: Promise<StoredFile> | undefined;
  private bytes = 0;
  /** The first bytes, until they are enough to tell files of one kind from others. */
  private head = Buffer.alloc(0);
  private type = '';

  constructor(call: TaskCall, variant: VideoVariant, maxBytes: number) {
    this.call = call;
    this.variant = variant;
    this.maxBytes = maxBytes;
    this.content.on('error', () => undefined);
  }

  /** @throws ApiError for a file that is too large or another one, and the error of storing. */
  write(chunk: Buffer, type: string): Promise<void> | undefined {
    this.bytes += chunk.length;
    if (this.bytes > this.maxBytes) {
      throw new ApiError('request_too_large', `The video's ${this.variant} has more than ${this.maxBytes} bytes.`);
    }
    if (this.saved !== undefined) return this.pass(chunk, this.saved);
    this.head = Buffer.concat([this.head, chunk]);
    this.type = type;
    return this.head.length < headBytes ? undefined : this.pass(this.head, this.begin());
  }

  async end(): Promise<StoredFile> {
    if (this.bytes === 0) throw new ApiError('server_error', "The model's vendor answered with an empty file.");
    if (this.saved === undefined) await this.pass(this.head, this.begin());
    this.content.end();
    return await (this.saved as Promise<StoredFile>);
  }

  /** Discards an incomplete file: nothing of it stays. */
  async discard(): Promise<void> {
    this.content.destroy(new Error('the file broke off'));
    await this.saved?.catch(() => undefined);
  }

  /** @throws ApiError for another file. */
  private begin(): Promise<StoredFile> {
    this.refuseAnother();
    const type = this.type.split(';')[0]?.trim().toLowerCase() ?? '';
    const saved = this.call.files.save(this.content, fileTypes.has(type) ? type : usualTypes[this.variant]);
    // Failures are still reported: to the writer by the content, and to `end` by the promise.
    saved.catch((error) => this.content.destroy(error));
    this.saved = saved;
    return saved;
  }

  private refuseAnother(): void {
    const { type } = this;
    if (this.variant === 'video') {
      refuseNoFilm(type, this.head);
      return;
    }
    refuseText(type, 'a file');
    // A server that knows no variants sends the film again.
    if (/^video\//i.test(type)) throw new ApiError('not_found', 'no such variant');
  }

  private pass(bytes: Buffer, saved: Promise<StoredFile>): Promise<void> | undefined {
    return this.content.write(bytes) ? undefined : this.drained(saved);
  }

  private async drained(saved: Promise<StoredFile>): Promise<void> {
    // A store that has failed no longer drains.
    await Promise.race([once(this.content, 'drain'), saved]);
  }
}
