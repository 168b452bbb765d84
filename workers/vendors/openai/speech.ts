import type { SpeechJobRequest } from '../../../shared/capabilities/speech.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { Reading } from '../../http/exchange.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { requestText } from '../request-body.ts';
import { AudioPieces } from '../support/audio-pieces.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { refuseText } from '../support/refuse-text.ts';
import type { FrameSink, VendorAnswer, VendorMethod, VendorUsage } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { OpenAiEventStream } from './event-stream.ts';

const path = '/audio/speech';

/**
 * Speech (https://platform.openai.com/docs/api-reference/audio/createSpeech), as audio or, with `stream_format` `sse`, as events,
 * which end with the usage.
 */
export function openAiSpeech(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return async ({ model, request, signal, silenceMs }, sink) => {
    const fields = JSON.parse(requestText(request)) as SpeechJobRequest;
    const stream = new SpeechStream(answerReader, sink, fields.stream_format === 'sse');
    const body = JSON.stringify({ ...fields, model });
    try {
      const text = await http.post({
        path,
        body,
        signal,
        silenceMs,
        onChunk: (bytes, type) => stream.readAs(type, bytes),
      });
      if (text !== null) throw unexpected(answerReader, text);
      return stream.end();
    } catch (error) {
      throw stream.failure(error);
    }
  };
}

/** The error of JSON instead of audio. */
function unexpected(answerReader: OpenAiAnswerReader, text: string): ApiError {
  if (parseObject(text).error) return answerReader.reportedError(text);
  return new ApiError('server_error', "The model's vendor answered with JSON in place of audio.");
}

/** One speech: bytes or events in, `delta` frames out. */
class SpeechStream extends OpenAiEventStream {
  private hasEvents: boolean;
  private readonly audio = new AudioPieces((text) => this.write(text));
  private isWhole = false;
  private usage: VendorUsage = null;

  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, hasEvents: boolean) {
    super(answerReader, sink);
    this.hasEvents = hasEvents;
  }

  /** Takes bytes of a body. A vendor without events answers a request for them with audio. */
  readAs(type: string, bytes: Buffer): Reading {
    if (/^audio\//i.test(type)) this.hasEvents = false;
    if (!this.hasEvents) refuseText(type, 'audio');
    return this.read(bytes);
  }

  /** @throws ApiError when the vendor stopped before its audio was complete. */
  end(): VendorAnswer {
    this.audio.flush();
    if (this.hasEvents && !this.isWhole) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the audio was whole.");
    }
    return { body: JSON.stringify({ usage: this.usage }), usage: this.usage };
  }

  override failure(thrown: unknown): ApiError {
    this.audio.flush();
    return super.failure(thrown);
  }

  protected override take(bytes: Buffer): void {
    if (this.hasEvents) super.take(bytes);
    else this.audio.add(bytes);
  }

  protected override takeEvent({ audio, usage }: JsonObject, type: string): void {
    if (type === 'speech.audio.delta' && typeof audio === 'string') {
      this.audio.add(Buffer.from(audio, 'base64'));
    } else if (type === 'speech.audio.done') {
      if (isObject(usage)) this.usage = usage;
      this.isWhole = true;
      this.isDone = true;
    }
  }
}
