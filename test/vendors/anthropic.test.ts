import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { createAnthropic } from '../../workers/vendors/anthropic.ts';
import type { Offering } from '../../workers/vendors/vendor.ts';
import { describeChatVendor } from './chat-vendor-contract.ts';
import {
  beginStream,
  callOf,
  collect,
  cut,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from './fixture-vendor.ts';
import { chatUsage, eventsOf, messageOf, recorded, text, thinking, toolUse, toWire } from './recorded-anthropic.ts';

const apiKey = 'sk-ant-test-0123456789abcdef';

type Fields = Record<string, unknown>;

const signature = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds';

const ends: Readonly<Record<string, Fields>> = {
  'tool calls in fragments': { finish_reason: 'tool_calls' },
  'redacted thinking, and thinking between calls': { finish_reason: 'tool_calls' },
  'an end at the most tokens': { finish_reason: 'length' },
  'an end at the context window': { finish_reason: 'length' },
  'an end at a stop sequence': { finish_reason: 'stop', stop_reason: 'three' },
  'an end by the safety classifiers': { finish_reason: 'content_filter' },
  'a paused turn': { finish_reason: 'length' },
};

/** The deltas that the recordings have to become, written by hand, in pieces of five characters. */
const deltas: Readonly<Record<string, Fields[]>> = {
  'plain text': ['Hello', '! How', ' are ', 'you t', 'oday?'].map((content) => ({ content })),
  'text of several bytes a character, quotes and line breaks': [
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
  'thinking that is not shown': [{ thinking_blocks: [thinking('', signature)] }, { content: '21' }],
  'redacted thinking, and thinking between calls': [
    { thinking_blocks: [{ type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw' }] },
    ...['First', ' the ', 'weath', 'er.'].map((reasoning_content) => ({ reasoning_content })),
    { thinking_blocks: [thinking('First the weather.', signature)] },
    call(0, 'toolu_1', 'get_weather'),
    ...['{"loc', 'ation', '":"Łó', 'dź"}'].map((json) => argumentsOf(0, json)),
  ],
  'an end at the most tokens': [{ content: 'Once ' }, { content: 'upon' }],
  'an end at the context window': [{ content: 'Once ' }, { content: 'upon' }],
  'an end at a stop sequence': [{ content: 'One, ' }, { content: 'two, ' }],
  'an end by the safety classifiers': [{ content: 'Once' }],
  'a paused turn': [{ content: 'Searc' }, { content: 'hing' }],
  'an answer of not a word': [],
};

function call(index: number, id: string, name: string): Fields {
  return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] };
}
function argumentsOf(index: number, json: string): Fields {
  return { tool_calls: [{ index, function: { arguments: json } }] };
}

function framesOf(name: string): Fields[] {
  const all: [Fields, Fields][] = [
    ...(deltas[name] ?? []).map((delta): [Fields, Fields] => [delta, { finish_reason: null }]),
    [{}, ends[name] ?? { finish_reason: 'stop' }],
  ];
  return all.map(([delta, end], at) => {
    const first = at === 0;
    const choices = [{ index: 0, delta: first ? { role: 'assistant', ...delta } : delta, ...end }];
    return first ? { choices, service_tier: 'default' } : { choices };
  });
}

const heldBody = {
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'It is cold.',
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

describeChatVendor('Anthropic', Object.keys(recorded), async () => {
  const server = await startFixtureVendor();
  const vendor = createAnthropic({ name: 'anthropic', baseUrl: server.baseUrl, apiKey });
  const arrangeStream = (part: string) => server.answer((response) => sendStream(response, [part]));
  const streams = Object.entries(recorded).map(([name, message]) => {
    const arrange = () => arrangeStream(toWire(eventsOf(message)));
    return [name, { arrange, data: framesOf(name), usage: chatUsage }] as const;
  });
  return {
    vendor,
    streams: Object.fromEntries(streams),
    held: {
      arrange: () => server.answer((response) => sendJson(response, 200, JSON.stringify(heldMessage))),
      body: heldBody,
      usage: chatUsage,
    },
    arrangeBreak: () => arrangeStream(toWire(eventsOf(recorded['plain text'] as Anthropic.Message).slice(0, 4))),
    arrangeNothing: () => {
      let resolve: (response: ServerResponse) => void = () => {};
      const asked = new Promise<ServerResponse>((settle) => {
        resolve = settle;
      });
      server.answer(resolve);
      return { asked, left: asked.then((response) => once(response, 'close')) };
    },
    close: async () => {
      await vendor.close();
      await server.close();
    },
  };
});

/** The message that the deltas of a stream add up to, as clients add them up. */
function addUp(frames: readonly unknown[]): Fields {
  const message: Fields = { content: null };
  const calls: { id?: string; type?: string; function: { name?: string; arguments: string } }[] = [];
  for (const frame of frames) {
    const [{ delta, finish_reason }] = (frame as { choices: [{ delta: Fields; finish_reason: unknown }] }).choices;
    for (const [name, value] of Object.entries(delta)) {
      if (name === 'tool_calls') {
        const [{ index, ...piece }] = value as [{ index: number } & (typeof calls)[number]];
        const before = calls[index];
        if (before) before.function.arguments += piece.function.arguments;
        else calls[index] = structuredClone(piece);
      } else if (Array.isArray(value)) {
        message[name] = [...((message[name] as unknown[]) ?? []), ...value];
      } else {
        message[name] = `${message[name] ?? ''}${value}`;
      }
    }
    message.finish_reason = finish_reason;
  }
  return { ...message, ...(calls.length > 0 && { tool_calls: calls }) };
}

describe('the Anthropic vendor', () => {
  let server: FixtureVendor;
  let vendor: Offering<'chat' | 'countTokens'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createAnthropic({ name: 'anthropic', baseUrl: server.baseUrl, apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const stream = async (...parts: (string | Uint8Array)[]) => {
    server.answer((response) => sendStream(response, parts));
    const sink = collect();
    return { end: await vendor.chat(callOf(), sink), sink };
  };

  it('posts to /messages with the key and the version of the API', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(heldMessage)));
    await vendor.chat(callOf({ stream: false, model: 'claude-opus-4-8' }), collect());
    const { method, url, headers, body } = server.requests.at(-1) ?? assert.fail();
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
    assert.equal(JSON.parse(server.requests.at(-1)?.body ?? '').stream, true);
  });

  it("its recordings are what Anthropic's own client reads, held and streamed", async () => {
    const client = new Anthropic({ baseURL: server.baseUrl.replace(/\/v1$/, ''), apiKey, maxRetries: 0 });
    const request = {
      model: 'claude-opus-4-8',
      max_tokens: 1024,
      messages: [{ role: 'user' as const, content: 'Hello!' }],
    };
    for (const message of [...Object.values(recorded), heldMessage]) {
      server.answer((response) => sendJson(response, 200, JSON.stringify(message)));
      const held = await client.messages.create(request);
      assert.deepEqual({ ...held }, message);
      server.answer((response) => sendStream(response, [toWire(eventsOf(message))]));
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

  it('yields the same frames however the bytes of an answer are cut', async () => {
    const names = fc.constantFrom(...Object.keys(recorded));
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
    const at = fc.array(fc.nat(), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(names, lineEnd, at, async (name, end, places) => {
        const bytes = Buffer.from(toWire(eventsOf(recorded[name] as Anthropic.Message)).replaceAll('\n', end));
        const { sink, end: answer } = await stream(...cut(bytes, places));
        assert.deepEqual(sink.data(), framesOf(name));
        assert.deepEqual(answer, { body: JSON.stringify({ usage: chatUsage }), usage: chatUsage });
      }),
      { numRuns: 150 },
    );
  });

  it('a stream adds up to what the held answer says, whatever the message', async () => {
    const said = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('"', '\\', '\n', '', '{"a":1}'));
    const block = fc.oneof(
      said.map(text),
      fc.tuple(said, fc.string({ minLength: 1 })).map(([thought, signed]) => thinking(thought, signed)),
      said.map((data): Anthropic.RedactedThinkingBlock => ({ type: 'redacted_thinking', data })),
      fc
        .dictionary(fc.string(), fc.oneof(said, fc.nat(), fc.constant(null)), { noNullPrototype: true })
        .map((input) => toolUse('toolu_1', 'get_weather', input)),
    );
    const reason = fc.constantFrom<Anthropic.StopReason>('end_turn', 'max_tokens', 'tool_use', 'refusal');
    await fc.assert(
      fc.asyncProperty(fc.array(block, { maxLength: 6 }), reason, fc.integer({ min: 1, max: 9 }), async (...drawn) => {
        const [content, stop, size] = drawn;
        const message = messageOf(content, stop);
        const { sink, end } = await stream(toWire(eventsOf(message, size)));
        server.answer((response) => sendJson(response, 200, JSON.stringify(message)));
        const held = await vendor.chat(callOf({ stream: false }), collect());
        const [{ index: _index, logprobs: _logprobs, message: whole, ...finish }] = JSON.parse(held.body).choices;
        const streamed = addUp(sink.data());
        // Text of no characters is no delta.
        assert.deepEqual(
          { ...streamed, content: streamed.content ?? '' },
          { ...whole, content: whole.content ?? '', ...finish },
        );
        assert.deepEqual(end.usage, held.usage);
      }),
      { numRuns: 150 },
    );
  });

  it('turns a whole message, sent in answer to a streamed request, into one frame', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(heldMessage)));
    const sink = collect();
    const end = await vendor.chat(callOf(), sink);
    const [{ logprobs: _logprobs, message, ...choice } = assert.fail()] = heldBody.choices;
    const { tool_calls: calls, ...said } = message;
    const delta = { ...said, tool_calls: calls.map((each, index) => ({ index, ...each })) };
    assert.deepEqual(sink.data(), [{ choices: [{ ...choice, delta }], service_tier: 'default' }]);
    assert.deepEqual(end, { body: JSON.stringify({ usage: chatUsage }), usage: chatUsage });
  });

  it('ends with message_stop, whatever the vendor may still send, and without waiting for it', async () => {
    let answered: ServerResponse | undefined;
    server.answer((response) => {
      answered = response;
      beginStream(response);
      response.write(`${toWire(eventsOf(heldMessage))}event: error\ndata: {"type":"error","error":{}}\n\n`);
    });
    const end = await vendor.chat(callOf(), collect());
    assert.deepEqual(end.usage, chatUsage);
    answered?.end();
  });

  it('takes an answer without message_stop for whole once it has its stop reason', async () => {
    const message = recorded['plain text'] as Anthropic.Message;
    const { sink } = await stream(toWire(eventsOf(message).slice(0, -1)));
    assert.deepEqual(sink.data(), framesOf('plain text'));
    const unstopped = eventsOf(message).filter(({ type }) => type !== 'message_delta');
    await assert.rejects(stream(toWire(unstopped)), { code: 'stream_interrupted' });
    await assert.rejects(stream(toWire(eventsOf(message).slice(0, 1))), { code: 'server_error' });
  });

  it('passes over events, blocks and deltas that nobody has heard of', async () => {
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

  it('tells the input of a call that comes whole with the beginning of its block', async () => {
    const input = { location: 'Łódź' };
    const events = eventsOf(messageOf([toolUse('toolu_1', 'get_weather', {})], 'tool_use')).map((event) =>
      event.type === 'content_block_start' ? { ...event, content_block: { ...event.content_block, input } } : event,
    );
    const { sink } = await stream(toWire(events));
    assert.deepEqual(addUp(sink.data()).tool_calls, [
      { id: 'toolu_1', type: 'function', function: { name: 'get_weather', arguments: JSON.stringify(input) } },
    ]);
  });

  it('answers a usage of null where the vendor counts nothing', async () => {
    const { usage: _usage, ...uncounted } = recorded['plain text'] as Anthropic.Message;
    server.answer((response) => sendJson(response, 200, JSON.stringify(uncounted)));
    assert.equal((await vendor.chat(callOf({ stream: false }), collect())).usage, null);
  });

  it('counts the tokens of a chat by /messages/count_tokens, without what is no input', async () => {
    server.answer((response) => sendJson(response, 200, '{"input_tokens": 2095}'));
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
    const end = await vendor.countTokens(callOf({ stream: false, model: 'claude-opus-5-5', request }), collect());
    assert.deepEqual(end, { body: '{"input_tokens":2095}', usage: null });
    const received = server.requests.at(-1);
    assert.equal(received?.url, '/v1/messages/count_tokens');
    assert.deepEqual(JSON.parse(received?.body ?? ''), {
      model: 'claude-opus-5-5',
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello!' }] }],
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'low' },
    });
    const client = new Anthropic({ baseURL: server.baseUrl.replace(/\/v1$/, ''), apiKey, maxRetries: 0 });
    assert.deepEqual(
      { ...(await client.messages.countTokens(JSON.parse(received?.body ?? ''))) },
      { input_tokens: 2095 },
    );
    assert.equal(server.requests.at(-1)?.url, '/v1/messages/count_tokens');
    server.answer((response) => sendJson(response, 200, '{"tokens": 1}'));
    await assert.rejects(vendor.countTokens(callOf({ stream: false }), collect()), { code: 'server_error' });
  });
});
