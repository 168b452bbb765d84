/** Sources of a vendor's chat models. */
export interface ChatVendor {
  /** Its name in routes (shared/vendors/vendors.ts). */
  readonly vendor: string;
  /** Its name in pi-ai; undefined: models.dev describes its models. */
  readonly piAi?: string;
  /** Its name in models.dev. */
  readonly modelsDev: string;
  /** Maker of its models; undefined: it serves models of others. */
  readonly maker?: string;
  /** Models of its list to leave out; each has a reason beside it. */
  readonly without?: RegExp;
  /** Prefix of its names to remove. */
  readonly prefix?: string;
  /** Other vendor-specific parts of its names, removed when searching for models of others. */
  readonly dressing?: RegExp;
  /** Name prefixes for the same model in several regions, preferred first; the rest is its name. */
  readonly profiles?: readonly string[];
  /** Separator between the maker's and the model's name; left out: a slash. */
  readonly makerEnd?: string;
  /** Reasoning models whose effort callers may choose; left out: all. */
  readonly efforts?: RegExp;
  /** Models that also accept documents, if no list says so. */
  readonly documents?: RegExp;
}

/** Vendors of chat models in order of preference: a model's maker comes before those who serve it. */
export const chatVendors: readonly ChatVendor[] = [
  { vendor: 'anthropic', piAi: 'anthropic', modelsDev: 'anthropic', maker: 'anthropic' },
  {
    ...{ vendor: 'gemini', piAi: 'google', modelsDev: 'google', maker: 'google' },
    // Deep research has its own API; computer use and robotics accept no plain chats.
    without: /deep-research|computer-use|robotics/,
  },
  { vendor: 'deepseek', piAi: 'deepseek', modelsDev: 'deepseek', maker: 'deepseek' },
  { vendor: 'xai', piAi: 'xai', modelsDev: 'xai', maker: 'xai' },
  // It also serves models of others, under names that only it uses.
  { ...{ vendor: 'mistral', piAi: 'mistral', modelsDev: 'mistral', maker: 'mistral' }, without: /deepseek|glm/ },
  { vendor: 'perplexity', modelsDev: 'perplexity', maker: 'perplexity' },
  { vendor: 'moonshot', piAi: 'moonshotai', modelsDev: 'moonshotai', maker: 'moonshotai' },
  { vendor: 'zhipu', piAi: 'zai', modelsDev: 'zai', maker: 'zhipu' },
  { vendor: 'minimax', piAi: 'minimax', modelsDev: 'minimax', maker: 'minimax' },
  {
    ...{ vendor: 'dashscope', modelsDev: 'alibaba', maker: 'qwen' },
    // Realtime, speech recognition and translation are not chats, and omni models only stream. The 2024 generation is outdated.
    without: /realtime|asr|livetranslate|-mt-|omni|qwen2-5|character/,
  },
  { vendor: 'cerebras', piAi: 'cerebras', modelsDev: 'cerebras' },
  { vendor: 'groq', piAi: 'groq', modelsDev: 'groq' },
  { vendor: 'together', piAi: 'together', modelsDev: 'togetherai' },
  {
    ...{ vendor: 'fireworks', piAi: 'fireworks', modelsDev: 'fireworks-ai', prefix: 'accounts/fireworks/models/' },
    // Routers choose among models themselves.
    without: /\/routers\//,
  },
  {
    ...{ vendor: 'bedrock', piAi: 'amazon-bedrock', modelsDev: 'amazon-bedrock' },
    // Names for one region of the world only; operators there request them by name, or configure them in the YAML.
    without: /^(apac|au|ca|eu|in|jp|us-gov)\./,
    // Most newer models exist only under these names there.
    profiles: ['global.', 'us.'],
    // The maker, and a version of the offer: anthropic.claude-haiku-4-5-20251001-v1:0.
    makerEnd: '.',
    dressing: /^[a-z]+\.|-v\d+(:\d+)?$|-\d+:\d+$/g,
    // As in workers/vendors/bedrock/reasoning.ts.
    efforts: /anthropic\.claude|amazon\.nova-2|openai\.gpt/,
    // https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html
    documents: /anthropic\.claude|amazon\.nova-(2-)?(lite|pro|premier)/,
  },
  { vendor: 'siliconflow', modelsDev: 'siliconflow' },
  { vendor: 'nvidia', piAi: 'nvidia', modelsDev: 'nvidia' },
  {
    ...{ vendor: 'openrouter', piAi: 'openrouter', modelsDev: 'openrouter' },
    // Only makers without a vendor here; neither its aliases (~) nor its variants (:free), nor its automatic choice.
    without:
      /^~|:|^auto$|^(anthropic|openai|openrouter|google|deepseek|x-ai|mistralai|qwen|moonshotai|z-ai|minimax|perplexity|nvidia)\//,
  },
];

/** Makers' names by the prefix of their models' names at vendors that serve models of others. */
export const makers: Readonly<Record<string, string>> = {
  'deepseek-ai': 'deepseek',
  'meta-llama': 'meta',
  'meta-models': 'meta',
  minimaxai: 'minimax',
  mistralai: 'mistral',
  moonshot: 'moonshotai',
  'stepfun-ai': 'stepfun',
  thudm: 'zhipu',
  'z-ai': 'zhipu',
  zai: 'zhipu',
  'zai-org': 'zhipu',
};
