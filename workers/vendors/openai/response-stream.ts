import { ApiError } from '../../../shared/errors.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { FrameSink } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { OpenAiEventStream } from './event-stream.ts';

/** Events may hold pictures in base64, and the last one repeats all items. */
const maxResponseEvent = 64 * 1024 * 1024;

/** Names of a response's events. Others (OpenAI's `keepalive`) only concern the connection. */
const eventName = /^response\.[\w.]+$/;
/** Events about the response as a whole, which the gateway makes itself. */
const beginnings: ReadonlySet<string> = new Set(['response.created', 'response.queued', 'response.in_progress']);
const endings: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
]);

/** One streamed response: events about its items become `delta` frames, the last event is its end. */
export class OpenAiResponseStream extends OpenAiEventStream {
  private response: JsonObject | undefined;
  /** Output indices of the items that have started, and of those that have ended. */
  private readonly started = new Set<unknown>();
  private readonly ended = new Set<unknown>();

  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink) {
    super(answerReader, sink, maxResponseEvent);
  }

  /**
   * The successful response, without the items that are in the frames.
   * @throws ApiError when the vendor stopped before its answer was complete.
   */
  end(): JsonObject {
    if (this.response === undefined) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    const { output, ...rest } = this.response;
    // Some vendors announce no items: then all of them are in the last event alone.
    return this.frames > 0 || !Array.isArray(output) ? rest : this.response;
  }

  protected override takeEvent(event: JsonObject, type: string): void {
    if (endings.has(type)) {
      this.finish(event.response);
    } else if (type === 'undefined') {
      throw new ApiError('server_error', "The model's vendor sent an event without a type.");
    } else if (eventName.test(type) && !beginnings.has(type)) {
      if (type === 'response.output_item.added') this.started.add(event.output_index);
      if (type === 'response.output_item.done') {
        this.started.add(event.output_index);
        this.ended.add(event.output_index);
      }
      const { type: _type, sequence_number: _number, ...fields } = event;
      this.write(JSON.stringify({ type, ...fields }));
    }
  }

  private finish(answer: unknown): void {
    if (isObject(answer) && isObject(answer.error)) this.fail(responseError(this.answerReader, answer.error));
    this.response = readResponse(this.answerReader, answer);
    if (this.frames > 0 && Array.isArray(this.response.output)) this.endItems(this.response.output);
    this.isDone = true;
  }

  /** A truncated answer may leave an item unended, and some vendors do not announce all: the frames must contain all items. */
  private endItems(output: readonly unknown[]): void {
    // Who announces as many as there are may number them differently.
    const areAllAnnounced = this.started.size >= output.length;
    output.forEach((item, index) => {
      if (this.ended.has(index) || (areAllAnnounced && !this.started.has(index))) return;
      const position = { output_index: index, item };
      if (!this.started.has(index)) this.write(JSON.stringify({ type: 'response.output_item.added', ...position }));
      this.write(JSON.stringify({ type: 'response.output_item.done', ...position }));
    });
  }
}

/** Returns a successful response: completed, or incomplete. @throws ApiError for any other, with the vendor's error. */
export function readResponse(answerReader: OpenAiAnswerReader, answer: unknown): JsonObject {
  if (!isObject(answer)) throw new ApiError('server_error', "The model's vendor answered without a response.");
  if (isObject(answer.error)) throw responseError(answerReader, answer.error);
  if (answer.status !== 'completed' && answer.status !== 'incomplete') {
    throw new ApiError('server_error', "The model's vendor did not complete the response.");
  }
  return answer;
}

function responseError(answerReader: OpenAiAnswerReader, error: JsonObject): ApiError {
  return answerReader.reportedError(JSON.stringify({ error }));
}
