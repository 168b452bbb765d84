import type { Check } from '../../pipeline/endpoint.ts';
import { invalidParameter } from '../../pipeline/invalid-request.ts';
import type { TranscriptionRequirements } from './parse-transcription.ts';

/**
 * What the model must be able to do for a request. A stream of a model that says its text only at its end is refused too:
 * OpenAI ignores the wish there, and answers JSON to a client that reads events.
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
  // `timestamp_granularities` stands with `verbose_json` only, so the format names them too.
  if ((format === 'srt' || format === 'vtt' || format === 'verbose_json') && !transcription?.timestamps) {
    refuse('response_format', `does not time what it hears, which '${format}' needs`);
  }
  if (format === 'diarized_json' && !transcription?.diarizes) {
    refuse('response_format', "does not tell speakers apart, which 'diarized_json' needs");
  }
  if (speakers !== undefined && !transcription?.diarizes) refuse(speakers, 'does not tell speakers apart');
  if (stream && !transcription?.streams) refuse('stream', 'does not stream');
};
