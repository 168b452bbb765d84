import type { ChatFieldSupport } from './vendor-description.ts';

/** Support at every vendor that a chat is translated for: fields that only OpenAI's own wire has a place for. */
export const translatedChatFields: ChatFieldSupport = {
  metadata: 'ignored',
  store: 'ignored',
  prompt_cache_key: 'ignored',
  prompt_cache_retention: 'ignored',
  prompt_cache_options: 'ignored',
  prediction: 'ignored',
  verbosity: 'ignored',
  'messages.name': 'ignored',
  'messages.content.image_url.detail': 'ignored',
  logit_bias: 'rejected',
  functions: 'rejected',
  function_call: 'rejected',
  // Only text is accepted.
  modalities: 'rejected',
  audio: 'rejected',
  moderation: 'rejected',
  web_search_options: 'rejected',
};
