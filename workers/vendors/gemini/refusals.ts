import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { readExtraContent } from '../../../shared/capabilities/thought-signature.ts';
import { ApiError } from '../../../shared/errors.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { withUserAtEnd } from '../user-at-end.ts';
import type { VendorCall } from '../vendor.ts';
import { withChanged } from '../with-changed.ts';

/** Gemini's words, and Vertex AI's, for a signature that it cannot read: only the account, and the model, that has made it can. */
const refusesSignature = /corrupted thought signature|thought signature is not valid/i;

/** The chat to send in place of one that Gemini refuses; undefined if there is none. */
export function requestAfterRefusal(error: unknown, call: VendorCall): string | undefined {
  return withoutSignatures(error, call) ?? withUserAtEnd(error, call);
}

/**
 * The chat to send in place of one whose signatures are refused, as after a change of the key or of the vendor in the middle of a
 * conversation; undefined if that is not why, or if it has none. Calls get the one that stands for a foreign signature.
 */
function withoutSignatures(error: unknown, { request }: VendorCall): string | undefined {
  if (!(error instanceof ApiError) || !refusesSignature.test(error.message)) return undefined;
  const chat = parseExact(requestText(request));
  return isObject(chat) ? withChanged(chat, 'messages', unsignedMessage) : undefined;
}

function unsignedMessage(message: unknown): unknown {
  if (!isObject(message)) return message;
  const { tool_calls: calls } = message;
  const own = unsigned(message);
  if (!Array.isArray(calls) || !calls.some(isSigned)) return own;
  return { ...own, tool_calls: calls.map((call) => (isObject(call) ? unsigned(call) : call)) };
}

function isSigned(part: unknown): boolean {
  return isObject(part) && readExtraContent(part) !== undefined;
}

function unsigned(part: JsonObject): JsonObject {
  if (!isSigned(part)) return part;
  const { extra_content: _, ...rest } = part;
  return rest;
}
