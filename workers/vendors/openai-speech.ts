import type { SpeechJobRequest } from '../../shared/capabilities/speech.ts';
import { ApiError } from '../../shared/errors.ts';
import type { HttpClient, Reading } from '../http.ts';
import { SseReader } from '../sse-reader.ts';
import { isObject, type OpenAiAnswerReader } from './openai-answer-reader.ts';
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
class SpeechStream {
  private readonly answerReader: OpenAiAnswerReader;
  private readonly sink: FrameSink;
  private readonly events: SseReader | undefined;
  private pieces: Buffer[] = [];
  private piecesSize = 0;
  private flushing: NodeJS.Immediate | undefined;
  private full = false;
  private frames = 0;
  private usage: VendorUsage = null;
  private done = false;
  private reported: ApiError | undefined;

  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink, asEvents: boolean) {
    this.answerReader = answerReader;
    this.sink = sink;
    if (asEvents) this.events = new SseReader((data, type) => this.readEvent(data, type));
  }

  read(bytes: Buffer): Reading {
    if (this.events === undefined) this.add(bytes);
    else this.events.read(bytes);
    if (this.done) return 'finished';
    if (!this.full) return undefined;
    this.full = false;
    return this.sink.drained();
  }

  /** @throws ApiError when the vendor stopped before its audio was whole. */
  end(): VendorAnswer {
    this.flush();
    if (this.events !== undefined && !this.done) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the audio was whole.");
    }
    return { body: JSON.stringify({ usage: this.usage }), usage: this.usage };
  }

  /** What a failure of the call means: once output is committed, a break must not look like one that can be repeated. */
  failure(thrown: unknown): ApiError {
    this.flush();
    const error = ApiError.from(thrown);
    if (this.frames === 0 || error === this.reported || error.code !== 'server_error') return error;
    return new ApiError('stream_interrupted', error.message, { cause: error.cause });
  }

  private readEvent(data: string, eventType: string | undefined): void {
    if (this.done || data === '' || data.startsWith('[DONE]')) return;
    const event = this.answerReader.parse(data);
    if (event.error || eventType === 'error') {
      this.reported = this.answerReader.reportedError(data);
      throw this.reported;
    }
    if (event.type === 'speech.audio.delta' && typeof event.audio === 'string') {
      this.add(Buffer.from(event.audio, 'base64'));
    } else if (event.type === 'speech.audio.done') {
      if (isObject(event.usage)) this.usage = event.usage;
      this.done = true;
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
      this.frames += 1;
      const text = `{"audio":"${audio.toString('base64', at, at + longestPiece)}"}`;
      if (!this.sink.write({ type: 'delta', text })) this.full = true;
    }
  }
}
