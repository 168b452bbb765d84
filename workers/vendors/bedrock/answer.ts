import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { textOf } from '../../../shared/capabilities/vendor-values.ts';
import { ApiError } from '../../../shared/errors.ts';
import { thinkingOffsets, windowExceeded } from '../anthropic/answer.ts';
import { isObject, type JsonObject, parseObject } from '../support/json-object.ts';
import type { VendorAnswer, VendorUsage } from '../vendor.ts';

/** Finish reasons by Converse's stop reasons (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html). */
const finishReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  guardrail_intervened: 'content_filter',
  content_filtered: 'content_filter',
};

/** Stop reasons without an answer. */
const malformed = new Set<unknown>(['malformed_model_output', 'malformed_tool_use']);

/**
 * The end fields of a chat's choice. A stop sequence, which only Claude reports, is in `stop_reason`, as with vLLM, and
 * so is a full context window.
 * @throws ApiError if the model's output was malformed.
 */
export function converseFinish({ stopReason, additionalModelResponseFields: fields }: JsonObject): JsonObject {
  if (malformed.has(stopReason)) {
    throw new ApiError('server_error', `The model made an answer that cannot be used (${stopReason}).`);
  }
  const reason = textOf(stopReason);
  const sequence = isObject(fields) ? fields.stop_sequence : undefined;
  const stopText = typeof sequence === 'string' ? sequence : reason === windowExceeded ? reason : undefined;
  return {
    finish_reason: Object.hasOwn(finishReasons, reason) ? finishReasons[reason] : 'stop',
    ...(stopText !== undefined && { stop_reason: stopText }),
  };
}

/**
 * Counts as in a chat. Converse counts tokens read from and written to the cache separately from other input
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html); here they are part of the prompt.
 */
export function converseUsage(usage: unknown): VendorUsage {
  if (!isObject(usage)) return null;
  if (typeof usage.inputTokens !== 'number' && typeof usage.outputTokens !== 'number') return null;
  const count = (name: string): number => (typeof usage[name] === 'number' ? usage[name] : 0);
  const read = count('cacheReadInputTokens');
  const written = count('cacheWriteInputTokens');
  const prompt = count('inputTokens') + read + written;
  const completion = count('outputTokens');
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: read, cache_write_tokens: written, ...writtenByLifetime(usage) },
  };
}

/** The tokens written to the cache by its lifetimes, under Anthropic's names. */
function writtenByLifetime({ cacheDetails: details }: JsonObject): JsonObject {
  if (!Array.isArray(details) || details.length === 0) return {};
  const of = (lifetime: string): number => {
    const written = details.filter(isObject).find(({ ttl }) => ttl === lifetime)?.inputTokens;
    return typeof written === 'number' ? written : 0;
  };
  const written = { ephemeral_5m_input_tokens: of('5m'), ephemeral_1h_input_tokens: of('1h') };
  return { cache_creation_token_details: written };
}

/** The service tier of an answer, as a field of a chat's body or chunk. */
export function converseTier({ serviceTier }: JsonObject): JsonObject {
  return isObject(serviceTier) && typeof serviceTier.type === 'string' ? { service_tier: serviceTier.type } : {};
}

/** A whole answer in the form of a chat. */
export interface ConverseAnswer {
  readonly message: JsonObject;
  readonly finish: JsonObject;
  readonly usage: VendorUsage;
  readonly tier: JsonObject;
}

/**
 * Reads a whole answer. Blocks that a chat has no field for are left out, and so are calls beyond the maximum.
 * @throws ApiError for anything but an answer.
 */
export function readConverse(text: string, maxCalls: number): ConverseAnswer {
  const answer = parseObject(text, parseExact);
  const { message } = isObject(answer.output) ? answer.output : {};
  if (!isObject(message) || !Array.isArray(message.content)) {
    throw new ApiError('server_error', "The model's vendor answered without a message.");
  }
  const content: unknown[] = message.content;
  const blocks = content.filter(isObject);
  const texts = blocks.map(({ text }) => text).filter((said) => typeof said === 'string');
  const thoughts = blocks.map(({ reasoningContent: thought }) => thought).filter(isObject);
  const inOrder = blocks.flatMap(({ text: said, reasoningContent: thought }): JsonObject[] => {
    if (typeof said === 'string') return [{ type: 'text', text: said }];
    return isObject(thought) ? signedBlock(thought) : [];
  });
  const reasoning = thoughts.map(reasoningText).map(({ text: thought }) => textOf(thought));
  const signed = thoughts.flatMap(signedBlock);
  const calls = blocks
    .map(({ toolUse }) => toolUse)
    .filter(isObject)
    .slice(0, maxCalls);
  return {
    message: {
      role: 'assistant',
      // Null only beside calls: no history may hold a message without any content.
      content: texts.length === 0 && calls.length > 0 ? null : texts.join(''),
      ...(reasoning.some((thought) => thought !== '') && { reasoning_content: reasoning.join('') }),
      ...(signed.length > 0 && { thinking_blocks: signed }),
      ...thinkingOffsets(inOrder),
      ...(calls.length > 0 && { tool_calls: calls.map(toToolCall) }),
    },
    finish: converseFinish(answer),
    usage: converseUsage(answer.usage),
    tier: converseTier(answer),
  };
}

/** The end of a call without streaming. */
export function toHeldConverse({ message, finish, usage, tier }: ConverseAnswer): VendorAnswer {
  // OpenAI's object always has the field.
  const choices = [{ index: 0, message: { ...message, refusal: null }, ...finish, logprobs: null }];
  return {
    body: JSON.stringify({ choices, ...(usage !== null && { usage }), ...tier }),
    usage,
    tier: tier.service_tier,
  };
}

/**
 * A thought in the form that requests return it in, which is Anthropic's; undefined for one without a signature, which no model
 * takes back.
 */
export function thoughtBlock({ thinking, signature, redacted }: JsonObject): JsonObject | undefined {
  if (typeof redacted === 'string' && redacted !== '') return { type: 'redacted_thinking', data: redacted };
  if (typeof signature !== 'string' || signature === '') return undefined;
  return { type: 'thinking', thinking: textOf(thinking), signature };
}

function signedBlock(thought: JsonObject): JsonObject[] {
  const { text: thinking, signature } = reasoningText(thought);
  const block = thoughtBlock({ thinking, signature, redacted: thought.redactedContent });
  return block === undefined ? [] : [block];
}

function reasoningText({ reasoningText: thought }: JsonObject): JsonObject {
  return isObject(thought) ? thought : {};
}

function toToolCall({ toolUseId: id, name, input }: JsonObject): JsonObject {
  return { id, type: 'function', function: { name, arguments: stringifyExact(input ?? {}) } };
}
