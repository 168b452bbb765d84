import type { ChatMessage } from '../../../shared/capabilities/chat-message.ts';
import { isObject, type JsonObject } from '../support/json-object.ts';
import { unsupportedField } from '../support/unsupported-field.ts';
import { type AnthropicBlock, cacheMark, toAnthropicBlocks } from './content.ts';
import type { AnthropicModelTraits } from './models.ts';

/** An entry of `messages`. */
export interface AnthropicTurn {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: AnthropicBlock[];
}

/** A conversation as Anthropic has it. */
export interface AnthropicConversation {
  readonly system: readonly AnthropicBlock[];
  readonly messages: readonly AnthropicTurn[];
}

type MessageOf<Role extends string> = Extract<ChatMessage, { role: Role }>;

/**
 * The messages of a chat as system prompt and turns (https://docs.anthropic.com/en/api/messages).
 *
 * - System and developer messages before the first turn are the system prompt. A later one is put right behind the user's
 *   turn that it stands in or next to, the only place Anthropic has for it; where there is none, or the model does not take
 *   it there, it joins the system prompt, as Anthropic's own layer for OpenAI's clients does it.
 * - Results of tools, and what the user says after them, are one turn of the user.
 * - Thinking of earlier turns goes back in as its signed blocks say; what has no signature (another vendor's reasoning) is
 *   left out, because Anthropic refuses it.
 * - A chat of system messages alone is said by the user: Anthropic wants a turn.
 * @throws ApiError 400 for what Anthropic's models cannot take.
 */
export function toAnthropicConversation(
  messages: readonly ChatMessage[],
  { systemTurns }: Pick<AnthropicModelTraits, 'systemTurns'>,
): AnthropicConversation {
  const system: AnthropicBlock[] = [];
  const turns: AnthropicTurn[] = [];
  /** Later system messages, until the user's turn is over. */
  let waiting: AnthropicBlock[] = [];
  const place = (): void => {
    if (waiting.length === 0) return;
    if (systemTurns && turns.at(-1)?.role === 'user') turns.push({ role: 'system', content: waiting });
    else system.push(...waiting);
    waiting = [];
  };
  const sayAsUser = (blocks: AnthropicBlock[]): void => {
    const last = turns.at(-1);
    if (last?.role === 'user') last.content.push(...blocks);
    else if (blocks.length > 0) turns.push({ role: 'user', content: blocks });
  };
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`;
    switch (message.role) {
      case 'system':
      case 'developer': {
        const blocks = toAnthropicBlocks(message.content, `${path}.content`);
        (turns.length === 0 ? system : waiting).push(...blocks);
        break;
      }
      case 'user':
        sayAsUser(toAnthropicBlocks(message.content, `${path}.content`));
        break;
      case 'tool':
        sayAsUser([toolResult(message, path)]);
        break;
      case 'assistant': {
        const content = assistantBlocks(message, path);
        if (content.length === 0) break;
        place();
        turns.push({ role: 'assistant', content });
        break;
      }
      case 'function':
        throw unsupportedField(path, "use 'tools' and messages of the role 'tool'");
    }
  }
  place();
  return turns.length > 0 ? { system, messages: turns } : { system: [], messages: [{ role: 'user', content: system }] };
}

/** Whether the conversation ends with results of calls that the model made without a signed thought before them. */
export function followsThoughtlessCalls(turns: readonly AnthropicTurn[]): boolean {
  const calling = turns.findLastIndex(({ role }) => role === 'assistant');
  const hasResults = turns[calling + 1]?.content.some(({ type }) => type === 'tool_result') === true;
  const first = turns[calling]?.content[0]?.type;
  return hasResults && first !== 'thinking' && first !== 'redacted_thinking';
}

/** The mark on the last part of a result is the result's: Anthropic's clients put it there. */
function toolResult({ content, tool_call_id: call }: MessageOf<'tool'>, path: string): AnthropicBlock {
  const blocks = toAnthropicBlocks(content, `${path}.content`);
  const { cache_control: mark, ...last } = blocks.at(-1) ?? { type: 'text' };
  return {
    type: 'tool_result',
    tool_use_id: toolUseId(call),
    ...(blocks.length > 0 && { content: [...blocks.slice(0, -1), last] }),
    ...cacheMark({ cache_control: mark }),
  };
}

function assistantBlocks(message: MessageOf<'assistant'>, path: string): AnthropicBlock[] {
  if (message.audio != null) throw unsupportedField(`${path}.audio`, 'the model does not take audio');
  if (message.function_call != null) throw unsupportedField(`${path}.function_call`, "use 'tool_calls'");
  return [
    ...signedThoughts(message.thinking_blocks),
    ...toAnthropicBlocks(message.content, `${path}.content`),
    ...toAnthropicBlocks(message.refusal, `${path}.refusal`),
    ...(message.tool_calls ?? []).map((call, index): AnthropicBlock => {
      if (call.type !== 'function') {
        throw unsupportedField(`${path}.tool_calls[${index}]`, 'the model takes functions only');
      }
      const { name, arguments: text } = call.function;
      return { type: 'tool_use', id: toolUseId(call.id), name, input: toolInput(text), ...cacheMark(call) };
    }),
  ];
}

function signedThoughts(blocks: unknown): AnthropicBlock[] {
  const all: unknown[] = Array.isArray(blocks) ? blocks : [];
  return all.flatMap((block): AnthropicBlock[] => {
    if (!isObject(block)) return [];
    const { type, thinking, signature, data } = block;
    if (type === 'redacted_thinking' && typeof data === 'string') return [{ type, data }];
    if (type !== 'thinking' || typeof signature !== 'string' || signature === '') return [];
    return [{ type, thinking: thinking ?? '', signature }];
  });
}

/** Anthropic takes ids of these characters only; other vendors' have more. */
function toolUseId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, '_');
}

/**
 * Arguments as the object that Anthropic wants. What is none (a call that was cut off, say) is wrapped as it advises
 * (https://docs.claude.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming).
 */
function toolInput(text: string): JsonObject {
  if (text.trim() === '') return {};
  try {
    const input: unknown = JSON.parse(text);
    if (isObject(input)) return input;
  } catch {}
  return { INVALID_JSON: text };
}
