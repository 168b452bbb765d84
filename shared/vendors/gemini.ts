import { imageFields, videoFields } from './media-reader-fields.ts';
import { translatedChatFields } from './translated-chat-fields.ts';
import type { ChatFieldSupport, VendorDescription } from './vendor-description.ts';

/**
 * What becomes of the fields of a chat request at Google's Gemini (https://ai.google.dev/api/generate-content). `kept` is a
 * value that arrives as it is, be it under Gemini's spelling of the name (`topP`). A path stands for
 * a field inside of messages, wherever it is.
 */
export const geminiChatFields: ChatFieldSupport = {
  ...translatedChatFields,
  // A translation has no place for what it does not know.
  '*': 'rejected',
  model: 'translated',
  stream: 'translated',
  // What it asks for the gateway does itself.
  stream_options: 'native',
  messages: 'translated',
  max_tokens: 'translated',
  max_completion_tokens: 'translated',
  temperature: 'native',
  top_p: 'native',
  top_k: 'native',
  presence_penalty: 'native',
  frequency_penalty: 'native',
  seed: 'translated',
  stop: 'translated',
  n: 'translated',
  logprobs: 'translated',
  top_logprobs: 'translated',
  tools: 'translated',
  tool_choice: 'translated',
  response_format: 'translated',
  reasoning_effort: 'translated',
  service_tier: 'translated',
  user: 'ignored',
  safety_identifier: 'ignored',
  cache_control: 'ignored',
  // Of earlier thoughts Gemini wants the signatures alone: `extra_content`, which is kept.
  'messages.reasoning_content': 'ignored',
  'messages.thinking_blocks': 'ignored',
  // Gemini cannot be told to make one call at a time: of several, the first is passed on.
  parallel_tool_calls: 'translated',
};

/** Google's Gemini. */
export const gemini: VendorDescription = {
  name: 'gemini',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  needsKey: true,
  embedsFiles: true,
  chatFields: geminiChatFields,
  mediaFields: {
    embedding: { '*': 'rejected', dimensions: 'translated', user: 'ignored' },
    // Imagen takes parameters of its own; the models that paint by `generateContent` have none.
    image: (model) =>
      model.startsWith('imagen-')
        ? { ...imageFields, n: 'translated', output_format: 'translated', output_compression: 'translated' }
        : { '*': 'rejected', ...imageFields },
    video: videoFields('aspectRatio', 'resolution', 'durationSeconds'),
  },
  documentation: {
    does: 'chat, embeddings, images (Imagen too, for an address that still has it: Google shut it down in August 2026), videos (Veo), token counts',
    checkedBy: 'SDK, by hand',
  },
};
