import { DeltaStream, maxEvent, SseReader } from '../support/delta-stream.ts';
import { type JsonObject, parseObject } from '../support/json-object.ts';
import type { FrameSink } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';

/**
 * One streamed answer of typed events: events in, `delta` frames out. (Chunks of chats come too fast for it: their own reader
 * leaves most of them unparsed.)
 */
export abstract class OpenAiEventStream extends DeltaStream {
  protected readonly answerReader: OpenAiAnswerReader;
  private readonly events: SseReader;

  /**
   * @param maxCharacters maximum size of one event.
   * @param files how many files its events may carry that become no frames.
   */
  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, maxCharacters = maxEvent, files = 0) {
    super(sink, files);
    this.answerReader = answerReader;
    this.events = new SseReader((data, type) => this.readEvent(data, type), maxCharacters);
  }

  protected override take(bytes: Buffer): void {
    this.events.read(bytes);
  }

  /** Takes one event. @param type its own, else that of its SSE event. @param data its text. */
  protected abstract takeEvent(event: JsonObject, type: string, data: string): void;

  private readEvent(data: string, sseType: string | undefined): void {
    if (this.isDone || data === '') return;
    if (data.startsWith('[DONE]')) {
      this.isDone = true;
      return;
    }
    const event = parseObject(data);
    const type = String(event.type ?? sseType);
    if (event.error || type === 'error' || sseType === 'error') {
      this.fail(this.answerReader.reportedError(data));
    }
    this.takeEvent(event, type, data);
  }
}
