import type { ChatFieldFates } from './chat-fields.ts';
import { translatedChatFields } from './translated-chat-fields.ts';

/**
 * What becomes of the fields of a chat request at Google's Gemini (https://ai.google.dev/api/generate-content). `kept` is a
 * value that arrives as it is, be it under Gemini's spelling of the name (`topP`). A path stands for
 * a field inside of messages, wherever it is.
 */
export const geminiChatFields: ChatFieldFates = {
  ...translatedChatFields,
  // A translation has no place for what it does not know.
  '*': 'refused',
  model: 'mapped',
  stream: 'mapped',
  // What it asks for the gateway does itself.
  stream_options: 'kept',
  messages: 'mapped',
  max_tokens: 'mapped',
  max_completion_tokens: 'mapped',
  temperature: 'kept',
  top_p: 'kept',
  top_k: 'kept',
  presence_penalty: 'kept',
  frequency_penalty: 'kept',
  seed: 'mapped',
  stop: 'mapped',
  n: 'mapped',
  logprobs: 'mapped',
  top_logprobs: 'mapped',
  tools: 'mapped',
  tool_choice: 'mapped',
  response_format: 'mapped',
  reasoning_effort: 'mapped',
  user: 'dropped',
  safety_identifier: 'dropped',
  service_tier: 'dropped',
  cache_control: 'dropped',
  // Of earlier thoughts Gemini wants the signatures alone: `extra_content`, which is kept.
  'messages.reasoning_content': 'dropped',
  'messages.thinking_blocks': 'dropped',
  // Only its default, true, is accepted: Gemini cannot be told to make one call at a time.
  parallel_tool_calls: 'refused',
};
