import { parseExact } from '../../shared/capabilities/exact-json.ts';
import { extraContent, readExtraContent } from '../../shared/capabilities/thought-signature.ts';
import { objectsOf } from '../../shared/capabilities/vendor-values.ts';
import { ApiError } from '../../shared/errors.ts';
import { signedDetails } from './openai/reasoning-details.ts';
import { requestText } from './request-body.ts';
import { isObject, type JsonObject } from './support/json-object.ts';
import type { VendorCall } from './vendor.ts';
import { withChanged } from './with-changed.ts';

/**
 * The signature that Gemini accepts for a call that it did not make itself, or that returns without its own
 * (https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQ"). Of the two that there are it is Vertex AI's, too.
 */
export const foreignSignature = 'skip_thought_signature_validator';

/**
 * Gemini's words, and Vertex AI's, also at OpenRouter, for a signature that it cannot read: only the account, and the model, that has
 * made it can.
 */
const refusesSignature = /corrupted thought signature|thought signature is not valid/i;

/** The same for a call without one, which some of the second generation's models refuse, too. */
const missesSignature = /\bmissing a `?thought_signature/i;

/**
 * The chat to send in place of one whose calls Gemini refuses for their signatures, as after a change of the model, of the key or of
 * the vendor in the middle of a conversation; undefined if that is not why, or if none can be the reason. Their turns get the one
 * that stands for a foreign signature.
 */
export function withForeignSignatures(error: unknown, { request }: Pick<VendorCall, 'request'>): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const isMissing = missesSignature.test(error.message);
  if (!isMissing && !refusesSignature.test(error.message)) return undefined;
  const chat = parseExact(requestText(request));
  if (!isObject(chat)) return undefined;
  return withChanged(chat, 'messages', (message) =>
    isObject(message) && isRefused(message, isMissing) ? withForeignSignature(message) : message,
  );
}

function isRefused(message: JsonObject, isMissing: boolean): boolean {
  const calls = objectsOf(message.tool_calls);
  const signatures = [message, ...calls].map(readExtraContent).filter((signature) => signature !== undefined);
  const all = [...signatures, ...signedDetails(message).map(({ data }) => data)];
  return isMissing ? calls.length > 0 && all.length === 0 : all.some((signature) => signature !== foreignSignature);
}

/** Of parallel calls only the first is signed. */
function withForeignSignature({ reasoning_details: _, ...message }: JsonObject): JsonObject {
  const { tool_calls: calls } = message;
  const own = unsigned(message);
  if (!Array.isArray(calls) || !isObject(calls[0])) return own;
  const [first, ...others] = calls.map((call) => (isObject(call) ? unsigned(call) : call));
  return { ...own, tool_calls: [{ ...first, ...extraContent(foreignSignature) }, ...others] };
}

function unsigned(part: JsonObject): JsonObject {
  if (readExtraContent(part) === undefined) return part;
  const { extra_content: _, ...rest } = part;
  return rest;
}
