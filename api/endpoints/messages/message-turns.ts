import { stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import type {
  AssistantBlock,
  MessageInput,
  MessageTurn,
  SystemBlock,
  UserBlock,
} from '../../../shared/capabilities/message.ts';
import {
  extraContent,
  failedPrefix,
  failedResult,
  readThoughtSignature,
  type ThoughtSignature,
} from '../../../shared/capabilities/thought-signature.ts';
import { addAll } from '../../../shared/runtime/collections.ts';
import { invalidParameter } from '../../pipeline/request-fields.ts';
import {
  type ChatPart,
  cacheMark,
  contentOf,
  type MessageNotes,
  type TextPart,
  textPart,
  toParts,
} from './message-content.ts';

/** A chat message made from a request; see `shared/capabilities/chat-message.ts`. */
export type ChatTurn = { readonly role: 'system' | 'user' | 'assistant' | 'tool'; readonly [field: string]: unknown };

type ToolResult = Extract<UserBlock, { type: 'tool_result' }>;
type ThoughtBlock = Extract<AssistantBlock, { type: 'thinking' | 'redacted_thinking' }>;

/**
 * Converts the turns of a request to messages of a chat, the system prompt first.
 *
 * - Tool results become separate messages, before the rest of their turn; `is_error` becomes a leading `Error:`, and a field for
 *   vendors that have one. Their images and documents, which such messages do not support, follow in a user's message.
 * - Thinking of earlier turns becomes `reasoning_content` and, with its signatures, `thinking_blocks`. Google's signatures
 *   return to the text, or the call, that they came with.
 * @throws ApiError 400 for the result of an unknown call.
 */
export function toChatTurns({ system, messages }: MessageInput, notes: MessageNotes): ChatTurn[] {
  const turns: ChatTurn[] = [];
  if (system != null && system.length > 0) turns.push(systemTurn(system, notes));
  const calls = new Set<string>();
  const lastOfUser = messages.findLastIndex(({ role }) => role === 'user');
  for (const [index, turn] of messages.entries()) {
    if (turn.role === 'system') addAll(turns, systemTurns(turn, index < lastOfUser, notes));
    else if (turn.role === 'assistant') turns.push(assistantTurn(turn, calls, notes));
    else if (typeof turn.content === 'string') turns.push({ role: 'user', content: turn.content });
    else addAll(turns, userTurns(turn.content, index, calls, notes));
  }
  return turns;
}

type SystemTurn = Extract<MessageTurn, { role: 'system' }>;

/** Instructions between the turns; none if they counted until a message of the user that has come, or are no text. */
function systemTurns(turn: SystemTurn, isAnswered: boolean, notes: MessageNotes): ChatTurn[] {
  const { content, clear_at: clearAt, output_config: config } = turn;
  if (config != null && Object.keys(config).length > 0) notes.ignored.add('messages.output_config');
  const isCleared = clearAt === 'next_user_message' && isAnswered;
  return isCleared || content == null || content.length === 0 ? [] : [systemTurn(content, notes)];
}

function systemTurn(content: NonNullable<SystemTurn['content']>, notes: MessageNotes): ChatTurn {
  const parts = typeof content === 'string' ? content : contentOf(content.map((block) => systemPart(block, notes)));
  return { role: 'system', content: parts };
}

/** All tools of a request are offered from the start, so changes are reported in the text. */
function systemPart(block: SystemBlock, notes: MessageNotes): TextPart {
  if (block.type === 'text') return textPart(block, notes);
  const { type, tool } = block;
  const name = tool.type === 'tool_reference' ? tool.name : tool.definition.name;
  const state = type === 'tool_addition' ? 'is available from here on' : 'is no longer available: do not call it';
  return { type: 'text', text: `The tool ${name} ${state}.`, ...cacheMark(block, notes) };
}

/** @param calls ids of the calls so far, to which this turn's are added */
function assistantTurn(
  { content }: Extract<MessageTurn, { role: 'assistant' }>,
  calls: Set<string>,
  notes: MessageNotes,
): ChatTurn {
  if (typeof content === 'string') return { role: 'assistant', content };
  const texts: TextPart[] = [];
  const thoughts: ThoughtBlock[] = [];
  const offsets: number[] = [];
  let textLength = 0;
  const toolCalls: object[] = [];
  const signatures = googleSignatures(content);
  for (const block of content) {
    if (block.type === 'text') {
      texts.push(textPart(block, notes));
      textLength += block.text.length;
    } else if (block.type === 'tool_use') {
      calls.add(block.id);
      const call = { name: block.name, arguments: stringifyExact(block.input) };
      const signed = signatures.get(block.id);
      toolCalls.push({ id: block.id, type: 'function', function: call, ...signed, ...cacheMark(block, notes) });
    } else {
      cacheMark(block, notes);
      thoughts.push(block);
      // The vendor of these blocks would refuse Google's signatures.
      if (googleSignature(block) === undefined) offsets.push(textLength);
    }
  }
  if (thoughts.length > 0) notes.hints.add('thinking');
  const reasoning = thoughts.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('');
  const blocks = thoughts.filter((block) => googleSignature(block) === undefined);
  return {
    role: 'assistant',
    content: texts.length === 0 && toolCalls.length > 0 ? null : contentOf(texts),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(blocks.length > 0 && { thinking_blocks: blocks }),
    // Their vendor refuses them in another order than its own.
    ...(offsets.some((offset) => offset > 0) && { thinking_offsets: offsets }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    ...signatures.get(undefined),
  };
}

/** The fields with Google's signatures, by the ids of the calls; the text's by undefined. */
function googleSignatures(content: readonly AssistantBlock[]): ReadonlyMap<string | undefined, object> {
  const signatures = content.map(googleSignature).filter((found) => found !== undefined);
  return new Map(signatures.map(({ callId, signature }) => [callId, extraContent(signature)]));
}

function googleSignature(block: AssistantBlock): ThoughtSignature | undefined {
  return block.type === 'thinking' ? readThoughtSignature(block.signature) : undefined;
}

function userTurns(
  blocks: readonly UserBlock[],
  turn: number,
  calls: ReadonlySet<string>,
  notes: MessageNotes,
): ChatTurn[] {
  const results: ChatTurn[] = [];
  const shown: ChatPart[] = [];
  const said: ChatPart[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.type !== 'tool_result') {
      addAll(said, toParts(block, notes));
      continue;
    }
    if (!calls.has(block.tool_use_id)) {
      const param = `messages[${turn}].content[${index}].tool_use_id`;
      throw invalidParameter(param, `Invalid '${param}': no earlier 'tool_use' block has this id.`);
    }
    const { content, attachments } = toolResult(block, notes);
    const failed = block.is_error === true ? failedResult : {};
    results.push({ role: 'tool', tool_call_id: block.tool_use_id, content, ...failed });
    if (attachments.length === 0) continue;
    shown.push({ type: 'text', text: `From the result of the tool call ${block.tool_use_id}:` });
    addAll(shown, attachments);
  }
  const parts = [...shown, ...said];
  return parts.length === 0 ? results : [...results, { role: 'user', content: contentOf(parts) }];
}

function toolResult(
  block: ToolResult,
  notes: MessageNotes,
): { readonly content: string | readonly TextPart[]; readonly attachments: readonly ChatPart[] } {
  const { content, is_error: isError } = block;
  const parts: ChatPart[] =
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : (content ?? []).flatMap((part) => toParts(part, notes));
  const texts = parts.filter((part) => part.type === 'text');
  const attachments = parts.filter((part) => part.type !== 'text');
  if (texts.length === 0) {
    texts.push({ type: 'text', text: attachments.length === 0 ? '' : 'The result is in the next message.' });
  }
  const [first, ...more] = texts as [TextPart, ...TextPart[]];
  const marked = [isError === true ? { ...first, text: failedPrefix + first.text } : first, ...more];
  const last = marked.pop() as TextPart;
  return { content: contentOf([...marked, { ...last, ...cacheMark(block, notes) }]), attachments };
}
