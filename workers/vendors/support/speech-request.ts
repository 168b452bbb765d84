import { nameOfVoice, type SpeechFormat, type SpeechJobRequest } from '../../../shared/capabilities/speech.ts';
import { type RequestBody, requestText } from '../request-body.ts';
import { unsupportedField } from './unsupported-field.ts';

/** A speech job for vendors that do not speak OpenAI's dialect. */
export interface SpeechRequest {
  readonly input: string;
  readonly format: SpeechFormat;
  readonly voice: string;
  /** Undefined: normal speed. */
  readonly speed: number | undefined;
  /** Fields that are not OpenAI's: the vendor's own. */
  readonly own: Readonly<Record<string, unknown>>;
}

/**
 * Reads a speech job for a vendor that supports neither speaking instructions nor events.
 * @throws ApiError 400 naming the field that asks for something unsupported.
 */
export function readSpeechRequest(request: RequestBody): SpeechRequest {
  const {
    input,
    response_format: format,
    voice,
    speed,
    instructions,
    stream_format: events,
    ...own
  } = JSON.parse(requestText(request)) as SpeechJobRequest;
  if (instructions) throw unsupportedField('instructions', "the model's vendor cannot be told how to speak");
  if (events === 'sse') throw unsupportedField('stream_format', "the model's vendor does not send audio as events");
  return {
    input,
    format,
    voice: nameOfVoice(voice),
    speed: typeof speed === 'number' && speed !== 1 ? speed : undefined,
    own,
  };
}
