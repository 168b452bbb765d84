import { isObject, type JsonObject } from '../json-value.ts';
import { invalidParameter } from '../wire-error.ts';

/** A part of a message's content. */
export type ContentPart =
  | { type: 'text'; text: string }
  | { type: 'refusal'; refusal: string }
  | { type: 'image_url'; image_url: { url: string } }
  | { type: 'input_audio'; input_audio: { data: string; format: string } }
  | { type: 'file'; file: { filename?: unknown; file_data?: unknown; file_id?: unknown } };

/** A validated message; fields not listed here do not affect the answer. */
export interface ChatMessage {
  role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'function';
  content: string | readonly ContentPart[];
  name?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  tool_call_id?: unknown;
}

const roles = new Set<unknown>(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

/**
 * Checks `messages`; an assistant's missing content becomes ''.
 * @throws WireError 400 naming the path, like `messages[2].content[0].text`.
 */
export function readMessages(messages: unknown): readonly ChatMessage[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw invalidParameter('messages', "'messages' is required and must be an array of at least one message.");
  }
  return messages.map(readMessage);
}

function readMessage(message: unknown, index: number): ChatMessage {
  const path = `messages[${index}]`;
  if (!isObject(message)) throw invalidParameter(path, `'${path}' must be an object.`);
  if (!roles.has(message.role)) {
    throw invalidParameter(`${path}.role`, `'${path}.role' must be one of ${[...roles].join(', ')}.`);
  }
  if (message.role === 'tool' && typeof message.tool_call_id !== 'string') {
    throw invalidParameter(`${path}.tool_call_id`, `'${path}.tool_call_id' is required and must be a string.`);
  }
  const { content } = message;
  if (typeof content === 'string') return message as unknown as ChatMessage;
  if (Array.isArray(content) && content.length > 0) {
    content.forEach((part, at) => {
      checkPart(part, `${path}.content[${at}]`);
    });
    return message as unknown as ChatMessage;
  }
  if (message.role === 'assistant' && (content === null || content === undefined)) {
    return { ...message, content: '' } as unknown as ChatMessage;
  }
  throw invalidParameter(`${path}.content`, `'${path}.content' must be a string or a non-empty array of parts.`);
}

function checkPart(part: unknown, path: string): void {
  if (!isObject(part)) throw invalidParameter(path, `'${path}' must be an object.`);
  switch (part.type) {
    case 'text':
    case 'refusal':
      checkString(part, part.type, path);
      break;
    case 'image_url':
      checkString(checkObject(part, 'image_url', path), 'url', `${path}.image_url`);
      break;
    case 'input_audio':
      checkString(checkObject(part, 'input_audio', path), 'format', `${path}.input_audio`);
      checkString(checkObject(part, 'input_audio', path), 'data', `${path}.input_audio`);
      break;
    case 'file':
      checkObject(part, 'file', path);
      break;
    default:
      throw invalidParameter(
        `${path}.type`,
        `'${path}.type' must be one of text, image_url, input_audio, file, refusal.`,
      );
  }
}

function checkObject(part: JsonObject, name: string, path: string): JsonObject {
  const value = part[name];
  if (!isObject(value)) throw invalidParameter(`${path}.${name}`, `'${path}.${name}' must be an object.`);
  return value;
}

function checkString(object: JsonObject, name: string, path: string): void {
  if (typeof object[name] !== 'string') {
    throw invalidParameter(`${path}.${name}`, `'${path}.${name}' must be a string.`);
  }
}

/** The text of a message: its content, or its text parts joined by line breaks. */
export function messageText(message: ChatMessage): string {
  if (typeof message.content === 'string') return message.content;
  return textParts(message.content).join('\n');
}

function textParts(parts: readonly ContentPart[]): string[] {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

/** The user's last message, if any. */
export function lastUserMessage(messages: readonly ChatMessage[]): ChatMessage | undefined {
  return messages.findLast((message) => message.role === 'user');
}

/** The text that may contain directives: the last text part of the user's last message. */
export function lastUserText(messages: readonly ChatMessage[]): string {
  const content = lastUserMessage(messages)?.content ?? '';
  return typeof content === 'string' ? content : (textParts(content).at(-1) ?? '');
}

/** True if the last message is a tool result: it calls for an answer, not another call. */
export function endsWithToolResult(messages: readonly ChatMessage[]): boolean {
  const role = messages.at(-1)?.role;
  return role === 'tool' || role === 'function';
}
