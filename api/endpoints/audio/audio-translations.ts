import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkTranscription } from './check-transcription.ts';
import { parseTranslation } from './parse-transcription.ts';
import { transcriptionView } from './transcription-view.ts';

/** `POST /v1/audio/translations` (https://platform.openai.com/docs/api-reference/audio/createTranslation). */
export const audioTranslations = defineEndpoint({
  name: 'audio.translations',
  path: '/v1/audio/translations',
  capability: 'transcription',
  parseForm: parseTranslation,
  check: withFieldCheck('transcription', checkTranscription),
  view: transcriptionView,
});
