import { cachedElsewhere } from '../../shared/money/token-counts.ts';
import { isObject } from './json-object.ts';
import type { VendorUsage } from './vendor.ts';

/** Counts with the cached tokens where OpenAI has them, whatever the vendor calls them; null where there are none. */
export function shapeUsage(usage: unknown): VendorUsage {
  if (!isObject(usage)) return null;
  const { prompt_tokens_details: details } = usage;
  if (isObject(details) && typeof details.cached_tokens === 'number') return usage;
  const cached = cachedElsewhere(usage);
  if (cached === undefined) return usage;
  return { ...usage, prompt_tokens_details: { ...(isObject(details) && details), cached_tokens: cached } };
}
