import type { Exchange } from '../exchange.ts';
import { isObject } from '../json-value.ts';
import { answerMedia, eventText, type Part, sendParts } from '../media-answer.ts';
import { findModel, type SandboxModel } from '../models.ts';
import { type CallOptions, RequestFields, readCallOptions } from '../request-fields.ts';
import { byteFaults, jsonFaults } from '../request-options.ts';
import { splitTokens } from '../tokens.ts';
import { invalidParameter } from '../wire-error.ts';
import { type SpeechFormat, speak, speechFormats, speechTypes } from './speech-encoder.ts';
import { countSamples, SAMPLE_RATE, type Utterance, voicePitches } from './synthesizer.ts';

/** A checked `POST /v1/audio/speech`. */
interface SpeechRequest extends CallOptions {
  model: SandboxModel;
  /** Whether the audio is sent as SSE events. */
  stream: boolean;
  utterance: Utterance;
  format: SpeechFormat;
}

/** Tokens per second of sound of OpenAI's speech models. */
const TOKENS_PER_SECOND = 20;

/** `POST /v1/audio/speech` */
export function createSpeech(exchange: Exchange): void {
  const request = readSpeechRequest(exchange);
  answerMedia(exchange, request, (delivery) => {
    const type = request.stream ? 'text/event-stream; charset=utf-8' : speechTypes[request.format];
    return sendParts(delivery, type, request.stream ? audioEvents(request) : audioBytes(request));
  });
}

function readSpeechRequest({ body, request }: Exchange): SpeechRequest {
  const fields = RequestFields.fromJson(body);
  fields.allowOnly(['input', 'voice', 'instructions', 'response_format', 'speed', 'stream_format']);
  const stream = fields.choice('stream_format', ['audio', 'sse']) === 'sse';
  const format = fields.choice('response_format', [...speechFormats, 'opus', 'aac']) ?? 'mp3';
  if (format === 'opus' || format === 'aac') {
    const message = `The sandbox cannot make ${format}: 'response_format' must be one of ${speechFormats.join(', ')}.`;
    throw invalidParameter('response_format', message);
  }
  return {
    model: findModel(fields.requiredText('model'), 'speech'),
    stream,
    format,
    utterance: {
      text: fields.requiredText('input', 4096),
      voice: readVoice(fields),
      instructions: fields.text('instructions') ?? '',
      speed: fields.number('speed', 0.25, 4) ?? 1,
    },
    ...readCallOptions(fields, request.headers, stream ? jsonFaults : byteFaults),
  };
}

/** A custom voice is an object with an id, which selects the sound. */
function readVoice(fields: RequestFields): string {
  const voice = fields.raw('voice');
  if (isObject(voice) && typeof voice.id === 'string') return voice.id;
  const choice = fields.choice('voice', Object.keys(voicePitches));
  return choice ?? fields.requiredText('voice');
}

async function* audioBytes({ utterance, format }: SpeechRequest): AsyncGenerator<Part> {
  for await (const data of speak(utterance, format)) yield { data, counts: true };
}

async function* audioEvents({ utterance, format }: SpeechRequest): AsyncGenerator<Part> {
  for await (const bytes of speak(utterance, format)) {
    const audio = bytes.toString('base64');
    yield { data: eventText({ type: 'speech.audio.delta', audio }), counts: true };
  }
  const input = splitTokens(utterance.text).length + splitTokens(utterance.instructions).length;
  const output = Math.ceil((countSamples(utterance) / SAMPLE_RATE) * TOKENS_PER_SECOND);
  const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  yield { data: eventText({ type: 'speech.audio.done', usage }), counts: false };
}
