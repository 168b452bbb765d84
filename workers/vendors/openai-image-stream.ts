import { ApiError } from '../../shared/errors.ts';
import type { Reading } from '../http.ts';
import { SseReader } from '../sse-reader.ts';
import { isObject, type JsonObject, type OpenAiAnswerReader } from './openai-answer-reader.ts';
import type { FrameSink } from './vendor.ts';

/** An image of 4096 x 4096 pixels can have some 40 million characters in base64. */
const longestImageEvent = 64 * 1024 * 1024;

/** One streamed image answer: partial images become `delta` frames, completed ones are gathered for the end. */
export class OpenAiImageStream {
  private readonly answerReader: OpenAiAnswerReader;
  private readonly sink: FrameSink;
  private readonly expected: number;
  private readonly events = new SseReader((data, type) => this.readEvent(data, type), longestImageEvent);
  private readonly images: JsonObject[] = [];
  private answer: JsonObject = {};
  private frames = 0;
  private full = false;
  private done = false;
  private reported: ApiError | undefined;

  /** @param expected images that make the answer whole */
  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, expected: number) {
    this.answerReader = answerReader;
    this.sink = sink;
    this.expected = expected;
  }

  read(bytes: Buffer): Reading {
    this.full = false;
    this.events.read(bytes);
    if (this.done) return 'finished';
    return this.full ? this.sink.drained() : undefined;
  }

  /** The whole answer, shaped like a held one. @throws ApiError when the vendor stopped before it was whole. */
  end(): JsonObject & { data: JsonObject[] } {
    if (!this.done || this.images.length === 0) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the images were complete.");
    }
    const usage = addUp(this.images.flatMap((image) => (isObject(image.usage) ? [image.usage] : [])));
    return { ...this.answer, usage, data: this.images };
  }

  /** What a failure of the call means: once output is committed, a break must not look like one that can be repeated. */
  failure(thrown: unknown): ApiError {
    const error = ApiError.from(thrown);
    if (this.frames === 0 || error === this.reported || error.code !== 'server_error') return error;
    return new ApiError('stream_interrupted', error.message, { cause: error.cause });
  }

  private readEvent(data: string, eventType: string | undefined): void {
    if (this.done || data === '') return;
    if (data.startsWith('[DONE]')) {
      this.done = true;
      return;
    }
    const { type: ownType, ...fields } = this.answerReader.parse(data);
    const type = String(ownType ?? eventType);
    if (fields.error || type === 'error') {
      this.reported = this.answerReader.reportedError(data);
      throw this.reported;
    }
    if (type.endsWith('.partial_image')) this.writePartial(fields);
    else if (type.endsWith('.completed')) this.complete(fields);
  }

  private writePartial(fields: JsonObject): void {
    this.frames += 1;
    const text = JSON.stringify({ created_at: Math.floor(Date.now() / 1000), ...fields });
    if (!this.sink.write({ type: 'delta', text })) this.full = true;
  }

  /** A completed image: what belongs to it alone, and what it says of the whole answer. */
  private complete({ b64_json, url, usage, created_at: created, ...answer }: JsonObject): void {
    this.images.push({ b64_json, url, usage });
    this.answer = { ...this.answer, created, ...answer };
    this.done = this.images.length >= this.expected;
  }
}

/** Sums counts of the same names, as deep as they go; undefined where there is nothing to count. */
function addUp(counts: readonly JsonObject[]): JsonObject | undefined {
  const [first, ...others] = counts;
  return first && others.reduce(add, first);
}

function add(one: JsonObject, other: JsonObject): JsonObject {
  const sum: JsonObject = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = sum[name];
    if (typeof value === 'number') sum[name] = value + (typeof before === 'number' ? before : 0);
    else if (isObject(value)) sum[name] = add(isObject(before) ? before : {}, value);
  }
  return sum;
}
