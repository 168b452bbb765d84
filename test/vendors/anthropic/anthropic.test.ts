import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import { callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { addUp, describeTranslatedChat, type HeldBody } from '../contracts/translated-chat-contract.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import {
  chatUsage,
  eventsOf,
  messageOf,
  recorded,
  text,
  thinking,
  toolUse,
  toWire,
} from '../recorded/recorded-anthropic.ts';

const apiKey = 'sk-ant-test-0123456789abcdef';

type Fields = Record<string, unknown>;

const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds';

const ends: Readonly<Record<string, Fields>> = {
  'tool calls in fragments': { finish_reason: 'tool_calls' },
  'redacted thinking, and thinking between calls': { finish_reason: 'tool_calls' },
  'an end at the token limit': { finish_reason: 'length' },
  'an end at the context window': { finish_reason: 'length', stop_reason: 'model_context_window_exceeded' },
  'an end at a stop sequence': { finish_reason: 'stop', stop_reason: 'three' },
  'an end by the safety classifiers': { finish_reason: 'content_filter' },
  'a refusal with its reason': {
    finish_reason: 'content_filter',
    stop_details: { type: 'refusal', category: 'cyber', explanation: 'That could do harm.' },
  },
  'a paused turn': { finish_reason: 'length' },
};

/** The deltas that the recordings have to become, written by hand, in pieces of five characters. */
const deltas: Readonly<Record<string, Fields[]>> = {
  'plain text': ['Hello', '! How', ' are ', 'you t', 'oday?'].map((content) => ({ content })),
  'multi-byte text with quotes and line breaks': [
    ...['Zażół', 'ć "gę', 'ślą" ', '🦥\n日本語', ' \\ 👩\u200d', '👩\u200d👧\u2028'].map((content) => ({ content })),
  ],
  'tool calls in fragments': [
    ...['Okay,', " let'", 's che', 'ck th', 'e wea', 'ther:'].map((content) => ({ content })),
    call(0, 'toolu_01T1x1fJ34qAmk2tNTrN7Up6', 'get_weather'),
    ...['{"loc', 'ation', '":"Sa', 'n Fra', 'ncisc', 'o, CA', '","un', 'it":"', 'fahre', 'nheit', '"}'].map((json) =>
      argumentsOf(0, json),
    ),
    call(1, 'toolu_01A09q90qw90lq917835lq9', 'get_time'),
    argumentsOf(1, '{}'),
  ],
  'thinking with its signature': [
    ...['I nee', 'd to ', 'find ', 'the G', 'CD of', ' 1071', ' and ', '462: ', '21.'].map((reasoning_content) => ({
      reasoning_content,
    })),
    { thinking_blocks: [thinking('I need to find the GCD of 1071 and 462: 21.', signature)] },
    ...['The g', 'reate', 'st co', 'mmon ', 'divis', 'or is', ' **21', '**.'].map((content) => ({ content })),
  ],
  'hidden thinking': [{ thinking_blocks: [thinking('', signature)] }, { content: '21' }],
  'redacted thinking, and thinking between calls': [
    { thinking_blocks: [{ type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw' }] },
    ...['First', ' the ', 'weath', 'er.'].map((reasoning_content) => ({ reasoning_content })),
    { thinking_blocks: [thinking('First the weather.', signature)] },
    call(0, 'toolu_1', 'get_weather'),
    ...['{"loc', 'ation', '":"Łó', 'dź"}'].map((json) => argumentsOf(0, json)),
  ],
  'an end at the token limit': [{ content: 'Once ' }, { content: 'upon' }],
  'an end at the context window': [{ content: 'Once ' }, { content: 'upon' }],
  'an end at a stop sequence': [{ content: 'One, ' }, { content: 'two, ' }],
  'an end by the safety classifiers': [{ content: 'Once' }],
  'a refusal with its reason': [{ reasoning_content: 'Hm.' }, { thinking_blocks: [thinking('Hm.', signature)] }],
  'a paused turn': [{ content: 'Searc' }, { content: 'hing' }],
  'an empty answer': [],
};

function call(index: number, id: string, name: string): Fields {
  return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] };
}
function argumentsOf(index: number, json: string): Fields {
  return { tool_calls: [{ index, function: { arguments: json } }] };
}

function isSilent(all: readonly Fields[] = []): boolean {
  return !all.some(({ content, tool_calls: calls }) => content !== undefined || calls !== undefined);
}

function framesOf(name: string): Fields[] {
  const all: [Fields, Fields][] = [
    ...(deltas[name] ?? []).map((delta): [Fields, Fields] => [delta, { finish_reason: null }]),
    // A message that neither says nor calls anything is an empty text: no history may hold one without content.
    [isSilent(deltas[name]) ? { content: '' } : {}, ends[name] ?? { finish_reason: 'stop' }],
  ];
  return all.map(([delta, end], at) => {
    const first = at === 0;
    const choices = [{ index: 0, delta: first ? { role: 'assistant', ...delta } : delta, ...end }];
    return first ? { choices, service_tier: 'default' } : { choices };
  });
}

const heldBody: HeldBody = {
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'It is cold.',
        refusal: null,
        reasoning_content: 'First the weather.',
        thinking_blocks: [{ type: 'redacted_thinking', data: 'Emw' }, thinking('First the weather.', signature)],
        tool_calls: [
          { id: 'toolu_1', type: 'function', function: { name: 'get_weather', arguments: '{"location":"Łódź"}' } },
          { id: 'toolu_2', type: 'function', function: { name: 'get_time', arguments: '{}' } },
        ],
      },
      finish_reason: 'tool_calls',
      logprobs: null,
    },
  ],
  usage: chatUsage,
  service_tier: 'default',
};
const heldMessage = messageOf(
  [
    { type: 'redacted_thinking', data: 'Emw' },
    thinking('First the weather.', signature),
    text('It is '),
    text('cold.'),
    toolUse('toolu_1', 'get_weather', { location: 'Łódź' }),
    toolUse('toolu_2', 'get_time', {}),
  ],
  'tool_use',
);

const create = (baseUrl: string) => createAnthropic({ name: 'anthropic', baseUrl, apiKey });

const said = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('"', '\\', '\n', '', '{"a":1}'));
const anyBlock = fc.oneof(
  said.map(text),
  fc.tuple(said, fc.string({ minLength: 1 })).map(([thought, signed]) => thinking(thought, signed)),
  said.map((data): Anthropic.RedactedThinkingBlock => ({ type: 'redacted_thinking', data })),
  fc
    .dictionary(fc.string(), fc.oneof(said, fc.nat(), fc.constant(null)), { noNullPrototype: true })
    .map((input) => toolUse('toolu_1', 'get_weather', input)),
);
const anyReason = fc.constantFrom<Anthropic.StopReason>('end_turn', 'max_tokens', 'tool_use', 'refusal');

describeTranslatedChat('Anthropic', {
  create,
  model: 'claude-opus-4-8',
  recorded,
  framesOf,
  held: heldMessage,
  heldBody,
  toJson: JSON.stringify,
  toEvents: (message, size) => eventsOf(message, size).map((event) => Buffer.from(toWire([event]))),
  contentType: 'text/event-stream; charset=utf-8',
  spellings: ['\r\n', '\r'].map((end) => (bytes) => Buffer.from(bytes.toString().replaceAll('\n', end))),
  answers: fc
    .tuple(fc.array(anyBlock, { maxLength: 6 }), anyReason)
    .map(([content, reason]) => messageOf(content, reason)),
});

describe('the Anthropic vendor', () => {
  const bench = new VendorBench(create);

  const stream = async (text: string) => {
    bench.server.answer((response) => sendStream(response, [text]));
    const sink = collect();
    return { end: await bench.vendor.chat(callOf(), sink), sink };
  };

  it('Anthropic chat reports no usage when only the first event of a stream counted the output', async () => {
    const events = eventsOf(recorded['plain text'] as Anthropic.Message).map((event) =>
      event.type === 'message_delta' ? { type: event.type, delta: event.delta } : event,
    );
    const { end } = await stream(toWire(events as Anthropic.MessageStreamEvent[]));
    assert.deepEqual([end.usage, end.body], [null, '{"usage":null}']);
  });

  it('Anthropic chat posts to /messages with the key and the API version', async () => {
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(heldMessage)));
    await bench.vendor.chat(callOf({ stream: false, model: 'claude-opus-4-8' }), collect());
    const { method, url, headers, body } = bench.server.requests.at(-1) ?? assert.fail();
    assert.deepEqual([method, url], ['POST', '/v1/messages']);
    assert.equal(headers['x-api-key'], apiKey);
    assert.equal(headers['anthropic-version'], '2023-06-01');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers.authorization, undefined);
    assert.deepEqual(JSON.parse(body), {
      model: 'claude-opus-4-8',
      max_tokens: 128_000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello!' }] }],
    });
    await stream(toWire(eventsOf(heldMessage)));
    assert.equal(JSON.parse(bench.server.requests.at(-1)?.body ?? '').stream, true);
  });

  it("Anthropic's own client reads the recordings as intended, held and streamed", async () => {
    const client = new Anthropic({ baseURL: bench.server.baseUrl.replace(/\/v1$/, ''), apiKey, maxRetries: 0 });
    const request = {
      model: 'claude-opus-4-8',
      max_tokens: 1024,
      messages: [{ role: 'user' as const, content: 'Hello!' }],
    };
    for (const message of [...Object.values(recorded), heldMessage]) {
      bench.server.answer((response) => sendJson(response, 200, JSON.stringify(message)));
      const held = await client.messages.create(request);
      assert.deepEqual({ ...held }, message);
      bench.server.answer((response) => sendStream(response, [toWire(eventsOf(message))]));
      const streamed = await client.messages.stream(request).finalMessage();
      const { usage: _usage, ...said } = message;
      const { usage, parsed_output: _parsed, ...heard } = streamed as Anthropic.Message & { parsed_output?: unknown };
      const content = heard.content.map((block) =>
        Object.fromEntries(Object.entries(block).filter(([name]) => name !== 'parsed_output')),
      );
      assert.deepEqual({ ...heard, content }, { ...said });
      assert.equal(usage.output_tokens, 300);
    }
  });

  it('Anthropic chat treats a stream without message_stop as complete once it has its stop reason', async () => {
    const message = recorded['plain text'] as Anthropic.Message;
    const { sink } = await stream(toWire(eventsOf(message).slice(0, -1)));
    assert.deepEqual(sink.data(), framesOf('plain text'));
    const unstopped = eventsOf(message).filter(({ type }) => type !== 'message_delta');
    await assert.rejects(stream(toWire(unstopped)), { code: 'stream_interrupted' });
    await assert.rejects(stream(toWire(eventsOf(message).slice(0, 1))), { code: 'server_error' });
  });

  it('Anthropic chat skips unknown events, blocks and deltas', async () => {
    const [start, ...rest] = eventsOf(recorded['plain text'] as Anthropic.Message);
    const odd = [
      { type: 'weather_report', sky: 'blue' },
      {
        type: 'content_block_start',
        index: 9,
        content_block: { type: 'server_tool_use', id: 'x', name: 'y', input: {} },
      },
      { type: 'content_block_delta', index: 9, delta: { type: 'input_json_delta', partial_json: '{}' } },
      { type: 'content_block_delta', index: 9, delta: { type: 'smell_delta', smell: 'of roses' } },
      { type: 'content_block_stop', index: 9 },
    ];
    const { sink } = await stream(toWire([start as { type: string }, ...odd, ...rest]));
    assert.deepEqual(sink.data(), framesOf('plain text'));
  });

  it('Anthropic chat emits a tool input that arrives complete at the start of its block', async () => {
    const input = { location: 'Łódź' };
    const events = eventsOf(messageOf([toolUse('toolu_1', 'get_weather', {})], 'tool_use')).map((event) =>
      event.type === 'content_block_start' ? { ...event, content_block: { ...event.content_block, input } } : event,
    );
    const { sink } = await stream(toWire(events));
    assert.deepEqual(addUp(sink.data()).tool_calls, [
      { id: 'toolu_1', type: 'function', function: { name: 'get_weather', arguments: JSON.stringify(input) } },
    ]);
  });

  it('Anthropic countTokens posts to /messages/count_tokens without the fields that are no input', async () => {
    bench.server.answer((response) => sendJson(response, 200, '{"input_tokens": 2095}'));
    const request = JSON.stringify({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello!' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
      reasoning_effort: 'low',
      max_tokens: 100,
      temperature: 1,
      user: 'u',
      stop: 'x',
    });
    const end = await bench.vendor.countTokens(callOf({ stream: false, model: 'claude-opus-5-5', request }), collect());
    assert.deepEqual(end, { body: '{"input_tokens":2095}', usage: null });
    const received = bench.server.requests.at(-1);
    assert.equal(received?.url, '/v1/messages/count_tokens');
    assert.deepEqual(JSON.parse(received?.body ?? ''), {
      model: 'claude-opus-5-5',
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello!' }] }],
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'low' },
    });
    const client = new Anthropic({ baseURL: bench.server.baseUrl.replace(/\/v1$/, ''), apiKey, maxRetries: 0 });
    assert.deepEqual(
      { ...(await client.messages.countTokens(JSON.parse(received?.body ?? ''))) },
      { input_tokens: 2095 },
    );
    assert.equal(bench.server.requests.at(-1)?.url, '/v1/messages/count_tokens');
    bench.server.answer((response) => sendJson(response, 200, '{"tokens": 1}'));
    await assert.rejects(bench.vendor.countTokens(callOf({ stream: false }), collect()), { code: 'server_error' });
  });

  it('Anthropic is told the betas that fields of a chat belong to, in chats and in counts of tokens', async () => {
    bench.server.answer((response, { url }) => {
      const body = url?.endsWith('/count_tokens') ? { input_tokens: 1 } : messageOf([text('Hi')]);
      sendJson(response, 200, JSON.stringify(body));
    });
    const betasOf = async (fields: object): Promise<unknown[]> => {
      const messages = [{ role: 'user', content: '"task_budget": "display":"updates"' }];
      const call = callOf({
        stream: false,
        model: 'claude-opus-5-5',
        request: JSON.stringify({ messages, ...fields }),
      });
      await bench.vendor.chat(call, collect());
      await bench.vendor.countTokens(call, collect());
      return bench.server.requests.slice(-2).map(({ headers }) => headers['anthropic-beta']);
    };
    const budget = { output_config: { task_budget: { type: 'tokens', total: 64_000 } } };
    const thinking = { type: 'adaptive', display: 'updates', block_binding: {} };
    const both = 'task-budgets-2026-03-13,thinking-display-updates-2026-08-18,thinking-binding-controls-2026-08-01';
    assert.deepEqual(await betasOf({ output_config: { effort: 'low' } }), [undefined, undefined]);
    assert.deepEqual(await betasOf(budget), ['task-budgets-2026-03-13', 'task-budgets-2026-03-13']);
    assert.deepEqual(await betasOf({ ...budget, thinking }), [both, both]);
  });
});
