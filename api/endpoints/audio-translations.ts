import { withFieldCheck } from './check-media-fields.ts';
import { checkTranscription } from './check-transcription.ts';
import type { Endpoint } from './endpoint.ts';
import { prepareTranslation } from './prepare-transcription.ts';
import { transcriptionView } from './transcription-view.ts';

/** `POST /v1/audio/translations` (https://platform.openai.com/docs/api-reference/audio/createTranslation). */
export const audioTranslations: Endpoint = {
  name: 'audio.translations',
  path: '/v1/audio/translations',
  capability: 'transcription',
  prepareForm: prepareTranslation,
  check: withFieldCheck('transcription', checkTranscription),
  view: transcriptionView,
};
