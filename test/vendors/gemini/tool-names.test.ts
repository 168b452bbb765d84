import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import {
  bodyText,
  callOf,
  collect,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { answer, events } from '../recorded/recorded-gemini.ts';

type Fields = Record<string, unknown>;

const builder = '21st_magic_component_builder';
const long = `9${'a'.repeat(63)}`;
const tools = [builder, '-dash', long, 'plain-name'].map((name) => ({ type: 'function', function: { name } }));

describe('names and schemas of tools that Gemini does not take, as those of some MCP servers', () => {
  let server: FixtureVendor;
  let vendor: Offering<'chat'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createGemini({ name: 'gemini', baseUrl: server.baseUrl, apiKey: 'AIzaSyTest0123456789abcdefghijklmno' });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const send = async (fields: object, stream = false) => {
    const request = JSON.stringify({ messages: [{ role: 'user', content: 'Go.' }], tools, ...fields });
    const sink = collect();
    const { body } = await vendor.chat(callOf({ model: 'gemini-3.8-flash', stream, request }), sink);
    return { sent: JSON.parse(server.requests.at(-1)?.body ?? '') as Fields, body: bodyText(body), sink };
  };

  it('a name that begins with a digit or a dash goes there behind an underscore, and every name fits', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    const call = { id: 'c', type: 'function', function: { name: builder, arguments: '{}' } };
    const messages = [
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: 'done' },
    ];
    const choice = { type: 'function', function: { name: builder } };
    const { sent } = await send({ messages, tool_choice: choice });
    const declared = (sent.tools as { functionDeclarations: { name: string }[] }[])[0]?.functionDeclarations ?? [];
    const names = declared.map(({ name }) => name);
    assert.deepEqual([names[0], names[1], names[3]], [`_${builder}`, '_-dash', 'plain-name']);
    for (const name of names) assert.match(name, /^[a-zA-Z_][\w.:-]{0,63}$/);
    assert.equal(new Set(names).size, names.length);
    const { functionCallingConfig: config } = sent.toolConfig as Fields & { functionCallingConfig: Fields };
    assert.deepEqual(config.allowedFunctionNames, [`_${builder}`]);
    assert.equal(JSON.stringify(sent.contents).split(`"name":"_${builder}"`).length - 1, 2);
    const allowed = { mode: 'auto', tools: [choice] };
    const other = await send({ tool_choice: { type: 'allowed_tools', allowed_tools: allowed } });
    assert.match(JSON.stringify(other.sent.toolConfig), /"_21st_magic_component_builder"/);
  });

  it("names that differ by underscores before a digit or a dash stay apart, and are their callers' again", async () => {
    const names = ['21st', '_21st', '__21st', '-x', '_-x', '_x', '__'];
    const given = names.map((name) => ({ type: 'function', function: { name } }));
    const becomes = ['_21st', '__21st', '___21st', '_-x', '__-x', '_x', '__'];
    const parts = becomes.map((name) => ({ functionCall: { name, args: {} } }));
    const calling = { ...answer, candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] };
    server.answer((response) => sendJson(response, 200, JSON.stringify(calling)));
    const { sent, body } = await send({ tools: given });
    assert.deepEqual((sent.tools as object[])[0], { functionDeclarations: becomes.map((name) => ({ name })) });
    const calls = JSON.parse(body).choices[0].message.tool_calls as { function: Fields }[];
    assert.deepEqual(
      calls.map((call) => call.function.name),
      names,
    );
  });

  it('a reference in a schema stands alone there, as Gemini takes it, in tools and in the format of an answer', async () => {
    server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    const $defs = { place: { type: 'object', properties: { city: { type: 'string' } } } };
    const parameters = { properties: { at: { $ref: '#/$defs/place', title: 'At' } }, $defs };
    const json_schema = { name: 'a', description: 'It.', schema: { $ref: '#/$defs/place', $defs } };
    const given = [{ type: 'function', function: { name: 'f', parameters } }];
    const { sent } = await send({ tools: given, response_format: { type: 'json_schema', json_schema } });
    const [{ functionDeclarations: [declared] = [] } = {}] = sent.tools as { functionDeclarations?: Fields[] }[];
    const at = { ...$defs.place, title: 'At' };
    assert.deepEqual(declared?.parametersJsonSchema, { type: 'object', properties: { at }, $defs });
    const { responseJsonSchema: schema } = sent.generationConfig as Fields;
    assert.deepEqual(schema, { ...$defs.place, description: 'It.', $defs });
  });

  it('a call has the name that its caller knows, streamed and not', async () => {
    const parts = [`_${builder}`, 'plain-name', '_unknown'].map((name) => ({ functionCall: { name, args: {} } }));
    const calling = { ...answer, candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] };
    server.answer((response) => sendJson(response, 200, JSON.stringify(calling)));
    const held = await send({});
    const named = [builder, 'plain-name', '_unknown'];
    const namesIn = (calls: { function: Fields }[]) => calls.map((call) => call.function.name);
    assert.deepEqual(namesIn(JSON.parse(held.body).choices[0].message.tool_calls), named);
    server.answer((response) => sendStream(response, [events([calling] as never)]));
    const { sink } = await send({}, true);
    const deltas = sink.data() as { choices: { delta: { tool_calls?: { function: Fields }[] } }[] }[];
    assert.deepEqual(namesIn(deltas.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])), named);
  });
});
