import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';
import {
  asInput,
  clockTool,
  finalResponse,
  functionCalls,
  onlyEvents,
  type ResponseParameters,
  ResponsesClient,
  responsesModel,
  weatherTool,
} from '../support/responses-client.ts';

let sandbox: RunningSandbox;
let client: ResponsesClient;
before(async () => {
  sandbox = await startSandbox();
  client = new ResponsesClient(sandbox.url);
});
after(() => sandbox.close());

describe('sandbox POST /v1/responses, tools', () => {
  it('sandbox responses call the tools that the text names: one, two in parallel, or one when parallel calls are off', async () => {
    const names = async (parameters: ResponseParameters) =>
      functionCalls(await client.create({ tools: [weatherTool, clockTool], ...parameters })).map(({ name }) => name);
    assert.deepEqual(await names({ input: 'How is the weather?' }), ['get_weather']);
    const both = 'Which weather at what time?';
    assert.deepEqual(await names({ input: both }), ['get_weather', 'get_time']);
    assert.deepEqual(await names({ input: both, parallel_tool_calls: false }), ['get_weather']);
    assert.deepEqual(await names({ input: both, tool_choice: 'none' }), []);
    assert.deepEqual(await names({ input: 'hello' }), []);
  });

  it('sandbox responses follow tool_choice: a named tool, one required tool, or only allowed tools', async () => {
    const first = async (tool_choice: ResponseParameters['tool_choice'], input = 'hello') => {
      const response = await client.create({
        input,
        tools: [weatherTool, clockTool],
        ...(tool_choice && { tool_choice }),
      });
      assert.deepEqual(response.tool_choice, tool_choice);
      return functionCalls(response).map((call) => [call.name, JSON.parse(call.arguments).zone]);
    };
    assert.deepEqual(await first({ type: 'function', name: 'get_time' }), [['get_time', 'UTC']]);
    assert.deepEqual(await first('required'), [['get_weather', undefined]]);
    const tools = [{ type: 'function', name: 'get_time' }];
    assert.deepEqual(await first({ type: 'allowed_tools', mode: 'required', tools }), [['get_time', 'UTC']]);
    const both = 'Which weather at what time?';
    assert.deepEqual(await first({ type: 'allowed_tools', mode: 'auto', tools }, both), [['get_time', 'UTC']]);
    const response = await client.create({ input: 'hello', tools: [weatherTool], tool_choice: 'required' });
    assert.match(String(functionCalls(response)[0]?.id), /^fc_/);
    assert.match(String(functionCalls(response)[0]?.call_id), /^call_/);
    assert.ok(JSON.parse(String(functionCalls(response)[0]?.arguments)).days >= 2);
  });

  it('sandbox responses stream a call in deltas that add up to its arguments', async () => {
    const json = '{"city": "São Paulo", "days": 3}';
    const events = await client.streamed({
      input: `TOOL:get_weather ${json} TOOL:get_time`,
      tools: [weatherTool, clockTool],
    });
    const added = onlyEvents(events, 'response.output_item.added').map(({ item }) => item);
    const finished = onlyEvents(events, 'response.output_item.done').map(({ item }) => item);
    assert.deepEqual(finished, finalResponse(events).output);
    for (const [index, item] of finished.entries()) {
      assert.ok(item.type === 'function_call');
      assert.deepEqual(added[index], { ...item, arguments: '', status: 'in_progress' });
      const mine = (event: { item_id: string }) => event.item_id === item.id;
      const deltas = onlyEvents(events, 'response.function_call_arguments.delta').filter(mine);
      const [done] = onlyEvents(events, 'response.function_call_arguments.done').filter(mine);
      assert.equal(deltas.map(({ delta }) => delta).join(''), item.arguments);
      assert.deepEqual([done?.arguments, done?.name], [item.arguments, item.name]);
      assert.ok([...deltas, done].every((event) => event?.output_index === index));
    }
    assert.equal(finished[0]?.type === 'function_call' && finished[0].arguments, json);
  });

  it('sandbox responses call a function whose schema names no type with an object', async () => {
    const tools = [{ type: 'function' as const, name: 'get_time', parameters: {}, strict: false }];
    const [call] = functionCalls(await client.create({ input: 'What time is it?', tools }));
    assert.deepEqual(JSON.parse(String(call?.arguments)), {});
  });

  it('sandbox responses answer tool results with text that contains each', async () => {
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Which weather at what time?' }];
    const called = await client.create({ input, tools: [weatherTool, clockTool] });
    input.push(...asInput(called));
    const outputs = ['{"°": -3}', [{ type: 'input_text' as const, text: 'half past ten' }]];
    functionCalls(called).forEach(({ call_id }, index) => {
      input.push({ type: 'function_call_output', call_id, output: outputs[index] ?? '' });
    });
    const response = await client.create({ input, tools: [weatherTool, clockTool] });
    assert.match(response.output_text, /get_weather answered: \{"°": -3\}\n.*get_time answered: half past ten/);
    assert.deepEqual(functionCalls(response), []);
  });

  it('sandbox responses give a custom tool free text, matching its grammar when it has one, and accept its output', async () => {
    const pattern = { type: 'grammar', syntax: 'regex', definition: '[a-c]{3}-\\d\\d' } as const;
    const tools: OpenAI.Responses.Tool[] = [
      { type: 'custom', name: 'run_shell' },
      { type: 'custom', name: 'pick_code', format: pattern },
    ];
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'TOOL:run_shell ls -la "ö"' }];
    const events = await client.streamed({ input, tools });
    const [call] = finalResponse(events).output;
    assert.ok(call?.type === 'custom_tool_call');
    assert.equal(call.input, 'ls -la "ö"');
    const deltas = onlyEvents(events, 'response.custom_tool_call_input.delta').map(({ delta }) => delta);
    assert.equal(deltas.join(''), call.input);
    assert.equal(onlyEvents(events, 'response.custom_tool_call_input.done')[0]?.input, call.input);
    const chosen = await client.create({ input: 'hi', tools, tool_choice: { type: 'custom', name: 'pick_code' } });
    assert.ok(chosen.output[0]?.type === 'custom_tool_call');
    assert.match(chosen.output[0].input, /^[a-c]{3}-\d\d$/);
    input.push(call, { type: 'custom_tool_call_output', call_id: call.call_id, output: 'total 0' });
    assert.match((await client.create({ input, tools })).output_text, /run_shell answered: total 0/);
  });

  it('sandbox responses search the web only when tool_choice forces it, and use no other hosted tools', async () => {
    const tools: OpenAI.Responses.Tool[] = [
      { type: 'web_search_preview' },
      { type: 'code_interpreter', container: { type: 'auto' } },
      { type: 'file_search', vector_store_ids: ['vs_1'] },
    ];
    const types = (response: OpenAI.Responses.Response) => response.output.map(({ type }) => type);
    assert.deepEqual(types(await client.create({ input: 'search the web', tools })), ['message']);
    const events = await client.streamed({ input: 'otters', tools, tool_choice: { type: 'web_search_preview' } });
    const final = finalResponse(events);
    assert.deepEqual(types(final), ['web_search_call', 'message']);
    assert.deepEqual(
      events.map(({ type }) => type).filter((type) => type.includes('web_search')),
      ['in_progress', 'searching', 'completed'].map((state) => `response.web_search_call.${state}`),
    );
    const [search] = final.output;
    assert.ok(search?.type === 'web_search_call');
    assert.equal(search.status, 'completed');
    const again = await client.create({ input: [search, { role: 'user', content: 'Reply with exactly: ok' }] });
    assert.equal(again.output_text, 'ok');
  });
});

describe('sandbox POST /v1/responses, structured output', () => {
  const shape = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.enum(['a', 'b'])) });

  it('sandbox responses return an instance of the schema, which the official client parses', async () => {
    const text = { format: zodTextFormat(shape, 'person') };
    const parsed = await client.openai.responses.parse({ model: responsesModel, input: 'Who?', text });
    assert.ok(shape.safeParse(parsed.output_parsed).success);
    assert.equal(parsed.text?.format?.type, 'json_schema');
    const runner = client.openai.responses.stream({ model: responsesModel, input: 'Who?', text });
    assert.deepEqual((await runner.finalResponse()).output_parsed, parsed.output_parsed);
  });

  it('sandbox responses return arguments of a strict function that the official client parses', async () => {
    const tools = [zodResponsesFunction({ name: 'save_person', parameters: shape })];
    const { output } = await client.openai.responses.parse({ model: responsesModel, input: 'Save the person', tools });
    assert.ok(output[0]?.type === 'function_call');
    assert.ok(shape.safeParse(output[0].parsed_arguments).success);
  });

  it('sandbox responses return an object with the quoted keys for json_object', async () => {
    const response = await client.create({
      input: 'JSON with "city" and "country"',
      text: { format: { type: 'json_object' } },
    });
    assert.deepEqual(Object.keys(JSON.parse(response.output_text)), ['city', 'country']);
  });
});
