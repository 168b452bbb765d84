import { defineEndpoint } from '../../pipeline/endpoint.ts';
import { eventStream, transcriptTypes } from '../../reference/operation.ts';
import { withFieldCheck } from '../check-media-fields.ts';
import { checkTranscription } from './check-transcription.ts';
import { parseTranscription } from './parse-transcription.ts';
import { transcriptionView } from './transcription-view.ts';

/** `POST /v1/audio/transcriptions` (https://platform.openai.com/docs/api-reference/audio/createTranscription). */
export const audioTranscriptions = defineEndpoint({
  name: 'audio.transcriptions',
  path: '/v1/audio/transcriptions',
  capability: 'transcription',
  operation: {
    id: 'createTranscription',
    tag: 'Audio',
    summary: 'Transcribe audio',
    description: 'Lists are sent as repeated fields, such as `timestamp_granularities[]`.',
    form: 'TranscriptionForm',
    answer: { json: 'Transcription', types: [...transcriptTypes, eventStream] },
    example: { model: 'transcription', form: { file: '@hello.wav' } },
  },
  parseForm: parseTranscription,
  check: withFieldCheck('transcription', checkTranscription),
  view: transcriptionView,
});
