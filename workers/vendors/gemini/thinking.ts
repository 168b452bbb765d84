import type { JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';

/** Those of Google's open models that think, at the levels MINIMAL and HIGH alone (https://github.com/livekit/agents/pull/7080). */
const isGemma = /^gemma-4-/;

/** How a model's thinking is controlled: the second generation by tokens, later ones by levels, older ones not at all. */
function controlOf(model: string): 'budget' | 'level' | undefined {
  if (model.startsWith('gemini-2.5-')) return 'budget';
  if (/^gemini-(?:[3-9]|\d\d)|^gemini-[a-z-]+-latest$/.test(model) || isGemma.test(model)) return 'level';
  return undefined;
}

/** Whether calls in the history must carry a thought signature: from the third generation on, except to open models. */
export function needsSignatures(model: string): boolean {
  return controlOf(model) === 'level' && !isGemma.test(model);
}

/** Models that support the level MINIMAL. All others support none below LOW. */
const takesMinimal = /^gemini-3(?:\.[0-6])?-flash|-flash-lite/;

/** Token budgets of Google's own OpenAI endpoint (https://ai.google.dev/gemini-api/docs/openai#thinking). */
const budgets: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: 24_576,
};

const levels: Readonly<Record<string, string>> = {
  none: 'MINIMAL',
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
  max: 'HIGH',
};

/** The Pro model of the second generation cannot stop thinking: this is its minimum. */
const minProBudget = 128;

/**
 * `thinkingConfig` (https://ai.google.dev/gemini-api/docs/thinking): the effort in the model's own unit, and always the summaries
 * of its thoughts, which become `reasoning_content`. `none` is the model's minimum.
 * @throws ApiError 400 for an unknown effort, and for any effort with a model that does not think.
 */
export function thinkingConfig(model: string, effort: string | null | undefined): JsonObject | undefined {
  const control = controlOf(model);
  if (effort != null && !Object.hasOwn(levels, effort)) {
    const known = Object.keys(levels).join(', ');
    throw unsupportedField('reasoning_effort', `it is none of ${known}`);
  }
  if (control === undefined) {
    if (effort == null || effort === 'none') return undefined;
    throw unsupportedField('reasoning_effort', 'the model does not reason');
  }
  if (effort == null) return { includeThoughts: true };
  if (control === 'level') {
    const level = levels[effort];
    if (isGemma.test(model)) return { includeThoughts: true, thinkingLevel: level === 'MINIMAL' ? 'MINIMAL' : 'HIGH' };
    const isTooLow = level === 'MINIMAL' && !takesMinimal.test(model);
    return { includeThoughts: true, thinkingLevel: isTooLow ? 'LOW' : level };
  }
  const budget = budgets[effort] ?? 0;
  if (budget > 0) return { includeThoughts: true, thinkingBudget: budget };
  return model.startsWith('gemini-2.5-pro')
    ? { includeThoughts: true, thinkingBudget: minProBudget }
    : { thinkingBudget: 0 };
}
