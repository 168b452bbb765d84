import { isOpenAiVoice, type SpeechFormat } from '../../../shared/capabilities/speech.ts';
import type { HttpClient } from '../../http/http-client.ts';
import { isObject } from '../support/json-object.ts';
import { queryText } from '../support/query-text.ts';
import { relayAudio } from '../support/relay-audio.ts';
import { readSpeechRequest } from '../support/speech-request.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import type { VendorMethod } from '../vendor.ts';

/** `output_format`: codec, samples a second, kilobits a second. OpenAI's raw audio has 24,000 samples a second. */
const formats: Partial<Record<SpeechFormat, string>> = {
  mp3: 'mp3_44100_128',
  opus: 'opus_48000_128',
  pcm: 'pcm_24000',
};

/** Fields that duplicate OpenAI's. */
const refused = ['text', 'model_id', 'output_format'];

/**
 * Speech (https://elevenlabs.io/docs/api-reference/text-to-speech/stream, read 2026-11-21).
 *
 * | OpenAI          | ElevenLabs                                                                      |
 * |-----------------|---------------------------------------------------------------------------------|
 * | input           | text                                                                            |
 * | voice           | voice_id, in the path; OpenAI's own voices are refused                          |
 * | response_format | output_format; aac, flac and wav are refused                                    |
 * | speed           | voice_settings.speed                                                            |
 * | instructions    | refused                                                                         |
 * | any other       | as it is: voice_settings, language_code, seed; query parameters in the query    |
 */
export function elevenLabsSpeech(http: HttpClient): VendorMethod {
  return async ({ model, request, signal, silenceMs }, sink) => {
    const { input, voice, format, speed, own } = readSpeechRequest(request);
    const outputFormat = formats[format];
    if (outputFormat === undefined) throw unsupportedField('response_format', "the model's vendor does not speak it");
    // It becomes part of the path: a server that breaks off for its length would look like one that is unwell.
    if (isOpenAiVoice(voice) || !/^[\w-]{1,200}$/.test(voice)) {
      throw unsupportedField('voice', "the model's vendor has voices of its own: name one by its voice_id");
    }
    const foreign = refused.find((name) => own[name] !== undefined);
    if (foreign !== undefined) throw unsupportedField(foreign, 'another field says it');
    const { enable_logging, optimize_streaming_latency, voice_settings: settings, ...others } = own;
    const query = queryText({ output_format: outputFormat, enable_logging, optimize_streaming_latency });
    const body = JSON.stringify({
      ...others,
      text: input,
      model_id: model,
      voice_settings: speed === undefined ? settings : { ...(isObject(settings) && settings), speed },
    });
    const path = `/text-to-speech/${voice}/stream?${query}`;
    return await relayAudio(http, { path, body, signal, silenceMs }, sink);
  };
}
