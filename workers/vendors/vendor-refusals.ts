/** By what vendors' errors tell why a request was refused. */
export interface Refusals {
  readonly codes: ReadonlySet<unknown>;
  /** Their messages, verbatim except for numbers. */
  readonly messages: readonly RegExp[];
}

/** Whether a vendor's error tells one of these. */
export function tellsOf(
  { code, message }: { readonly code: string | null; readonly message: string | null },
  { codes, messages }: Refusals,
): boolean {
  return codes.has(code) || (message !== null && messages.some((pattern) => pattern.test(message)));
}

/** An account at the vendor without credit, over its limit of spending, or closed. */
export const quotaRefusals: Refusals = {
  codes: new Set([
    ...['insufficient_quota', 'billing_hard_limit_reached', 'billing_not_active'],
    // Moonshot; DashScope; Groq, for its operator's own limit of spending and for a closed account.
    ...['exceeded_current_quota_error', 'Arrearage', 'blocked_api_access', 'organization_restricted'],
  ]),
  // Zhipu's messages, in both of its languages, for an account without credit; their status is that of a limit.
  messages: [/账户已欠费/, /^Your account is in arrears/, /^Insufficient balance or no resource package/],
};

/** A request that alone exceeds the account's limit of a minute, however long it waits. Anthropic's is told by its headers. */
export const overLimitRefusals: Refusals = {
  codes: new Set(),
  messages: [
    // OpenAI and Groq.
    /^Request too large for \S.* on [\w -]+ per (min|minute|day)\b/,
    // Azure, whose limit of tokens is one of a minute: what must wait for a day never fits into it.
    /\bexceeded (the )?token rate limit\b.* retry after 86400 seconds\b/,
  ],
};

/** Input beyond the context window. */
export const tooLongRefusals: Refusals = {
  codes: new Set(['too_many_prompt_tokens', 'exceed_context_size_error']),
  messages: [
    // OpenAI, DeepSeek, vLLM; OpenRouter.
    /^This (model|endpoint)'s maximum context length is \d+ tokens/,
    /^This model's maximum prompt length is \d+/,
    // vLLM's newer versions.
    /^'max_tokens' or 'max_completion_tokens' is too large: \d+\. This model's maximum context length is \d+/,
    /^You passed \d+ input tokens and requested \d+ output tokens\. However, the model's context length is only \d+/,
    /^The (decoder|engine) prompt \(length \d+\) is longer than the maximum model length of \d+/,
    // LM Studio.
    /^Trying to keep the first \d+ tokens when context the overflows\b/,
    /^The number of tokens to keep from the initial prompt is greater than the context length\b/,
    // Ollama.
    /^prompt too long; exceeded max context length/,
    // Mistral, with or without a count of draft tokens.
    /^Prompt contains \d+ tokens\b.*too large for model with \d+ maximum context length/,
    // Anthropic, and who passes on its messages, such as OpenRouter.
    /^prompt is too long: \d+ tokens > \d+ maximum/i,
    /^input length and `max_tokens` exceed context limit: \d/,
    // Groq and Cerebras.
    /^Please reduce the length of the messages or completion/,
    // Moonshot.
    /^(Invalid request: )?Your request exceeded model token limit: \d+/,
    // DashScope.
    /^(<400> )?(InternalError\.Algo\.InvalidParameter: )?Range of input length should be \[/,
    // Together, and Hugging Face's server under others.
    /^Input validation error: `inputs` (tokens \+ `max_new_tokens` must be <= \d+|must have less than \d+ tokens)/,
    /^The input \(\d+ tokens\) is longer than the model's context length \(\d+ tokens\)/,
    // llama.cpp, under LM Studio and others.
    /^the request exceeds the available context size/,
    // Cloudflare's own models, and those that SGLang serves.
    /^(AiError: )?The estimated number of input and maximum output tokens \(\d+\) exceeded this model context window/,
    /^Requested token count exceeds the model's maximum context length of \d+ tokens/,
    // Zhipu, in both of its languages; Snowflake; Databricks, which passes on Bedrock's message.
    /^Prompt (超长|exceeds max length)/,
    /^max tokens of \d+ exceeded/,
    /^(\{"message":")?Input is too long for requested model\b/,
    // Fireworks; SiliconFlow; Vertex; MiniMax.
    /^The prompt is too long: \d+, model maximum context length: \d+/,
    /^length of prompt_tokens \(\d+\) must be less than max_seq_len\b/,
    /^The input token count \(\d+\) exceeds the maximum number of tokens allowed/,
    /^Unable to submit request because the input token count is \d+ but (the )?model (only )?supports up to \d+/,
    /^invalid params, context window exceeds limit\b/,
    // LiteLLM's proxy, whichever vendor is behind it.
    /^litellm\.ContextWindowExceededError\b/,
  ],
};

/** A model that the vendor does not know. */
export const unknownModelRefusals: Refusals = {
  codes: new Set([
    ...['model_not_found', 'model_not_available', 'invalid_model', 'model_decommissioned'],
    // Databricks.
    ...['RESOURCE_DOES_NOT_EXIST', 'ENDPOINT_NOT_FOUND'],
  ]),
  messages: [
    // Anthropic; DeepSeek; SiliconFlow.
    /^model: \S+$/,
    /^Model (Not|does not) Exist/i,
    // xAI, vLLM and LM Studio; Ollama; xAI in other words.
    /^(The )?model [`'"]?[^\s`'"]+[`'"]? (does not exist|not found)/i,
    /^Model not found: \S+$/,
    // OpenRouter.
    /^\S+ is not a valid model ID/,
    /^No endpoints found for [\w./:@-]+\.?$/,
    // Mistral and Perplexity.
    /^Invalid model(:| ['`"])/,
    // Fireworks; Moonshot.
    /^Model not found, inaccessible/,
    /^Not found the model /,
    // Zhipu, in both of its languages, and Snowflake; Cloudflare.
    /^模型不存在/,
    /^unknown model\b/i,
    /^(AiError: )?No such model /,
    // NVIDIA; Vertex; MiniMax.
    /^Function '[^']+': Not found for account/,
    /^Publisher Model `[^`]+` was not found\b/,
    /^invalid params, unknown model\b/,
    // LiteLLM's proxy: its own, and the message of the vendor behind it.
    /^\S+: Invalid model name passed in model=/,
    /^litellm\.NotFoundError: .* - The model [`']\S+[`'] does not exist\b/,
  ],
};
