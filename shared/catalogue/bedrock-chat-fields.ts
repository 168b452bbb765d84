import type { ChatFieldSupport } from './chat-fields.ts';
import { translatedChatFields } from './translated-chat-fields.ts';

/**
 * What becomes of the fields of a chat at Amazon Bedrock's Converse
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). What only some models have is `mapped`
 * here, and refused by the adapter for the others. A path stands for a field inside of messages, wherever it is.
 */
export const bedrockChatFields: ChatFieldSupport = {
  ...translatedChatFields,
  // A translation has no place for what it does not know.
  '*': 'rejected',
  model: 'translated',
  stream: 'translated',
  // Converse reports the usage always.
  stream_options: 'translated',
  messages: 'translated',
  max_tokens: 'translated',
  max_completion_tokens: 'translated',
  temperature: 'native',
  top_p: 'native',
  top_k: 'translated',
  stop: 'translated',
  tools: 'translated',
  tool_choice: 'translated',
  parallel_tool_calls: 'translated',
  response_format: 'translated',
  'response_format.json_object': 'rejected',
  reasoning_effort: 'translated',
  service_tier: 'translated',
  // Claude's own words, and Bedrock's, for whoever wants more than a chat says.
  thinking: 'translated',
  output_config: 'translated',
  additionalModelRequestFields: 'native',
  guardrailConfig: 'native',
  performanceConfig: 'native',
  user: 'ignored',
  safety_identifier: 'ignored',
  seed: 'ignored',
  frequency_penalty: 'ignored',
  presence_penalty: 'ignored',
  // Of a whole request; marks inside of it become cache points.
  cache_control: 'ignored',
  // Of earlier thoughts those that are signed go back: `thinking_blocks`.
  'messages.reasoning_content': 'ignored',
  n: 'rejected',
  logprobs: 'rejected',
  top_logprobs: 'rejected',
};
