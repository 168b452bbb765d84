import { ApiError } from '../../../shared/errors.ts';
import { cachedElsewhere } from '../../../shared/money/token-counts.ts';
import { baseRespFault } from '../support/base-resp.ts';
import { isObject, isText, type JsonObject } from '../support/json-object.ts';
import type { VendorUsage } from '../vendor.ts';
import { beginCall, endCalls, GrowingCalls, keepFirstCall, shapePieces } from './call-shape.ts';

/** Converts a vendor's answers to OpenAI's own shape, in place. */
export interface AnswerShape {
  /** Converts the choices of a whole answer. */
  readonly whole: (answer: JsonObject) => void;
  /** Creates the converter of the chunks of one streamed answer. */
  readonly chunks: () => ChunkShape;
}

/** Converts the chunks of one streamed answer. */
export interface ChunkShape {
  /** Converts the next chunk. */
  readonly take: (chunk: JsonObject) => void;
  /** The choices of a last chunk for those that the vendor ended without a finish reason; undefined if there are none. */
  readonly end: () => JsonObject[] | undefined;
}

/** The state of a choice in a streamed answer. */
interface GrowingChoice {
  /** Once it has one. */
  calls?: GrowingCalls;
  isFinished: boolean;
}

const ownReasons: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

/** OpenAI's finish reasons by those of other vendors. Any other counts as a natural end. */
const otherReasons: Readonly<Record<string, string>> = {
  max_tokens: 'length',
  // Mistral, and Zhipu: the context window is full.
  model_length: 'length',
  model_context_window_exceeded: 'length',
  // DeepSeek and Zhipu: the vendor truncated the answer.
  insufficient_system_resource: 'length',
  network_error: 'length',
  tool_use: 'tool_calls',
  tool_call: 'tool_calls',
  sensitive: 'content_filter',
  safety: 'content_filter',
};

/** Makes, for one answer, what renames the vendor's own fields of its message, or of its deltas, to OpenAI's, in place. */
export type AnswerAdapter = () => (message: JsonObject) => void;

/**
 * The shape of chats.
 * @param isOneCall of several calls of tools in a choice the first alone is kept
 */
export function chatShape(adapt?: AnswerAdapter, isOneCall = false): AnswerShape {
  return {
    whole: (answer) => {
      eachChoice(answer, (choice) => {
        choice.finish_reason = toFinishReason(choice.finish_reason);
        const message = messageOf(choice);
        adapt?.()(message);
        choice.finish_reason ??= endOf(listOf(message.tool_calls).length);
        shapeMessage(message, choice.finish_reason === 'length');
        if (isOneCall && Array.isArray(message.tool_calls)) message.tool_calls = message.tool_calls.slice(0, 1);
        choice.message = message;
        choice.logprobs ??= null;
      });
    },
    chunks: () => new ChatChunks(adapt?.(), isOneCall),
  };
}

class ChatChunks implements ChunkShape {
  readonly #adapt: ((message: JsonObject) => void) | undefined;
  readonly #isOneCall: boolean;
  readonly #choices = new Map<unknown, GrowingChoice>();

  constructor(adapt: ((message: JsonObject) => void) | undefined, isOneCall: boolean) {
    this.#adapt = adapt;
    this.#isOneCall = isOneCall;
  }

  take(chunk: JsonObject): void {
    eachChoice(chunk, (choice) => this.#shape(choice));
    if (this.#isOneCall && Array.isArray(chunk.choices)) chunk.choices = chunk.choices.filter(saysSomething);
  }

  end(): JsonObject[] | undefined {
    const open = [...this.#choices].filter(([, { isFinished }]) => !isFinished);
    if (open.length === 0) return undefined;
    const ends = open.map(([index, { calls }]) => ({ index, delta: {}, finish_reason: endOf(calls?.size ?? 0) }));
    this.take({ choices: ends });
    return ends;
  }

  #shape(choice: JsonObject): void {
    const known = this.#choices.get(choice.index);
    const growing: GrowingChoice = known ?? { isFinished: false };
    if (known === undefined) this.#choices.set(choice.index, growing);
    if (choice.finish_reason !== null) choice.finish_reason = toFinishReason(choice.finish_reason);
    let delta = deltaOf(choice, known === undefined);
    this.#adapt?.(delta);
    shapeContent(delta);
    if (known === undefined && !isText(delta.role)) delta = { ...delta, role: 'assistant' };
    keepObjects(delta);
    if (Array.isArray(delta.tool_calls)) {
      growing.calls ??= new GrowingCalls();
      shapePieces(delta.tool_calls, growing.calls);
    }
    const { calls } = growing;
    if (isText(choice.finish_reason)) {
      growing.isFinished = true;
      if (calls !== undefined) endCalls(delta, calls, choice.finish_reason);
    }
    if (this.#isOneCall && calls !== undefined) keepFirstCall(delta, calls);
    choice.delta = delta;
  }
}

/** Whether more than its index is left of a chunk's choice: all its pieces may have been of calls that are left out. */
function saysSomething({ delta, ...rest }: JsonObject): boolean {
  return [delta, rest].some((fields) =>
    Object.entries(fields as JsonObject).some(([name, value]) => name !== 'index' && value != null),
  );
}

/** Shapes each choice of an answer or a chunk, which has its index then. @throws ApiError for one that is no object */
export function eachChoice({ choices }: JsonObject, shape: (choice: JsonObject) => void): void {
  if (!Array.isArray(choices)) return;
  for (let position = 0; position < choices.length; position++) {
    const choice: unknown = choices[position];
    if (!isObject(choice)) {
      throw new ApiError('server_error', "The model's vendor answered with a choice of an unknown shape.");
    }
    if (typeof choice.index !== 'number') choice.index = position;
    shape(choice);
  }
}

/** OpenAI's finish reason of a choice; null if it has none yet. @throws ApiError for a choice that an error ended. */
export function toFinishReason(reason: unknown): string | null {
  if (reason === undefined || reason === null || reason === '') return null;
  if (ownReasons.has(reason)) return reason as string;
  if (reason === 'error') throw new ApiError('server_error', "The model's vendor ended its answer with an error.");
  const name = typeof reason === 'string' ? reason.toLowerCase() : '';
  return (Object.hasOwn(otherReasons, name) && otherReasons[name]) || 'stop';
}

/** The message of a whole choice. @throws ApiError if it has none, unless the vendor's filters (Azure's) have removed it. */
function messageOf(choice: JsonObject): JsonObject {
  const { message, delta } = choice;
  choice.delta = undefined;
  if (isObject(message)) return message;
  if (isObject(delta)) return delta;
  if (choice.finish_reason === 'content_filter') return {};
  throw new ApiError('server_error', "The model's vendor answered with a choice that has no message.");
}

/** The finish reason of a choice whose vendor gives none (Snowflake, some proxies). */
export function endOf(calls: number): string {
  return calls > 0 ? 'tool_calls' : 'stop';
}

/**
 * Converts content to one text: some vendors send a list of parts, Databricks with its reasoning among them, Cloudflare the
 * requested JSON as an object. Removes calls without a name.
 */
function shapeContent(message: JsonObject): void {
  const { content, function_call: call } = message;
  if (Array.isArray(content)) {
    const thoughts = content.map((part) => (isObject(part) && part.type === 'reasoning' ? joined(part.summary) : ''));
    message.reasoning_content ??= thoughts.join('') || undefined;
    message.content = joined(content);
  } else if (isObject(content)) {
    message.content = JSON.stringify(content);
  }
  if (isObject(call) && !isText(call.name) && !isText(call.arguments)) message.function_call = undefined;
}

/** Removes calls that are none, and what is no list of calls: those who read the answer take each for an object. */
function keepObjects(message: JsonObject): void {
  const { tool_calls: calls } = message;
  if (calls === undefined || calls === null) return;
  if (!Array.isArray(calls)) message.tool_calls = undefined;
  else if (!calls.every(isObject)) message.tool_calls = calls.filter(isObject);
}

/** The texts of a list of parts. */
function joined(parts: unknown): string {
  return listOf(parts)
    .map((part) => (isObject(part) && isText(part.text) ? part.text : ''))
    .join('');
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * The delta of a chunk's choice. Some vendors (Perplexity) repeat a message beside each delta that holds the whole text so far:
 * it counts if there is no delta, and if this one chunk is the whole choice.
 */
function deltaOf(choice: JsonObject, isFirst: boolean): JsonObject {
  const { delta, message } = choice;
  if (!isObject(message)) return isObject(delta) ? delta : {};
  choice.message = undefined;
  if (isObject(delta) && !(isFirst && choice.finish_reason)) return delta;
  return isFirst ? message : {};
}

/** Completes the fields that OpenAI's every message has: clients made from its document may require them. */
function shapeMessage(message: JsonObject, isTruncated: boolean): void {
  if (!isText(message.role)) message.role = 'assistant';
  shapeContent(message);
  message.content ??= null;
  message.refusal ??= null;
  keepObjects(message);
  if (!Array.isArray(message.tool_calls)) return;
  for (const call of message.tool_calls) {
    beginCall(call);
    if (isObject(call.function) && call.function.arguments === '' && !isTruncated) call.function.arguments = '{}';
  }
}

/**
 * Counts in OpenAI's form: cached tokens in the details of the prompt, whatever the vendor's name for them, and reasoning tokens
 * included in the completion's. Null if there are none.
 */
export function shapeUsage(usage: unknown): VendorUsage {
  return isObject(usage) ? withCached(withReasoning(usage)) : null;
}

/** More reasoning than any model's answer has: where a total alone shows more, it is of something else. */
const maxUnnamed = 1_000_000;

/**
 * xAI does not include reasoning in the completion, and Gemini's endpoint for OpenAI's clients does not even name it: the total
 * shows it. Audio, which Mistral counts in the total alone, and what a cache under Anthropic's names has, are no part of it.
 */
function withReasoning(usage: JsonObject): JsonObject {
  const { prompt_tokens: input, completion_tokens: output = 0, total_tokens: total } = usage;
  if (typeof input !== 'number' || typeof output !== 'number' || typeof total !== 'number') return usage;
  const { completion_tokens_details: made, prompt_tokens_details: read, cache_read_input_tokens: cached } = usage;
  const beside = total - input - output;
  const reasoning = isObject(made) ? made.reasoning_tokens : undefined;
  const audio = usage.prompt_audio_seconds || (isObject(read) && read.audio_tokens);
  const isUnnamed = beside <= maxUnnamed && !audio && !cached && !usage.cache_creation_input_tokens;
  const isReasoning = reasoning ? reasoning === beside : isUnnamed;
  return beside > 0 && isReasoning ? { ...usage, completion_tokens: output + beside } : usage;
}

function withCached(usage: JsonObject): JsonObject {
  const { prompt_tokens_details: details } = usage;
  if (isObject(details) && typeof details.cached_tokens === 'number') return usage;
  const cached = cachedElsewhere(usage);
  if (cached === undefined) return usage;
  return { ...usage, prompt_tokens_details: { ...(isObject(details) && details), cached_tokens: cached } };
}

/** Removes the fields that the gateway sets itself. Undefined, not deleted: JSON omits both, and a delete slows the object. */
export function removeIdentity(answer: JsonObject): void {
  answer.id = undefined;
  answer.object = undefined;
  answer.created = undefined;
  answer.model = undefined;
}

/** Whether an answer or a chunk under a status of success is an error, as OpenAI or MiniMax reports one. */
export function isReportedError(answer: JsonObject): boolean {
  return Boolean(answer.error) || (answer.base_resp !== undefined && baseRespFault(answer) !== undefined);
}
