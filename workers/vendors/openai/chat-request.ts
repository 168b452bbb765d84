import { createHash } from 'node:crypto';
import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import { ApiError } from '../../../shared/errors.ts';
import { givenChatFields, supportOf } from '../../../shared/vendors/field-support.ts';
import type { ChatDeviations, ChatFieldSupport } from '../../../shared/vendors/vendor-description.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { withReasoningDetails } from './reasoning-details.ts';

/**
 * Returns a function that translates a chat request's text into a vendor's own fields; undefined if the vendor does not deviate.
 * Hints are left out, and so are rejected fields with their default value. Only a request that may contain any of this is parsed.
 * The function throws an ApiError 400 for a field that the vendor rejects (the api does so earlier, for the first vendor).
 */
export function adaptRequest(deviations: ChatDeviations): ((request: string, model: string) => string) | undefined {
  const {
    renamed = {},
    fields = {},
    developerRole,
    streamOptions,
    parallelToolCalls,
    reasoning,
    needsReasoning,
    disablesThinking,
    thinkingSwitch,
    signatures,
  } = deviations;
  const dropped = Object.keys(fields).filter((field) => fields[field] === 'ignored' || fields[field] === 'rejected');
  const unknown = dropped.filter((field) => field !== nameField);
  if (streamOptions === false) unknown.push('stream_options');
  if (parallelToolCalls === false) unknown.push('parallel_tool_calls');
  const names = [...Object.keys(renamed), ...unknown].map((field) => field.split('.', 1)[0]);
  const texts = names.map((name) => `"${name}"\\s*:`);
  if (developerRole === false) texts.push('"developer"');
  if (reasoning !== undefined) texts.push('"reasoning_content"\\s*:');
  if (needsReasoning !== undefined) texts.push('"tool(?:_call)?s"\\s*:');
  if (disablesThinking) texts.push('"reasoning_effort"\\s*:\\s*"none"');
  if (signatures !== undefined) texts.push('"extra_content"\\s*:');
  if (unknown.length < dropped.length) texts.push('"name"\\s*:');
  if (deviations.textParts === false) texts.push('"content"\\s*:\\s*\\[');
  if (deviations.shortCallIds) texts.push('"tool_calls?(?:_id)?"\\s*:');
  if (deviations.userAfterTool === false) texts.push('"tool_call_id"\\s*:');
  if (texts.length === 0) return undefined;
  const mayDeviate = new RegExp(texts.join('|'));
  return (request, model) => {
    if (!mayDeviate.test(request)) return request;
    const chat = parseExact(request);
    if (!isObject(chat)) return request;
    refuse(chat, fields);
    for (const field of unknown) delete chat[field];
    for (const [field, name] of Object.entries(renamed)) rename(chat, field, name);
    if (disablesThinking?.test(model)) disableThinking(chat, thinkingSwitch);
    if (needsReasoning !== undefined) addReasoning(chat, needsReasoning);
    if (Array.isArray(chat.messages)) {
      const messages = chat.messages.map((message) => adaptMessage(message, deviations));
      chat.messages = deviations.userAfterTool === false ? withWordsAfterTools(messages) : messages;
    }
    return stringifyExact(chat);
  };
}

/** What the assistant says of a tool's result before the user goes on. */
const wordAfterTool = { role: 'assistant', content: 'OK.' };

/** Messages in which no user's is right behind a tool's. The gateway puts images of a result, and what is said beside it, there. */
function withWordsAfterTools(messages: readonly unknown[]): unknown[] {
  const roleOf = (message: unknown): unknown => (isObject(message) ? message.role : undefined);
  return messages.flatMap((message, index) => {
    const isBehind = roleOf(message) === 'user' && roleOf(messages[index - 1]) === 'tool';
    return isBehind ? [wordAfterTool, message] : [message];
  });
}

/** The names of the authors of messages. */
const nameField = 'messages.name';

function refuse(chat: JsonObject, support: ChatFieldSupport): void {
  const refused = givenChatFields(chat).find((field) => supportOf(support, field) === 'rejected');
  if (refused === undefined) return;
  const [param = refused] = refused.split('.');
  throw new ApiError('invalid_request_error', `'${param}' is not supported by the model's vendor.`, { param });
}

/** If the caller has given both, the name that the vendor lacks is the newer one, or OpenAI's: its value wins. */
function rename(chat: JsonObject, field: string, name: string): void {
  if (!Object.hasOwn(chat, field)) return;
  const { [field]: value } = chat;
  delete chat[field];
  if (value !== null || chat[name] === undefined) chat[name] = value;
}

/** A setting of the vendor's own is the caller's. */
function disableThinking(chat: JsonObject, thinkingSwitch: ChatDeviations['thinkingSwitch']): void {
  if (chat.reasoning_effort !== 'none') return;
  delete chat.reasoning_effort;
  if (thinkingSwitch === undefined) chat.thinking ??= { type: 'disabled' };
  else chat[thinkingSwitch] ??= false;
}

/** Stands for reasoning that a client has dropped: an empty text would count as none. */
const droppedReasoning = '.';

function addReasoning(chat: JsonObject, needed: ChatDeviations['needsReasoning']): void {
  const { messages, tools } = chat;
  if (!Array.isArray(messages)) return;
  const ofAll = needed === 'with_tools' && Array.isArray(tools) && tools.length > 0;
  chat.messages = messages.map((message) => {
    if (!isObject(message) || message.role !== 'assistant' || message.reasoning_content) return message;
    const hasCalls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
    return ofAll || hasCalls ? { ...message, reasoning_content: droppedReasoning } : message;
  });
}

function adaptMessage(given: unknown, deviations: ChatDeviations): unknown {
  if (!isObject(given)) return given;
  const { developerRole, reasoning } = deviations;
  const message = adaptOwnFields(given, deviations);
  if (developerRole === false && message.role === 'developer') return { ...message, role: 'system' };
  const { reasoning_content: reasoningText, ...rest } = message;
  if (reasoning === undefined || typeof reasoningText !== 'string') return message;
  if (reasoning === 'reasoning') return { ...rest, reasoning: reasoningText };
  const { content } = message;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : [];
  return { ...rest, content: [{ type: 'thinking', thinking: [{ type: 'text', text: reasoningText }] }, ...parts] };
}

function adaptOwnFields(
  given: JsonObject,
  { fields = {}, shortCallIds, textParts, signatures }: ChatDeviations,
): JsonObject {
  const signed = signatures === undefined ? given : withReasoningDetails(given);
  const message = textParts === false ? withOneText(signed) : signed;
  const { name: _, ...unnamed } = message;
  // Results of tools have the name of the function.
  const isNamed = message.role === 'tool' || fields[nameField] !== 'ignored';
  const kept = isNamed ? message : unnamed;
  return shortCallIds ? withIds(kept, shortId) : kept;
}

/** A message whose content is texts alone, as one text, a line for each part. */
function withOneText(message: JsonObject): JsonObject {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const texts = content.map((part) => (isObject(part) && part.type === 'text' ? part.text : undefined));
  return texts.every((text) => typeof text === 'string') ? { ...message, content: texts.join('\n') } : message;
}

/** A message whose calls, or whose call's result, come from another vendor, under ids that the vendor takes. */
export function withIds(message: JsonObject, toId: (id: string) => string): JsonObject {
  const { tool_calls: calls, tool_call_id: id } = message;
  const withId = (call: unknown): unknown =>
    isObject(call) && typeof call.id === 'string' ? { ...call, id: toId(call.id) } : call;
  return {
    ...message,
    ...(typeof id === 'string' && { tool_call_id: toId(id) }),
    ...(Array.isArray(calls) && { tool_calls: calls.map(withId) }),
  };
}

function shortId(id: string): string {
  return /^[a-zA-Z0-9]{9}$/.test(id) ? id : hashOf(id).slice(0, 9);
}

/** The SHA-256 of an id that a vendor does not take, of which a part stands for it. */
export function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('hex');
}
