import type { ChatMessage } from '../chat/chat-message.ts';
import { isAbsent, isObject, type JsonObject } from '../json-value.ts';
import { invalidParameter, WireError } from '../wire-error.ts';
import { verifySealed } from './encrypted-reasoning.ts';
import { readContent } from './input-content.ts';
import { missingMember, requiredText, unsupportedValue, wrongType } from './request-members.ts';

const MAXIMUM_ID_CHARACTERS = 64;

const roles: readonly string[] = ['user', 'assistant', 'system', 'developer'];

/**
 * Parses `input` into the messages of a chat. Reasoning of earlier turns is validated and then left out: as with OpenAI, it
 * is not part of the prompt. Every tool call must have its output, and every output its call.
 * @throws WireError 400 naming the path, like `input[2].content[0].text`.
 */
export function readInput(input: unknown): ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  if (isAbsent(input)) throw missingMember('input');
  if (!Array.isArray(input)) throw wrongType('input', 'a string or an array');
  if (input.length === 0) {
    const message =
      "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    throw new WireError(400, message, { code: 'empty_array', param: 'input' });
  }
  const conversation = new Conversation();
  input.forEach((item, index) => {
    readItem(item, `input[${index}]`, conversation);
  });
  conversation.refuseOpenCalls();
  return conversation.messages;
}

/** Combines items into messages: the calls of one turn form one assistant message. */
class Conversation {
  readonly messages: ChatMessage[] = [];
  readonly #openCalls = new Map<string, 'function' | 'custom'>();
  readonly #ids = new Set<unknown>();
  /** The calls of the last message, once it has one. */
  #calls: object[] | undefined;

  /** @throws WireError 400 for an item whose id another has, as OpenAI does. */
  refuseRepeatedId({ id }: JsonObject): void {
    if (isAbsent(id)) return;
    if (this.#ids.has(id)) {
      const shown = String(id).slice(0, MAXIMUM_ID_CHARACTERS);
      const message = `Duplicate item found with id ${shown}. Remove duplicate items from your input and try again.`;
      throw invalidParameter('input', message);
    }
    this.#ids.add(id);
  }

  addMessage(message: ChatMessage): void {
    this.#calls = undefined;
    this.messages.push(message);
  }

  addCall(id: string, kind: 'function' | 'custom', named: { name: string }): void {
    if (this.#calls === undefined) {
      if (this.messages.at(-1)?.role !== 'assistant') this.addMessage({ role: 'assistant', content: '' });
      this.#calls = [];
      this.messages.push({ ...(this.messages.pop() as ChatMessage), tool_calls: this.#calls });
    }
    this.#calls.push({ id, type: kind, [kind]: named });
    this.#openCalls.set(id, kind);
  }

  addOutput(id: string, kind: 'function' | 'custom', content: ChatMessage['content']): void {
    if (this.#openCalls.get(id) !== kind) {
      const what = kind === 'function' ? 'function call' : 'custom tool call';
      const message = `No tool call found for ${what} output with call_id ${id.slice(0, MAXIMUM_ID_CHARACTERS)}.`;
      throw invalidParameter('input', message);
    }
    this.#openCalls.delete(id);
    this.addMessage({ role: 'tool', tool_call_id: id, content });
  }

  refuseOpenCalls(): void {
    for (const [id, kind] of this.#openCalls) {
      const what = kind === 'function' ? 'function call' : 'custom tool call';
      throw invalidParameter('input', `No tool output found for ${what} ${id.slice(0, MAXIMUM_ID_CHARACTERS)}.`);
    }
  }
}

type ItemReader = (item: JsonObject, path: string, conversation: Conversation) => void;

const readers: Readonly<Record<string, ItemReader>> = {
  message: readMessage,
  function_call: (item, path, conversation) => {
    checkId(item, 'fc', path);
    const called = { name: requiredText(item, 'name', path), arguments: requiredText(item, 'arguments', path) };
    conversation.addCall(readCallId(item, path), 'function', called);
  },
  function_call_output: (item, path, conversation) => {
    checkId(item, 'fc', path);
    conversation.addOutput(readCallId(item, path), 'function', readOutput(item, path));
  },
  custom_tool_call: (item, path, conversation) => {
    checkId(item, 'ctc', path);
    const called = { name: requiredText(item, 'name', path), input: requiredText(item, 'input', path) };
    conversation.addCall(readCallId(item, path), 'custom', called);
  },
  custom_tool_call_output: (item, path, conversation) => {
    conversation.addOutput(readCallId(item, path), 'custom', readOutput(item, path));
  },
  reasoning: checkReasoning,
  // Past searches do not affect the next answer.
  web_search_call: (item, path) => checkId(item, 'ws', path),
};

function readItem(item: unknown, path: string, conversation: Conversation): void {
  if (!isObject(item)) throw wrongType(path, 'an object');
  const type = isAbsent(item.type) ? (isAbsent(item.role) ? 'item_reference' : 'message') : String(item.type);
  if (type === 'item_reference') throw notStored(requiredText(item, 'id', path));
  const read = Object.hasOwn(readers, type) ? readers[type] : undefined;
  if (read === undefined) throw unsupportedValue(`${path}.type`, type, Object.keys(readers));
  read(item, path, conversation);
  conversation.refuseRepeatedId(item);
}

function readMessage(item: JsonObject, path: string, conversation: Conversation): void {
  checkId(item, 'msg', path);
  const role = requiredText(item, 'role', path);
  if (!roles.includes(role)) throw unsupportedValue(`${path}.role`, role, roles);
  const content = readContent(item.content, role === 'assistant' ? 'output' : 'input', `${path}.content`);
  conversation.addMessage({ role: role as ChatMessage['role'], content });
}

function readOutput(item: JsonObject, path: string): ChatMessage['content'] {
  return readContent(item.output, 'input', `${path}.output`);
}

function readCallId(item: JsonObject, path: string): string {
  const id = requiredText(item, 'call_id', path);
  checkIdLength(id, `${path}.call_id`);
  return id;
}

function checkReasoning(item: JsonObject, path: string): void {
  checkId(item, 'rs', path);
  const { id, encrypted_content: sealed, summary, content } = item;
  if (!Array.isArray(summary)) throw missingMember(`${path}.summary`);
  if (!isAbsent(sealed)) {
    verifySealed(requiredText(item, 'encrypted_content', path), isAbsent(id) ? undefined : String(id));
    return;
  }
  if (Array.isArray(content) && content.length > 0) {
    const message = `Invalid '${path}.content': array too long. Expected an array with maximum length 0, but got an array with length ${content.length} instead.`;
    throw new WireError(400, message, { code: 'array_above_max_length', param: `${path}.content` });
  }
  // An empty item is merely a reference to one that would have to be stored here.
  if (summary.length > 0) return;
  throw isAbsent(id) ? missingMember(`${path}.id`) : notStored(String(id));
}

function checkId(item: JsonObject, prefix: string, path: string): void {
  if (isAbsent(item.id)) return;
  const id = requiredText(item, 'id', path);
  const param = `${path}.id`;
  if (!id.startsWith(prefix)) {
    const shown = id.slice(0, MAXIMUM_ID_CHARACTERS);
    const message = `Invalid '${param}': '${shown}'. Expected an ID that begins with '${prefix}'.`;
    throw new WireError(400, message, { code: 'invalid_value', param });
  }
  checkIdLength(id, param);
}

function checkIdLength(id: string, param: string): void {
  if (id.length <= MAXIMUM_ID_CHARACTERS) return;
  const message = `Invalid '${param}': string too long. Expected a string with maximum length ${MAXIMUM_ID_CHARACTERS}, but got a string with length ${id.length} instead.`;
  throw new WireError(400, message, { code: 'string_above_max_length', param });
}

function notStored(id: string): WireError {
  const message = `Item with id '${id.slice(0, MAXIMUM_ID_CHARACTERS)}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`;
  return invalidParameter('input', message);
}
