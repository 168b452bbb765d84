import { parseExact, stringifyExact } from '../../../shared/capabilities/exact-json.ts';
import type { ApiError } from '../../../shared/errors.ts';
import type { Frame } from '../../../shared/jobs/append.ts';
import { toAnthropicError } from '../../http/anthropic-error.ts';
import { sseEvent } from '../../replies/sse-event.ts';
import type { View } from '../../replies/view.ts';
import { deltaOf, joinPieces, saidBy } from '../chat/said-pieces.ts';
import { MessageFold } from './fold-message.ts';
import type { ContentBlock, ContentDelta, Message, MessageEvent } from './message-events.ts';
import type { MessageViewOptions } from './parse-messages.ts';

const toWire = (event: { readonly type: string }): string => sseEvent(event.type, JSON.stringify(event));

/** The error event in Anthropic's streams. */
export function messageErrorEvent(error: ApiError): string {
  return toWire(toAnthropicError(error));
}

/** The view of messages over the frames of a chat. A held message is the sum of its events. */
export const messageView: View<MessageViewOptions> = {
  stream: (job) => {
    const fold = new MessageFold(job, job.viewOptions);
    return (frame) => fold.take(frame).map(toWire);
  },
  held: (job, frames) => {
    const fold = new MessageFold(job, job.viewOptions);
    return stringifyExact(addUp(frames.flatMap((frame) => fold.take(frame))));
  },
  final: joinFrames,
  errorEvent: messageErrorEvent,
  ping: toWire({ type: 'ping' }),
};

/** Folds a stream's events into the whole message. */
function addUp(events: readonly MessageEvent[]): Message {
  const blocks: SaidBlock[] = [];
  let message: Message | undefined;
  for (const event of events) {
    if (event.type === 'message_start') message = event.message;
    else if (event.type === 'content_block_start') blocks.push({ block: event.content_block, text: '', signature: '' });
    else if (event.type === 'content_block_delta') grow(blocks[event.index] as SaidBlock, event.delta);
    else if (event.type === 'message_delta' && message !== undefined) {
      message = { ...message, ...event.delta, usage: { ...message.usage, ...event.usage } };
    }
  }
  return { ...(message as Message), content: blocks.map(toWhole) };
}

/** A block and the sum of its deltas. */
interface SaidBlock {
  readonly block: ContentBlock;
  text: string;
  signature: string;
}

function grow(said: SaidBlock, delta: ContentDelta): void {
  if (delta.type === 'text_delta') said.text += delta.text;
  else if (delta.type === 'thinking_delta') said.text += delta.thinking;
  else if (delta.type === 'input_json_delta') said.text += delta.partial_json;
  else said.signature = delta.signature;
}

function toWhole({ block, text, signature }: SaidBlock): ContentBlock {
  switch (block.type) {
    case 'text':
      return { ...block, text };
    case 'thinking':
      return { ...block, thinking: text, signature };
    case 'tool_use':
      return { ...block, input: toInput(text) };
    case 'redacted_thinking':
      return block;
  }
}

/**
 * Parses a tool's input. Anything but an object (such as an answer truncated at its maximum tokens) is wrapped as Anthropic
 * recommends (https://docs.claude.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming).
 */
function toInput(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    const input = parseExact(text);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input;
  } catch {}
  return { INVALID_JSON: text };
}

/** Joins the deltas to one per piece of the answer, the last with the finish reason; the end is unchanged. */
function joinFrames(frames: readonly Frame[]): readonly Frame[] {
  const deltas = frames.filter(({ type }) => type === 'delta');
  const end = frames.at(-1) as Frame;
  const chunks = deltas.map(({ text }) => JSON.parse(text) as Chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices ?? []).filter(({ index }) => (index ?? 0) === 0);
  const said = joinPieces(choices.flatMap(({ delta }) => saidBy(delta ?? {}))).map(deltaOf);
  const last = choices.findLast((choice) => choice.finish_reason != null);
  const finish = {
    finish_reason: last?.finish_reason,
    stop_reason: last?.stop_reason,
    stop_details: last?.stop_details,
  };
  const joined = (said.length === 0 ? [{}] : said).map((delta, at, { length }) => ({
    choices: [{ index: 0, delta, ...(at === length - 1 && finish) }],
    ...(at === 0 && { service_tier: chunks[0]?.service_tier, usage: chunks[0]?.usage }),
  }));
  // Without a reduction the original frames are kept, whose numbers clients have seen.
  if (joined.length >= deltas.length) return [...deltas, end];
  return [...joined.map((chunk) => ({ ...end, type: 'delta' as const, text: JSON.stringify(chunk) })), end];
}

/** The fields of a chat's chunk that a message shows. */
interface Chunk {
  readonly choices?: readonly {
    readonly index?: number;
    readonly delta?: Record<string, unknown>;
    readonly finish_reason?: unknown;
    readonly stop_reason?: unknown;
    readonly stop_details?: unknown;
  }[];
  readonly service_tier?: unknown;
  readonly usage?: unknown;
}
