import { speechTypes } from '../../shared/capabilities/speech.ts';
import type { Operation, Operations } from './operation.ts';
import type { HeaderName } from './request-schemas.ts';

const events = 'text/event-stream';
/** Transcripts and translations other than JSON: text, and both kinds of subtitles. */
const transcriptTypes = ['text/plain', 'application/x-subrip', 'text/vtt'];
const headers: readonly HeaderName[] = ['Prefer', 'Idempotency-Key', 'X-Sluice-On-Disconnect'];

/** An operation that makes a job. */
function maker(operation: Omit<Operation, 'guard' | 'headers' | 'makesJob'>): Operation {
  return { ...operation, guard: 'key', headers, makesJob: true };
}

const messages = [{ role: 'user', content: 'Hello!' }];
const prompt = 'A harbour at dawn';

/** The operations that make jobs. */
export const makerOperations: Operations = {
  'POST /v1/chat/completions': maker({
    ...{ id: 'createChatCompletion', tag: 'Chat', summary: 'Create a chat completion' },
    description: 'With `"stream": true` the answer comes as events, and ends with `[DONE]`.',
    json: 'ChatCompletionRequest',
    answer: { json: 'ChatCompletion', types: [events] },
    example: { model: 'chat', json: { messages } },
  }),
  'POST /v1/messages': maker({
    ...{ id: 'createMessage', tag: 'Chat', summary: 'Create a message (Anthropic)', isAnthropic: 'always' },
    description: "Anthropic's Messages API, with any chat model. The key may be sent as `x-api-key`.",
    json: 'MessageRequest',
    answer: { json: 'Message', types: [events] },
    example: { model: 'chat', json: { max_tokens: 100, messages } },
  }),
  'POST /v1/messages/count_tokens': maker({
    ...{ id: 'countMessageTokens', tag: 'Chat', summary: 'Count the tokens of a message (Anthropic)' },
    isAnthropic: 'always',
    json: 'MessageCountRequest',
    answer: { json: 'TokenCount' },
    example: { model: 'chat', json: { messages } },
  }),
  'POST /v1/completions': maker({
    ...{ id: 'createCompletion', tag: 'Chat', summary: 'Create a completion (legacy)' },
    json: 'CompletionRequest',
    answer: { json: 'Completion', types: [events] },
    example: { model: 'completion', json: { prompt: 'Once upon a time', max_tokens: 20 } },
  }),
  'POST /v1/embeddings': maker({
    ...{ id: 'createEmbedding', tag: 'Chat', summary: 'Create embeddings' },
    description: '`input` is a text, texts, one text as tokens, or texts as tokens; up to 2,048 of them.',
    json: 'EmbeddingRequest',
    answer: { json: 'EmbeddingList' },
    example: { model: 'embedding', json: { input: ['Hello!', 'Good morning!'] } },
  }),
  'POST /v1/responses': maker({
    ...{ id: 'createResponse', tag: 'Responses', summary: 'Create a response' },
    description:
      '`input` is a text or a list of items. `previous_response_id` continues a stored response; `"background": true` returns at once.',
    json: 'ResponseRequest',
    answer: { json: 'Response', types: [events] },
    example: { model: 'chat', json: { input: 'Hello!' } },
  }),
  'POST /v1/images/generations': maker({
    ...{ id: 'createImage', tag: 'Images', summary: 'Create images' },
    json: 'ImageGenerationRequest',
    answer: { json: 'Images', types: [events] },
    example: { model: 'image', json: { prompt } },
  }),
  'POST /v1/images/edits': maker({
    ...{ id: 'editImage', tag: 'Images', summary: 'Edit images' },
    description: 'As a form with files (`image` up to 16 times), or as JSON with links and data URLs.',
    json: 'ImageEditRequest',
    form: 'ImageEditForm',
    answer: { json: 'Images', types: [events] },
    example: { model: 'image', form: { prompt: 'Add a lighthouse', image: '@harbour.png' } },
  }),
  'POST /v1/images/variations': maker({
    ...{ id: 'varyImage', tag: 'Images', summary: 'Create variations of an image' },
    form: 'ImageVariationForm',
    answer: { json: 'Images' },
    example: { model: 'image', form: { image: '@harbour.png' } },
  }),
  'POST /v1/audio/speech': maker({
    ...{ id: 'createSpeech', tag: 'Audio', summary: 'Create speech from text' },
    json: 'SpeechRequest',
    answer: { types: [...Object.values(speechTypes), events] },
    example: { model: 'speech', json: { voice: 'alloy', input: 'Hello!' }, output: 'hello.mp3' },
  }),
  'POST /v1/audio/transcriptions': maker({
    ...{ id: 'createTranscription', tag: 'Audio', summary: 'Transcribe audio' },
    description: 'Lists are sent as repeated fields, such as `timestamp_granularities[]`.',
    form: 'TranscriptionForm',
    answer: { json: 'Transcription', types: [...transcriptTypes, events] },
    example: { model: 'transcription', form: { file: '@hello.wav' } },
  }),
  'POST /v1/audio/translations': maker({
    ...{ id: 'createTranslation', tag: 'Audio', summary: 'Translate audio into English text' },
    form: 'TranslationForm',
    answer: { json: 'Transcription', types: transcriptTypes },
    example: { model: 'transcription', form: { file: '@hello.wav' } },
  }),
  'POST /v1/videos': maker({
    ...{ id: 'createVideo', tag: 'Videos', summary: 'Create a video' },
    description: 'The video is made in the background: read it until its `status` is `completed`.',
    json: 'VideoRequest',
    form: 'VideoForm',
    answer: { json: 'Video' },
    example: { model: 'video', json: { prompt } },
  }),
  'POST /v1/videos/:id/remix': maker({
    ...{ id: 'remixVideo', tag: 'Videos', summary: 'Remix a completed video' },
    json: 'VideoRemixRequest',
    answer: { json: 'Video' },
    example: { json: { prompt: 'The same at night' } },
  }),
};
