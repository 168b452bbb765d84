import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import fc from 'fast-check';
import { messages } from '../../../../api/endpoints/messages/messages.ts';
import type { MessageViewOptions } from '../../../../api/endpoints/messages/parse-messages.ts';
import type { ViewedJob } from '../../../../api/replies/view.ts';
import { type Frame, frameLine, parseBatch } from '../../../../shared/jobs/append.ts';
import { executeChat } from '../../../../workers/execute/execute.ts';
import { createOpenAiDialect } from '../../../../workers/vendors/openai/dialect.ts';
import type { VendorFrame } from '../../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../../support/routed-model.ts';
import {
  callOf,
  collect,
  cut,
  type FixtureVendor,
  sendStream,
  startFixtureVendor,
} from '../../../vendors/contracts/fixture-vendor.ts';

const jobWith = (hidesThinking: boolean): ViewedJob<MessageViewOptions> => ({
  id: '0197a3b0c4d57e8f9a0b1c2d3e4f5a6b',
  model: 'a-model',
  createdAt: 1_700_000_000_123,
  viewOptions: { hidesThinking, stopSequences: ['###'] },
  link: (file) => file,
});
const row = madeUpModel({ id: 'a-model', capability: 'chat' });

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom('"', '\\', '\r\n', '\u2028', ' ', ''),
);

/** A delta of a chat: what a vendor may say, in any order, calls taking turns. */
const call = fc.record({ index: fc.nat(2), text });
type Piece =
  | { readonly kind: 'content' | 'reasoning_content' | 'reasoning' | 'refusal' | 'signature'; readonly text: string }
  | { readonly kind: 'call'; readonly index: number; readonly text: string };
const piece: fc.Arbitrary<Piece> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('content', 'reasoning_content', 'reasoning', 'refusal', 'signature'),
    text,
  }) as fc.Arbitrary<Piece>,
  call.map((said) => ({ kind: 'call' as const, ...said })),
);
const script = fc.record({
  pieces: fc.array(piece, { maxLength: 14 }),
  reason: fc.constantFrom('stop', 'length', 'content_filter', 'tool_calls'),
  stopText: fc.constantFrom(null, '###', 'other'),
});

const nameOf = (index: number): string => `tool_${index}`;

function chunksOf({ pieces, reason, stopText }: { pieces: readonly Piece[]; reason: string; stopText: string | null }) {
  const begun = new Set<number>();
  const deltas = pieces.map((said): object => {
    if (said.kind === 'signature') return { thinking_blocks: [{ type: 'thinking', signature: said.text }] };
    if (said.kind !== 'call') return { [said.kind]: said.text };
    const isNew = !begun.has(said.index);
    begun.add(said.index);
    const head = isNew ? { id: `call_${said.index}`, type: 'function' } : {};
    const called = { ...(isNew && { name: nameOf(said.index) }), arguments: said.text };
    return { tool_calls: [{ index: said.index, ...head, function: called }] };
  });
  const choices = [
    { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null },
    ...deltas.map((delta) => ({ index: 0, delta, finish_reason: null })),
    { index: 0, delta: {}, finish_reason: reason, stop_reason: stopText },
  ];
  return choices.map((choice) => ({
    id: 'x',
    object: 'chat.completion.chunk',
    service_tier: 'default',
    choices: [choice],
  }));
}

/** The frames as the log holds them and the reader gives them back, in batches of these sizes. */
function throughLog(frames: readonly VendorFrame[], sizes: readonly number[]): Frame[] {
  const read: Frame[] = [];
  for (let start = 0, turn = 0; start < frames.length; turn += 1) {
    const end = start + Math.max(1, sizes[turn % sizes.length] ?? 1);
    const lines = frames.slice(start, end).map((frame) => frameLine(frame.type, frame.text));
    read.push(...parseBatch(`1 ${start + 1}\n${lines.join('\n')}`).frames);
    start = end;
  }
  return read;
}

/** The events of a stream, each with a name and one line of data. */
function shown(job: ViewedJob<MessageViewOptions>, frames: readonly Frame[]): Anthropic.MessageStreamEvent[] {
  return frames.flatMap(messages.view.stream(job)).map((event) => {
    const [, name, data] = /^event: (\w+)\ndata: ([^\n]+)$/.exec(event) ?? [];
    const parsed = JSON.parse(data ?? '');
    assert.equal(parsed.type, name);
    return parsed;
  });
}

/** Holds the events to Anthropic's order: blocks one after the other, begun, said and ended, between start and end. */
function assertOrder(events: readonly Anthropic.MessageStreamEvent[]): void {
  assert.equal(events[0]?.type, 'message_start');
  assert.deepEqual(
    events.slice(-2).map(({ type }) => type),
    ['message_delta', 'message_stop'],
  );
  let blocks = 0;
  let isOpen = false;
  for (const event of events.slice(1, -2)) {
    assert.ok('index' in event, event.type);
    assert.equal(event.index, blocks);
    assert.equal(isOpen, event.type !== 'content_block_start');
    isOpen = event.type !== 'content_block_stop';
    if (!isOpen) blocks += 1;
  }
  assert.equal(isOpen, false);
}

/** What Anthropic's own client makes of the events, but for inputs of tools: here they are any text, which it would refuse. */
async function addedUp(events: readonly Anthropic.MessageStreamEvent[]): Promise<Anthropic.Message> {
  const isInput = (event: Anthropic.MessageStreamEvent): boolean =>
    event.type === 'content_block_delta' && event.delta.type === 'input_json_delta';
  const lines = events.map((event) => (isInput(event) ? '' : `${JSON.stringify(event)}\n`)).join('');
  const message = await MessageStream.fromReadableStream(new Blob([lines]).stream()).finalMessage();
  return JSON.parse(JSON.stringify(message, (name, value) => (name === 'parsed_output' ? undefined : value)));
}

const withoutInputs = (message: Anthropic.Message) => ({
  ...message,
  content: message.content.map((block) => (block.type === 'tool_use' ? { ...block, input: null } : block)),
});

const inputs = (events: readonly Anthropic.MessageStreamEvent[]): Map<string, string> => {
  const names: string[] = [];
  const said = new Map<string, string>();
  for (const event of events) {
    if (event.type === 'content_block_start') {
      const name = event.content_block.type === 'tool_use' ? event.content_block.name : '';
      names.push(name);
      if (name !== '') said.set(name, '');
    } else if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
      const name = names[event.index] as string;
      said.set(name, said.get(name) + event.delta.partial_json);
    }
  }
  return said;
};

describe('the view of messages', () => {
  let server: FixtureVendor;
  let vendor: ReturnType<typeof createOpenAiDialect>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey: 'sk-test' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  async function framesOf(chunks: readonly object[], places: readonly number[], sizes: readonly number[]) {
    const data = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('');
    server.answer((response) => sendStream(response, cut(Buffer.from(`${data}data: [DONE]\n\n`), places)));
    const sink = collect();
    const end = await executeChat({ vendor, row, endpoint: 'messages', keep: false, call: callOf(), sink });
    return throughLog([...sink.frames, { type: 'end', text: end.body }], sizes);
  }

  const usage = {
    prompt_tokens: 9,
    completion_tokens: 4,
    prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 },
  };
  const places = fc.array(fc.nat(), { maxLength: 30 });
  const sizes = fc.array(fc.nat(5), { minLength: 1, maxLength: 4 });

  it('the view of messages makes the same events of the same chunks, which add up to the held message, however they are split', async () => {
    await fc.assert(
      fc.asyncProperty(script, fc.boolean(), places, sizes, async (said, hidesThinking, ...cuts) => {
        const job = jobWith(hidesThinking);
        const chunks = [...chunksOf(said), { id: 'x', choices: [], usage }];
        const frames = await framesOf(chunks, ...cuts);
        const events = shown(job, frames);
        assert.deepEqual(events, shown(job, await framesOf(chunks, [], [1])));
        assertOrder(events);
        const held = JSON.parse(messages.view.held(job, frames)) as Anthropic.Message;
        assert.deepEqual(withoutInputs(await addedUp(events)), withoutInputs(held));
        // What is kept shows the same message.
        const kept = messages.view.final?.(frames, job) ?? frames;
        assert.ok(kept.length <= frames.length);
        assert.deepEqual(JSON.parse(messages.view.held(job, kept)), held);
        assertOrder(shown(job, kept));
        // Nothing that was said is lost.
        const joined = (kinds: readonly string[]) =>
          said.pieces.map((part) => (kinds.includes(part.kind) ? part.text : '')).join('');
        const texts = held.content.map((block) => (block.type === 'text' ? block.text : ''));
        assert.equal(texts.join(''), joined(['content', 'refusal']));
        const thoughts = held.content.map((block) => (block.type === 'thinking' ? block.thinking : ''));
        assert.equal(thoughts.join(''), hidesThinking ? '' : joined(['reasoning_content', 'reasoning']));
        const calls = new Map<string, string>();
        for (const part of said.pieces) {
          if (part.kind === 'call') calls.set(nameOf(part.index), (calls.get(nameOf(part.index)) ?? '') + part.text);
        }
        // No arguments are empty ones; those of a call that was cut off are not known.
        if (said.reason !== 'length') for (const [name, text] of calls) calls.set(name, text || '{}');
        assert.deepEqual(inputs(events), calls);
        const { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: written } = held.usage;
        assert.deepEqual([input, read, written, held.usage.output_tokens], [4, 3, 2, 4]);
      }),
      { numRuns: 200 },
    );
  });

  it('the view of messages counts each prompt token once, even when its vendor counts it as read and as written', () => {
    const counts = (told: object): number[] => {
      const text = JSON.stringify({
        choices: [{ message: { content: 'x' } }],
        usage: { completion_tokens: 1, ...told },
      });
      const { usage } = JSON.parse(messages.view.held(jobWith(false), [{ seq: 1, type: 'end', text }]));
      return [usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens];
    };
    const told = (cached_tokens: number, cache_write_tokens: number) => ({
      prompt_tokens: 9,
      prompt_tokens_details: { cached_tokens, cache_write_tokens },
    });
    assert.deepEqual(counts(told(3, 2)), [4, 3, 2]);
    // OpenRouter, of Gemini.
    assert.deepEqual(counts(told(7, 7)), [0, 7, 2]);
    // Grok on Azure: more of it was read than there is.
    assert.deepEqual(counts(told(12, 0)), [0, 9, 0]);
    assert.deepEqual(counts({}), [0, 0, 0]);
  });

  const stopOf = async (said: { pieces: readonly Piece[]; reason: string; stopText?: string }) => {
    const frames = await framesOf(chunksOf({ stopText: null, ...said }), [], [1]);
    const held = JSON.parse(messages.view.held(jobWith(false), frames)) as Anthropic.Message;
    return [held.stop_reason, held.stop_sequence, held.stop_details?.type];
  };

  it('the view of messages reports the stop reason, the stop sequence and a refusal', async () => {
    const pieces = [{ kind: 'content', text: 'a' }] as const;
    const calls = [{ kind: 'call', index: 0, text: '{}' }] as const;
    assert.deepEqual(await stopOf({ pieces, reason: 'stop' }), ['end_turn', null, undefined]);
    assert.deepEqual(await stopOf({ pieces, reason: 'stop', stopText: '###' }), ['stop_sequence', '###', undefined]);
    assert.deepEqual(await stopOf({ pieces, reason: 'stop', stopText: 'unasked' }), ['end_turn', null, undefined]);
    assert.deepEqual(await stopOf({ pieces, reason: 'length' }), ['max_tokens', null, undefined]);
    assert.deepEqual(await stopOf({ pieces: calls, reason: 'tool_calls' }), ['tool_use', null, undefined]);
    assert.deepEqual(await stopOf({ pieces: calls, reason: 'stop' }), ['tool_use', null, undefined]);
    assert.deepEqual(await stopOf({ pieces: calls, reason: 'length' }), ['max_tokens', null, undefined]);
    assert.deepEqual(await stopOf({ pieces, reason: 'content_filter' }), ['refusal', null, 'refusal']);
    const refusal = [{ kind: 'refusal', text: 'No.' }] as const;
    assert.deepEqual(await stopOf({ pieces: refusal, reason: 'stop' }), ['refusal', null, 'refusal']);
  });

  it('the view of messages shows each thinking block with its signature, before the text', async () => {
    const pieces = [
      { kind: 'reasoning', text: 'Hm' },
      { kind: 'signature', text: 'one' },
      { kind: 'reasoning', text: 'So' },
      { kind: 'signature', text: 'two' },
      { kind: 'content', text: 'Yes' },
    ] as const;
    const frames = await framesOf(chunksOf({ pieces, reason: 'stop', stopText: null }), [], [1]);
    assert.deepEqual(JSON.parse(messages.view.held(jobWith(false), frames)).content, [
      { type: 'thinking', thinking: 'Hm', signature: 'one' },
      { type: 'thinking', thinking: 'So', signature: 'two' },
      { type: 'text', text: 'Yes', citations: [] },
    ]);
  });

  it('the view of messages keeps frames unchanged that cannot become fewer, since a client may have seen their numbers', () => {
    const delta = {
      reasoning_content: 'Hm',
      thinking_blocks: [{ type: 'redacted_thinking', data: 'xyz' }],
      content: 'Yes',
    };
    const chunk = { choices: [{ index: 0, delta, finish_reason: 'stop' }] };
    const frames: Frame[] = [
      { seq: 1, type: 'delta', text: JSON.stringify(chunk) },
      { seq: 2, type: 'end', text: JSON.stringify({ usage }) },
    ];
    assert.deepEqual(messages.view.final?.(frames, jobWith(false)), frames);
    assert.deepEqual(JSON.parse(messages.view.held(jobWith(false), frames)).content, [
      { type: 'thinking', thinking: 'Hm', signature: '' },
      { type: 'redacted_thinking', data: 'xyz' },
      { type: 'text', text: 'Yes', citations: [] },
    ]);
  });

  it('the view of messages shows a tool input that is no JSON object as INVALID_JSON', async () => {
    const pieces = [{ kind: 'call', index: 0, text: '{"a":"cut o' }] as const;
    const frames = await framesOf(chunksOf({ pieces, reason: 'length', stopText: null }), [], [1]);
    const [block] = JSON.parse(messages.view.held(jobWith(false), frames)).content;
    assert.deepEqual(block.input, { INVALID_JSON: '{"a":"cut o' });
  });
});

describe('thinking that nobody asked for', () => {
  const held = (deltas: readonly object[], options: object): readonly Anthropic.ContentBlock[] => {
    const chunk = (delta: object, reason: string | null): object => ({
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    const texts = [...deltas.map((delta) => chunk(delta, null)), chunk({}, 'stop')].map((each) => JSON.stringify(each));
    const lines = [...texts.map((each) => frameLine('delta', each)), frameLine('end', '{}')];
    const { frames } = parseBatch(`1 1\n${lines.join('\n')}`);
    const viewOptions = { hidesThinking: false, stopSequences: [], ...options };
    return (JSON.parse(messages.view.held({ ...jobWith(false), viewOptions }, frames)) as Anthropic.Message).content;
  };
  const thoughts = [{ reasoning_content: 'I ' }, { reasoning_content: 'think' }];
  const signed = { thinking_blocks: [{ type: 'thinking', thinking: 'I think', signature: 'sig' }] };
  const said = { type: 'text', text: 'so', citations: [] };

  it('the view of messages shows requested thinking even when it is unsigned', () => {
    const [first] = held([...thoughts, { content: 'so' }], {});
    assert.deepEqual(first, { type: 'thinking', thinking: 'I think', signature: '' });
  });

  it('the view of messages omits thinking that was not requested unless its vendor signed it', () => {
    const options = { hidesUnsigned: true };
    assert.deepEqual(held([...thoughts, { content: 'so' }], options), [said]);
    const whole = { type: 'thinking', thinking: 'I think', signature: 'sig' };
    assert.deepEqual(held([...thoughts, signed, { content: 'so' }], options), [whole, said]);
    assert.deepEqual(held([...thoughts, { content: 'so' }, signed], options), [said, { ...whole, thinking: '' }]);
  });
});
