import { extraContent, readExtraContent } from '../../../shared/capabilities/thought-signature.ts';
import { objectsOf } from '../../../shared/capabilities/vendor-values.ts';
import { isText, type JsonObject } from '../support/json-object.ts';

const encrypted = 'reasoning.encrypted';
const googles = 'google-gemini-v1';

/**
 * Google's signatures of calls, which OpenRouter has among the details of the reasoning and Google demands back
 * (https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks), in the field of Google's own
 * endpoint for OpenAI's clients: the views of a chat carry that to their callers and back.
 */
export class CallSignatures {
  /** By the ids of calls that are still to come. */
  readonly #signatures = new Map<string, string>();
  /** The indices of calls that have come, by id. */
  readonly #indices = new Map<string, unknown>();

  /** Signs the calls of a message, or of the next delta of a stream, in place. */
  sign(message: JsonObject): void {
    // Only what comes with this message can be signed now: a vendor may have made a hundred thousand calls before.
    const changed = new Set<string>();
    for (const { id, data } of signedDetails(message)) {
      if (!isText(id)) continue;
      this.#signatures.set(id, data);
      changed.add(id);
    }
    const calls = objectsOf(message.tool_calls);
    const byId = new Map<string, JsonObject>();
    for (const call of calls) {
      const { id, index } = call;
      if (!isText(id)) continue;
      this.#indices.set(id, index);
      if (!byId.has(id)) byId.set(id, call);
      changed.add(id);
    }
    for (const id of changed) {
      const signature = this.#signatures.get(id);
      if (signature === undefined || !this.#indices.has(id)) continue;
      const call = byId.get(id);
      if (call !== undefined) Object.assign(call, extraContent(signature));
      else calls.push({ index: this.#indices.get(id), id, ...extraContent(signature) });
      message.tool_calls = calls;
      this.#signatures.delete(id);
    }
  }
}

/** The details of a message that are signatures of Google's. */
export function signedDetails(message: JsonObject): readonly (JsonObject & { readonly data: string })[] {
  return objectsOf(message.reasoning_details).flatMap(({ type, format, data, ...rest }) =>
    type === encrypted && format === googles && isText(data) ? [{ ...rest, data }] : [],
  );
}

/** A message with its calls' signatures where OpenRouter looks for them. Details that a caller has kept stay as they are. */
export function withReasoningDetails(message: JsonObject): JsonObject {
  if (message.reasoning_details != null) return message;
  const details = objectsOf(message.tool_calls).flatMap((call, index) => {
    const data = readExtraContent(call);
    return data === undefined ? [] : [{ type: encrypted, data, id: call.id, format: googles, index }];
  });
  return details.length === 0 ? message : { ...message, reasoning_details: details };
}
