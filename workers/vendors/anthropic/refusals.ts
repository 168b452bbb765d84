import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { withUserAtEnd } from '../user-at-end.ts';
import type { VendorCall } from '../vendor.ts';
import { withChanged } from '../with-changed.ts';

/**
 * Messages by which Anthropic, and Bedrock with words of its own before them, refuses schemas that are too complex together
 * (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits). The size of the compiled
 * grammar, which is limited, too, is not known before.
 */
const tooComplex =
  /\b(compiled grammar is too large|grammar compilation|schema is too complex|schemas contains? too many)\b/i;

/**
 * Messages by which Anthropic, and Bedrock with words of its own before them, refuses thoughts of earlier turns: only the model, and
 * the vendor, that has signed a thought can read it, and only in the conversation that it is of.
 */
const refusesThoughts =
  /invalid `?signature`? in `?thinking`? block|invalid `?data`? in `?redacted_thinking`? block|thinking`? blocks in the latest assistant message cannot be modified/i;

/** The chat to send in place of one that Claude's vendor refuses; undefined if there is none. */
export function requestAfterRefusal(error: unknown, call: VendorCall): string | undefined {
  return withoutStrictTools(error, call) ?? withoutRefusedThoughts(error, call) ?? withUserAtEnd(error, call);
}

/** The chat that was refused in these words; undefined if it was not. */
function refusedChat(error: unknown, words: RegExp, { request }: Pick<VendorCall, 'request'>): JsonObject | undefined {
  if (!(error instanceof ApiError) || error.code !== 'invalid_request_error' || !words.test(error.message)) {
    return undefined;
  }
  const chat = parseExact(requestText(request));
  return isObject(chat) ? chat : undefined;
}

/**
 * The chat to send in place of one whose strict tools Claude's vendor refuses; undefined if that is not why, or if none is strict. To
 * be strict is a hint, without which the call works: OpenAI, whose agents make every tool strict, has no such limit.
 */
function withoutStrictTools(error: unknown, call: VendorCall): string | undefined {
  const chat = refusedChat(error, tooComplex, call);
  return chat && withChanged(chat, 'tools', loosened);
}

/**
 * The chat to send in place of one whose earlier thoughts are refused; undefined if that is not why, or if it has none. All are left
 * out: the refusal names the first, and a conversation that has changed its model has had others before.
 */
function withoutRefusedThoughts(error: unknown, call: VendorCall): string | undefined {
  const chat = refusedChat(error, refusesThoughts, call);
  return chat && withChanged(chat, 'messages', thoughtless);
}

function thoughtless(message: unknown): unknown {
  if (!isObject(message) || message.thinking_blocks === undefined) return message;
  const { thinking_blocks: _, thinking_offsets: __, ...rest } = message;
  return rest;
}

function loosened(tool: unknown): unknown {
  if (!isObject(tool) || !isObject(tool.function) || tool.function.strict !== true) return tool;
  return { ...tool, function: { ...tool.function, strict: false } };
}
