import { stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { textOf } from '../../../shared/capabilities/vendor-values.ts';
import { ApiError } from '../../../shared/errors.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import type { VendorAnswer, VendorUsage } from '../vendor.ts';

/**
 * Finish reasons by Anthropic's stop reasons (https://docs.anthropic.com/en/api/handling-stop-reasons). A paused turn, which only
 * Anthropic's own tools cause, is unfinished, like a truncated one.
 */
const finishReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  pause_turn: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/** Anthropic's names of the tiers of chats. */
const serviceTiers: Readonly<Record<string, string>> = { standard: 'default', priority: 'priority', batch: 'flex' };

/** The stop reason of an answer that fills the context window. */
export const windowExceeded = 'model_context_window_exceeded';

/**
 * The end fields of a chat's choice. A stop sequence is reported in `stop_reason`, as vLLM does, and so is a full context window,
 * which no higher maximum of tokens helps; the details of a refusal are in `stop_details`.
 */
export function finishOf({
  stop_reason: reason,
  stop_sequence: sequence,
  stop_details: details,
}: JsonObject): JsonObject {
  const name = textOf(reason);
  const finish = Object.hasOwn(finishReasons, name) ? finishReasons[name] : 'stop';
  const stopReason = typeof sequence === 'string' ? sequence : reason === windowExceeded ? reason : undefined;
  return {
    finish_reason: finish,
    ...(stopReason !== undefined && { stop_reason: stopReason }),
    ...(isObject(details) && { stop_details: details }),
  };
}

/** The service tier of an answer, as a field of a chat's body or chunk. */
export function serviceTierOf({ service_tier: tier }: JsonObject): JsonObject {
  return typeof tier === 'string' && Object.hasOwn(serviceTiers, tier) ? { service_tier: serviceTiers[tier] } : {};
}

/** Counts as in a chat: the prompt includes tokens read from and written to the cache. */
export function toChatUsage(usage: JsonObject): VendorUsage {
  const count = (name: string): number => (typeof usage[name] === 'number' ? usage[name] : 0);
  if (typeof usage.input_tokens !== 'number' && typeof usage.output_tokens !== 'number') return null;
  const read = count('cache_read_input_tokens');
  const written = count('cache_creation_input_tokens');
  const prompt = count('input_tokens') + read + written;
  const completion = count('output_tokens');
  const { thinking_tokens: thinking } = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {};
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written, ...writtenByLifetime(usage) },
    ...(typeof thinking === 'number' && { completion_tokens_details: { reasoning_tokens: thinking } }),
  };
}

/** The tokens written to the cache by its lifetimes, which differ in price. */
function writtenByLifetime({ cache_creation: written }: JsonObject): JsonObject {
  return isObject(written) ? { cache_creation_token_details: written } : {};
}

/** A whole message (https://docs.anthropic.com/en/api/messages) as the body of a chat completion, without its envelope. */
export interface AnthropicAnswer {
  readonly message: JsonObject;
  readonly finish: JsonObject;
  readonly usage: VendorUsage;
  readonly tier: JsonObject;
}

/**
 * Reads a whole message. Blocks that a chat has no field for are left out.
 * @throws ApiError for anything but a message.
 */
export function readMessage(answer: JsonObject): AnthropicAnswer {
  if (!Array.isArray(answer.content)) {
    throw new ApiError('server_error', "The model's vendor answered without content.");
  }
  const content: unknown[] = answer.content;
  const blocks = content.filter(isObject);
  const texts = blocks.filter(({ type }) => type === 'text');
  const thoughts = blocks.map(toThinkingBlock).filter((block) => block !== undefined);
  const reasoning = joinTexts(thoughts.map(({ thinking }) => thinking));
  const calls = blocks.filter(({ type }) => type === 'tool_use');
  const usage = isObject(answer.usage) ? answer.usage : {};
  return {
    message: {
      role: 'assistant',
      // Null only beside calls: no history may hold a message without any content.
      content: texts.length === 0 && calls.length > 0 ? null : joinTexts(texts.map(({ text }) => text)),
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(thoughts.length > 0 && { thinking_blocks: thoughts }),
      ...thinkingOffsets(blocks),
      ...(calls.length > 0 && { tool_calls: calls.map(toToolCall) }),
    },
    finish: finishOf(answer),
    usage: toChatUsage(usage),
    tier: serviceTierOf(usage),
  };
}

/**
 * The number of characters of the content before each thought, if any precede one: a chat message has one text, and its thoughts
 * beside it, but `/v1/messages` shows all in their order.
 */
export function thinkingOffsets(blocks: readonly JsonObject[]): JsonObject {
  const offsets: number[] = [];
  let textLength = 0;
  for (const block of blocks) {
    if (block.type === 'text' && typeof block.text === 'string') textLength += block.text.length;
    else if (toThinkingBlock(block) !== undefined) offsets.push(textLength);
  }
  return offsets.some((offset) => offset > 0) ? { thinking_offsets: offsets } : {};
}

/** The end of a call without streaming. */
export function toHeldAnswer({ message, finish, usage, tier }: AnthropicAnswer): VendorAnswer {
  // OpenAI's object always has the field.
  const choices = [{ index: 0, message: { ...message, refusal: null }, ...finish, logprobs: null }];
  return { body: JSON.stringify({ choices, usage, ...tier }), usage, tier: tier.service_tier };
}

function joinTexts(values: readonly unknown[]): string {
  return values.map(textOf).join('');
}

/** A thinking block in the form that requests return it in; undefined for other blocks. */
export function toThinkingBlock({ type, thinking, signature, data }: JsonObject): JsonObject | undefined {
  if (type === 'thinking') return { type, thinking: textOf(thinking), signature: textOf(signature) };
  return type === 'redacted_thinking' ? { type, data } : undefined;
}

function toToolCall({ id, name, input }: JsonObject): JsonObject {
  return { id, type: 'function', function: { name, arguments: stringifyExact(input ?? {}) } };
}
