/**
 * Determines the parameters that a model takes in addition to Converse's own. `gpt-oss` are OpenAI's open models, `gpt` its
 * others; nothing is known of `other`.
 */
export type BedrockModelFamily = 'claude' | 'nova' | 'nova-2' | 'gpt' | 'gpt-oss' | 'other';

const families: readonly (readonly [RegExp, BedrockModelFamily])[] = [
  [/anthropic\.claude/, 'claude'],
  [/amazon\.nova-2/, 'nova-2'],
  [/amazon\.nova/, 'nova'],
  [/openai\.gpt-oss/, 'gpt-oss'],
  [/openai\.gpt/, 'gpt'],
];

/** The family by the id of a model, an inference profile (`us.…`, `global.…`) or the ARN of either. */
export function bedrockModelFamily(model: string): BedrockModelFamily {
  return families.find(([name]) => name.test(model))?.[1] ?? 'other';
}

/**
 * Whether the result of a tool may be marked as failed
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolResultBlock.html, "status").
 */
export function hasResultStatus(family: BedrockModelFamily): boolean {
  return family === 'claude' || family === 'nova' || family === 'nova-2';
}

/**
 * Whether requests may mark the end of the cached part (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html,
 * "Supported models"); other models refuse such marks.
 */
export function hasCachePoints(family: BedrockModelFamily): boolean {
  return family === 'claude' || family === 'nova' || family === 'nova-2';
}

/**
 * Whether such a mark may stand behind tools, calls, their results and files, and not behind texts alone. Nova refuses it there
 * (https://github.com/zeroclaw-labs/zeroclaw/issues/8720).
 */
export function hasCachePointsAnywhere(family: BedrockModelFamily): boolean {
  return family === 'claude';
}

/** Claude Haiku, Sonnet and Opus 4.5 and 4.6. */
const strictClaude = /anthropic\.claude-(haiku|sonnet|opus)-4-[56](?!\d)/;

/**
 * Whether Converse takes `strict` of a model's tools. It refuses the mere field for others, later ones among them
 * (https://github.com/BerriAI/litellm/issues/33193), so only those that are known to take it are named.
 */
export function hasStrictTools(model: string): boolean {
  return strictClaude.test(model);
}
