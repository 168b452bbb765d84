import type { JsonObject } from '../support/json-object.ts';
import type { AnthropicBlock } from './content.ts';
import type { AnthropicTurn } from './turns.ts';

/** The fields of a request for a message that count as input. */
export type CountedFields = JsonObject & {
  readonly system?: readonly AnthropicBlock[];
  readonly tools?: readonly JsonObject[];
  readonly messages: readonly AnthropicTurn[];
};

const breakpoint = { cache_control: { type: 'ephemeral' } };

/**
 * Adds breakpoints of the prompt cache (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching): at the last tool, at
 * the last block of the system prompt, and at the end of the user's turn before the newest. These are three of the four that
 * Anthropic allows. The newest turn has none: its write would cost more than plain input, and the next request, whose turn
 * before the newest it then is, writes it for the requests after it. Prefixes too short for the cache cost nothing more.
 */
export function withCacheBreakpoints(fields: CountedFields): CountedFields {
  const { system, tools, messages } = fields;
  const newest = messages.findLastIndex(({ role }) => role === 'user');
  const before = messages.findLastIndex(({ role }, index) => role === 'user' && index < newest);
  return {
    ...fields,
    ...(system && { system: lastMarked(system) }),
    ...(tools && { tools: lastMarked(tools) }),
    messages: messages.map((turn, index) => (index === before ? { ...turn, content: lastMarked(turn.content) } : turn)),
  };
}

function lastMarked<Item extends object>(items: readonly Item[]): Item[] {
  return items.map((item, index) => (index === items.length - 1 ? { ...item, ...breakpoint } : item));
}
