import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkTranscription } from './check-transcription.ts';
import { parseTranscription } from './parse-transcription.ts';
import { transcriptionView } from './transcription-view.ts';

/** `POST /v1/audio/transcriptions` (https://platform.openai.com/docs/api-reference/audio/createTranscription). */
export const audioTranscriptions = defineEndpoint({
  name: 'audio.transcriptions',
  path: '/v1/audio/transcriptions',
  capability: 'transcription',
  parseForm: parseTranscription,
  check: withFieldCheck('transcription', checkTranscription),
  view: transcriptionView,
});
