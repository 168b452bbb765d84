import type Anthropic from '@anthropic-ai/sdk';
import { piecesOf } from '../../support/pieces.ts';

/*
 * Answers in Anthropic's wire format, written after its API reference (https://docs.anthropic.com/en/api/messages,
 * …/api/errors and …/docs/build-with-claude/streaming, whose examples these texts are from) in the state that the types of
 * @anthropic-ai/sdk 1.12.0 describe, November 2026: `satisfies` holds every message and event against them.
 */

const counts = {
  input_tokens: 25,
  cache_creation_input_tokens: 100,
  cache_read_input_tokens: 1875,
  output_tokens_details: { thinking_tokens: 192 },
  server_tool_use: null,
};
const usage = {
  ...counts,
  output_tokens: 300,
  cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 0 },
  inference_geo: 'us',
  service_tier: 'standard',
  speed: null,
} as const satisfies Anthropic.Usage;

/** That usage as a chat has it. */
export const chatUsage = {
  prompt_tokens: 2000,
  completion_tokens: 300,
  total_tokens: 2300,
  prompt_tokens_details: {
    cached_tokens: 1875,
    cache_write_tokens: 100,
    cache_creation_token_details: usage.cache_creation,
  },
  completion_tokens_details: { reasoning_tokens: 192 },
};

/** A whole message. */
export function messageOf(
  content: Anthropic.ContentBlock[],
  stopReason: Anthropic.StopReason = 'end_turn',
  stopSequence: string | null = null,
): Anthropic.Message {
  return {
    id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
    type: 'message',
    role: 'assistant',
    model: 'claude-opus-4-8',
    content,
    stop_reason: stopReason,
    stop_sequence: stopSequence,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage,
  };
}

export const text = (said: string): Anthropic.TextBlock => ({ type: 'text', text: said, citations: null });
export const thinking = (thought: string, signature: string): Anthropic.ThinkingBlock => ({
  type: 'thinking',
  thinking: thought,
  signature,
});
export const toolUse = (id: string, name: string, input: unknown): Anthropic.ToolUseBlock => ({
  type: 'tool_use',
  id,
  name,
  input,
  caller: { type: 'direct' },
});

const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds';

/** Messages by what is special about them. */
export const recorded: Readonly<Record<string, Anthropic.Message>> = {
  'plain text': messageOf([text('Hello! How are you today?')]),
  'multi-byte text with quotes and line breaks': messageOf([text('Zażółć "gęślą" 🦥\n日本語 \\ 👩‍👩‍👧\u2028')]),
  'tool calls in fragments': messageOf(
    [
      text("Okay, let's check the weather:"),
      toolUse('toolu_01T1x1fJ34qAmk2tNTrN7Up6', 'get_weather', { location: 'San Francisco, CA', unit: 'fahrenheit' }),
      toolUse('toolu_01A09q90qw90lq917835lq9', 'get_time', {}),
    ],
    'tool_use',
  ),
  'thinking with its signature': messageOf([
    thinking('I need to find the GCD of 1071 and 462: 21.', signature),
    text('The greatest common divisor is **21**.'),
  ]),
  'hidden thinking': messageOf([thinking('', signature), text('21')]),
  'redacted thinking, and thinking between calls': messageOf(
    [
      { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw' },
      thinking('First the weather.', signature),
      toolUse('toolu_1', 'get_weather', { location: 'Łódź' }),
    ],
    'tool_use',
  ),
  'an end at the token limit': messageOf([text('Once upon')], 'max_tokens'),
  'an end at the context window': messageOf([text('Once upon')], 'model_context_window_exceeded'),
  'an end at a stop sequence': messageOf([text('One, two, ')], 'stop_sequence', 'three'),
  'an end by the safety classifiers': messageOf([text('Once')], 'refusal'),
  'a refusal with its reason': {
    ...messageOf([thinking('Hm.', signature)], 'refusal'),
    stop_details: { type: 'refusal', category: 'cyber', explanation: 'That could do harm.' },
  } as Anthropic.Message,
  'a paused turn': messageOf([text('Searching')], 'pause_turn'),
  'an empty answer': messageOf([]),
};

/** The deltas of a block, its text in pieces of a few characters. */
function deltasOf(block: Anthropic.ContentBlock, size: number): Anthropic.RawContentBlockDelta[] {
  const pieces = (whole: string): string[] => piecesOf(whole, size);
  switch (block.type) {
    case 'text':
      return pieces(block.text).map((piece) => ({ type: 'text_delta', text: piece }));
    case 'thinking': {
      const thoughts = pieces(block.thinking).map((piece) => ({ type: 'thinking_delta' as const, thinking: piece }));
      return [...thoughts, { type: 'signature_delta', signature: block.signature }];
    }
    case 'tool_use': {
      // The first piece of an input is empty, and all of an empty input.
      const input = Object.keys(block.input as object).length === 0 ? [] : pieces(JSON.stringify(block.input));
      return ['', ...input].map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
    }
    default:
      return [];
  }
}

function startOf(block: Anthropic.ContentBlock): Anthropic.ContentBlock {
  switch (block.type) {
    case 'text':
      return { ...block, text: '' };
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'tool_use':
      return { ...block, input: {} };
    default:
      return block;
  }
}

/** A message as the events of a stream. The counts of the output come at its end, those of the input at its start. */
export function eventsOf(message: Anthropic.Message, size = 5): Anthropic.RawMessageStreamEvent[] {
  const { content, stop_reason, stop_sequence, stop_details } = message;
  const started = { ...message.usage, output_tokens: 1, output_tokens_details: null };
  const blocks = content.flatMap((block, index): Anthropic.RawMessageStreamEvent[] => [
    { type: 'content_block_start', index, content_block: startOf(block) },
    ...deltasOf(block, size).map((delta) => ({ type: 'content_block_delta' as const, index, delta })),
    { type: 'content_block_stop', index },
  ]);
  return [
    {
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage: started },
    },
    ...blocks,
    {
      type: 'message_delta',
      delta: { stop_reason, stop_sequence, stop_details, container: null },
      usage: {
        ...{ input_tokens: null, cache_creation_input_tokens: null, cache_read_input_tokens: null },
        ...{ output_tokens: 300, output_tokens_details: counts.output_tokens_details, server_tool_use: null },
      },
    },
    { type: 'message_stop' },
  ];
}

/** Events as Anthropic writes them, a ping after the first. */
export function toWire(events: readonly { readonly type: string }[]): string {
  const lines = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  return [...lines.slice(0, 1), 'event: ping\ndata: {"type": "ping"}\n\n', ...lines.slice(1)].join('');
}

/** An error body in Anthropic's shape (https://docs.anthropic.com/en/api/errors). */
export function errorBody(type: string, message: string): string {
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy' });
}
