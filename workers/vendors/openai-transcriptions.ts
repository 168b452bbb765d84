import type { TranscriptionFormat, TranscriptionJobRequest } from '../../shared/capabilities/transcription.ts';
import { ApiError } from '../../shared/errors.ts';
import { type FormFile, formUpload } from '../form-upload.ts';
import type { HttpClient, HttpUpload, Reading } from '../http.ts';
import { SseReader } from '../sse-reader.ts';
import { isObject, type JsonObject, type OpenAiAnswerReader } from './openai-answer-reader.ts';
import type { FrameSink, VendorAnswer, VendorCall, VendorMethod } from './vendor.ts';

const paths: Record<TranscriptionJobRequest['task'], string> = {
  transcribe: '/audio/transcriptions',
  translate: '/audio/translations',
};

/** What the vendor is asked for, so that there is what the caller's format is made of. */
const asked: Record<TranscriptionFormat, string> = {
  json: 'json',
  text: 'json',
  srt: 'verbose_json',
  vtt: 'verbose_json',
  verbose_json: 'verbose_json',
  diarized_json: 'diarized_json',
};

/** Transcriptions and translations (https://platform.openai.com/docs/api-reference/audio): the file is sent as it is read. */
export function openAiTranscriptions(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return async (call, sink) => {
    const request = JSON.parse(call.request) as TranscriptionJobRequest;
    const path = paths[request.task];
    const body = await composeForm(call, request);
    const { signal, silenceMs } = call;
    try {
      if (!call.stream) {
        const text = await http.post({ path, body, signal, silenceMs });
        return toAnswer(readTranscript(answerReader, text));
      }
      const stream = new TranscriptStream(answerReader, sink);
      try {
        const text = await http.post({ path, body, signal, silenceMs, onChunk: (bytes) => stream.read(bytes) });
        if (text !== null) stream.writeWhole(text);
        return stream.end();
      } catch (error) {
        throw stream.failure(error);
      }
    } finally {
      // A call that fails before it is sent leaves the file open.
      body.content.destroy();
    }
  };
}

async function composeForm(
  { model, stream, files }: VendorCall,
  request: TranscriptionJobRequest,
): Promise<HttpUpload> {
  const parts: [string, string | FormFile][] = [
    ['model', model],
    ['response_format', asked[request.format]],
  ];
  if (stream) parts.push(['stream', 'true']);
  for (const [name, value] of Object.entries(request.options)) {
    if (Array.isArray(value)) for (const item of value) parts.push([`${name}[]`, item]);
    else parts.push([name, String(value)]);
  }
  const { file, name, type } = request.file;
  // Last: a vendor that reads the form as it comes then knows what to do with it.
  parts.push(['file', { name, type, ...(await files.open(file)) }]);
  return formUpload(parts);
}

function readTranscript(answerReader: OpenAiAnswerReader, text: string | null): JsonObject {
  const answer = answerReader.parse(text ?? '');
  if (answer.error) throw answerReader.reportedError(text ?? '');
  if (typeof answer.text !== 'string') {
    throw new ApiError('server_error', "The model's vendor answered without a transcript.");
  }
  return answer;
}

function toAnswer(transcript: JsonObject): VendorAnswer {
  const { usage } = transcript;
  return { body: JSON.stringify(transcript), usage: isObject(usage) ? usage : null };
}

/** One streamed transcript: events in, `delta` frames out. */
class TranscriptStream {
  private readonly answerReader: OpenAiAnswerReader;
  private readonly sink: FrameSink;
  private readonly events = new SseReader((data, type) => this.readEvent(data, type));
  private readonly segments: JsonObject[] = [];
  private transcript: JsonObject | undefined;
  private frames = 0;
  private full = false;
  private reported: ApiError | undefined;

  constructor(answerReader: OpenAiAnswerReader, sink: FrameSink) {
    this.answerReader = answerReader;
    this.sink = sink;
  }

  read(bytes: Buffer): Reading {
    this.full = false;
    this.events.read(bytes);
    if (this.transcript !== undefined) return 'finished';
    return this.full ? this.sink.drained() : undefined;
  }

  /** Some vendors answer a streamed request with a whole transcript: it becomes one event that says it all. */
  writeWhole(text: string): void {
    const transcript = readTranscript(this.answerReader, text);
    const { text: delta, logprobs } = transcript;
    this.write(JSON.stringify({ type: 'transcript.text.delta', delta, logprobs }));
    this.transcript = transcript;
  }

  /** @throws ApiError when the vendor stopped before its answer was whole. */
  end(): VendorAnswer {
    if (this.transcript === undefined) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    return toAnswer(this.transcript);
  }

  /** What a failure of the call means: once output is committed, a break must not look like one that can be repeated. */
  failure(thrown: unknown): ApiError {
    const error = ApiError.from(thrown);
    if (this.frames === 0 || error === this.reported || error.code !== 'server_error') return error;
    return new ApiError('stream_interrupted', error.message, { cause: error.cause });
  }

  private readEvent(data: string, eventType: string | undefined): void {
    if (this.transcript !== undefined || data === '' || data.startsWith('[DONE]')) return;
    const event = this.answerReader.parse(data);
    if (event.error || eventType === 'error') {
      this.reported = this.answerReader.reportedError(data);
      throw this.reported;
    }
    if (event.type === 'transcript.text.done') {
      const { type: _, ...transcript } = event;
      const segments = this.segments.length === 0 ? {} : { segments: this.segments };
      this.transcript = readTranscript(this.answerReader, JSON.stringify({ ...transcript, ...segments }));
      return;
    }
    if (event.type === 'transcript.text.segment') this.segments.push(event);
    this.write(data);
  }

  private write(text: string): void {
    this.frames += 1;
    if (!this.sink.write({ type: 'delta', text })) this.full = true;
  }
}
