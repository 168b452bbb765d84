import { translatedChatFields } from './translated-chat-fields.ts';
import type { ChatFieldSupport, VendorDescription } from './vendor-description.ts';

/**
 * What becomes of the fields of a chat at Anthropic's Messages API (https://docs.anthropic.com/en/api/messages). Fields
 * without a row, those that no chat knows among them, are passed on: Anthropic names what it does not take. A path stands
 * for a field inside of messages, wherever it is.
 */
export const anthropicChatFields: ChatFieldSupport = {
  ...translatedChatFields,
  messages: 'translated',
  // Its first two names; Anthropic has one, and demands it.
  max_tokens: 'translated',
  max_completion_tokens: 'translated',
  stop: 'translated',
  tools: 'translated',
  tool_choice: 'translated',
  parallel_tool_calls: 'translated',
  response_format: 'translated',
  reasoning_effort: 'translated',
  service_tier: 'translated',
  user: 'translated',
  safety_identifier: 'translated',
  // Anthropic reports the usage always.
  stream_options: 'translated',
  // At most 1; refused where the model, or its thinking, takes the default alone.
  temperature: 'native',
  top_p: 'native',
  top_k: 'native',
  // Anthropic's own words, for whoever wants more than an effort says.
  thinking: 'native',
  output_config: 'native',
  cache_control: 'native',
  frequency_penalty: 'ignored',
  presence_penalty: 'ignored',
  seed: 'ignored',
  n: 'rejected',
  logprobs: 'rejected',
  top_logprobs: 'rejected',
};

/** Anthropic. */
export const anthropic: VendorDescription = {
  name: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  needsKey: true,
  chatFields: anthropicChatFields,
  documentation: { does: 'chat, token counts', checkedBy: 'SDK' },
};
