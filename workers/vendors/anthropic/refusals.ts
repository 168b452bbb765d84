import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import { requestText } from '../request-body.ts';
import { isObject } from '../support/json-object.ts';
import { withUserAtEnd } from '../user-at-end.ts';
import type { VendorCall } from '../vendor.ts';

/**
 * Messages by which Anthropic, and Bedrock with words of its own before them, refuses schemas that are too complex together
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits). The size of the compiled
 * grammar, which is limited, too, is not known before.
 */
const tooComplex =
  /\b(compiled grammar is too large|grammar compilation|schema is too complex|schemas contains? too many)\b/i;

/** The chat to send in place of one that Claude's vendor refuses; undefined if there is none. */
export function requestAfterRefusal(error: unknown, call: VendorCall): string | undefined {
  return withoutStrictTools(error, call) ?? withUserAtEnd(error, call);
}

/**
 * The chat to send in place of one whose strict tools Claude's vendor refuses; undefined if that is not why, or if none is strict. To
 * be strict is a hint, without which the call works: OpenAI, whose agents make every tool strict, has no such limit.
 */
function withoutStrictTools(error: unknown, { request }: Pick<VendorCall, 'request'>): string | undefined {
  if (!(error instanceof ApiError) || error.code !== 'invalid_request_error' || !tooComplex.test(error.message)) {
    return undefined;
  }
  const chat = parseExact(requestText(request));
  if (!isObject(chat) || !Array.isArray(chat.tools)) return undefined;
  const given: unknown[] = chat.tools;
  const tools = given.map(loosened);
  return tools.every((tool, index) => tool === given[index]) ? undefined : stringifyExact({ ...chat, tools });
}

function loosened(tool: unknown): unknown {
  if (!isObject(tool) || !isObject(tool.function) || tool.function.strict !== true) return tool;
  return { ...tool, function: { ...tool.function, strict: false } };
}
