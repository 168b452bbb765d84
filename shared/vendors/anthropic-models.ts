/** How Anthropic's models differ on the wire. */
export interface AnthropicModelTraits {
  /** Whether thinking is requested by a budget of tokens, or left to the model, steered by an effort; or is not supported. */
  readonly thinking: 'budget' | 'adaptive' | 'none';
  /** How a request turns thinking off; null if the model always thinks. */
  readonly withoutThinking: 'disabled' | 'between_tools' | null;
  /** The levels of `output_config.effort`, the lowest first. */
  readonly efforts: readonly string[];
  /** Whether it accepts other `temperature`, `top_p` and `top_k` than their defaults; `by_one`: either of the first two. */
  readonly samples: 'freely' | 'by_one' | 'by_defaults';
  /** Whether a system message is allowed among the turns. */
  readonly systemTurns: boolean;
  /** Tokens. */
  readonly maxOutput: number;
}

const threeLevels = ['low', 'medium', 'high'];
const fourLevels = [...threeLevels, 'max'];
const allLevels = [...threeLevels, 'xhigh', 'max'];

const byBudget = {
  thinking: 'budget',
  withoutThinking: 'disabled',
  efforts: [],
  samples: 'freely',
  systemTurns: false,
  maxOutput: 64_000,
} as const satisfies AnthropicModelTraits;

const thoughtless = { ...byBudget, thinking: 'none', maxOutput: 4096 } as const satisfies AnthropicModelTraits;

const adaptive = {
  thinking: 'adaptive',
  withoutThinking: 'disabled',
  efforts: allLevels,
  samples: 'by_defaults',
  systemTurns: true,
  maxOutput: 128_000,
} as const satisfies AnthropicModelTraits;

/**
 * The traits by the model's name, the first match; platforms put their own prefixes before the names. Sources, as of November
 * 2026:
 *
 * - thinking: https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting (a table by model)
 * - efforts: https://platform.claude.com/docs/en/build-with-claude/effort
 * - system messages: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 * - sampling and maximum output tokens: https://platform.claude.com/docs/en/about-claude/models/overview, and the migration
 *   guides of Opus 4.1, Opus 4.7 and Sonnet 5; for the third generation, which platforms still have, its model cards
 */
const rows: readonly (readonly [RegExp, AnthropicModelTraits])[] = [
  [/claude-opus-4-1(?!\d)/, { ...byBudget, samples: 'by_one', maxOutput: 32_000 }],
  [/claude-opus-4-5/, { ...byBudget, samples: 'by_one', efforts: threeLevels }],
  [/claude-opus-4-6/, { ...adaptive, efforts: fourLevels, samples: 'by_one', systemTurns: false }],
  [/claude-sonnet-4-6/, { ...adaptive, efforts: fourLevels, samples: 'by_one', systemTurns: false, maxOutput: 64_000 }],
  [/claude-opus-4-7/, { ...adaptive, systemTurns: false }],
  [/claude-opus-4-8/, adaptive],
  [/claude-opus-4-9(?!\d)/, adaptive],
  [/claude-opus-4/, { ...byBudget, maxOutput: 32_000 }],
  [/claude-(sonnet|haiku)-4-5/, { ...byBudget, samples: 'by_one' }],
  [/claude-(sonnet|haiku)-4/, byBudget],
  [/claude-mythos-preview/, { ...adaptive, withoutThinking: null, efforts: fourLevels, systemTurns: false }],
  [/claude-sonnet-5-5/, { ...adaptive, withoutThinking: 'between_tools' }],
  [/claude-opus-5-5/, { ...adaptive, withoutThinking: null }],
  [/claude-sonnet-5/, { ...adaptive, systemTurns: false }],
  [/claude-(opus|haiku)-5/, adaptive],
  [/claude-3[-.]7/, byBudget],
  [/claude-3[-.]5/, { ...thoughtless, maxOutput: 8192 }],
  // The first of the third generation, and earlier ones.
  [/claude-(3|2|v2|v1|instant)(?![\d])/, thoughtless],
];

/** The traits of a model; an unknown one is treated as one of the newest. */
export function anthropicModelTraits(model: string): AnthropicModelTraits {
  const [, known] = rows.find(([name]) => name.test(model)) ?? [];
  return known ?? { ...adaptive, withoutThinking: null };
}
