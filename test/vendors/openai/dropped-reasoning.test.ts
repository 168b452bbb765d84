import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { completion, errorBody } from '../recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;

const apiKey = 'a-key-of-some-length-0123456789';
const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
const calls = [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }];
const result = { role: 'tool', tool_call_id: 'call_1', content: 'done' };

/** The index of the first answer that the vendor refuses for want of its reasoning, by its own rule. */
function refusedAt(name: string, { messages, tools: given, thinking }: Fields): number {
  const refuses = name === 'deepseek' || name === 'moonshot';
  if (!refuses || (thinking as Fields | undefined)?.type === 'disabled') return -1;
  const hasTools = Array.isArray(given) && given.length > 0;
  return (messages as Fields[]).findIndex(({ role, tool_calls: made, reasoning_content: reasoning }) => {
    const isNeeded = made !== undefined || (name === 'deepseek' && hasTools);
    return role === 'assistant' && isNeeded && !reasoning;
  });
}

/** What a vendor that thinks is sent. @throws ApiError when it refuses that */
async function sentTo(name: string, request: string, endpoint = 'chat', model = 'm'): Promise<Fields> {
  const server = await startFixtureVendor();
  const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
  server.answer((response, { body }) => {
    const at = refusedAt(name, JSON.parse(body));
    const message = `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${at}`;
    if (at >= 0) sendJson(response, 400, errorBody(message, null, 'invalid_request_error'));
    else sendJson(response, 200, JSON.stringify(completion));
  });
  const row = madeUpModel({ id: model, capability: 'chat', chat: { hints: true, effort: true } }, name);
  const call = callOf({ model, stream: false, request });
  try {
    await executeChat({ vendor, row, endpoint, keep: false, call, sink: collect() });
  } finally {
    await vendor.close();
    await server.close();
  }
  return JSON.parse(server.requests[0]?.body ?? '');
}

const turns = [
  { role: 'user', content: 'Go.' },
  { role: 'assistant', content: null, tool_calls: calls },
  result,
  { role: 'assistant', content: 'Done.' },
  { role: 'user', content: 'Once more.' },
  { role: 'assistant', content: null, tool_calls: calls, reasoning_content: '' },
  result,
  { role: 'assistant', content: 'Hm.', tool_calls: calls, reasoning_content: 'So it is.' },
  result,
];
const reasonings = (sent: Fields): unknown[] =>
  (sent.messages as Fields[]).filter(({ role }) => role === 'assistant').map((each) => each.reasoning_content);

describe('vendors that refuse answers without their reasoning', () => {
  it('a client that drops the reasoning of its calls goes on at DeepSeek and Moonshot, and what it kept stays', async () => {
    const request = JSON.stringify({ messages: turns, tools });
    assert.deepEqual(reasonings(await sentTo('moonshot', request)), ['.', undefined, '.', 'So it is.']);
    assert.deepEqual(reasonings(await sentTo('deepseek', request)), ['.', '.', '.', 'So it is.']);
  });

  it('answers without calls are sent as they are where there are no tools', async () => {
    const plain = [turns[0], turns[3], turns[4]];
    for (const name of ['deepseek', 'moonshot']) {
      for (const given of [undefined, []]) {
        const { messages } = await sentTo(name, JSON.stringify({ messages: plain, tools: given }));
        assert.deepEqual(messages, plain);
      }
      const { messages } = await sentTo(name, JSON.stringify({ messages: turns.slice(0, 5) }));
      assert.deepEqual(reasonings({ messages }), ['.', undefined]);
    }
  });

  it('other vendors get no reasoning that nobody has given', async () => {
    const request = JSON.stringify({ messages: turns.slice(0, 5), tools });
    for (const name of ['siliconflow', 'xai', 'openai']) {
      assert.deepEqual(reasonings(await sentTo(name, request)), [undefined, undefined]);
    }
  });

  it('a message whose thinking was not shown goes on after its call', async () => {
    for (const thinking of [undefined, { type: 'disabled' }]) {
      const messages = [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'done' }] },
      ];
      const declared = [{ name: 'f', input_schema: { type: 'object' } }];
      const body = { model: 'm', max_tokens: 100, messages, tools: declared, thinking };
      const request = textOf((await parseMessages(Buffer.from(JSON.stringify(body)))).request);
      for (const name of ['deepseek', 'moonshot']) {
        assert.deepEqual(reasonings(await sentTo(name, request, 'messages')), ['.']);
      }
      const { thinking: sent, reasoning_effort: effort } = await sentTo('deepseek', request, 'messages');
      assert.deepEqual([sent, effort], [thinking, undefined]);
    }
  });

  it('no effort is no thinking at DeepSeek, Moonshot, Zhipu and MiniMax, unless the caller says otherwise in its own field', async () => {
    const messages = [turns[0]];
    for (const [fields, expected] of [
      [{ reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
      [{ reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
      [{ reasoning_effort: 'none', thinking: { type: 'enabled' } }, { thinking: { type: 'enabled' } }],
      [{ thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }],
    ]) {
      const request = JSON.stringify({ messages, ...fields });
      for (const [name, model] of [
        ['deepseek', 'deepseek-flash'],
        ['moonshot', 'kimi-k2.6'],
        ['zhipu', 'glm-4.7'],
        ['zhipu', 'glm-5-turbo'],
        ['minimax', 'MiniMax-M3'],
      ] as const) {
        const { model: _, messages: __, ...sent } = await sentTo(name, request, 'chat', model);
        assert.deepEqual(sent, expected, model);
      }
    }
    // Those that have the effort, or refuse to be without thinking, are sent it.
    for (const [name, model] of [
      ['zhipu', 'glm-5.2'],
      ['moonshot', 'kimi-k2.7-code'],
      ['minimax', 'MiniMax-M2.7'],
    ] as const) {
      const { reasoning_effort: effort, thinking } = await sentTo(
        name,
        JSON.stringify({ messages, reasoning_effort: 'none' }),
        'chat',
        model,
      );
      assert.deepEqual([effort, thinking], ['none', undefined], model);
    }
  });

  it('a model that refuses to be without thinking thinks as little as it can, streamed and not', async () => {
    for (const [name, model, message] of [
      ['zhipu', 'glm-5.3', '该模型始终思考，不支持关闭思考；请使用 low、high 或 max。'],
      ['zhipu', 'glm-5', '该模型始终思考，不支持关闭思考；请使用 low、high 或 max。'],
      ['moonshot', 'kimi-k2.7-code', 'invalid thinking: only type=enabled is allowed for this model'],
    ] as const) {
      for (const stream of [false, true]) {
        const server = await startFixtureVendor();
        const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
        server.answer((response, { body }) => {
          const { thinking, reasoning_effort: effort } = JSON.parse(body);
          if (effort === 'none' || thinking !== undefined) sendJson(response, 400, errorBody(message, '1210', ''));
          else sendJson(response, 200, JSON.stringify(completion));
        });
        const ask = (fields: Fields): Promise<unknown> => {
          const request = JSON.stringify({ messages: [turns[0]], ...fields });
          return vendor.chat?.(callOf({ model, stream, request }), collect()) ?? assert.fail();
        };
        await ask({ reasoning_effort: 'none' });
        assert.equal(JSON.parse(server.requests[1]?.body ?? '').reasoning_effort, 'low', model);
        // The caller's own word for it is left to the vendor.
        await assert.rejects(ask({ thinking: { type: 'disabled' } }), { code: 'invalid_request_error' });
        assert.equal(server.requests.length, 3);
        await vendor.close();
        await server.close();
      }
    }
  });

  it('no effort is no thinking by the switch of DashScope and SiliconFlow, in chats and messages', async () => {
    const body = { model: 'm', max_tokens: 100, messages: [turns[0]], thinking: { type: 'disabled' } };
    const message = textOf((await parseMessages(Buffer.from(JSON.stringify(body)))).request);
    for (const name of ['dashscope', 'siliconflow']) {
      for (const [fields, expected] of [
        [{ reasoning_effort: 'none' }, { enable_thinking: false }],
        [{ reasoning_effort: 'none', enable_thinking: true }, { enable_thinking: true }],
        [{ reasoning_effort: 'low' }, { reasoning_effort: 'low' }],
        [{}, {}],
      ]) {
        const request = JSON.stringify({ messages: [turns[0]], ...fields });
        const { model: _, messages: __, ...sent } = await sentTo(name, request, 'chat', 'qwen3.8-max');
        assert.deepEqual(sent, expected, name);
      }
      const sent = await sentTo(name, message, 'messages', 'qwen3.8-max');
      assert.deepEqual([sent.enable_thinking, sent.reasoning_effort, sent.thinking], [false, undefined, undefined]);
    }
  });

  it('a model that has not the switch is left to itself, streamed and not', async () => {
    for (const [name, message] of [
      ['dashscope', 'The value of the enable_thinking parameter is restricted to True.'],
      ['siliconflow', 'Value error, current model does not support parameter `enable_thinking`.'],
    ] as const) {
      for (const stream of [false, true]) {
        const server = await startFixtureVendor();
        const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
        server.answer((response, { body }) => {
          if (body.includes('enable_thinking')) sendJson(response, 400, errorBody(message, null, ''));
          else sendJson(response, 200, JSON.stringify(completion));
        });
        const ask = (fields: Fields): Promise<unknown> => {
          const request = JSON.stringify({ messages: [turns[0]], ...fields });
          return vendor.chat?.(callOf({ model: 'qwq-32b', stream, request }), collect()) ?? assert.fail();
        };
        await ask({ reasoning_effort: 'none' });
        assert.doesNotMatch(server.requests[1]?.body ?? '', /enable_thinking|reasoning_effort/);
        // The caller's own word for it is left to the vendor.
        await assert.rejects(ask({ enable_thinking: false }), { code: 'invalid_request_error' });
        assert.equal(server.requests.length, 3);
        await vendor.close();
        await server.close();
      }
    }
  });

  it('a vendor that refuses both to be told not to think and not to be told is asked a few times, not until the deadline', async () => {
    const [off, on] = [
      errorBody('The value of the enable_thinking parameter is restricted to True.', null, ''),
      errorBody('Function tools with reasoning_effort are not supported', null, '', 'reasoning_effort'),
    ];
    for (const stream of [false, true]) {
      const server = await startFixtureVendor();
      const vendor = createVendor('dashscope', vendorSettings('dashscope', server.baseUrl, apiKey), apiKey);
      server.answer((response, { body }) => {
        if (server.requests.length > 50) sendJson(response, 500, '{}');
        else sendJson(response, 400, body.includes('enable_thinking') ? off : on);
      });
      const request = JSON.stringify({ messages: [turns[0]], reasoning_effort: 'none' });
      await assert.rejects(vendor.chat?.(callOf({ stream, request }), collect()) ?? assert.fail(), {
        code: 'invalid_request_error',
      });
      assert.equal(server.requests.length, 6);
      await vendor.close();
      await server.close();
    }
  });
});
