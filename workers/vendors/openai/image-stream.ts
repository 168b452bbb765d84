import { ApiError } from '../../../shared/errors.ts';
import { maxFrames } from '../../../shared/jobs/append.ts';
import { maxBody } from '../../http/exchange.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { sumUsage } from '../support/sum-usage.ts';
import { failureAfterBegin } from '../support/vendor-task-calls.ts';
import type { FrameSink } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { OpenAiEventStream } from './event-stream.ts';

/** An image of 4096 x 4096 pixels can have some 40 million characters in base64. */
const maxImageEvent = 64 * 1024 * 1024;
/** Maximum characters of all completed images, which are kept until the end: those of an answer without streaming. */
const maxImages = maxBody;

/** One streamed image answer: partial images become `delta` frames, completed ones are collected for the end. */
export class OpenAiImageStream extends OpenAiEventStream {
  private readonly expected: number;
  private readonly images: JsonObject[] = [];
  private answer: JsonObject = {};
  /** Characters of the partial images that were written. */
  private written = 0;

  /** @param expected number of images of a complete answer */
  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, expected: number) {
    // The kept images count as one file more, whatever their number.
    super(answerReader, sink, maxImageEvent, 1);
    this.expected = expected;
  }

  /**
   * Ends a stream that has failed after at least one image: the vendor bills it, so the caller gets it without the others.
   * @throws unknown the failure, if there is no image, or if the call is aborted.
   */
  keepMade(failure: unknown, signal: AbortSignal): null {
    if (this.images.length === 0 || signal.aborted) throw failure;
    return null;
  }

  /** The answer, shaped like one without streaming; its vendor may have made fewer images than asked. @throws ApiError for none. */
  end(): JsonObject & { data: JsonObject[] } {
    if (this.images.length === 0) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the images were complete.");
    }
    const usage = sumUsage(this.images.map((image) => (isObject(image.usage) ? image.usage : null))) ?? undefined;
    return { ...this.answer, usage, data: this.images };
  }

  override failure(thrown: unknown): ApiError {
    const error = super.failure(thrown);
    // No frame shows a completed image, but it is being charged.
    return this.images.length === 0 ? error : failureAfterBegin(error);
  }

  protected override takeEvent({ type: _, ...fields }: JsonObject, type: string, data: string): void {
    if (type.endsWith('.partial_image')) {
      this.writePartial(JSON.stringify({ created_at: Math.floor(Date.now() / 1000), ...fields }));
    } else if (type.endsWith('.completed')) {
      this.keep(data.length);
      if (this.kept > maxImages) {
        throw new ApiError('server_error', "The images of the model's vendor are too large together.");
      }
      this.complete(fields);
    }
  }

  /** Leaves out what the answer has no room for: it would end without the images, which are billed. */
  private writePartial(text: string): void {
    if (this.written + text.length > maxFrames) return;
    this.written += text.length;
    this.write(text);
  }

  /** Splits a completed image into its own fields and those of the whole answer. */
  private complete({ b64_json, url, usage, created_at: created, ...answer }: JsonObject): void {
    this.images.push({ b64_json, url, usage });
    this.answer = { ...this.answer, created, ...answer };
    this.isDone = this.images.length >= this.expected;
  }
}
