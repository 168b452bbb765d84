import { objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import { queryText } from '../support/query-text.ts';
import { type Transcript, transcriptAnswer } from '../support/transcript-answer.ts';
import {
  needsSegments,
  readTranscriptionRequest,
  type TranscriptionRequest,
} from '../support/transcription-request.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { VendorMethod } from '../vendor.ts';

/** Fields that would send the transcript elsewhere, split it, or add what a transcript cannot hold. */
const refused = [
  ...['callback', 'callback_method', 'multichannel', 'search', 'summarize', 'topics', 'intents', 'sentiment'],
  'detect_entities',
];

/** Multilingual models; the others are for English. */
const detecting = /^(nova-\d+(-general)?|enhanced|base|whisper.*)$/;

/**
 * Transcriptions (https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded, read 2026-11-21): the file
 * is the body, sent as it is read.
 *
 * | OpenAI                                   | Deepgram                                                     |
 * |------------------------------------------|--------------------------------------------------------------|
 * | language, languages                      | language, or detect_language with the languages to find      |
 * | keywords                                 | keyterm, with older models keywords                          |
 * | srt, vtt, diarized_json, timed segments  | utterances                                                   |
 * | diarized_json                            | diarize_model                                                |
 * | prompt, temperature, chunking_strategy   | left out                                                     |
 * | include, known_speaker_*, translations   | refused                                                      |
 * | any other                                | as it is, in the query: numerals, redact, smart_format, tag  |
 */
export function deepgramTranscriptions(http: HttpClient): VendorMethod {
  return async (call) => {
    const request = readTranscriptionRequest(call);
    const path = `/listen?${queryText(fieldsOf(call.model, request))}`;
    const { file } = request;
    const { type: said } = file;
    // The caller's type is not trusted: a body declared as JSON would be read as a link to the audio.
    const type = /^(audio|video)\/[\w.+-]+$/.test(said) ? said : 'application/octet-stream';
    const body = { type, ...(await call.files.open(file)) };
    try {
      const { signal, silenceMs, holder } = call;
      const text = await http.post({ path, body, signal, silenceMs, holder });
      return transcriptAnswer(request, readTranscript(parseObject(text), languageOf(call.model, request)));
    } finally {
      // A call that fails before it is sent leaves the file open.
      body.content.destroy();
    }
  };
}

function fieldsOf(model: string, request: TranscriptionRequest): JsonObject {
  const { format, keywords, own } = request;
  const foreign = refused.find((name) => own[name] !== undefined);
  if (foreign !== undefined) throw unsupportedField(foreign, 'transcripts have no place for what it brings');
  return {
    smart_format: true,
    ...languageFields(model, request),
    ...(keywords.length > 0 && { [model.startsWith('nova-3') ? 'keyterm' : 'keywords']: keywords }),
    ...own,
    model,
    ...(needsSegments(request) && { utterances: true }),
    ...(format === 'diarized_json' && { diarize_model: 'latest' }),
  };
}

function languageFields(model: string, { languages }: TranscriptionRequest): JsonObject {
  if (languages.length === 1) return { language: languages };
  if (languages.length > 1) return { detect_language: languages };
  return detecting.test(model) ? { detect_language: true } : {};
}

/** The language that a model hears if it detects none. */
function languageOf(model: string, { languages }: TranscriptionRequest): string | undefined {
  const [only] = languages.length === 1 ? languages : [];
  return only ?? (languages.length > 0 || detecting.test(model) ? undefined : 'en');
}

/** The first channel's best alternative: there is only one of each. @throws ApiError for an answer without one */
function readTranscript({ metadata, results }: JsonObject, usual: string | undefined): Transcript {
  const { channels, utterances } = isObject(results) ? results : {};
  const [channel = {}] = objectsOf(channels);
  const [alternative = {}] = objectsOf(channel.alternatives);
  const { transcript: text, words } = alternative;
  if (typeof text !== 'string') {
    throw new ApiError('server_error', "The model's vendor answered without a transcript.");
  }
  const duration = isObject(metadata) ? metadata.duration : undefined;
  const detected = channel.detected_language ?? usual;
  return {
    text,
    language: typeof detected === 'string' ? detected : undefined,
    duration: typeof duration === 'number' ? duration : undefined,
    segments: objectsOf(utterances).map((utterance) => ({
      ...timesOf(utterance),
      text: String(utterance.transcript ?? ''),
      speaker: typeof utterance.speaker === 'number' ? utterance.speaker : undefined,
    })),
    words: objectsOf(words).map((said) => ({ word: String(said.punctuated_word ?? said.word), ...timesOf(said) })),
  };
}

function timesOf({ start, end }: JsonObject): { start: number; end: number } {
  return { start: Number(start ?? 0), end: Number(end ?? start ?? 0) };
}
