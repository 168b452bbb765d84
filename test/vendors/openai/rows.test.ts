import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { chatFieldSupport, supportOf } from '../../../shared/vendors/field-support.ts';
import { type VendorRow, vendorRows } from '../../../shared/vendors/vendors.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { describeChatVendor } from '../contracts/chat-vendor-contract.ts';
import { callOf, collect, type FixtureVendor, sendStream, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { reasoned, rowAnswer, rowStream } from '../contracts/row-vendor.ts';
import { chunk, completion, events, frameOf, streams, usage } from '../recorded/recorded-openai.ts';

const apiKey = 'sk-test-0123456789abcdef';
const rows = vendorRows.filter(({ dialect }) => dialect === 'openai');
const { 'reasoning content': _own, ...recorded } = streams;

const create = (row: VendorRow, baseUrl: string): Offering<'chat'> => {
  const vendor = createVendor(row.name, vendorSettings(row.name, baseUrl, apiKey), apiKey);
  assert.ok(vendor.chat);
  return vendor as Offering<'chat'>;
};

/** A row's adapter, and a vendor that refuses all that the row says it does not know. */
async function open(row: VendorRow): Promise<{ server: FixtureVendor; vendor: Offering<'chat'> }> {
  const server = await startFixtureVendor();
  return { server, vendor: create(row, server.baseUrl) };
}

for (const row of rows) {
  const { sent, expected, whole } = reasoned(row);
  const finish = chunk([{ delta: {}, finish_reason: 'stop' }]);
  const toChunks = (deltas: typeof sent) => [...deltas.map((delta) => chunk([{ delta }])), finish];
  const held = { index: 0, message: { ...whole.expected, refusal: null }, logprobs: null, finish_reason: 'stop' };
  const arranged = Object.entries(recorded).map(([name, chunks]) => {
    return [name, { send: rowStream(row, chunks), data: chunks.map(frameOf), usage }] as const;
  });
  describeChatVendor(`the row ${row.name}`, {
    create: (baseUrl) => create(row, baseUrl),
    streams: {
      ...Object.fromEntries(arranged),
      reasoning: { send: rowStream(row, toChunks(sent)), data: toChunks(expected).map(frameOf), usage },
    },
    held: { send: rowAnswer(row, whole.sent), body: { ...frameOf(completion), usage, choices: [held] }, usage },
    sendBroken: (response) => sendStream(response, [events(toChunks(sent).slice(0, 1), '')]),
  });
}

/** Every field of a chat with a value that asks for something, and with one that asks for nothing where it has such. */
const fields: readonly (readonly [field: string, value: unknown, byDefault?: unknown])[] = [
  ['temperature', 0.5, 1],
  ['top_p', 0.5, 1],
  ['n', 2, 1],
  ['stop', ['END']],
  ['seed', 7],
  ['user', 'a-user'],
  ['logit_bias', { 50256: -100 }, {}],
  ['presence_penalty', 0.5, 0],
  ['frequency_penalty', 0.5, 0],
  ['logprobs', true, false],
  ['top_logprobs', 2, 0],
  ['max_tokens', 64],
  ['max_completion_tokens', 64],
  ['tools', [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }], []],
  ['tool_choice', 'required', 'auto'],
  ['parallel_tool_calls', false, true],
  ['functions', [{ name: 'f', parameters: { type: 'object' } }]],
  ['function_call', 'none', 'auto'],
  ['response_format.json_object', { type: 'json_object' }, { type: 'text' }],
  ['response_format.json_schema', { type: 'json_schema', json_schema: { name: 'o', schema: {} } }],
  ['modalities', ['text', 'audio'], ['text']],
  ['audio', { voice: 'alloy', format: 'wav' }],
  ['prediction', { type: 'content', content: 'Hello' }],
  ['reasoning_effort', 'low'],
  ['verbosity', 'low'],
  ['service_tier', 'flex', 'auto'],
  ['store', true, false],
  ['metadata', { a: 'b' }, {}],
  ['safety_identifier', 'an-identifier'],
  ['prompt_cache_key', 'a-key'],
  ['prompt_cache_retention', '24h'],
  ['prompt_cache_options', { ttl: '1h' }],
  ['moderation', { model: 'omni-moderation-latest' }],
  ['web_search_options', { search_context_size: 'low' }],
  ['nobody_knows_it', { of: 1.5 }],
];

describe('vendor rows of the OpenAI dialect', () => {
  it('no vendor, of any dialect, that takes tools refuses or passes over a wish for one call at a time', () => {
    const without = vendorRows.filter((row) => {
      const support = chatFieldSupport(row) ?? {};
      const [tools, oneCall] = [supportOf(support, 'tools'), supportOf(support, 'parallel_tool_calls')];
      return tools !== 'rejected' && oneCall !== 'native' && oneCall !== 'translated';
    });
    assert.deepEqual(
      without.map(({ name }) => name),
      [],
    );
  });

  for (const row of rows) {
    const table = chatFieldSupport(row) ?? {};
    let server: FixtureVendor;
    let vendor: Offering<'chat'>;
    before(async () => {
      ({ server, vendor } = await open(row));
    });
    after(async () => {
      await vendor.close();
      await server.close();
    });
    const send = async (more: Record<string, unknown>, messages: object[] = [{ role: 'user', content: 'Hi' }]) => {
      server.answer(rowAnswer(row, { role: 'assistant', content: 'Hello.' }));
      const request = JSON.stringify({ messages, ...more });
      await vendor.chat(callOf({ model: 'm', stream: false, request }), collect());
      return JSON.parse(server.requests.at(-1)?.body ?? '') as Record<string, unknown>;
    };

    for (const [field, value, byDefault] of fields) {
      const [name = field] = field.split('.');
      const support = supportOf(table, field);
      it(`${row.name}: the chat field ${field} is ${support}`, async () => {
        const { messages, ...plain } = await send({});
        assert.ok(messages);
        if (support === 'rejected') {
          const asked = server.requests.length;
          await assert.rejects(send({ [name]: value }), { name: 'ApiError', status: 400, param: name });
          assert.equal(server.requests.length, asked);
        } else {
          const { messages: _messages, ...got } = await send({ [name]: value });
          const theirs = row.chat?.renamed?.[field] ?? name;
          // What no field of the vendor's asks for is done to its answers, or not at all.
          const isSent = support === 'native' || theirs !== name;
          assert.deepEqual(got, isSent ? { ...plain, [theirs]: value } : plain);
        }
        if (byDefault !== undefined) await send({ [name]: byDefault });
      });
    }

    it(`${row.name}: developer messages and reasoning of earlier messages are sent in the vendor's own form`, async () => {
      const { messages } = await send({}, [
        { role: 'developer', content: 'Be brief.' },
        { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' },
      ]);
      const role = row.chat?.developerRole === false ? 'system' : 'developer';
      const thoughts = {
        reasoning: { content: 'Yes.', reasoning: 'Hm.' },
        thinking_parts: {
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
            { type: 'text', text: 'Yes.' },
          ],
        },
        none: { content: 'Yes.', reasoning_content: 'Hm.' },
      }[row.chat?.reasoning ?? 'none'];
      assert.deepEqual(messages, [
        { role, content: 'Be brief.' },
        { role: 'assistant', ...thoughts },
      ]);
    });

    it(`${row.name}: the caller's stream options are sent when the vendor supports them`, async () => {
      server.answer(rowStream(row, streams['plain text'] ?? []));
      const request = '{"stream_options":{"include_usage":true,"include_obfuscation":false},"messages":[]}';
      const end = await vendor.chat(callOf({ request }), collect());
      const { stream_options: options } = JSON.parse(server.requests.at(-1)?.body ?? '');
      const knows = row.chat?.streamOptions !== false;
      assert.deepEqual(options, knows ? { include_usage: true, include_obfuscation: false } : undefined);
      assert.deepEqual(end.usage, usage);
    });

    it(`${row.name}: the vendor offers the methods of its row`, () => {
      const { name, close, checkKey, ...methods } = vendor;
      assert.equal(name, row.name);
      assert.ok(close);
      assert.equal(checkKey !== undefined, row.keyCheck !== false);
      assert.deepEqual(Object.keys(methods).sort(), [...(row.offers ?? [])].sort());
    });
  }
});

it('vendors and servers that know no role developer, or whose templates pass over it, get those messages as system', () => {
  const known = vendorRows.filter(({ chat }) => chat?.developerRole === false).map(({ name }) => name);
  for (const name of [
    'dashscope',
    'moonshot',
    'zhipu',
    'minimax',
    'siliconflow',
    'nvidia',
    'ollama',
    'vllm',
    'lm-studio',
  ]) {
    assert.ok(known.includes(name), name);
  }
});

it("LM Studio's reasoning, which it says in a field of its own for gpt-oss, reaches the caller as others' does", async () => {
  const studio = vendorRows.find(({ name }) => name === 'lm-studio');
  assert.ok(studio);
  const { server, vendor } = await open(studio);
  server.answer(rowAnswer(studio, { role: 'assistant', content: 'Hello.', reasoning: 'They greet.' }));
  const request = '{"messages":[{"role":"user","content":"Hi"}]}';
  const { body } = await vendor.chat(callOf({ model: 'm', stream: false, request }), collect());
  const [{ message }] = JSON.parse(body).choices;
  assert.deepEqual([message.reasoning_content, message.content], ['They greet.', 'Hello.']);
  await vendor.close();
  await server.close();
});

it('a request without any field that the vendor deviates in passes unread', async () => {
  const mistral = vendorRows.find(({ name }) => name === 'mistral');
  assert.ok(mistral);
  const { server, vendor } = await open(mistral);
  server.answer(rowAnswer(mistral, { role: 'assistant', content: 'Hello.' }));
  const request = '{ "messages": [{"role":"user","content":"say \\"seed\\": 7"}],  "temperature": 0.70 }';
  await vendor.chat(callOf({ model: 'm', stream: false, request }), collect());
  assert.equal(server.requests.at(-1)?.body, `{"model":"m",${request.slice(1)}`);
  await vendor.close();
  await server.close();
});

it("the row mistral: ids of another vendor's calls become ids that Mistral takes, its own stay", async () => {
  const mistral = vendorRows.find(({ name }) => name === 'mistral');
  assert.ok(mistral);
  const { server, vendor } = await open(mistral);
  server.answer(rowAnswer(mistral, { role: 'assistant', content: 'Hello.' }));
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const ids = ['call_PTLP8xhu3uwZk4l3nlnrrJha', 'toolu_01', 'D681PevKs', ''];
  const messages = [
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: null, tool_calls: ids.map(call) },
    ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'done' })),
  ];
  await vendor.chat(callOf({ stream: false, request: JSON.stringify({ messages }) }), collect());
  const sent = JSON.parse(server.requests.at(-1)?.body ?? '').messages;
  await vendor.close();
  await server.close();
  const [, { tool_calls: calls }, ...results] = sent as [unknown, { tool_calls: { id: string }[] }];
  const called = calls.map(({ id }) => id);
  for (const id of called) assert.match(id, /^[a-zA-Z0-9]{9}$/);
  assert.equal(new Set(called).size, ids.length);
  assert.equal(called[2], 'D681PevKs');
  assert.deepEqual(
    results.map((result) => (result as { tool_call_id: string }).tool_call_id),
    called,
  );
});

it('the row mistral: the names of authors, which it refuses, are left out, and those of functions stay', async () => {
  const mistral = vendorRows.find(({ name }) => name === 'mistral');
  assert.ok(mistral);
  assert.equal(supportOf(chatFieldSupport(mistral) ?? {}, 'messages.name'), 'ignored');
  const { server, vendor } = await open(mistral);
  server.answer(rowAnswer(mistral, { role: 'assistant', content: 'Hello.' }));
  const messages = [
    { role: 'developer', content: 'Be brief.', name: 'operator' },
    { role: 'user', content: 'Go.', name: 'Anna' },
    { role: 'tool', content: 'done', name: 'f', tool_call_id: 'D681PevKs' },
  ];
  await vendor.chat(callOf({ stream: false, request: JSON.stringify({ messages }) }), collect());
  await vendor.close();
  await server.close();
  assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? '').messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Go.' },
    { role: 'tool', content: 'done', name: 'f', tool_call_id: 'D681PevKs' },
  ]);
});

it('the row deepseek: content in parts, which it refuses, becomes one text, unless a part is no text', async () => {
  const deepseek = vendorRows.find(({ name }) => name === 'deepseek');
  assert.ok(deepseek);
  const { server, vendor } = await open(deepseek);
  server.answer(rowAnswer(deepseek, { role: 'assistant', content: 'Hello.' }));
  const text = (said: string) => ({ type: 'text', text: said, cache_control: { type: 'ephemeral' } });
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const messages = [
    { role: 'developer', content: [text('Be brief.'), text('Be kind.')] },
    { role: 'user', content: [text('Go.')] },
    { role: 'assistant', content: [text('I look.')], tool_calls: [call] },
    { role: 'tool', content: [text('done'), text('')], tool_call_id: 'call_1' },
    { role: 'user', content: [text('And this?'), image] },
  ];
  await vendor.chat(callOf({ stream: false, request: JSON.stringify({ messages }) }), collect());
  await vendor.close();
  await server.close();
  assert.deepEqual(JSON.parse(server.requests.at(-1)?.body ?? '').messages, [
    { role: 'system', content: 'Be brief.\nBe kind.' },
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: 'I look.', tool_calls: [call], reasoning_content: '.' },
    { role: 'tool', content: 'done\n', tool_call_id: 'call_1' },
    messages[4],
  ]);
});
