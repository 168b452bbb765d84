import type { JsonObject } from '../support/json-object.ts';
import type { TranscriptionRequest } from '../support/transcription-request.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/** Fields that would fetch other audio, send the transcript elsewhere, split it, or add what a transcript cannot hold. */
const refused = [
  ...['audio_url', 'speech_model', 'speech_models', 'multichannel', 'dual_channel', 'redact_pii_audio'],
  ...['webhook_url', 'webhook_auth_header_name', 'webhook_auth_header_value', 'auto_chapters', 'auto_highlights'],
  ...['content_safety', 'custom_topics', 'entity_detection', 'iab_categories', 'sentiment_analysis', 'summarization'],
  'speech_understanding',
];

/** Models that take a prompt about the audio and a temperature. */
const promptable = /^universal-3/;

/**
 * The request for a transcript (https://www.assemblyai.com/docs/api-reference/transcripts/submit, read 2026-11-21).
 *
 * | OpenAI                                   | AssemblyAI                                                       |
 * |------------------------------------------|------------------------------------------------------------------|
 * | model                                    | speech_models, a single one                                      |
 * | language; languages                      | language_code; the expected languages of language_detection      |
 * | keywords                                 | keyterms_prompt                                                  |
 * | prompt                                   | prompt, from Universal-3 on and without keywords; else left out  |
 * | temperature                              | temperature, from Universal-3 on; else left out                  |
 * | diarized_json                            | speaker_labels                                                   |
 * | chunking_strategy                        | left out                                                         |
 * | include, known_speaker_*, translations   | refused                                                          |
 * | any other                                | as it is: disfluencies, speakers_expected, format_text           |
 *
 * @throws ApiError 400 naming the field that asks for something a transcript cannot hold.
 */
export function composeTranscript(model: string, request: TranscriptionRequest): JsonObject {
  const { format, keywords, prompt, temperature, own } = request;
  const foreign = refused.find((name) => own[name] !== undefined);
  if (foreign !== undefined) throw unsupportedField(foreign, 'transcripts have no place for what it brings');
  const isPromptable = promptable.test(model);
  return {
    ...languageFields(request),
    // They exclude each other: keywords are the more reliable hint.
    ...(keywords.length > 0 && { keyterms_prompt: keywords }),
    ...(keywords.length === 0 && isPromptable && prompt !== undefined && { prompt }),
    ...(isPromptable && temperature !== undefined && { temperature }),
    ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, jsonOf(value)])),
    speech_models: [model],
    ...(format === 'diarized_json' && { speaker_labels: true }),
  };
}

function languageFields({ languages }: TranscriptionRequest): JsonObject {
  const [only] = languages;
  if (languages.length === 1) return { language_code: only };
  return {
    language_detection: true,
    ...(languages.length > 1 && { language_detection_options: { expected_languages: languages } }),
  };
}

/** Fields of a form are text; AssemblyAI requires booleans, numbers, lists and objects as JSON. */
function jsonOf(value: unknown): unknown {
  if (typeof value !== 'string' || !/^(true|false|-?\d|\[|\{)/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
