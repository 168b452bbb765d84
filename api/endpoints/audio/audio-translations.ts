import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { transcriptTypes } from '../../reference/operation.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkTranscription } from './check-transcription.ts';
import { parseTranslation } from './parse-transcription.ts';
import { transcriptionView } from './transcription-view.ts';

/** `POST /v1/audio/translations` (https://platform.openai.com/docs/api-reference/audio/createTranslation). */
export const audioTranslations = defineEndpoint({
  name: 'audio.translations',
  path: '/v1/audio/translations',
  capability: 'transcription',
  operation: {
    id: 'createTranslation',
    tag: 'Audio',
    summary: 'Translate audio into English text',
    form: 'TranslationForm',
    answer: { json: 'Transcription', types: transcriptTypes },
    example: { model: 'transcription', form: { file: '@hello.wav' } },
  },
  parseForm: parseTranslation,
  check: withFieldCheck('transcription', checkTranscription),
  view: transcriptionView,
});
