import type { BedrockModelFamily } from '../../../shared/vendors/bedrock-models.ts';
import { type CachedParts, withMarks } from '../anthropic/cache-breakpoints.ts';
import type { JsonObject } from '../support/json-object.ts';
import type { VendorCall } from '../vendor.ts';
import type { ConverseTools } from './tools.ts';
import { mayPrecedePoint } from './turns.ts';

/** The parts of a request to Converse that cache points go into. */
type ConverseParts = Pick<CachedParts, 'messages'> &
  Pick<ConverseTools, 'toolConfig'> & { readonly system: readonly JsonObject[] };

const point = { cachePoint: { type: 'default' } };

/**
 * Whether a call wants cache points, and its model is known to take them: Claude, with prices of its cache. Bedrock refuses them
 * for the first Claudes, and for models of others.
 */
export function addsCachePoints(
  { addsCacheBreakpoints, hasCachePrices }: Pick<VendorCall, 'addsCacheBreakpoints' | 'hasCachePrices'>,
  family: BedrockModelFamily,
): boolean {
  return addsCacheBreakpoints === true && hasCachePrices === true && family === 'claude';
}

/**
 * Adds cache points (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html) where Anthropic's API gets
 * breakpoints.
 */
export function withCachePoints({ system, messages, toolConfig }: ConverseParts): ConverseParts {
  const marked = withMarks({ system, messages, tools: toolConfig?.tools }, withPoint);
  const tools = marked.tools ?? [];
  return { ...marked, toolConfig: toolConfig && { ...toolConfig, tools } };
}

/** The list with a point behind the last item that may have one there, if there is any: Converse refuses a point behind nothing. */
function withPoint(items: readonly JsonObject[]): JsonObject[] {
  const end = items.findLastIndex(mayPrecedePoint) + 1;
  return end === 0 ? [...items] : [...items.slice(0, end), point, ...items.slice(end)];
}
