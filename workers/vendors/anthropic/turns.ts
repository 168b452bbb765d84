import type { ChatRequest } from '../../../shared/capabilities/chat.ts';
import type { ChatMessage } from '../../../shared/capabilities/chat-message.ts';
import { parseExact } from '../../../shared/capabilities/exact-json.ts';
import { flatToolName } from '../../../shared/capabilities/flat-tool-name.ts';
import { failedPrefix, isFailedResult } from '../../../shared/capabilities/thought-signature.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import type { AnthropicModelTraits } from '../../../shared/vendors/anthropic-models.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { CallIds } from './call-ids.ts';
import { type AnthropicBlock, cacheMark, isSaid, toAllBlocks, toAnthropicBlocks } from './content.ts';

/** An entry of `messages`. */
export interface AnthropicTurn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: AnthropicBlock[];
}

/** A conversation in Anthropic's form. */
export interface AnthropicConversation {
  readonly system: readonly AnthropicBlock[];
  readonly messages: readonly AnthropicTurn[];
}

/** The parts of a chat that make its conversation. */
export type SaidInChat = Pick<ChatRequest, 'messages' | 'response_format'>;

/** JSON without a schema, in words: the formats of Claude and of Converse need a schema. Answers that are calls of tools stay free. */
const jsonInWords =
  'Whenever you answer with text, the whole text must be one JSON object: no words before or after it, and no code fence.';

type MessageOf<Role extends string> = Extract<ChatMessage, { role: Role }>;

/**
 * The messages of a chat as system prompt and turns (https://docs.anthropic.com/en/api/messages).
 *
 * - System and developer messages before the first turn are the system prompt. A later one goes right behind the user's turn that
 *   it is in or next to, the only position that Anthropic allows; without such a turn, or if the model does not support it, it
 *   joins the system prompt, as in Anthropic's own layer for OpenAI's clients.
 * - Results of tools, and user messages after them, are one turn of the user.
 * - No two calls have the same id, which Anthropic refuses.
 * - An answer that the model shall continue loses the white space at its end, which Anthropic refuses there.
 * - Thinking of earlier turns returns as its signed blocks; thoughts without a signature (another vendor's reasoning) are left
 *   out, because Anthropic refuses them.
 * - A chat of system messages alone becomes a user message: Anthropic requires a turn.
 * - JSON without a schema (`json_object`) is asked for at the end of the system prompt.
 * @throws ApiError 400 for content that Anthropic's models do not support.
 */
export function toAnthropicConversation(
  { messages, response_format: format }: SaidInChat,
  { systemTurns }: Pick<AnthropicModelTraits, 'systemTurns'>,
): AnthropicConversation {
  const system: AnthropicBlock[] = [];
  const turns: AnthropicTurn[] = [];
  const ids = new CallIds();
  /** Later system messages, until the user's turn has ended. */
  let waiting: AnthropicBlock[] = [];
  const flushSystem = (): void => {
    if (waiting.length === 0) return;
    if (systemTurns && turns.at(-1)?.role === 'user') turns.push({ role: 'system', content: waiting });
    else addAll(system, waiting);
    waiting = [];
  };
  const addUserBlocks = (blocks: AnthropicBlock[]): void => {
    const last = turns.at(-1);
    if (last?.role === 'user') addAll(last.content, blocks);
    else if (blocks.length > 0) turns.push({ role: 'user', content: blocks });
  };
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`;
    switch (message.role) {
      case 'system':
      case 'developer': {
        const blocks = toAnthropicBlocks(message.content, `${path}.content`);
        addAll(turns.length === 0 ? system : waiting, blocks);
        break;
      }
      case 'user':
        addUserBlocks(toAnthropicBlocks(message.content, `${path}.content`));
        break;
      case 'tool':
        addUserBlocks([toolResult(message, ids, path)]);
        break;
      case 'assistant': {
        const content = assistantBlocks(message, ids, path);
        if (content.length === 0) break;
        flushSystem();
        turns.push({ role: 'assistant', content });
        break;
      }
      case 'function':
        throw unsupportedField(path, "use 'tools' and messages of the role 'tool'");
    }
  }
  flushSystem();
  trimPrefill(turns.at(-1));
  if (turns.length === 0) turns.push({ role: 'user', content: system.splice(0) });
  if (format?.type === 'json_object') system.push({ type: 'text', text: jsonInWords });
  return { system, messages: turns };
}

function trimPrefill(last: AnthropicTurn | undefined): void {
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.type !== 'text') return;
  last.content.splice(-1, 1, { ...block, text: String(block.text).trimEnd() });
}

/** Whether the conversation ends with results of calls that the model made without a signed thought before them. */
export function followsThoughtlessCalls(turns: readonly AnthropicTurn[]): boolean {
  const calling = turns.findLastIndex(({ role }) => role === 'assistant');
  const hasResults = turns[calling + 1]?.content.some(({ type }) => type === 'tool_result') === true;
  const first = turns[calling]?.content[0]?.type;
  return hasResults && first !== 'thinking' && first !== 'redacted_thinking';
}

/** The mark on the last part of a result applies to the result: Anthropic's clients put it there. */
function toolResult(message: MessageOf<'tool'>, ids: CallIds, path: string): AnthropicBlock {
  const { content, tool_call_id: call } = message;
  const isFailed = isFailedResult(message);
  const all = toAllBlocks(content, `${path}.content`);
  const blocks = (isFailed ? withoutPrefix(all) : all).filter(isSaid);
  const { cache_control: mark, ...last } = blocks.at(-1) ?? { type: 'text' };
  return {
    type: 'tool_result',
    tool_use_id: ids.ofResult(call),
    ...(blocks.length > 0 && { content: [...blocks.slice(0, -1), last] }),
    ...(isFailed && { is_error: true }),
    ...cacheMark({ cache_control: mark }),
  };
}

/** The blocks of a failed result as its caller gave them. */
function withoutPrefix([first, ...more]: readonly AnthropicBlock[]): AnthropicBlock[] {
  if (first === undefined) return [];
  const text = String(first.text);
  return [text.startsWith(failedPrefix) ? { ...first, text: text.slice(failedPrefix.length) } : first, ...more];
}

function assistantBlocks(message: MessageOf<'assistant'>, ids: CallIds, path: string): AnthropicBlock[] {
  if (message.audio != null) throw unsupportedField(`${path}.audio`, 'the model does not take audio');
  if (message.function_call != null) throw unsupportedField(`${path}.function_call`, "use 'tool_calls'");
  return [
    ...withThoughts(toAllBlocks(message.content, `${path}.content`), message).filter(isSaid),
    ...toAnthropicBlocks(message.refusal, `${path}.refusal`),
    ...(message.tool_calls ?? []).map((call, index): AnthropicBlock => {
      if (call.type !== 'function') {
        throw unsupportedField(`${path}.tool_calls[${index}]`, 'the model takes functions only');
      }
      const { name, arguments: text } = call.function;
      return {
        type: 'tool_use',
        id: ids.ofCall(call.id),
        name: calledName(name),
        input: toolInput(text),
        ...cacheMark(call),
      };
    }),
  ];
}

/** The names that Anthropic and Converse take for tools: a model may call others, such as `functions.search`, which its client refuses. */
const toolName = /^[a-zA-Z0-9_-]{1,128}$/;

function calledName(name: string): string {
  return toolName.test(name) ? name : flatToolName(undefined, name);
}

/**
 * The texts of an answer with its signed thoughts where they stood (`thinking_offsets`: the characters before each), or before all
 * texts if that is not said: Anthropic refuses thoughts in another order than its own.
 */
function withThoughts(texts: readonly AnthropicBlock[], message: JsonObject): AnthropicBlock[] {
  const [blocks, offsets] = [listOf(message.thinking_blocks), listOf(message.thinking_offsets)];
  const ordered: AnthropicBlock[] = [];
  // The text that comes next, or what is left of it. None is moved: a request may have a hundred thousand texts and thoughts.
  let [index, next] = [0, texts[0]];
  let length = 0;
  for (const [position, block] of blocks.entries()) {
    const offset = offsets[position];
    while (next !== undefined) {
      const [before, after] = splitText(next, typeof offset === 'number' ? offset - length : 0);
      if (before === undefined) break;
      ordered.push(before);
      length += String(before.text).length;
      if (after === undefined) index += 1;
      next = after ?? texts[index];
    }
    ordered.push(...signedThought(block));
  }
  return [...ordered, ...(next === undefined ? [] : [next]), ...texts.slice(index + 1)];
}

/** The part of a text before a thought, `length` characters at most, and the part behind it, which has the text's mark. */
function splitText(block: AnthropicBlock, length: number): [AnthropicBlock | undefined, AnthropicBlock | undefined] {
  const text = String(block.text);
  if (!(length > 0)) return [undefined, block];
  if (text.length <= length) return [block, undefined];
  return [
    { type: block.type, text: text.slice(0, length) },
    { ...block, text: text.slice(length) },
  ];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function signedThought(block: unknown): AnthropicBlock[] {
  if (!isObject(block)) return [];
  const { type, thinking, signature, data } = block;
  if (type === 'redacted_thinking' && typeof data === 'string') return [{ type, data }];
  if (type !== 'thinking' || typeof signature !== 'string' || signature === '') return [];
  return [{ type, thinking: thinking ?? '', signature }];
}

/**
 * Arguments as the object that Anthropic and others require. Anything else (such as a truncated call) is wrapped as it advises
 * (https://docs.claude.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming).
 */
export function toolInput(text: string): JsonObject {
  if (text.trim() === '') return {};
  try {
    const input = parseExact(text);
    if (isObject(input)) return input;
  } catch {}
  return { INVALID_JSON: text };
}
