import { cachedElsewhere } from '../../../shared/money/token-counts.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { VendorUsage } from '../vendor.ts';

/**
 * Counts in OpenAI's form: cached tokens in the details of the prompt, whatever the vendor's name for them, and reasoning tokens
 * included in the completion's. Null if there are none.
 */
export function shapeUsage(usage: unknown): VendorUsage {
  return isObject(usage) ? withCached(withReasoning(usage)) : null;
}

/** xAI does not include reasoning in the completion; the total shows it. */
function withReasoning(usage: JsonObject): JsonObject {
  const {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: total,
    completion_tokens_details: details,
  } = usage;
  const reasoning = isObject(details) ? details.reasoning_tokens : undefined;
  if (typeof input !== 'number' || typeof output !== 'number' || typeof reasoning !== 'number') return usage;
  return reasoning > 0 && total === input + output + reasoning
    ? { ...usage, completion_tokens: output + reasoning }
    : usage;
}

function withCached(usage: JsonObject): JsonObject {
  const { prompt_tokens_details: details } = usage;
  if (isObject(details) && typeof details.cached_tokens === 'number') return usage;
  const cached = cachedElsewhere(usage);
  if (cached === undefined) return usage;
  return { ...usage, prompt_tokens_details: { ...(isObject(details) && details), cached_tokens: cached } };
}
