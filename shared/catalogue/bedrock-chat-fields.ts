import type { ChatFieldFates } from './chat-fields.ts';
import { translatedChatFields } from './translated-chat-fields.ts';

/**
 * What becomes of the fields of a chat at Amazon Bedrock's Converse
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). What only some models have is `mapped`
 * here, and refused by the adapter for the others. A path stands for a field inside of messages, wherever it is.
 */
export const bedrockChatFields: ChatFieldFates = {
  ...translatedChatFields,
  // A translation has no place for what it does not know.
  '*': 'refused',
  model: 'mapped',
  stream: 'mapped',
  // Converse reports the usage always.
  stream_options: 'mapped',
  messages: 'mapped',
  max_tokens: 'mapped',
  max_completion_tokens: 'mapped',
  temperature: 'kept',
  top_p: 'kept',
  top_k: 'mapped',
  stop: 'mapped',
  tools: 'mapped',
  tool_choice: 'mapped',
  parallel_tool_calls: 'mapped',
  response_format: 'mapped',
  'response_format.json_object': 'refused',
  reasoning_effort: 'mapped',
  service_tier: 'mapped',
  // Claude's own words, and Bedrock's, for whoever wants more than a chat says.
  thinking: 'mapped',
  output_config: 'mapped',
  additionalModelRequestFields: 'kept',
  guardrailConfig: 'kept',
  performanceConfig: 'kept',
  user: 'dropped',
  safety_identifier: 'dropped',
  seed: 'dropped',
  frequency_penalty: 'dropped',
  presence_penalty: 'dropped',
  // Of a whole request; marks inside of it become cache points.
  cache_control: 'dropped',
  // Of earlier thoughts those that are signed go back: `thinking_blocks`.
  'messages.reasoning_content': 'dropped',
  n: 'refused',
  logprobs: 'refused',
  top_logprobs: 'refused',
};
