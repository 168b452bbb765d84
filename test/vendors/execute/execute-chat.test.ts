import assert from 'node:assert/strict';
import { it } from 'node:test';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

const apiKey = 'a-key-of-some-length-0123456789';
const signed = [{ type: 'thinking', thinking: 'Hm.', signature: 'EqQ=' }];
const extra = { extra_content: { google: { thought_signature: 'CsUB' } } };
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
const turns = [
  { role: 'user', content: 'Go.' },
  {
    ...{
      role: 'assistant',
      content: 'I look.',
      reasoning_content: 'Hm.',
      thinking_blocks: signed,
      thinking_offsets: [3],
    },
    ...{ tool_calls: [{ ...call, ...extra }], ...extra },
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'done' },
];

/** The messages that a vendor is sent for a chat. @param hints whether the model takes fields that OpenAI lacks */
async function messagesAt(name: string, hints: boolean | undefined, messages: object[]): Promise<unknown> {
  const server = await startFixtureVendor();
  const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
  const message = { role: 'assistant', content: 'Hello.' };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const answer = { choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
  server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
  const row = madeUpModel(
    { id: 'm', capability: 'chat', ...(hints !== undefined && { chat: { hints, effort: true } }) },
    name,
  );
  const given = callOf({ model: 'm', stream: false, request: JSON.stringify({ messages }) });
  await executeChat({ vendor, row, endpoint: 'chat', keep: false, call: given, sink: collect() });
  await vendor.close();
  await server.close();
  return JSON.parse(server.requests[0]?.body ?? '').messages;
}

it("a chat that begins with one vendor goes on with another that refuses unknown fields, without the first one's thoughts", async () => {
  const plain = [turns[0], { role: 'assistant', content: 'I look.', tool_calls: [call] }, turns[2]];
  for (const [name, hints] of [
    ['openai', false],
    ['azure', undefined],
  ] as const) {
    assert.deepEqual(await messagesAt(name, hints, turns), plain);
    assert.deepEqual(await messagesAt(name, hints, plain as object[]), plain);
  }
  // Those that take them get them as they are.
  assert.deepEqual(await messagesAt('deepseek', undefined, turns), turns);
});
