import type { ChatFieldFates } from './chat-fields.ts';

/** Fates at every vendor that a chat is translated for: fields that only OpenAI's own wire has a place for. */
export const translatedChatFields: ChatFieldFates = {
  metadata: 'dropped',
  store: 'dropped',
  prompt_cache_key: 'dropped',
  prompt_cache_retention: 'dropped',
  prompt_cache_options: 'dropped',
  prediction: 'dropped',
  verbosity: 'dropped',
  'messages.name': 'dropped',
  'messages.content.image_url.detail': 'dropped',
  logit_bias: 'refused',
  functions: 'refused',
  function_call: 'refused',
  // Only text is accepted.
  modalities: 'refused',
  audio: 'refused',
  moderation: 'refused',
  web_search_options: 'refused',
};
