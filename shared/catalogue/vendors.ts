import type { ChatFieldSupport, FieldSupport } from './chat-fields.ts';

/** Whose wire a vendor speaks; each dialect has an adapter in workers/vendors. */
export type Dialect =
  | 'openai'
  | 'azure'
  | 'anthropic'
  | 'bedrock'
  | 'gemini'
  | 'black-forest-labs'
  | 'fal'
  | 'replicate'
  | 'stability'
  | 'deepgram'
  | 'elevenlabs'
  | 'assemblyai'
  | 'runway'
  | 'luma'
  | 'kling';

/** What a vendor of OpenAI's dialect offers, named as the methods of a Vendor are (workers/vendors/vendor.ts). */
export type Offer = 'chat' | 'complete' | 'embed' | 'image' | 'transcribe' | 'speak' | 'respond' | 'video';

/** In what a vendor's chats differ from OpenAI's wire. What is left out is as OpenAI has it. */
export interface ChatDeviations {
  /** Fields by OpenAI's names and what the vendor calls them; `max_completion_tokens` is what it calls the limit. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** `false`: it does not know `stream_options`, and counts every stream's usage unasked. */
  readonly streamOptions?: false;
  /** `false`: it does not know the role `developer`, so those messages go as `system`. */
  readonly developerRole?: false;
  /**
   * Where it says its reasoning: in a field `reasoning`, or among the parts of the content, of the type `thinking`. Left
   * out: in `reasoning_content`.
   */
  readonly reasoning?: 'reasoning' | 'thinking_parts';
  /** `false`: it refuses messages and tools with fields that OpenAI's document does not have (`cache_control`). */
  readonly hints?: false;
  /** Those of the fields that it refuses or does nothing with. */
  readonly fields?: ChatFieldSupport;
}

/** One vendor. */
export interface VendorRow {
  /** In routes, logs and settings: lower case; `lm-studio` is set up by `LM_STUDIO_BASE_URL`. */
  readonly name: string;
  readonly dialect: Dialect;
  /** Up to and with the version. */
  readonly baseUrl: string;
  /** `true`: every account has an address of its own, which must be set; `baseUrl` only shows its form. */
  readonly needsBaseUrl?: true;
  /** `false`: it is on when its base URL is set, since it takes callers without a key. */
  readonly needsKey: boolean;
  /** What a key looks like, where that is known: `pair` is `ACCESS_KEY:SECRET_KEY`. */
  readonly keyForm?: 'pair';
  /** `true`: any model can be asked for as `vendor/model`, since only the vendor itself knows which ones it has. */
  readonly isOpen?: true;
  /** For the dialect `openai`: what of it the vendor documents. */
  readonly offers?: readonly Offer[];
  /**
   * For the dialect `openai`: the path that is asked for to see whether the vendor takes a key; `false`: it has none that asks
   * for the key. Left out: `/models`.
   */
  readonly keyCheck?: string | false;
  /** Of the dialect `azure` the hints alone. */
  readonly chat?: ChatDeviations;
}

const everything: readonly Offer[] = ['chat', 'complete', 'embed', 'image', 'transcribe', 'speak', 'respond', 'video'];

function each(support: FieldSupport, ...fields: readonly string[]): ChatFieldSupport {
  return Object.fromEntries(fields.map((field) => [field, support]));
}

type OpenAiRow = Pick<VendorRow, 'offers' | 'chat' | 'keyCheck'>;

/** A hosted vendor that speaks OpenAI's wire; of chats only, where nothing else is said. */
function hosted(name: string, baseUrl: string, { offers = ['chat'], chat, keyCheck }: OpenAiRow = {}): VendorRow {
  const check = keyCheck !== undefined && { keyCheck };
  return { name, dialect: 'openai', baseUrl, needsKey: true, offers, ...check, ...(chat && { chat }) };
}

/** A server that people run themselves. */
function local(name: string, baseUrl: string, row: OpenAiRow): VendorRow {
  return { ...hosted(name, baseUrl, row), needsKey: false, isOpen: true };
}

/** Vendors that know the older name of the limit only. */
const olderLimit = { max_completion_tokens: 'max_tokens' };

/** Hints to OpenAI's own servers, and who else has them. */
const hints = [
  ...['user', 'metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'],
  ...['prompt_cache_options', 'verbosity', 'prediction'],
];
const penalties = ['presence_penalty', 'frequency_penalty'];
const logprobs = ['logprobs', 'top_logprobs'];
/** The form in which tools were offered before `tools`. */
const functions = ['functions', 'function_call'];
/** Other answers than text, and what is done beside it. */
const extras = ['modalities', 'audio', 'moderation', 'web_search_options'];

/**
 * Every vendor the gateway knows. Deviations are those that the vendor's document names, or fields that its request does not
 * have by the types of its own SDK or by what others found: read on 2026-11-21, at what stands above each row. A row without
 * deviations is not known to have none: there a field passes through, and the vendor answers for it.
 */
export const vendorRows: readonly VendorRow[] = [
  hosted('openai', 'https://api.openai.com/v1', { offers: everything }),
  // https://api-docs.deepseek.com/api/create-chat-completion, its fields as in
  // https://docs.rs/deepseek-sdk/latest/deepseek_sdk/chat/request/struct.ChatRequest.html
  hosted('deepseek', 'https://api.deepseek.com/v1', {
    chat: {
      renamed: olderLimit,
      developerRole: false,
      fields: {
        ...each('ignored', ...hints, ...penalties, 'seed'),
        ...each('rejected', 'n', 'logit_bias', 'response_format.json_schema', 'parallel_tool_calls'),
        ...each('rejected', ...functions, ...extras),
      },
    },
  }),
  // https://docs.x.ai/docs/api-reference
  hosted('xai', 'https://api.x.ai/v1', { offers: ['chat', 'respond'] }),
  // https://docs.mistral.ai/api: ChatCompletionStreamRequest and ThinkChunk of @mistralai/mistralai 2.7.0
  hosted('mistral', 'https://api.mistral.ai/v1', {
    offers: ['chat', 'embed'],
    chat: {
      renamed: { ...olderLimit, seed: 'random_seed' },
      streamOptions: false,
      developerRole: false,
      reasoning: 'thinking_parts',
      hints: false,
      fields: {
        ...each('ignored', 'user', 'store', 'safety_identifier', 'prompt_cache_retention', 'prompt_cache_options'),
        ...each('ignored', 'verbosity'),
        ...each('rejected', ...logprobs, 'logit_bias', ...functions, ...extras),
      },
    },
  }),
  // https://console.groq.com/docs/openai, "Currently Unsupported OpenAI Features"; ChatCompletionCreateParams of groq-sdk 1.6.0
  hosted('groq', 'https://api.groq.com/openai/v1', {
    offers: ['chat', 'transcribe', 'speak', 'respond'],
    chat: {
      reasoning: 'reasoning',
      hints: false,
      fields: {
        ...each('ignored', ...penalties, 'metadata', 'store', 'safety_identifier', 'prompt_cache_key'),
        ...each('ignored', 'prompt_cache_retention', 'prompt_cache_options', 'verbosity', 'prediction'),
        ...each('rejected', 'n', ...logprobs, 'logit_bias'),
      },
    },
  }),
  // https://docs.together.ai/reference/chat-completions-1: CompletionCreateParams of together-ai 0.52.0 (`logprobs` is a number there)
  hosted('together', 'https://api.together.ai/v1', {
    offers: ['chat', 'complete', 'embed'],
    chat: {
      renamed: olderLimit,
      streamOptions: false,
      developerRole: false,
      reasoning: 'reasoning',
      fields: {
        ...each('ignored', ...hints),
        ...each('rejected', ...logprobs, 'parallel_tool_calls', ...extras),
      },
    },
  }),
  // https://docs.fireworks.ai/tools-sdks/openai-compatibility
  hosted('fireworks', 'https://api.fireworks.ai/inference/v1'),
  // https://inference-docs.cerebras.ai/resources/openai (both roles mean the same); the types of @cerebras/cerebras_cloud_sdk 1.91.0
  hosted('cerebras', 'https://api.cerebras.ai/v1', {
    offers: ['chat', 'complete'],
    chat: { developerRole: false, reasoning: 'reasoning' },
  }),
  // https://openrouter.ai/docs/api/api-reference/chat: ChatStreamDelta of @openrouter/sdk 1.3.19
  // Its list of models asks for no key.
  hosted('openrouter', 'https://openrouter.ai/api/v1', { keyCheck: '/key', chat: { reasoning: 'reasoning' } }),
  // https://docs.perplexity.ai/guides/chat-completions-guide; https://schemas.apis.io/schemas/perplexity/perplexity-apichatcompletionsrequest/
  hosted('perplexity', 'https://api.perplexity.ai', {
    keyCheck: false,
    chat: {
      renamed: olderLimit,
      streamOptions: false,
      developerRole: false,
      fields: {
        ...each('ignored', ...hints, ...penalties, 'seed'),
        ...each(
          'rejected',
          'n',
          ...logprobs,
          'logit_bias',
          'tools',
          'tool_choice',
          'parallel_tool_calls',
          ...functions,
        ),
        ...each('rejected', 'modalities', 'audio', 'moderation'),
      },
    },
  }),
  // https://platform.kimi.ai/docs/api/quickstart; https://java.agentscope.io/v2/en/integration/model/kimi, "Compatibility notes"
  hosted('moonshot', 'https://api.moonshot.ai/v1', { chat: { renamed: { max_tokens: 'max_completion_tokens' } } }),
  // https://docs.bigmodel.cn; https://java.agentscope.io/v2/en/integration/model/glm, "Compatibility notes"
  hosted('zhipu', 'https://open.bigmodel.cn/api/paas/v4', {
    chat: {
      renamed: olderLimit,
      streamOptions: false,
      fields: { ...each('ignored', ...penalties), ...each('rejected', 'tool_choice') },
    },
  }),
  // https://platform.minimax.io/docs/api-reference/text-openai-api; https://docs.camel-ai.org/reference/camel.configs.minimax_config (n);
  // https://java.agentscope.io/v2/en/integration/model/minimax (the limit)
  hosted('minimax', 'https://api.minimax.io/v1', {
    chat: { renamed: { max_tokens: 'max_completion_tokens' }, fields: each('rejected', 'n') },
  }),
  // https://help.aliyun.com/en/model-studio/deep-thinking (usage and reasoning of its streams)
  hosted('dashscope', 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1'),
  // https://docs.siliconflow.com/en/api-reference/chat-completions/chat-completions
  hosted('siliconflow', 'https://api.siliconflow.com/v1'),
  // https://docs.api.nvidia.com/nim/reference/llm-apis
  // Its list of models asks for no key.
  hosted('nvidia', 'https://integrate.api.nvidia.com/v1', { keyCheck: false }),
  // https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx and, in openai/openai.go, ChatCompletionRequest:
  // what it does not know it passes over without a word.
  local('ollama', 'http://127.0.0.1:11434/v1', {
    offers: ['chat', 'complete', 'embed', 'respond'],
    chat: {
      renamed: olderLimit,
      reasoning: 'reasoning',
      fields: {
        ...each('ignored', ...hints),
        ...each('rejected', 'n', 'logit_bias', 'tool_choice', 'parallel_tool_calls', ...functions, ...extras),
      },
    },
  }),
  // https://github.com/vllm-project/vllm/blob/main/docs/features/reasoning_outputs.md
  local('vllm', 'http://127.0.0.1:8000/v1', {
    offers: ['chat', 'complete', 'embed'],
    chat: { reasoning: 'reasoning' },
  }),
  // https://lmstudio.ai/docs/api/openai-api
  local('lm-studio', 'http://127.0.0.1:1234/v1', { offers: ['chat', 'complete', 'embed', 'respond'] }),
  // A model is what the operator has deployed, under a name of his own.
  {
    name: 'azure',
    dialect: 'azure',
    baseUrl: 'https://NAME.openai.azure.com',
    needsBaseUrl: true,
    needsKey: true,
    isOpen: true,
    // As at OpenAI itself.
    chat: { hints: false },
  },
  { name: 'anthropic', dialect: 'anthropic', baseUrl: 'https://api.anthropic.com/v1', needsKey: true },
  // Its host names the region. Which models and inference profiles an account has there only Bedrock knows.
  {
    name: 'bedrock',
    dialect: 'bedrock',
    baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com',
    needsKey: true,
    isOpen: true,
  },
  { name: 'gemini', dialect: 'gemini', baseUrl: 'https://generativelanguage.googleapis.com/v1beta', needsKey: true },
  { name: 'black-forest-labs', dialect: 'black-forest-labs', baseUrl: 'https://api.bfl.ai/v1', needsKey: true },
  { name: 'fal', dialect: 'fal', baseUrl: 'https://queue.fal.run', needsKey: true },
  { name: 'replicate', dialect: 'replicate', baseUrl: 'https://api.replicate.com/v1', needsKey: true },
  { name: 'stability', dialect: 'stability', baseUrl: 'https://api.stability.ai', needsKey: true },
  { name: 'deepgram', dialect: 'deepgram', baseUrl: 'https://api.deepgram.com/v1', needsKey: true },
  { name: 'elevenlabs', dialect: 'elevenlabs', baseUrl: 'https://api.elevenlabs.io/v1', needsKey: true },
  { name: 'assemblyai', dialect: 'assemblyai', baseUrl: 'https://api.assemblyai.com/v2', needsKey: true },
  { name: 'runway', dialect: 'runway', baseUrl: 'https://api.dev.runwayml.com/v1', needsKey: true },
  { name: 'luma', dialect: 'luma', baseUrl: 'https://api.lumalabs.ai/dream-machine/v1', needsKey: true },
  // Its key is a pair: `ACCESS_KEY:SECRET_KEY`.
  {
    ...{ name: 'kling', dialect: 'kling', baseUrl: 'https://api-singapore.klingai.com/v1' },
    ...{ needsKey: true, keyForm: 'pair' },
  },
  // Last: whoever lists vendors shows the stand-in behind the real ones. Where it runs is what the launcher says.
  { ...hosted('sandbox', 'http://127.0.0.1:8090/v1', { offers: everything }), needsKey: false },
];

const byName = new Map(vendorRows.map((row) => [row.name, row]));

/** The row of a vendor; undefined for a name that the table does not have. */
export function findVendorRow(name: string): VendorRow | undefined {
  return byName.get(name);
}
