import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseChat } from '../../../api/endpoints/chat/parse-chat.ts';
import { parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { parseResponse } from '../../../api/endpoints/responses/parse-response.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { assertGrowsWithInput, type Kinds, listOf } from './growing-input.ts';

type Fields = Record<string, unknown>;

const user = { role: 'user', content: 'Go.' };
const text = { type: 'text', text: 'a' };
const pdf = { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' } };
const tool = (name: string, parameters: Fields = { type: 'object' }, more: Fields = {}): Fields => ({
  type: 'function',
  function: { name, parameters, ...more },
});
const call = (id: string, more: Fields = {}): Fields => ({
  ...{ id, type: 'function', function: { name: 'f g', arguments: '{}' } },
  ...more,
});
const result = (id: string): Fields => ({ role: 'tool', tool_call_id: id, content: 'a' });
const calls = (ids: readonly string[], more: Fields = {}): Fields => ({
  tools: [tool('f')],
  messages: [
    user,
    { role: 'assistant', content: null, tool_calls: ids.map((id) => call(id, more)) },
    ...ids.map(result),
  ],
});
const properties = (count: number): Fields => Object.fromEntries(listOf(count, (at) => [`p${at}`, { type: 'string' }]));
const names = (count: number): string[] => listOf(count, (at) => `p${count - at - 1}`);
const signed = { extra_content: { google: { thought_signature: 'a' } } };

const chats: Kinds<Fields> = {
  turns: (count) => ({ messages: listOf(count, (at) => ({ role: at % 2 ? 'assistant' : 'user', content: 'a' })) }),
  instructions: (count) => ({ messages: [user, ...listOf(count, () => ({ role: 'system', content: 'a' })), user] }),
  documents: (count) => ({ messages: [{ role: 'user', content: listOf(count, () => pdf) }] }),
  calls: (count) => calls(listOf(count, (at) => `c${at}`)),
  'signed calls': (count) =>
    calls(
      listOf(count, (at) => `c${at}`),
      signed,
    ),
  'calls of one id': (count) => calls(listOf(count, () => 'c')),
  'texts and thoughts': (count) => {
    const thinking = listOf(count, () => ({ type: 'redacted_thinking', data: 'Emw=' }));
    const said = { thinking_blocks: thinking, thinking_offsets: listOf(count, (at) => at) };
    return { messages: [user, { role: 'assistant', content: listOf(count, () => text), ...said }, user] };
  },
  'allowed tools': (count) => {
    const tools = listOf(count, (at) => tool(`${at}`));
    const allowed = { mode: 'auto', tools: listOf(count, () => tools.at(-1)) };
    return { messages: [user], tools, tool_choice: { type: 'allowed_tools', allowed_tools: allowed } };
  },
  'a strict schema': (count) => {
    const schema = { type: 'object', properties: properties(count), required: names(count) };
    return { messages: [user], tools: [tool('f', { ...schema, additionalProperties: false }, { strict: true })] };
  },
  'a union of two choices': (count) => {
    const choice = { properties: properties(count), required: names(count) };
    return { messages: [user], tools: [tool('f', { oneOf: [choice, choice] })] };
  },
  'a union of references': (count) => {
    const $defs = { a: { properties: properties(count), required: names(count) } };
    return { messages: [user], tools: [tool('f', { $defs, anyOf: listOf(count, () => ({ $ref: '#/$defs/a' })) })] };
  },
  references: (count) => {
    const $defs = { a: { type: 'object', description: 'a'.repeat(count) } };
    const all = listOf(count, () => ({ $ref: '#/$defs/a', title: 'a' }));
    return { messages: [user], tools: [tool('f', { $defs, properties: { all: { allOf: all } } })] };
  },
};

const thought = (at: number): Fields => ({
  type: 'thinking',
  thinking: 'a',
  signature: at % 2 ? 'Eqz' : 'google:1:ac1',
});
const toolUse = (at: number): Fields => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} });
const toolResult = (at: number): Fields => ({ type: 'tool_result', tool_use_id: `c${at}`, content: 'a' });

const messages: Kinds<Fields> = {
  blocks: (count) => ({ messages: [{ role: 'user', content: listOf(count, () => text) }] }),
  calls: (count) => ({
    messages: [
      user,
      { role: 'assistant', content: listOf(count, toolUse) },
      { role: 'user', content: listOf(count, toolResult) },
    ],
  }),
  thoughts: (count) => ({
    messages: [user, { role: 'assistant', content: listOf(count, thought).flatMap((each) => [each, text]) }, user],
  }),
  'tools of later': (count) => ({
    tools: listOf(count, (at) => ({ name: `f${at}`, input_schema: { type: 'object' }, defer_loading: true })),
    messages: [user, { role: 'assistant', content: listOf(count, (at) => ({ ...toolUse(at), name: `f${at}` })) }],
  }),
};

const functionCall = (at: number): Fields => ({ type: 'function_call', call_id: `c${at}`, name: 'f', arguments: '{}' });
const output = (at: number): Fields => ({ type: 'function_call_output', call_id: `c${at}`, output: 'a' });
const reasoning = (at: number): Fields => ({
  ...{ type: 'reasoning', summary: [] },
  encrypted_content: at % 2 ? 'anthropic:1:ab' : `google:1:ac${at}`,
});

const responses: Kinds<Fields> = {
  messages: (count) => ({ input: listOf(count, (at) => ({ role: at % 2 ? 'assistant' : 'user', content: 'a' })) }),
  calls: (count) => ({ input: [user, ...listOf(count, functionCall), ...listOf(count, output)] }),
  'calls in turns': (count) => ({ input: [user, ...listOf(count, functionCall).flatMap((c, at) => [c, output(at)])] }),
  thoughts: (count) => ({ input: [user, ...listOf(count, reasoning).flatMap((each, at) => [each, functionCall(at)])] }),
  // More are refused.
  tools: (count) => {
    const tools = listOf(Math.floor(count / 12), (at) => ({ type: 'function', name: `f${at}`, parameters: {} }));
    return { input: 'a', tools, tool_choice: { type: 'allowed_tools', mode: 'auto', tools } };
  },
};

const parsers = { chat: parseChat, messages: parseMessages, responses: parseResponse };
const bedrockKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';

describe('requests with very many of anything are translated in proportion to them', () => {
  for (const [name, model, apiKey = 'a-key-of-some-length-0123456789'] of [
    ['anthropic', 'claude-opus-4-5'],
    ['bedrock', 'us.anthropic.claude-opus-4-6-v1', bedrockKey],
    ['bedrock', 'us.amazon.nova-lite-v1:0', bedrockKey],
    ['gemini', 'gemini-3.8-flash'],
    ['mistral', 'mistral-large'],
    ['openrouter', 'google/gemini-3-pro'],
  ] as const) {
    it(`for ${model} at ${name}`, async () => {
      const server = await startFixtureVendor();
      const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
      server.answer((response) => sendJson(response, 400, '{"error":{"message":"as expected"}}'));
      const row = madeUpModel({ id: model, capability: 'chat', chat: { hints: true, effort: true } }, name);
      const ask = async (endpoint: keyof typeof parsers, fields: Fields): Promise<void> => {
        const body = JSON.stringify(fields);
        // What the api makes of it is the same for all vendors.
        const isRead = name === 'anthropic';
        const request = isRead ? textOf((await parsers[endpoint](Buffer.from(body))).request) : body;
        const call = callOf({ model, stream: false, request });
        const asking = executeChat({ vendor, row, endpoint, keep: false, call, sink: collect() });
        await assert.rejects(asking, { code: 'invalid_request_error' });
        const [sent] = server.requests.splice(0);
        assert.ok(sent === undefined || sent.body.length < 10 * body.length + 1_000_000, 'what is sent grows, too');
      };
      try {
        for (const [kind, make] of Object.entries(chats)) {
          await assertGrowsWithInput(`a chat of ${kind}`, (count) => ask('chat', { model, ...make(count) }));
        }
        if (name !== 'anthropic') return;
        const said = { model, max_tokens: 100 };
        for (const [kind, make] of Object.entries(messages)) {
          await assertGrowsWithInput(`a message of ${kind}`, (count) => ask('messages', { ...said, ...make(count) }));
        }
        for (const [kind, make] of Object.entries(responses)) {
          await assertGrowsWithInput(`a response of ${kind}`, (count) => ask('responses', { model, ...make(count) }));
        }
      } finally {
        await vendor.close();
        await server.close();
      }
    });
  }
});
