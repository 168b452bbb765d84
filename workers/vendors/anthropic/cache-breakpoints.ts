import type { JsonObject } from '../support/json-object.ts';
import type { AnthropicBlock } from './content.ts';
import type { AnthropicTurn } from './turns.ts';

/** The fields of a request for a message that count as input. */
export type CountedFields = JsonObject & {
  readonly system?: readonly AnthropicBlock[];
  readonly tools?: readonly JsonObject[];
  readonly messages: readonly AnthropicTurn[];
};

/** The parts of a request that breakpoints go into, in any vendor's form. */
export interface CachedParts {
  readonly system?: readonly JsonObject[] | undefined;
  readonly tools?: readonly JsonObject[] | undefined;
  readonly messages: readonly { readonly role: string; readonly content: readonly JsonObject[] }[];
}

const breakpoint = { cache_control: { type: 'ephemeral' } };

/**
 * Adds breakpoints of the prompt cache (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching). Prefixes too short
 * for the cache cost nothing more.
 */
export function withCacheBreakpoints(fields: CountedFields): CountedFields {
  return withMarks(fields, lastMarked);
}

/**
 * Marks what Claude's prompt cache is to keep: at the last tool, at the last block of the system prompt, and at the end of the
 * user's turn before the newest. These are three of the four that a request may have. The newest turn has none: its write would
 * cost more than plain input, and the next request, whose turn before the newest it then is, writes it for the requests after it.
 * @param mark returns a list with a mark at its end, in the vendor's form
 */
export function withMarks<Parts extends CachedParts>(
  parts: Parts,
  mark: (items: readonly JsonObject[]) => JsonObject[],
): Parts {
  const { system, tools, messages } = parts;
  const newest = messages.findLastIndex(({ role }) => role === 'user');
  const before = messages.findLastIndex(({ role }, index) => role === 'user' && index < newest);
  return {
    ...parts,
    ...(system && { system: mark(system) }),
    ...(tools && { tools: mark(tools) }),
    messages: messages.map((turn, index) => (index === before ? { ...turn, content: mark(turn.content) } : turn)),
  };
}

function lastMarked(items: readonly JsonObject[]): JsonObject[] {
  return items.map((item, index) => (index === items.length - 1 ? { ...item, ...breakpoint } : item));
}
