import { withFieldCheck } from './check-media-fields.ts';
import { checkTranscription } from './check-transcription.ts';
import type { Endpoint } from './endpoint.ts';
import { prepareTranscription } from './prepare-transcription.ts';
import { transcriptionView } from './transcription-view.ts';

/** `POST /v1/audio/transcriptions` (https://platform.openai.com/docs/api-reference/audio/createTranscription). */
export const audioTranscriptions: Endpoint = {
  name: 'audio.transcriptions',
  path: '/v1/audio/transcriptions',
  capability: 'transcription',
  prepareForm: prepareTranscription,
  check: withFieldCheck('transcription', checkTranscription),
  view: transcriptionView,
};
