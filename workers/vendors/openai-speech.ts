import type { SpeechJobRequest } from '../../shared/capabilities/speech.ts';
import { ApiError } from '../../shared/errors.ts';
import type { HttpClient } from '../http.ts';
import { isObject, type JsonObject } from './json-object.ts';
import type { OpenAiAnswerReader } from './openai-answer-reader.ts';
import { OpenAiEventStream } from './openai-event-stream.ts';
import type { FrameSink, VendorAnswer, VendorMethod, VendorUsage } from './vendor.ts';

const path = '/audio/speech';
/** The most audio in one frame, in bytes: as base64 it still travels inline. */
const longestPiece = 32 * 1024;

/**
 * Speech (https://platform.openai.com/docs/api-reference/audio/createSpeech), as audio or, with `stream_format` `sse`, as
 * events, which end with the usage.
 */
export function openAiSpeech(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return async ({ model, request, signal, silenceMs }, sink) => {
    const fields = JSON.parse(request) as SpeechJobRequest;
    const stream = new SpeechStream(answerReader, sink, fields.stream_format === 'sse');
    const body = JSON.stringify({ ...fields, model });
    try {
      const text = await http.post({ path, body, signal, silenceMs, onChunk: (bytes) => stream.read(bytes) });
      if (text !== null) throw unexpected(answerReader, text);
      return stream.end();
    } catch (error) {
      throw stream.failure(error);
    }
  };
}

/** JSON, where audio was expected. */
function unexpected(answerReader: OpenAiAnswerReader, text: string): ApiError {
  if (answerReader.parse(text).error) return answerReader.reportedError(text);
  return new ApiError('server_error', "The model's vendor answered with JSON in place of audio.");
}

/** One speech: bytes or events in, `delta` frames out. */
class SpeechStream extends OpenAiEventStream {
  private readonly hasEvents: boolean;
  private pieces: Buffer[] = [];
  private piecesSize = 0;
  private flushing: NodeJS.Immediate | undefined;
  private isWhole = false;
  private usage: VendorUsage = null;

  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, hasEvents: boolean) {
    super(answerReader, sink);
    this.hasEvents = hasEvents;
  }

  /** @throws ApiError when the vendor stopped before its audio was whole. */
  end(): VendorAnswer {
    this.flush();
    if (this.hasEvents && !this.isWhole) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the audio was whole.");
    }
    return { body: JSON.stringify({ usage: this.usage }), usage: this.usage };
  }

  override failure(thrown: unknown): ApiError {
    this.flush();
    return super.failure(thrown);
  }

  protected override take(bytes: Buffer): void {
    if (this.hasEvents) super.take(bytes);
    else this.add(bytes);
  }

  protected override takeEvent({ audio, usage }: JsonObject, type: string): void {
    if (type === 'speech.audio.delta' && typeof audio === 'string') {
      this.add(Buffer.from(audio, 'base64'));
    } else if (type === 'speech.audio.done') {
      if (isObject(usage)) this.usage = usage;
      this.isWhole = true;
      this.isDone = true;
    }
  }

  /** What comes in one turn of the event loop leaves as few frames: a vendor's pieces may be tiny. */
  private add(bytes: Buffer): void {
    this.pieces.push(bytes);
    this.piecesSize += bytes.length;
    if (this.piecesSize >= longestPiece) this.flush();
    else this.flushing ??= setImmediate(() => this.flush());
  }

  private flush(): void {
    clearImmediate(this.flushing);
    this.flushing = undefined;
    const audio = Buffer.concat(this.pieces);
    this.pieces = [];
    this.piecesSize = 0;
    for (let at = 0; at < audio.length; at += longestPiece) {
      this.write(`{"audio":"${audio.toString('base64', at, at + longestPiece)}"}`);
    }
  }
}
