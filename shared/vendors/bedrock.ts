import { translatedChatFields } from './translated-chat-fields.ts';
import type { ChatFieldSupport, VendorDescription } from './vendor-description.ts';

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

/** Amazon Bedrock. */
export const bedrock: VendorDescription = {
  name: 'bedrock',
  // The host names the region. Only Bedrock knows which models and inference profiles an account has there.
  baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com',
  needsKey: true,
  isOpen: true,
  chatFields: bedrockChatFields,
  documentation: {
    turnedOnBy:
      '`BEDROCK_API_KEY`: a Bedrock API key, or `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]` for signed requests; another region by `BEDROCK_BASE_URL` (`https://bedrock-runtime.eu-west-1.amazonaws.com`)',
    does: 'Amazon Bedrock: chat by Converse; the listed models are those of the United States and of global profiles, any other is `bedrock/its-id`',
    checkedBy: 'SDK',
  },
};
