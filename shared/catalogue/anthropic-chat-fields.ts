import type { ChatFieldFates } from './chat-fields.ts';
import { translatedChatFields } from './translated-chat-fields.ts';

/**
 * What becomes of the fields of a chat at Anthropic's Messages API (https://docs.anthropic.com/en/api/messages). Fields
 * without a row, those that no chat knows among them, are passed on: Anthropic names what it does not take. A path stands
 * for a field inside of messages, wherever it is.
 */
export const anthropicChatFields: ChatFieldFates = {
  ...translatedChatFields,
  messages: 'mapped',
  // Its first two names; Anthropic has one, and demands it.
  max_tokens: 'mapped',
  max_completion_tokens: 'mapped',
  stop: 'mapped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'mapped',
  response_format: 'mapped',
  'response_format.json_object': 'refused',
  reasoning_effort: 'mapped',
  service_tier: 'mapped',
  user: 'mapped',
  safety_identifier: 'mapped',
  // Anthropic reports the usage always.
  stream_options: 'mapped',
  // Refused above 1, and where the model, or its thinking, takes the default alone.
  temperature: 'kept',
  top_p: 'kept',
  top_k: 'kept',
  // Anthropic's own words, for whoever wants more than an effort says.
  thinking: 'kept',
  output_config: 'kept',
  cache_control: 'kept',
  frequency_penalty: 'dropped',
  presence_penalty: 'dropped',
  seed: 'dropped',
  n: 'refused',
  logprobs: 'refused',
  top_logprobs: 'refused',
};
