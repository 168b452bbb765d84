import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import * as anthropic from '../recorded/recorded-anthropic.ts';
import * as bedrock from '../recorded/recorded-bedrock.ts';
import * as gemini from '../recorded/recorded-gemini.ts';
import * as openAi from '../recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;

const apiKey = 'a-key-of-some-length-0123456789';
const noPrefill =
  'This model does not support assistant message prefill. The conversation must end with a user message.';
const needsThought =
  'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, ' +
  'a final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` blocks).';
const noModelTurn = 'Requests ending with a model turn are not supported unless the last part is a function response.';
const mistrals = 'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant';
const deepSeeks =
  'The last message of deepseek-reasoner must be a user message, or an assistant message with prefix mode on';

const thinkingLlama = 'Assistant response prefill is incompatible with enable_thinking.';
const llama = 'Cannot have 2 or more assistant messages at the end of the list.';

const asAnthropic = (message: string): string => anthropic.errorBody('invalid_request_error', message);
const asOpenAi = (message: string): string => openAi.errorBody(message, null, 'invalid_request_error');
const claude = JSON.stringify(anthropic.messageOf([anthropic.text('Hello!')]));
const converse = bedrock.toJson(bedrock.answerOf([bedrock.text('Hello!')]));
const geminis = JSON.stringify({ ...gemini.lastEvent([{ text: 'Hello!' }]) });
const chat = JSON.stringify(openAi.completion);

/** A vendor, its model, how it refuses a conversation that ends with an answer, and its answer to another one. */
const cases: readonly (readonly [vendor: string, model: string, refusal: string, answer: string])[] = [
  ['anthropic', 'claude-opus-4-8', asAnthropic(noPrefill), claude],
  ['anthropic', 'claude-sonnet-4-5', asAnthropic(needsThought), claude],
  ['bedrock', 'us.anthropic.claude-opus-4-8', bedrock.errorBody(noPrefill), converse],
  ['gemini', 'gemini-3.8-flash', gemini.errorBody(400, 'INVALID_ARGUMENT', noModelTurn), geminis],
  ['mistral', 'mistral-large-latest', asOpenAi(mistrals), chat],
  ['deepseek', 'deepseek-reasoner', asOpenAi(deepSeeks), chat],
  ['vllm', 'qwen-at-llama.cpp', asOpenAi(thinkingLlama), chat],
  ['vllm', 'gemma-at-llama.cpp', asOpenAi(llama), chat],
  ['openrouter', 'anthropic/claude-opus-4.8', asOpenAi(noPrefill), chat],
];

/** The roles of the turns that a vendor was sent. */
function rolesIn(body: string): unknown[] {
  const { messages, contents } = JSON.parse(body) as Record<string, { role: string }[] | undefined>;
  return (messages ?? contents ?? []).map(({ role }) => (role === 'model' ? 'assistant' : role));
}

/** What a vendor is sent for a chat, request by request, while it refuses those that end with an answer. */
async function sentFor(
  [name, model, refusal, answer]: (typeof cases)[number],
  messages: readonly Fields[],
  endpoint = 'chat',
): Promise<string[]> {
  const server = await startFixtureVendor();
  const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
  server.answer((response, { body }) => {
    const refuses = rolesIn(body).at(-1) === 'assistant';
    sendJson(response, refuses ? 400 : 200, refuses ? refusal : answer);
  });
  const row = madeUpModel({ id: model, capability: 'chat' }, name);
  const call = callOf({ model, stream: false, request: JSON.stringify({ messages }) });
  try {
    await executeChat({ vendor, row, endpoint, keep: false, call, sink: collect() });
  } catch (error) {
    assert.equal((error as { code?: unknown }).code, 'invalid_request_error', String(error));
  } finally {
    await vendor.close();
    await server.close();
  }
  return server.requests.map(({ body }) => body);
}

const turns = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: 'It is 21 degrees.' },
];

describe('a conversation that ends with an answer', () => {
  for (const each of cases) {
    const [name, model] = each;

    it(`is followed by a word of the user where ${model} at ${name} refuses it`, async () => {
      const sent = await sentFor(each, turns);
      assert.deepEqual(sent.map(rolesIn), [
        ['user', 'assistant'],
        ['user', 'assistant', 'user'],
      ]);
      assert.match(sent[1] ?? '', /"Continue\."/);
    });

    it(`stays refused by ${model} at ${name} where a message is to be continued`, async () => {
      assert.deepEqual((await sentFor(each, turns, 'messages')).map(rolesIn), [['user', 'assistant']]);
    });
  }

  it('ends with it also before instructions that the vendor takes from their position', async () => {
    const [claudes] = cases;
    assert.ok(claudes);
    const sent = await sentFor(claudes, [...turns, { role: 'system', content: 'This is the last step.' }]);
    assert.deepEqual(rolesIn(sent.at(-1) ?? '').slice(0, 3), ['user', 'assistant', 'user']);
  });

  it('stays refused where the caller asks to have it continued', async () => {
    const [, , , , mistral] = cases;
    assert.ok(mistral);
    const last = { role: 'assistant', content: '{"degrees":', prefix: true };
    assert.deepEqual((await sentFor(mistral, [...turns.slice(0, 1), last])).length, 1);
  });
});
