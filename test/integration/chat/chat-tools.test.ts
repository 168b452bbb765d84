import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { held, streamed } from '../../support/chat-requests.ts';
import { saidInChunks, saidWhole } from '../../support/fold-chunks.ts';
import { TestGateway } from '../../support/gateway.ts';

type Tool = OpenAI.Chat.ChatCompletionFunctionTool;

const weather: Tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { enum: ['c', 'f'] } },
      required: ['city', 'unit'],
      additionalProperties: false,
    },
  },
};
const stocks: Tool = {
  type: 'function',
  function: {
    name: 'find_stock',
    parameters: { type: 'object', properties: { symbol: { type: 'string' } }, required: ['symbol'] },
  },
};
const tools = [weather, stocks];

describe('tools and structured output of chat completions', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start();
    client = gateway.client();
  });
  after(() => gateway.stop());

  async function calls(text: string, more: object = {}): Promise<{ id: string; name: string; arguments: string }[]> {
    const [choice] = saidWhole(await client.chat.completions.create(held(text, { tools, ...more })));
    assert.equal(choice?.finish, choice?.tools.length ? 'tool_calls' : 'stop');
    return choice?.tools ?? [];
  }

  it('a chat with tool_choice auto calls only the matching tool, with valid arguments', async () => {
    const [call, ...others] = await calls('How is the weather in Paris?');
    assert.equal(call?.name, 'get_weather');
    assert.deepEqual(others, []);
    const { city, unit } = JSON.parse(call?.arguments ?? '');
    assert.equal(typeof city, 'string');
    assert.ok(['c', 'f'].includes(unit));
    assert.deepEqual(await calls('Good morning'), []);
  });

  it('a chat obeys tool_choice none, required and a named tool', async () => {
    assert.deepEqual(await calls('How is the weather?', { tool_choice: 'none' }), []);
    assert.equal((await calls('Good morning', { tool_choice: 'required' })).length, 1);
    const named = { tool_choice: { type: 'function', function: { name: 'find_stock' } } };
    assert.deepEqual(
      (await calls('How is the weather?', named)).map(({ name }) => name),
      ['find_stock'],
    );
  });

  it('a chat calls two tools in parallel, unless parallel_tool_calls is false', async () => {
    const text = 'Tell me the weather and the stock';
    const both = await calls(text);
    assert.deepEqual(both.map(({ name }) => name).sort(), ['find_stock', 'get_weather']);
    assert.notEqual(both[0]?.id, both[1]?.id);
    assert.equal((await calls(text, { parallel_tool_calls: false })).length, 1);
  });

  it('the tool calls of a streamed chat equal the held ones, with arguments in pieces', async () => {
    const json = '{"city":"Zürich \\"x\\"","unit":"c"}';
    const chunks: OpenAI.Chat.ChatCompletionChunk[] = [];
    const request = streamed(`TOOL:get_weather ${json}`, { tools });
    for await (const chunk of await client.chat.completions.create(request)) chunks.push(chunk);
    const [said] = saidInChunks(chunks);
    assert.equal(said?.finish, 'tool_calls');
    assert.deepEqual(
      said?.tools.map(({ name, arguments: args }) => [name, args]),
      [['get_weather', json]],
    );
    assert.ok(chunks.filter(({ choices }) => choices[0]?.delta.tool_calls).length > 2, 'the arguments come in pieces');
  });

  it('the tool runner of the OpenAI client completes call, result and answer', async () => {
    const asked: unknown[] = [];
    const parameters = z.object({ city: z.string() });
    const runner = client.chat.completions.runTools({
      ...held('TOOL:look_up {"city":"Rome"}'),
      stream: true,
      tools: [
        zodFunction({
          name: 'look_up',
          parameters,
          function: (args) => {
            asked.push(args);
            return 'It rains in Rome.';
          },
        }),
      ],
    });
    assert.match((await runner.finalContent()) ?? '', /look_up answered: "?It rains in Rome\./);
    assert.deepEqual(asked, [{ city: 'Rome' }]);
  });

  it('a chat passes tool results to the model', async () => {
    const [call] = await calls('How is the weather?');
    const answer = await client.chat.completions.create({
      model: 'sandbox-chat',
      tools,
      messages: [
        { role: 'user', content: 'How is the weather?' },
        {
          role: 'assistant',
          tool_calls: [{ id: call?.id ?? '', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: call?.id ?? '', content: 'sunny, 21 °C' },
      ],
    });
    assert.equal(answer.choices[0]?.message.content, 'The tool get_weather answered: sunny, 21 °C');
  });

  it('a chat with response_format json_object returns an object with the quoted keys', async () => {
    const format = { response_format: { type: 'json_object' } };
    const object = await client.chat.completions.create(held('Give "city" and "country" as JSON', format));
    assert.deepEqual(Object.keys(JSON.parse(object.choices[0]?.message.content ?? '')), ['city', 'country']);
  });

  it('a chat with response_format json_schema returns a valid instance, held and streamed', async () => {
    const shape = z.object({
      name: z.string(),
      size: z.number().int().min(3),
      kind: z.enum(['a', 'b']),
      tags: z.array(z.object({ label: z.string() })),
      note: z.string().nullable(),
    });
    const response_format = zodResponseFormat(shape, 'thing');
    const parsed = await client.chat.completions.parse({ ...held('Make one'), response_format });
    assert.ok(shape.safeParse(parsed.choices[0]?.message.parsed).success);
    const runner = client.chat.completions.stream({ ...streamed('Make one'), response_format });
    const whole = await runner.finalChatCompletion();
    assert.deepEqual(whole.choices[0]?.message.parsed, parsed.choices[0]?.message.parsed);
  });

  it('a chat passes custom tools and legacy functions on', async () => {
    const custom = { tools: [{ type: 'custom', custom: { name: 'note_down' } }] };
    const answer = await client.chat.completions.create(held('TOOL:note_down buy milk', custom));
    const [call] = answer.choices[0]?.message.tool_calls ?? [];
    assert.deepEqual(call?.type === 'custom' && call.custom, { name: 'note_down', input: 'buy milk' });
    const legacy = { functions: [weather.function], function_call: { name: 'get_weather' } };
    const old = await client.chat.completions.create(held('How is it?', legacy));
    assert.equal(old.choices[0]?.message.function_call?.name, 'get_weather');
    assert.equal(old.choices[0]?.finish_reason, 'function_call');
  });
});
