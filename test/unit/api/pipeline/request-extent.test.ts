import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { chatCompletions } from '../../../../api/endpoints/chat/chat-completions.ts';
import { completions } from '../../../../api/endpoints/completions/completions.ts';
import { messages } from '../../../../api/endpoints/messages/messages.ts';
import { messagesCountTokens } from '../../../../api/endpoints/messages/messages-count-tokens.ts';
import { responses } from '../../../../api/endpoints/responses/responses.ts';
import type { Endpoint } from '../../../../api/pipeline/endpoint.ts';
import { readModelLimits } from '../../../../api/pipeline/request-extent.ts';
import type { RoutedModel } from '../../../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { madeUpModel, routedModel } from '../../../support/routed-model.ts';

const picture = 'data:image/png;base64,iVBORw0KGgo=';

/** A small model for text only. */
const small = madeUpModel({
  ...{ id: 'small', capability: 'chat', input: ['text'], output: ['text'] },
  ...{ contextWindow: 1000, maxOutputTokens: 100 },
});

/** The 400 that a request for a model gets, or undefined. */
function refusal(endpoint: Endpoint, body: object, model: RoutedModel) {
  const parsed = endpoint.parse?.(Buffer.from(JSON.stringify({ model: model.id, ...body })));
  assert(parsed);
  try {
    endpoint.check?.(parsed, model);
  } catch (error) {
    assert(error instanceof ApiError && error.status === 400);
    return error.toWire().error;
  }
  return undefined;
}

const chat = (fields: object, model = small) => refusal(chatCompletions, fields, model);
const user = (content: unknown) => ({ role: 'user', content });

/** Characters that differ from the one before them, counted one after the other, of each the last eight bits. */
function slowlyCounted(text: string): number {
  const codes = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at) & 0xff);
  return codes.filter((code, at) => code !== codes[at - 1]).length;
}

describe('the check of a request against its model', () => {
  it('readModelLimits counts each run of one character in a long prompt once, wherever the runs begin and end', () => {
    const run = fc.tuple(fc.constantFrom('a', 'b', 'é', '水', '\0', 'Ā'), fc.integer({ min: 1, max: 40_000 }));
    const start = fc.string({ unit: 'binary', maxLength: 9 });
    fc.assert(
      fc.property(start, fc.array(run, { minLength: 1, maxLength: 9 }), (first, runs) => {
        const text = `${first}${runs.map(([one, count]) => one.repeat(count)).join('')}`.padEnd(40_000, 'ab');
        assert.equal(readModelLimits('messages', text, {}).characters, slowlyCounted(text));
      }),
      { numRuns: 60 },
    );
  });

  it('the chat check rejects an image for a text-only model and names the first part that holds one', () => {
    const parts = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: picture } },
    ];
    const refused = chat({ messages: [user('Hello'), user(parts), user(parts)] });
    assert.equal(refused?.param, 'messages[1].content[1]');
    assert.equal(refused?.code, 'invalid_request_error');
    assert.match(String(refused?.message), /does not take images/);
    const seeing: RoutedModel = { ...small, input: ['text', 'image'] };
    assert.equal(chat({ messages: [user(parts)] }, seeing), undefined);
    const { input: _input, ...unknown } = small;
    assert.equal(chat({ messages: [user(parts)] }, unknown), undefined);
  });

  it('the checks of messages and responses reject images for a text-only model, also in tool results', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };
    const image = { type: 'image', source };
    const message = (content: unknown) =>
      refusal(messages, { max_tokens: 10, messages: [user(content)] }, small)?.param;
    assert.equal(message([{ type: 'text', text: 'Look' }, image]), 'messages[0].content[1]');
    const result = { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'Here' }, image] };
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'look', input: {} }] };
    const turns = [user('Look'), call, user([result])];
    const tools = [{ name: 'look', input_schema: { type: 'object' } }];
    assert.equal(refusal(messages, { max_tokens: 10, tools, messages: turns }, small)?.param, 'messages[2].content[0]');
    const input = [{ role: 'user', content: [{ type: 'input_image', image_url: picture, detail: 'auto' }] }];
    assert.equal(refusal(responses, { input }, small)?.param, 'input[0].content[0]');
    assert.equal(refusal(responses, { input }, { ...small, responses: true })?.param, 'input[0].content[0]');
  });

  it('the check rejects more output tokens than the model allows, under the name the request used', () => {
    const asks = (fields: object) => chat({ messages: [user('Hello')], ...fields })?.param;
    assert.equal(asks({ max_tokens: 101 }), 'max_tokens');
    assert.equal(asks({ max_completion_tokens: 101, max_tokens: 5 }), 'max_completion_tokens');
    assert.equal(asks({ max_completion_tokens: null, max_tokens: 101 }), 'max_tokens');
    for (const fields of [
      { max_tokens: 100 },
      { max_completion_tokens: 100, max_tokens: 101 },
      {},
      { max_tokens: null },
    ]) {
      assert.equal(asks(fields), undefined);
    }
    // Of a message only Anthropic's own models reject it.
    const claude = { ...madeUpModel({ id: 'claude', capability: 'chat' }, 'anthropic'), maxOutputTokens: 100 };
    const message = { max_tokens: 101, messages: [user('Hello')] };
    assert.equal(refusal(messages, message, claude)?.param, 'max_tokens');
    assert.equal(refusal(messages, message, small), undefined);
    assert.equal(refusal(responses, { input: 'Hello', max_output_tokens: 101 }, small)?.param, 'max_output_tokens');
    assert.equal(refusal(completions, { prompt: 'Hello', max_tokens: 101 }, small)?.param, 'max_tokens');
    assert.equal(refusal(completions, { prompt: 'Hello', max_tokens: 100 }, small), undefined);
  });

  it('the check returns context_length_exceeded for a prompt that cannot fit, however it is split into parts', () => {
    const long = 'ab'.repeat(8001);
    const fitting = 'ab'.repeat(8000);
    const refused = chat({ messages: [user(long)] });
    assert.equal(refused?.code, 'context_length_exceeded');
    assert.equal(refused?.param, 'messages');
    assert.ok(!String(refused?.message).includes('abab'));
    assert.equal(chat({ messages: [user(fitting)] }), undefined);
    const half = { type: 'text', text: 'ab'.repeat(4001) };
    assert.equal(chat({ messages: [user([half]), user([half])] })?.code, 'context_length_exceeded');
    assert.equal(refusal(messages, { max_tokens: 5, messages: [user(long)] }, small)?.code, 'context_length_exceeded');
    assert.equal(refusal(responses, { input: long }, small)?.param, 'input');
  });

  it('the check accepts long runs of one character, which may be a single token', () => {
    assert.equal(chat({ messages: [user(' '.repeat(100_000))] }), undefined);
  });

  it('the check of a token count accepts a prompt that is too long for the model', () => {
    const body = { messages: [user('ab'.repeat(10_000))] };
    assert.equal(refusal(messagesCountTokens, body, small), undefined);
  });

  it('the check applies the catalogue: o3 accepts an image, glm-4.7 rejects it, gpt-4o-mini limits max_tokens', () => {
    const content = [{ type: 'image_url', image_url: { url: picture } }];
    assert.equal(chat({ messages: [user(content)] }, routedModel('o3')), undefined);
    assert.equal(chat({ messages: [user(content)] }, routedModel('glm-4.7'))?.param, 'messages[0].content[0]');
    assert.equal(
      chat({ messages: [user('Hello')], max_tokens: 16_385 }, routedModel('gpt-4o-mini'))?.param,
      'max_tokens',
    );
  });
});
