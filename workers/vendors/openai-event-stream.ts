import { ApiError } from '../../shared/errors.ts';
import type { Reading } from '../http.ts';
import { longestEvent, SseReader } from '../sse-reader.ts';
import { interrupted } from './interrupted.ts';
import type { JsonObject } from './json-object.ts';
import type { OpenAiAnswerReader } from './openai-answer-reader.ts';
import type { FrameSink } from './vendor.ts';

/**
 * One streamed answer whose events tell their type: events in, `delta` frames out. (Chunks of chats come too fast for it:
 * their own reader leaves most of them unparsed.)
 */
export abstract class OpenAiEventStream {
  protected readonly answerReader: OpenAiAnswerReader;
  /** Whether nothing more is to be read, whatever the vendor may still send. */
  protected isDone = false;
  private readonly sink: FrameSink;
  private readonly events: SseReader;
  private frames = 0;
  private isFull = false;
  private reported: ApiError | undefined;

  /** @param longest the most that one event may hold, in characters. */
  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, longest = longestEvent) {
    this.answerReader = answerReader;
    this.sink = sink;
    this.events = new SseReader((data, type) => this.readEvent(data, type), longest);
  }

  /** Takes bytes of the body. @throws ApiError the error that the vendor reports. */
  read(bytes: Buffer): Reading {
    this.take(bytes);
    if (this.isDone) return 'finished';
    if (!this.isFull) return undefined;
    this.isFull = false;
    return this.sink.drained();
  }

  /** What a failure of the call means. */
  failure(thrown: unknown): ApiError {
    const isFinal = this.frames === 0 || thrown === this.reported;
    return isFinal ? ApiError.from(thrown) : interrupted(thrown);
  }

  protected take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  /** Takes one event. @param type its own, else that of its SSE event. @param data its text. */
  protected abstract takeEvent(event: JsonObject, type: string, data: string): void;

  /** @param text JSON text of a `delta` frame. */
  protected write(text: string): void {
    this.frames += 1;
    if (!this.sink.write({ type: 'delta', text })) this.isFull = true;
  }

  /** Ends the call with what the vendor itself says went wrong. */
  protected fail(error: ApiError): never {
    this.reported = error;
    throw error;
  }

  private readEvent(data: string, sseType: string | undefined): void {
    if (this.isDone || data === '') return;
    if (data.startsWith('[DONE]')) {
      this.isDone = true;
      return;
    }
    const event = this.answerReader.parse(data);
    const type = String(event.type ?? sseType);
    if (event.error || type === 'error' || sseType === 'error') {
      this.fail(this.answerReader.reportedError(data));
    }
    this.takeEvent(event, type, data);
  }
}
