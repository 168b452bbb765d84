import { nameOfVoice, type SpeechFormat, type SpeechJobRequest } from '../../../shared/capabilities/speech.ts';
import { unsupportedField } from './unsupported-field.ts';

/** A speech job as vendors see it that do not speak OpenAI's dialect. */
export interface SpeechRequest {
  readonly input: string;
  readonly format: SpeechFormat;
  readonly voice: string;
  /** Undefined: as fast as usual. */
  readonly speed: number | undefined;
  /** Fields that are no OpenAI's: they are the vendor's own. */
  readonly own: Readonly<Record<string, unknown>>;
}

/**
 * Reads a speech job for a vendor that cannot be told how to speak and has no events.
 * @throws ApiError 400 that names the field which asks for what the vendor does not have.
 */
export function readSpeechRequest(request: string): SpeechRequest {
  const {
    input,
    response_format: format,
    voice,
    speed,
    instructions,
    stream_format: events,
    ...own
  } = JSON.parse(request) as SpeechJobRequest;
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
