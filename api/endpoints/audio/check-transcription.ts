import type { Check } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import type { TranscriptionRequirements } from './parse-transcription.ts';

/**
 * Checks a request against the model. Also refuses a stream from a model that does not stream: OpenAI ignores the flag in
 * that case, and returns JSON to a client that expects events.
 */
export const checkTranscription: Check<TranscriptionRequirements> = (
  { stream, requirements },
  { id, transcription },
) => {
  const { task, format, speakers } = requirements;
  const refuse = (param: string, message: string): never => {
    throw invalidParameter(param, `The model \`${id}\` ${message}.`);
  };
  if (task === 'translate' && !transcription?.translates) refuse('model', 'does not translate');
  // `timestamp_granularities` requires `verbose_json`, so checking the format covers it.
  if ((format === 'srt' || format === 'vtt' || format === 'verbose_json') && !transcription?.timestamps) {
    refuse('response_format', `does not time what it hears, which '${format}' needs`);
  }
  if (format === 'diarized_json' && !transcription?.diarizes) {
    refuse('response_format', "does not tell speakers apart, which 'diarized_json' needs");
  }
  if (speakers !== undefined && !transcription?.diarizes) refuse(speakers, 'does not tell speakers apart');
  if (stream && !transcription?.streams) refuse('stream', 'does not stream');
};
