import assert from 'node:assert/strict';
import type { Expected } from './exchange.ts';

/* What a client makes of the gateway's answers, read from their JSON alone. */

type Fields = Record<string, unknown>;

/** An answer as a client has it in the end. */
export interface Told {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; input: string }[];
  finish: string | undefined;
  usage: readonly number[] | undefined;
  /** The code of the error that came, or ended an answer. */
  code: string | undefined;
}

const nothing = (): Told => ({
  text: '',
  reasoning: '',
  calls: [],
  finish: undefined,
  usage: undefined,
  code: undefined,
});

/** The data of the events of a stream. */
function dataOf(body: string): string[] {
  return body
    .split('\n\n')
    .map((event) => event.split('\n').find((line) => line.startsWith('data: ')))
    .flatMap((line) => (line === undefined ? [] : [line.slice('data: '.length)]));
}

const list = (value: unknown): Fields[] => (Array.isArray(value) ? value : []);
const object = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);

const finishes: readonly unknown[] = ['stop', 'length', 'tool_calls', 'content_filter'];

/** A chat completion, whose shape is what OpenAI's clients take for granted. */
export function readCompletion(body: unknown): Told {
  const told = nothing();
  const { choices, usage, error } = object(body);
  if (error) return { ...told, code: text(object(error).code) };
  const [choice = {}] = list(choices);
  const message = object(choice.message);
  assert.equal(choice.index, 0);
  assert.equal(message.role, 'assistant');
  assert.ok(typeof message.content === 'string' || message.content === null, 'content is a text or null');
  assert.ok(finishes.includes(choice.finish_reason), String(choice.finish_reason));
  told.text = text(message.content) + text(message.refusal);
  told.reasoning = text(message.reasoning_content);
  for (const call of list(message.tool_calls)) {
    assert.equal(call.type, 'function');
    const { name, arguments: input } = object(call.function);
    told.calls.push({ id: text(call.id), name: text(name), input: text(input) });
  }
  told.finish = text(choice.finish_reason);
  told.usage = chatUsage(usage);
  return told;
}

function chatUsage(usage: unknown): readonly number[] | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined;
  const { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: details } = usage as Fields;
  const { cached_tokens: cached, cache_write_tokens: written } = object(details);
  return [number(input), number(output), number(cached), number(written)];
}

/** The chunks of one, whose shape is what OpenAI's clients take for granted. */
export function readChunks(body: string): Told {
  const told = nothing();
  const events = dataOf(body);
  const chunks = events.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data) as Fields);
  let isFirst = true;
  for (const { id, object: kind, choices, usage, error } of chunks) {
    if (error) {
      told.code = text(object(error).code);
      assert.equal(events.at(-1) === '[DONE]', false, 'an error ends the stream');
      return told;
    }
    assert.match(text(id), /^chatcmpl-/);
    assert.equal(kind, 'chat.completion.chunk');
    if (usage) told.usage = chatUsage(usage);
    for (const choice of list(choices)) {
      const delta = object(choice.delta);
      assert.equal(choice.index, 0);
      if (isFirst) assert.equal(delta.role, 'assistant');
      isFirst = false;
      addDelta(told, delta);
      if (choice.finish_reason) told.finish = text(choice.finish_reason);
    }
  }
  assert.equal(events.at(-1), '[DONE]');
  assert.ok(finishes.includes(told.finish), told.finish);
  return told;
}

function addDelta(told: Told, delta: Fields): void {
  told.text += text(delta.content) + text(delta.refusal);
  told.reasoning += text(delta.reasoning_content);
  for (const piece of list(delta.tool_calls)) {
    const { name, arguments: input } = object(piece.function);
    const index = piece.index as number;
    const known = told.calls[index];
    if (known === undefined) {
      assert.deepEqual([index, piece.type], [told.calls.length, 'function']);
      told.calls.push({ id: text(piece.id), name: text(name), input: text(input) });
    } else {
      assert.ok(piece.id === undefined || piece.id === known.id, 'an id stays');
      assert.ok(name === undefined || name === known.name, 'a name stays');
      known.input += text(input);
    }
  }
}

/** A response. */
export function readResponse(body: unknown): Told {
  const told = nothing();
  const { status, output, usage, error, incomplete_details: details } = object(body);
  if (error) told.code = text(object(error).code);
  for (const item of list(output)) {
    for (const part of list(item.content)) {
      if (item.type === 'reasoning') told.reasoning += text(part.text);
      else told.text += text(part.text) + text(part.refusal);
    }
    if (item.type !== 'function_call') continue;
    told.calls.push({ id: text(item.call_id), name: text(item.name), input: text(item.arguments) });
  }
  const reasons: Fields = { max_output_tokens: 'length', content_filter: 'content_filter' };
  const whole = told.calls.length > 0 ? 'tool_calls' : 'stop';
  told.finish = status === 'incomplete' ? text(reasons[text(object(details).reason)]) : whole;
  if (typeof usage === 'object' && usage !== null) {
    const { input_tokens: input, output_tokens: out, input_tokens_details: parts } = usage as Fields;
    const { cached_tokens: cached, cache_write_tokens: written } = object(parts);
    told.usage = [number(input), number(out), number(cached), number(written)];
  }
  return told;
}

/** A streamed response: the one that its last event holds, which its deltas have said already. */
export function readResponseEvents(body: string): Told {
  const events = dataOf(body)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data) as Fields);
  const said = (type: string): string => events.map((event) => (event.type === type ? text(event.delta) : '')).join('');
  const last = events.findLast((event) => event.response !== undefined);
  const failed = events.find((event) => event.type === 'error');
  const told = readResponse(object(last).response);
  // A response that fails in the middle has both, by which clients of either kind know.
  if (told.code !== undefined) assert.deepEqual([failed, last], events.slice(-2));
  else if (failed !== undefined) told.code = text(failed.code) || text(object(failed.error).code);
  const wholeText = said('response.output_text.delta') + said('response.refusal.delta');
  if (told.code !== undefined) return { ...told, text: wholeText };
  assert.equal(wholeText, told.text);
  const inputs = new Map<unknown, string>();
  for (const { type, item_id: item, delta } of events) {
    if (type === 'response.function_call_arguments.delta') inputs.set(item, (inputs.get(item) ?? '') + text(delta));
  }
  assert.deepEqual(told.calls.map(({ input }) => input).sort(), [...inputs.values()].sort());
  return told;
}

const messageStops: Fields = {
  ...{ end_turn: 'stop', max_tokens: 'length', tool_use: 'tool_calls', refusal: 'content_filter' },
  stop_sequence: 'stop',
};

/** A message of Anthropic's API. */
export function readMessage(body: unknown): Told {
  const told = nothing();
  const { type, error, content, stop_reason: stop, usage } = object(body);
  if (type === 'error') return { ...told, code: text(object(error).type) };
  for (const block of list(content)) {
    told.text += block.type === 'text' ? text(block.text) : '';
    told.reasoning += block.type === 'thinking' ? text(block.thinking) : '';
    if (block.type !== 'tool_use') continue;
    told.calls.push({ id: text(block.id), name: text(block.name), input: JSON.stringify(block.input) });
  }
  told.finish = text(messageStops[text(stop)]);
  const { input_tokens: rest, output_tokens: output, ...caches } = object(usage);
  const [cached, written] = [number(caches.cache_read_input_tokens), number(caches.cache_creation_input_tokens)];
  told.usage = [number(rest) + cached + written, number(output), cached, written];
  return told;
}

/** A streamed message, put together as Anthropic's clients do it. */
export function readMessageEvents(body: string): Told {
  const content: Fields[] = [];
  let message: Fields = {};
  for (const event of dataOf(body).map((data) => JSON.parse(data) as Fields)) {
    const block = content[event.index as number];
    const delta = object(event.delta);
    if (event.type === 'error')
      return { ...readMessage({ ...message, content }), code: text(object(event.error).type) };
    if (event.type === 'message_start') message = object(event.message);
    else if (event.type === 'content_block_start') content.push({ ...object(event.content_block), json: '' });
    else if (event.type === 'content_block_delta' && block !== undefined) {
      block.text = text(block.text) + text(delta.text);
      block.thinking = text(block.thinking) + text(delta.thinking);
      block.json = text(block.json) + text(delta.partial_json);
    } else if (event.type === 'content_block_stop' && block?.type === 'tool_use') {
      block.input = JSON.parse(text(block.json) || '{}');
    } else if (event.type === 'message_delta') {
      message = { ...message, ...delta, usage: { ...object(message.usage), ...object(event.usage) } };
    }
  }
  return readMessage({ ...message, content });
}

/** Checks what a client was told. @param hasUsage whether the answer tells the counts also where an error ended it */
export function assertTold(told: Told, expected: Expected): void {
  if (expected.code === undefined) assert.equal(told.code, undefined);
  const { calls = [], usage } = expected;
  assert.equal(told.text, expected.text ?? '');
  assert.equal(told.reasoning, expected.reasoning ?? '');
  assert.deepEqual(
    told.calls.map(({ id, name, input }, at) => [name, JSON.parse(input), calls[at]?.[2] === '*' && id ? '*' : id]),
    calls,
  );
  if (expected.finish !== undefined) assert.equal(told.finish, expected.finish);
  if (usage !== undefined) assert.deepEqual(told.usage, [...usage, 0, 0].slice(0, 4));
}
