import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import { ApiError } from '../../../shared/errors.ts';
import { withForeignSignatures } from '../foreign-signatures.ts';
import { requestText } from '../request-body.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { withUserAtEnd } from '../user-at-end.ts';
import type { VendorCall } from '../vendor.ts';
import { eachChanged, withChanged } from '../with-changed.ts';
import { hashOf, withIds } from './chat-request.ts';

/**
 * The words by which Zhipu and Moonshot refuse that a model that always thinks is told not to. Their documents do not say of which
 * models that is true.
 */
const alwaysThinks = /不支持关闭思考|\bonly type=enabled is allowed for this model\b/;

/** The words by which DashScope and SiliconFlow refuse their own switch: with models that always think, or never. */
const hasNoSwitch = /enable_thinking parameter is restricted to True|does not support parameter `?enable_thinking/;

/**
 * The chat that a vendor takes in place of one that it refuses for what the caller has not asked for, for its effort `none`, or for
 * ending with an answer; undefined if there is none.
 */
export function requestAfterRefusal(error: unknown, call: VendorCall): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const after = changeAfter(error, call);
  // Those of other vendors with this wire may pass on Gemini's refusals.
  if (after === undefined) return withForeignSignatures(error, call) ?? withUserAtEnd(error, call);
  const chat = parseExact(requestText(call.request));
  return isObject(chat) ? after(chat) : undefined;
}

/** What is changed of a chat that was refused in these words. */
function changeAfter(
  error: ApiError,
  { isEffortTranslated }: VendorCall,
): ((chat: JsonObject) => string | undefined) | undefined {
  // OpenAI refuses some of the ids by which other vendors have named a conversation's calls, and of the names by which models call tools.
  if (isOfLongId(error)) return (chat) => withChanged(chat, 'messages', withShorterIds);
  if (isOfName(error)) return (chat) => withChanged(chat, 'messages', withTakenNames);
  if (alwaysThinks.test(error.message)) return withLowestEffort;
  if (hasNoSwitch.test(error.message)) return withoutNone;
  // Some of OpenAI's models take tools only if they do not reason, which they do unasked.
  if (isOfEffort(error)) return (chat) => withoutEffort(chat, isEffortTranslated === true);
  return undefined;
}

function isOfLongId({ vendorCode, param }: ApiError): boolean {
  if (vendorCode !== 'string_above_max_length') return false;
  return /\.(tool_calls\[\d+\]\.id|tool_call_id)$/.test(param ?? '');
}

function isOfName({ param }: ApiError): boolean {
  return /\.tool_calls\[\d+\]\.function\.name$/.test(param ?? '');
}

function isOfEffort({ param, message }: ApiError): boolean {
  return param === 'reasoning_effort' && message.startsWith('Function tools with reasoning_effort are not supported');
}

/** Characters of an id that OpenAI has never refused. */
const maxId = 40;

/** A message whose calls have ids no longer than OpenAI takes. */
function withShorterIds(message: unknown): unknown {
  if (!isObject(message)) return message;
  let isLong = false;
  const shorter = withIds(message, (id) => {
    if (id.length <= maxId) return id;
    isLong = true;
    return `call_${hashOf(id).slice(0, maxId - 'call_'.length)}`;
  });
  return isLong ? shorter : message;
}

/** A message whose calls have names that OpenAI takes, as its tools have. */
function withTakenNames(message: unknown): unknown {
  if (!isObject(message) || !Array.isArray(message.tool_calls)) return message;
  const calls = eachChanged(message.tool_calls, withTakenName);
  return calls === message.tool_calls ? message : { ...message, tool_calls: calls };
}

function withTakenName(call: unknown): unknown {
  if (!isObject(call) || !isObject(call.function) || typeof call.function.name !== 'string') return call;
  const name = flatToolName(undefined, call.function.name);
  return name === call.function.name ? call : { ...call, function: { ...call.function, name } };
}

/**
 * A chat that asks for no reasoning; undefined if it asks for none already, or for an effort that is the caller's own.
 * @param isTranslated whether its effort is not the caller's own
 */
function withoutEffort(chat: JsonObject, isTranslated: boolean): string | undefined {
  if (chat.reasoning_effort === 'none') return undefined;
  if (chat.reasoning_effort != null && !isTranslated) return undefined;
  return stringifyExact({ ...chat, reasoning_effort: 'none' });
}

/** A chat that leaves the reasoning to the model in place of one for none; undefined if it is for some. */
function withoutNone(chat: JsonObject): string | undefined {
  if (chat.reasoning_effort !== 'none') return undefined;
  const { reasoning_effort: _, ...rest } = chat;
  return stringifyExact(rest);
}

/** A chat for the least reasoning in place of one for none; undefined if it is for some. */
function withLowestEffort(chat: JsonObject): string | undefined {
  if (chat.reasoning_effort !== 'none') return undefined;
  return stringifyExact({ ...chat, reasoning_effort: 'low' });
}
