import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toMessageRequest } from '../../../workers/vendors/anthropic/request.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

type Fields = Record<string, unknown>;

const signature = 'c2lnbmVkIGJ5IGFub3RoZXI=';
const thinking = { type: 'thinking', thinking: 'Which file?', signature };
const redacted = { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix' };
const callOfTool = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"id":9007199254740993}' } };
const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];

/** A tool loop that another model, or vendor, has begun. */
function loopOf(...thoughts: Fields[]): Fields[] {
  const thought = thoughts.length > 0 && { thinking_blocks: thoughts, thinking_offsets: thoughts.map(() => 0) };
  return [
    { role: 'user', content: 'Go.' },
    { role: 'assistant', content: null, ...thought, tool_calls: [callOfTool] },
    { role: 'tool', tool_call_id: 'call_1', content: 'done' },
  ];
}

const vendors = [
  { name: 'anthropic', model: 'claude-haiku-4-5', key: 'a-key', before: '' },
  {
    ...{ name: 'bedrock', model: 'anthropic.claude-haiku-4-5-20251001-v1:0', key: 'AKIAEXAMPLE:a-secret-key' },
    before: 'The model returned the following errors: ',
  },
];
const unreadable = 'messages.1.content.0: Invalid `signature` in `thinking` block';
const refusals = [
  unreadable,
  `${unreadable}. The block is bound to a different conversation.`,
  'messages.1.content.0: Invalid `data` in `redacted_thinking` block',
  'messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
];

/** What a vendor is sent that refuses these thoughts, and the error of the call. */
async function ask(
  { name, model, key, before }: (typeof vendors)[number],
  { messages, stream = false, message = unreadable, more = {} }: Fields & { messages: Fields[]; more?: Fields },
): Promise<{ sent: string[]; error: unknown }> {
  const server = await startFixtureVendor();
  const vendor = createVendor(name, vendorSettings(name, server.baseUrl, key), key);
  const told = `${before}${message}`;
  const isAnthropic = name === 'anthropic';
  const refusal = isAnthropic
    ? { type: 'error', error: { type: 'invalid_request_error', message: told } }
    : { message: told };
  const whole = isAnthropic
    ? { type: 'message', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage: {} }
    : { output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } }, stopReason: 'end_turn' };
  server.answer((response, { body }) => {
    const isRefused = /signature|"data"|redactedContent/.test(body) || server.requests.length > 2;
    sendJson(response, isRefused ? 400 : 200, JSON.stringify(isRefused ? refusal : whole));
  });
  const request = JSON.stringify({ messages, tools, ...more });
  const error = await vendor.chat?.(callOf({ model, stream: stream === true, request }), collect()).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await vendor.close();
  await server.close();
  return { sent: server.requests.map(({ body }) => body), error };
}

describe("thoughts of earlier turns that Claude's vendor refuses", () => {
  it('a conversation that another model has begun is sent once more without its thoughts, streamed and not', async () => {
    for (const vendor of vendors) {
      for (const stream of [false, true]) {
        for (const message of refusals) {
          const { sent, error } = await ask(vendor, { messages: loopOf(thinking, redacted), stream, message });
          assert.equal(error, undefined, `${vendor.name}: ${message}`);
          assert.equal(sent.length, 2);
          assert.ok(!/thinking|reasoningContent|"data"/.test(sent[1] ?? ''));
          // The call stays, its number exact.
          assert.match(sent[1] ?? '', /"id":9007199254740993\b/);
        }
      }
    }
  });

  it('another refusal, and one of a conversation without thoughts, is the answer', async () => {
    for (const vendor of vendors) {
      const other = await ask(vendor, { messages: loopOf(thinking), message: 'messages.1: too many blocks' });
      assert.equal(other.sent.length, 1);
      assert.equal((other.error as Fields).code, 'invalid_request_error');
      const plain = await ask(vendor, { messages: loopOf(), more: { stop: ['"signature"'] } });
      assert.equal(plain.sent.length, 1);
      assert.match(String(plain.error), /Invalid `signature`/);
    }
  });
});

describe('thinking with a budget in a tool loop that another model has begun', () => {
  const sentFor = (messages: Fields[], thinkingField: Fields): Fields => {
    const request = JSON.stringify({ messages, tools, thinking: thinkingField, max_tokens: 8000 });
    return JSON.parse(toMessageRequest({ model: 'claude-haiku-4-5', stream: false, request }));
  };
  const budget = { type: 'enabled', budget_tokens: 2048 };

  it('the budget is left out behind results of calls without a thought, which Anthropic refuses, and kept behind others', () => {
    assert.equal(sentFor(loopOf(), budget).thinking, undefined);
    assert.deepEqual(sentFor(loopOf(thinking), budget).thinking, budget);
    assert.deepEqual(
      sentFor([...loopOf(), { role: 'assistant', content: 'Done.' }, loopOf()[0] as Fields], budget).thinking,
      budget,
    );
    for (const other of [{ type: 'disabled' }, { type: 'adaptive' }]) {
      assert.deepEqual(sentFor(loopOf(), other).thinking, other);
    }
  });
});
