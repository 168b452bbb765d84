import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import {
  encryptedReasoning,
  type ResponseItem,
  type ResponseJob,
  readItemId,
} from '../../../shared/capabilities/response.ts';
import { carriesThought } from '../../../shared/capabilities/signed-thought.ts';
import { requestText } from '../request-body.ts';
import type { VendorCall } from '../vendor.ts';

/**
 * A quoted text that may be one of the gateway's ids or a thought or signature of another vendor's, or a key that must be checked. Quotes inside a
 * text are escaped.
 */
const needsReading =
  /_[0-9a-f]{32}"|"(?:google|anthropic|chat-reasoning):|"(?:include|store|background|previous_response_id)"/;

/**
 * The body of a vendor's `POST /responses`. The vendor must store nothing, and return its reasoning encrypted: the gateway holds
 * the conversation, and sends earlier items under the vendor's own ids.
 */
export function composeResponseRequest({ model, stream, ...call }: VendorCall): string {
  const request = requestText(call.request);
  const ours = { model, ...(stream && { stream }), store: false };
  // Most requests need no parsing, and may hold megabytes of pictures.
  if (!needsReading.test(request)) {
    const fields = request.slice(request.indexOf('{') + 1);
    return `${JSON.stringify({ ...ours, include: [encryptedReasoning] }).slice(0, -1)},${fields}`;
  }
  const { input, include, store, background, previous_response_id, ...rest } = parseExact(request) as ResponseJob;
  return stringifyExact({
    ...ours,
    include: [...new Set([...(Array.isArray(include) ? include : []), encryptedReasoning])],
    input: input.map(toVendorsItem).filter((item) => item !== undefined),
    ...rest,
  });
}

/**
 * The first part of an item's id that came over a chat: an index, the same in each response. OpenAI refuses two items of one id, so
 * that of such an item stays whole, the job's included.
 */
const ofChat = /^[a-z]+_\d+$/;
/** The same of an input item whose caller gave it no id. */
const ofInput = /^[a-z]+_in\d+$/;

/**
 * An item in the vendor's form; undefined for returned reasoning of the gateway without content: it only has the id of an item
 * that the vendor did not store. So is what another model has thought over a chat: OpenAI refuses reasoning as text, and reads only
 * its own encrypted content.
 */
function toVendorsItem(item: ResponseItem): ResponseItem | undefined {
  const { id, approval_request_id: approvalId } = item;
  const own = typeof id === 'string' ? readItemId(id) : undefined;
  const isOfChat = own !== undefined && !item.encrypted_content && ofChat.test(own.vendorsId);
  if (item.type === 'reasoning' && (isOfChat || carriesThought(item.encrypted_content))) return undefined;
  if (own !== undefined && isEmptyReasoning(item)) return undefined;
  const asked = typeof approvalId === 'string' ? readItemId(approvalId) : undefined;
  const { id: _, ...unnamed } = item;
  return {
    ...(own && ofInput.test(own.vendorsId) ? unnamed : { ...item, ...(own && !isOfChat && { id: own.vendorsId }) }),
    ...(asked && { approval_request_id: asked.vendorsId }),
  };
}

/** A summary alone does not count: the vendor never reads it. */
function isEmptyReasoning({ type, encrypted_content: encrypted, content }: ResponseItem): boolean {
  return type === 'reasoning' && !encrypted && !(Array.isArray(content) && content.length > 0);
}

/** Items that OpenAI pairs with the reasoning before them by their ids, which they do not need. */
const pairedItems: ReadonlySet<unknown> = new Set(['message', 'function_call', 'custom_tool_call']);

/** A request without encrypted reasoning, as another account than the one that encrypted it needs it; undefined if it has none. */
export function withoutEncryptedReasoning(request: string): string | undefined {
  const job = parseExact(request) as ResponseJob;
  const isEncrypted = (item: ResponseItem): boolean => item.type === 'reasoning' && Boolean(item.encrypted_content);
  if (!job.input.some(isEncrypted)) return undefined;
  const kept = job.input.filter((item) => !isEncrypted(item));
  const input = kept.map(({ id, ...item }) => ({
    ...(id !== undefined && !pairedItems.has(item.type) && { id }),
    ...item,
  }));
  return stringifyExact({ ...job, input });
}
