import { isOpenAiVoice, type SpeechFormat } from '../../../shared/capabilities/speech.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { queryText } from '../support/query-text.ts';
import { relayAudio } from '../support/relay-audio.ts';
import { readSpeechRequest, type SpeechRequest } from '../support/speech-request.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { VendorMethod } from '../vendor.ts';

/** https://developers.deepgram.com/docs/tts-media-output-settings. OpenAI's raw audio has 24,000 samples a second. */
const encodings: Record<SpeechFormat, Readonly<Record<string, string | number>>> = {
  mp3: { encoding: 'mp3' },
  opus: { encoding: 'opus', container: 'ogg' },
  aac: { encoding: 'aac' },
  flac: { encoding: 'flac' },
  wav: { encoding: 'linear16', container: 'wav' },
  pcm: { encoding: 'linear16', container: 'none', sample_rate: 24_000 },
};

/** Fields that would send the audio elsewhere, or that duplicate `response_format`. */
const refused = ['callback', 'callback_method', 'encoding', 'container'];

/**
 * Speech (https://developers.deepgram.com/reference/text-to-speech/speak-request, read 2026-11-21). A model is one voice.
 *
 * | OpenAI                  | Deepgram                                                    |
 * |-------------------------|-------------------------------------------------------------|
 * | input                   | text                                                        |
 * | response_format         | encoding, container, sample_rate                            |
 * | speed                   | speed                                                       |
 * | voice                   | the model's own name, or one of OpenAI's, which is left out |
 * | instructions            | refused                                                     |
 * | any other               | as it is, in the query: bit_rate, sample_rate, tag          |
 */
export function deepgramSpeech(http: HttpClient): VendorMethod {
  return async ({ model, request, signal, silenceMs }, sink) => {
    const speech = readSpeechRequest(request);
    checkVoice(model, speech);
    const foreign = refused.find((name) => speech.own[name] !== undefined);
    if (foreign !== undefined) throw unsupportedField(foreign, 'it is not for the caller to choose');
    const { input, format, speed, own } = speech;
    const path = `/speak?${queryText({ ...encodings[format], ...own, speed, model })}`;
    return await relayAudio(http, { path, body: JSON.stringify({ text: input }), signal, silenceMs }, sink);
  };
}

/** The voice of `aura-2-thalia-en` may be given by that name, or as `thalia`. */
function checkVoice(model: string, { voice }: SpeechRequest): void {
  const [, own] = /^aura(?:-\d+)?-(.+)-[a-z]{2}$/.exec(model) ?? [];
  if (voice === model || voice === own || isOpenAiVoice(voice)) return;
  throw unsupportedField('voice', 'each voice of its vendor is a model of its own, and this one has another');
}
