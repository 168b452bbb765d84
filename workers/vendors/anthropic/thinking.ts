import type { AnthropicModelTraits } from '../../../shared/vendors/anthropic-models.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/** The thinking that a request allows the model. */
export interface AnthropicThinking {
  readonly thinking?: unknown;
  /** For `output_config`. */
  readonly effort?: unknown;
}

/** Efforts of chats, the lowest first, and the budget (tokens) of each. */
const budgets = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 32_000],
  ['max', 32_000],
]);
const ranks = [...budgets.keys()];
/** Anthropic's minimum. */
const minBudget = 1024;

/**
 * Translates an effort of a chat:
 *
 * - for models that think as they see fit, to `thinking: adaptive` with a visible summary, and the same effort or the next lower
 *   one that the model has (`minimal` is its lowest);
 * - for older models to a budget: 1,024 tokens for `minimal`, 2,048 low, 8,192 medium, 16,384 high, 32,000 above that, at most
 *   half of the answer's maximum tokens. Thinking is off if that is less than Anthropic's minimum of 1,024, and after results of
 *   calls that no thought preceded: Anthropic refuses that
 *   (https://platform.claude.com/docs/en/build-with-claude/extended-thinking).
 * - a choice of tools that forces a call leaves thinking out: Anthropic refuses both together;
 * - `none` turns thinking off, or becomes the lowest effort if that is impossible.
 *
 * `thinking` and `output_config.effort`, Anthropic's own fields, are passed unchanged and override an effort. Only a budget is left
 * out after results of calls that no thought preceded, as when another vendor's model has made them.
 * @throws ApiError 400 for an unknown effort.
 */
export function toAnthropicThinking(
  request: { readonly reasoning_effort?: unknown; readonly thinking?: unknown; readonly output_config?: unknown },
  traits: AnthropicModelTraits,
  answer: { readonly maxTokens: number; readonly followsThoughtlessCalls: boolean; readonly mustCall: boolean },
): AnthropicThinking {
  const { reasoning_effort: asked, thinking, output_config: config } = request;
  const effort = isObject(config) ? config.effort : undefined;
  if (thinking != null || effort != null) {
    const isRefused = answer.followsThoughtlessCalls && isObject(thinking) && thinking.type === 'enabled';
    return { ...(thinking != null && !isRefused && { thinking }), ...(effort != null && { effort }) };
  }
  if (asked == null) return {};
  if (traits.thinking === 'none') {
    if (asked === 'none') return {};
    throw unsupportedField('reasoning_effort', 'the model does not have it');
  }
  if (asked === 'none') return withoutThinking(traits);
  const budget = budgets.get(String(asked));
  if (budget === undefined) throw unsupportedField('reasoning_effort', `use one of none, ${ranks.join(', ')}`);
  if (traits.thinking === 'adaptive') {
    const effort = nearestEffort(String(asked), traits);
    return answer.mustCall ? { effort } : { thinking: { type: 'adaptive', display: 'summarized' }, effort };
  }
  const tokens = Math.min(budget, Math.floor(answer.maxTokens / 2));
  return tokens < minBudget || answer.followsThoughtlessCalls || answer.mustCall
    ? {}
    : { thinking: { type: 'enabled', budget_tokens: tokens } };
}

/** Whether a request explicitly enables thinking. */
export function isThinking({ thinking }: AnthropicThinking): boolean {
  return isObject(thinking) && (thinking.type === 'enabled' || thinking.type === 'adaptive');
}

function withoutThinking({ withoutThinking: type, efforts }: AnthropicModelTraits): AnthropicThinking {
  return type === null ? { effort: efforts[0] } : { thinking: { type } satisfies JsonObject };
}

function nearestEffort(asked: string, { efforts }: AnthropicModelTraits): string | undefined {
  const rank = ranks.indexOf(asked);
  return efforts.findLast((effort) => ranks.indexOf(effort) <= rank) ?? efforts[0];
}
