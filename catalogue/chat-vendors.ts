/** Where the chat models of a vendor are told. */
export interface ChatVendor {
  /** Its name in routes (shared/catalogue/vendors.ts). */
  readonly vendor: string;
  /** Its name in pi-ai; undefined: models.dev describes its models. */
  readonly piAi?: string;
  /** Its name in models.dev. */
  readonly modelsDev: string;
  /** Who made its models; undefined: it serves models of others. */
  readonly maker?: string;
  /** Models of its list that are left out, and why: see beside each. */
  readonly without?: RegExp;
  /** What its names begin with and ours do not. */
  readonly prefix?: string;
  /** What else of its names is not the model's own, where models of others are looked for among them. */
  readonly dressing?: RegExp;
  /** Prefixes of names that stand for the same model in several regions, the preferred first; the rest is its name. */
  readonly profiles?: readonly string[];
  /** What stands between the maker's name and the model's; left out: a slash. */
  readonly makerEnd?: string;
  /** Of the models that reason those whose effort callers may choose; left out: all. */
  readonly efforts?: RegExp;
  /** Models that also take documents, where no list says so. */
  readonly documents?: RegExp;
}

/** Vendors of chat models in the order of preference: who made a model comes before who serves it. */
export const chatVendors: readonly ChatVendor[] = [
  { vendor: 'anthropic', piAi: 'anthropic', modelsDev: 'anthropic', maker: 'anthropic' },
  {
    ...{ vendor: 'gemini', piAi: 'google', modelsDev: 'google', maker: 'google' },
    // Deep research has an API of its own; computer use and robotics take no plain chats.
    without: /deep-research|computer-use|robotics/,
  },
  { vendor: 'deepseek', piAi: 'deepseek', modelsDev: 'deepseek', maker: 'deepseek' },
  { vendor: 'xai', piAi: 'xai', modelsDev: 'xai', maker: 'xai' },
  // It also serves models of others, under names that it alone has.
  { ...{ vendor: 'mistral', piAi: 'mistral', modelsDev: 'mistral', maker: 'mistral' }, without: /deepseek|glm/ },
  { vendor: 'perplexity', modelsDev: 'perplexity', maker: 'perplexity' },
  { vendor: 'moonshot', piAi: 'moonshotai', modelsDev: 'moonshotai', maker: 'moonshotai' },
  { vendor: 'zhipu', piAi: 'zai', modelsDev: 'zai', maker: 'zhipu' },
  { vendor: 'minimax', piAi: 'minimax', modelsDev: 'minimax', maker: 'minimax' },
  {
    ...{ vendor: 'dashscope', modelsDev: 'alibaba', maker: 'qwen' },
    // Realtime, recognition of speech and translation are no chats, and omni models answer in streams only. The
    // generation of 2024 is long past.
    without: /realtime|asr|livetranslate|-mt-|omni|qwen2-5|character/,
  },
  { vendor: 'cerebras', piAi: 'cerebras', modelsDev: 'cerebras' },
  { vendor: 'groq', piAi: 'groq', modelsDev: 'groq' },
  { vendor: 'together', piAi: 'together', modelsDev: 'togetherai' },
  {
    ...{ vendor: 'fireworks', piAi: 'fireworks', modelsDev: 'fireworks-ai', prefix: 'accounts/fireworks/models/' },
    // Routers choose among models by themselves.
    without: /\/routers\//,
  },
  {
    ...{ vendor: 'bedrock', piAi: 'amazon-bedrock', modelsDev: 'amazon-bedrock' },
    // Names for one region of the world alone; whoever is there asks for them by their names, or says so in the YAML.
    without: /^(apac|au|ca|eu|in|jp|us-gov)\./,
    // Most newer models are there under these names only.
    profiles: ['global.', 'us.'],
    // The maker, and a version of the offer: anthropic.claude-haiku-4-5-20251001-v1:0.
    makerEnd: '.',
    dressing: /^[a-z]+\.|-v\d+(:\d+)?$|-\d+:\d+$/g,
    // As workers/vendors/bedrock/reasoning.ts has it.
    efforts: /anthropic\.claude|amazon\.nova-2|openai\.gpt/,
    // https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html
    documents: /anthropic\.claude|amazon\.nova-(2-)?(lite|pro|premier)/,
  },
  { vendor: 'siliconflow', modelsDev: 'siliconflow' },
  { vendor: 'nvidia', piAi: 'nvidia', modelsDev: 'nvidia' },
  {
    ...{ vendor: 'openrouter', piAi: 'openrouter', modelsDev: 'openrouter' },
    // Of makers only that have no vendor here; neither its aliases (~) nor its variants (:free), nor its own choice.
    without:
      /^~|:|^auto$|^(anthropic|openai|openrouter|google|deepseek|x-ai|mistralai|qwen|moonshotai|z-ai|minimax|perplexity|nvidia)\//,
  },
];

/** The maker's name by what its models' names begin with at vendors that serve models of others. */
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
