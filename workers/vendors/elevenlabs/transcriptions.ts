import { ApiError } from '../../../shared/errors.ts';
import { type FormPart, formUpload } from '../../http/form-upload.ts';
import type { HttpClient, HttpUpload } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { queryText } from '../support/query-text.ts';
import { type Transcript, type TranscriptSegment, transcriptAnswer } from '../support/transcript-answer.ts';
import {
  needsSegments,
  readTranscriptionRequest,
  type TranscriptionRequest,
} from '../support/transcription-request.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { VendorCall, VendorMethod } from '../vendor.ts';

/** Fields that would fetch other audio, send the transcript elsewhere, split it, or add what a transcript cannot hold. */
const refused = [
  ...['file', 'model_id', 'source_url', 'cloud_storage_url', 'token', 'webhook', 'webhook_id', 'webhook_metadata'],
  ...['use_multi_channel', 'multichannel_output_style', 'additional_formats', 'entity_detection', 'transcript_edit'],
];

/** A pause (seconds) after which a new segment begins. */
const pause = 0.8;
const sentenceEnd = /[.!?…。！？]["'”’»)\]]*$/;

/**
 * Transcriptions (https://elevenlabs.io/docs/api-reference/speech-to-text/convert, read 2026-11-21): the file is sent as it
 * is read. The vendor times words; segments are made from them here.
 *
 * | OpenAI                                   | ElevenLabs                                                |
 * |------------------------------------------|-----------------------------------------------------------|
 * | language                                 | language_code; omitted for several languages              |
 * | keywords                                 | keyterms                                                  |
 * | temperature                              | temperature                                               |
 * | any timestamps                           | timestamps_granularity                                    |
 * | diarized_json                            | diarize                                                   |
 * | prompt, chunking_strategy                | left out                                                  |
 * | include, known_speaker_*, translations   | refused                                                   |
 * | any other                                | as it is: num_speakers, seed, tag_audio_events            |
 */
export function elevenLabsTranscriptions(http: HttpClient): VendorMethod {
  return async (call) => {
    const request = readTranscriptionRequest(call);
    const { enable_logging, ...own } = request.own;
    const query = queryText({ enable_logging });
    const path = `/speech-to-text${query && `?${query}`}`;
    const body = await composeForm(call, { ...request, own });
    try {
      const { signal, silenceMs, holder } = call;
      const text = await http.post({ path, body, signal, silenceMs, holder });
      return transcriptAnswer(request, readTranscript(parseObject(text)));
    } finally {
      // A call that fails before it is sent leaves the file open.
      body.content.destroy();
    }
  };
}

async function composeForm({ model, files }: VendorCall, request: TranscriptionRequest): Promise<HttpUpload> {
  const { format, languages, keywords, temperature, timed, own } = request;
  const foreign = refused.find((name) => own[name] !== undefined);
  if (foreign !== undefined) throw unsupportedField(foreign, 'transcripts have no place for what it brings');
  const needsTimes = needsSegments(request) || (format === 'verbose_json' && timed.includes('word'));
  const fields: JsonObject = {
    model_id: model,
    // By default it would write laughter and footsteps into the text.
    tag_audio_events: false,
    timestamps_granularity: needsTimes ? 'word' : 'none',
    diarize: format === 'diarized_json',
    language_code: languages.length === 1 ? languages[0] : undefined,
    temperature,
    keyterms: keywords,
    ...own,
  };
  const parts = Object.entries(fields).flatMap(([name, value]): FormPart[] => {
    const items = Array.isArray(value) ? value : [value];
    return items.filter((item) => item !== undefined).map((item) => [name, String(item)]);
  });
  const { file } = request;
  const { name, type } = file;
  return formUpload([...parts, ['file', { name, type, ...(await files.open(file)) }]]);
}

/** @throws ApiError for anything but a transcript. */
function readTranscript(answer: JsonObject): Transcript {
  const { text, language_code: language, audio_duration_secs: duration, words } = answer;
  if (typeof text !== 'string') {
    throw new ApiError('server_error', "The model's vendor answered without a transcript.");
  }
  const pieces = (Array.isArray(words) ? words.filter(isObject) : []).map(readPiece);
  return {
    text,
    language: typeof language === 'string' ? language : undefined,
    duration: typeof duration === 'number' ? duration : undefined,
    segments: segmentsOf(pieces),
    words: pieces.filter(({ isWord }) => isWord).map(({ text, start, end }) => ({ word: text, start, end })),
  };
}

/** A word, a sound, or the space between two. */
interface Piece extends TranscriptSegment {
  readonly isWord: boolean;
  readonly isSpace: boolean;
}

function readPiece({ text, start, end, type, speaker_id: speaker }: JsonObject): Piece {
  return {
    text: String(text ?? ''),
    start: Number(start ?? 0),
    end: Number(end ?? start ?? 0),
    speaker: typeof speaker === 'string' ? speaker : undefined,
    isWord: type === 'word',
    isSpace: type === 'spacing',
  };
}

/** A segment ends with its sentence, at a change of speaker, and at a pause. */
function segmentsOf(pieces: readonly Piece[]): TranscriptSegment[] {
  const segments: { start: number; end: number; text: string; speaker: TranscriptSegment['speaker'] }[] = [];
  // By its last piece alone: to look at the whole text for each would take minutes where a vendor sends megabytes without an end.
  let isSentence = false;
  for (const { text, start, end, speaker, isSpace } of pieces) {
    const last = segments.at(-1);
    if (isSpace) {
      if (last) last.text += text;
      continue;
    }
    if (last === undefined || last.speaker !== speaker || start - last.end > pause || isSentence) {
      segments.push({ start, end, text, speaker });
    } else {
      last.text += text;
      last.end = end;
    }
    isSentence = sentenceEnd.test(text.trimEnd());
  }
  return segments.map((segment) => ({ ...segment, text: segment.text.trim() }));
}
