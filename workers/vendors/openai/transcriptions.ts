import type { TranscriptionFormat, TranscriptionJobRequest } from '../../../shared/capabilities/transcription.ts';
import { ApiError } from '../../../shared/errors.ts';
import { formFields, formUpload } from '../../http/form-upload.ts';
import type { HttpClient, HttpUpload } from '../../http/http-client.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { isLength } from '../support/transcript-answer.ts';
import { audioOf } from '../support/transcription-request.ts';
import type { VendorAnswer, VendorCall, VendorMethod } from '../vendor.ts';
import type { OpenAiAnswerReader } from './answer-reader.ts';
import { OpenAiEventStream } from './event-stream.ts';

const paths: Record<TranscriptionJobRequest['task'], string> = {
  transcribe: '/audio/transcriptions',
  translate: '/audio/translations',
};

/** The format requested from the vendor, which must contain everything that the caller's format needs. */
const asked: Record<TranscriptionFormat, string> = {
  json: 'json',
  text: 'json',
  srt: 'verbose_json',
  vtt: 'verbose_json',
  verbose_json: 'verbose_json',
  diarized_json: 'diarized_json',
};

/** What only timed formats have, beside the text. */
const timedFields: ReadonlySet<string> = new Set(['task', 'language', 'duration', 'segments', 'words']);

/** Transcriptions and translations (https://platform.openai.com/docs/api-reference/audio): the file is sent as it is read. */
export function openAiTranscriptions(http: HttpClient, answerReader: OpenAiAnswerReader): VendorMethod {
  return async (call, sink) => {
    const request = JSON.parse(requestText(call.request)) as TranscriptionJobRequest;
    const path = paths[request.task];
    const body = await composeForm(call, request);
    const { signal, silenceMs, holder } = call;
    const post = { path, body, signal, silenceMs, holder };
    try {
      if (!call.stream) {
        const text = await http.post(post);
        const transcript = readTranscript(answerReader, text);
        return isTimedForPrice(request) ? toUntimedAnswer(transcript) : toAnswer(transcript);
      }
      const stream = new TranscriptStream(answerReader, sink);
      try {
        const text = await http.post({ ...post, onChunk: (bytes) => stream.read(bytes) });
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

/** Whether a timed format is requested although the caller's format needs none. */
function isTimedForPrice({ is_timed: isTimed = false, format }: TranscriptionJobRequest): boolean {
  return isTimed && asked[format] === 'json';
}

async function composeForm(
  { model, stream, uploads, files }: VendorCall,
  request: TranscriptionJobRequest,
): Promise<HttpUpload> {
  const format = isTimedForPrice(request) && !stream ? 'verbose_json' : asked[request.format];
  const fields = { model, response_format: format, ...(stream && { stream }), ...request.options };
  const audio = audioOf({ uploads });
  const { name, type } = audio;
  // Last: a vendor that parses the form as it arrives then already has all fields.
  return formUpload([...formFields(fields), ['file', { name, type, ...(await files.open(audio)) }]]);
}

function readTranscript(answerReader: OpenAiAnswerReader, text: string | null): JsonObject {
  const answer = answerReader.answer(text ?? '');
  if (typeof answer.text !== 'string') {
    throw new ApiError('server_error', "The model's vendor answered without a transcript.");
  }
  return answer;
}

/** @param shown what the caller gets of it; left out: all */
function toAnswer(transcript: JsonObject, shown = transcript): VendorAnswer {
  const { usage } = transcript;
  // Audio has a length: none at all would cost nothing.
  const counted = isObject(usage) && usage.seconds !== 0 ? usage : null;
  const duration = isLength(transcript.duration) ? transcript.duration : undefined;
  const answer = { body: JSON.stringify(shown), usage: counted };
  // A usage of type `duration` has what the vendor bills; a timed format has the length beside other usages.
  const isReported = typeof counted?.seconds === 'number' || duration === undefined;
  return isReported ? answer : { ...answer, quantities: { seconds: duration } };
}

/** A timed transcript for a caller who wants its text: the length of the audio is its usage. */
function toUntimedAnswer(transcript: JsonObject): VendorAnswer {
  const { duration } = transcript;
  const measured = isLength(duration) && { usage: { type: 'duration', seconds: duration } };
  const others = Object.entries(transcript).filter(([name]) => !timedFields.has(name));
  return toAnswer({ ...measured, ...transcript }, { ...measured, ...Object.fromEntries(others) });
}

/** One streamed transcript: events in, `delta` frames out. */
class TranscriptStream extends OpenAiEventStream {
  private readonly segments: JsonObject[] = [];
  private transcript: JsonObject | undefined;

  /** Some vendors answer a streamed request with a whole transcript: it becomes a single event. */
  writeWhole(text: string): void {
    const transcript = readTranscript(this.answerReader, text);
    const { text: delta, logprobs } = transcript;
    this.write(JSON.stringify({ type: 'transcript.text.delta', delta, logprobs }));
    this.transcript = transcript;
  }

  /** @throws ApiError when the vendor stopped before its answer was complete. */
  end(): VendorAnswer {
    if (this.transcript === undefined) {
      throw new ApiError('server_error', "The model's vendor ended its stream before the answer was whole.");
    }
    return toAnswer(this.transcript);
  }

  protected override takeEvent(event: JsonObject, type: string, data: string): void {
    if (type === 'transcript.text.done') {
      const { type: _, ...transcript } = event;
      const segments = this.segments.length === 0 ? {} : { segments: this.segments };
      this.transcript = readTranscript(this.answerReader, JSON.stringify({ ...transcript, ...segments }));
      this.isDone = true;
      return;
    }
    this.write(data);
    if (type !== 'transcript.text.segment') return;
    this.keep(data.length);
    this.segments.push(event);
  }
}
