import type { ChatFieldSupport, FieldSupport, Offer, VendorDescription } from './vendor-description.ts';

const everything: readonly Offer[] = ['chat', 'complete', 'embed', 'image', 'transcribe', 'speak', 'respond', 'video'];

function each(support: FieldSupport, ...fields: readonly string[]): ChatFieldSupport {
  return Object.fromEntries(fields.map((field) => [field, support]));
}

type OpenAiVendor = Pick<VendorDescription, 'offers' | 'chat' | 'mediaFields' | 'keyCheck' | 'autoTier'> &
  Required<Pick<VendorDescription, 'documentation'>>;

/** A hosted vendor that speaks OpenAI's wire; of chats only, where nothing else is said. */
function hosted(name: string, baseUrl: string, vendor: OpenAiVendor): VendorDescription {
  return { name, baseUrl, needsKey: true, offers: ['chat'], ...vendor };
}

/** A server that people run themselves. */
function local(name: string, baseUrl: string, vendor: OpenAiVendor): VendorDescription {
  return { ...hosted(name, baseUrl, vendor), needsKey: false, isOpen: true };
}

/** Vendors that know the older name of the limit only. */
const olderLimit = { max_completion_tokens: 'max_tokens' };

/** Hints to OpenAI's own servers, and who else has them. */
const hints = [
  ...['user', 'metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_retention'],
  ...['prompt_cache_options', 'verbosity', 'prediction'],
];
/** Qwen3 and what has no number, at vendors that name makers before a slash or not at all; QwQ, and what is distilled to a Qwen, is not. */
const qwen = /(?:^|\/)qwen[\d-]/i;
const penalties = ['presence_penalty', 'frequency_penalty'];
const logprobs = ['logprobs', 'top_logprobs'];
/** The form in which tools were offered before `tools`. */
const functions = ['functions', 'function_call'];
/** Other answers than text, and what is done beside it. */
const extras = ['modalities', 'audio', 'moderation', 'web_search_options'];

/**
 * Every vendor that speaks OpenAI's wire. Deviations are those that the vendor's document names, or fields that its request does not
 * have by the types of its own SDK or by what others found: read on 2026-11-21, at what stands above each row. A row without
 * deviations is not known to have none: there a field passes through, and the vendor answers for it.
 */
export const openAiCompatible: readonly VendorDescription[] = [
  hosted('openai', 'https://api.openai.com/v1', {
    documentation: {
      does: 'chat, responses, legacy completions, embeddings, images, videos, transcription, speech',
      checkedBy: 'SDK',
    },
    offers: everything,
    // The setting of a project.
    autoTier: 'priority',
  }),
  // https://api-docs.deepseek.com/api/create-chat-completion, its fields as in
  // https://docs.rs/deepseek-sdk/latest/deepseek_sdk/chat/request/struct.ChatRequest.html
  hosted('deepseek', 'https://api.deepseek.com/v1', {
    documentation: { checkedBy: 'documents, some second-hand' },
    chat: {
      renamed: olderLimit,
      developerRole: false,
      parallelToolCalls: false,
      // https://github.com/QwenLM/qwen-code/pull/2320
      textParts: false,
      // https://api-docs.deepseek.com/guides/thinking_mode; all of them: https://github.com/vercel/ai/pull/14740
      needsReasoning: 'with_tools',
      disablesThinking: /^/,
      fields: {
        ...each('ignored', ...hints, ...penalties, 'seed'),
        ...each('rejected', 'n', 'logit_bias', 'response_format.json_schema'),
        ...each('rejected', ...functions, ...extras),
      },
    },
  }),
  // https://docs.x.ai/docs/api-reference
  hosted('xai', 'https://api.x.ai/v1', { documentation: { checkedBy: 'documents' }, offers: ['chat', 'respond'] }),
  // https://docs.mistral.ai/api: ChatCompletionStreamRequest and ThinkChunk of @mistralai/mistralai 2.7.0
  hosted('mistral', 'https://api.mistral.ai/v1', {
    documentation: { checkedBy: "SDK's types" },
    offers: ['chat', 'embed'],
    // EmbeddingRequest there; a field that it does not have is refused.
    mediaFields: { embedding: { user: 'ignored' } },
    chat: {
      renamed: { ...olderLimit, seed: 'random_seed' },
      streamOptions: false,
      developerRole: false,
      reasoning: 'thinking_parts',
      // https://mistralai.github.io/mistral-common/usage/tools
      shortCallIds: true,
      // "Unexpected role 'user' after role 'tool'", code 3230: https://github.com/avante-corp/avante.nvim/issues/2562
      userAfterTool: false,
      hints: false,
      fields: {
        ...each('ignored', 'user', 'store', 'safety_identifier', 'prompt_cache_retention', 'prompt_cache_options'),
        ...each('ignored', 'verbosity', 'messages.name'),
        ...each('rejected', ...logprobs, 'logit_bias', ...functions, ...extras),
      },
    },
  }),
  // https://console.groq.com/docs/openai, "Currently Unsupported OpenAI Features"; ChatCompletionCreateParams of groq-sdk 1.6.0
  hosted('groq', 'https://api.groq.com/openai/v1', {
    documentation: { checkedBy: "SDK's types" },
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
    documentation: { checkedBy: "SDK's types" },
    offers: ['chat', 'complete', 'embed'],
    chat: {
      renamed: olderLimit,
      streamOptions: false,
      parallelToolCalls: false,
      developerRole: false,
      reasoning: 'reasoning',
      fields: {
        ...each('ignored', ...hints),
        ...each('rejected', ...logprobs, ...extras),
      },
    },
  }),
  // https://docs.fireworks.ai/tools-sdks/openai-compatibility
  hosted('fireworks', 'https://api.fireworks.ai/inference/v1', { documentation: { checkedBy: 'documents' } }),
  // https://inference-docs.cerebras.ai/resources/openai (both roles mean the same); the types of @cerebras/cerebras_cloud_sdk 1.91.0
  hosted('cerebras', 'https://api.cerebras.ai/v1', {
    documentation: { checkedBy: "SDK's types" },
    offers: ['chat', 'complete'],
    chat: { developerRole: false, reasoning: 'reasoning' },
  }),
  // https://openrouter.ai/docs/api/api-reference/chat: ChatStreamDelta of @openrouter/sdk 1.3.19
  // Its list of models asks for no key.
  hosted('openrouter', 'https://openrouter.ai/api/v1', {
    documentation: { checkedBy: "SDK's types" },
    keyCheck: '/key',
    chat: { reasoning: 'reasoning', signatures: 'reasoning_details' },
  }),
  // https://docs.perplexity.ai/guides/chat-completions-guide; https://schemas.apis.io/schemas/perplexity/perplexity-apichatcompletionsrequest/
  hosted('perplexity', 'https://api.perplexity.ai', {
    documentation: { checkedBy: 'documents, some second-hand' },
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
  hosted('moonshot', 'https://api.moonshot.ai/v1', {
    documentation: { checkedBy: 'documents, some second-hand' },
    chat: {
      renamed: { max_tokens: 'max_completion_tokens' },
      developerRole: false,
      // https://github.com/MoonshotAI/kimi-agent-sdk/issues/169
      needsReasoning: 'of_calls',
      // 2.7 always thinks: "invalid thinking: only type=enabled is allowed for this model"
      disablesThinking: /^kimi-k2\.[56]/i,
    },
  }),
  // https://docs.bigmodel.cn; https://java.agentscope.io/v2/en/integration/model/glm, "Compatibility notes"
  hosted('zhipu', 'https://open.bigmodel.cn/api/paas/v4', {
    documentation: { checkedBy: 'documents, some second-hand' },
    chat: {
      renamed: olderLimit,
      streamOptions: false,
      developerRole: false,
      // https://docs.bigmodel.cn/cn/guide/capabilities/thinking: from 5.2 on they have efforts, and the newest always think.
      disablesThinking: /^glm-(?:4|5(?!\.[2-9]))/i,
      fields: { ...each('ignored', ...penalties), ...each('rejected', 'tool_choice') },
    },
  }),
  // https://platform.minimax.io/docs/api-reference/text-openai-api; https://docs.camel-ai.org/reference/camel.configs.minimax_config (n);
  // https://java.agentscope.io/v2/en/integration/model/minimax (the limit; what thinks: M2 always does, also told not to)
  hosted('minimax', 'https://api.minimax.io/v1', {
    documentation: { checkedBy: 'documents, some second-hand' },
    chat: {
      renamed: { max_tokens: 'max_completion_tokens' },
      developerRole: false,
      disablesThinking: /^minimax-m(?:[3-9]|\d\d)/i,
      fields: each('rejected', 'n'),
    },
  }),
  // https://help.aliyun.com/en/model-studio/deep-thinking (usage and reasoning of its streams; its switch)
  hosted('dashscope', 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1', {
    documentation: { checkedBy: 'documents' },
    // Both names of the limit stay: only the newer one limits the reasoning, too, and older models lack it.
    chat: { developerRole: false, reasoningBudget: qwen, disablesThinking: /^/, thinkingSwitch: 'enable_thinking' },
  }),
  // https://docs.siliconflow.com/en/api-reference/chat-completions/chat-completions, and
  // https://docs.siliconflow.com/en/userguide/capabilities/reasoning (what limits the reasoning)
  hosted('siliconflow', 'https://api.siliconflow.com/v1', {
    documentation: { checkedBy: 'documents' },
    chat: {
      renamed: olderLimit,
      developerRole: false,
      reasoningBudget: qwen,
      disablesThinking: /^/,
      thinkingSwitch: 'enable_thinking',
    },
  }),
  // https://docs.api.nvidia.com/nim/reference/llm-apis
  // Its list of models asks for no key.
  hosted('nvidia', 'https://integrate.api.nvidia.com/v1', {
    documentation: { checkedBy: 'documents' },
    keyCheck: false,
    chat: { renamed: olderLimit, developerRole: false },
  }),
  // https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx and, in openai/openai.go, ChatCompletionRequest:
  // what it does not know it passes over without a word.
  local('ollama', 'http://127.0.0.1:11434/v1', {
    documentation: { checkedBy: 'documents' },
    offers: ['chat', 'complete', 'embed', 'respond'],
    chat: {
      renamed: olderLimit,
      parallelToolCalls: false,
      developerRole: false,
      reasoning: 'reasoning',
      fields: {
        ...each('ignored', ...hints),
        ...each('rejected', 'n', 'logit_bias', 'tool_choice', ...functions, ...extras),
      },
    },
  }),
  // https://github.com/vllm-project/vllm/blob/main/docs/features/reasoning_outputs.md
  local('vllm', 'http://127.0.0.1:8000/v1', {
    documentation: { checkedBy: 'documents' },
    offers: ['chat', 'complete', 'embed'],
    chat: { developerRole: false, reasoning: 'reasoning' },
  }),
  // https://lmstudio.ai/docs/api/openai-api
  local('lm-studio', 'http://127.0.0.1:1234/v1', {
    documentation: { checkedBy: 'documents' },
    offers: ['chat', 'complete', 'embed', 'respond'],
    // Its reasoning: https://lmstudio.ai/blog/lmstudio-v0.3.23
    chat: { developerRole: false, reasoning: 'reasoning' },
  }),
];

/** The stand-in for trying the gateway. Where it runs is what the launcher says. */
export const sandbox: VendorDescription = {
  name: 'sandbox',
  baseUrl: 'http://127.0.0.1:8090/v1',
  needsKey: false,
  offers: everything,
};
