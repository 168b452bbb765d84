import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatCompletions } from '../../../../api/endpoints/chat/chat-completions.ts';
import { completions } from '../../../../api/endpoints/completions/completions.ts';
import { messages } from '../../../../api/endpoints/messages/messages.ts';
import { responses } from '../../../../api/endpoints/responses/responses.ts';
import type { Endpoint } from '../../../../api/pipeline/endpoint.ts';
import type { UnsupportedParameters } from '../../../../shared/accounts/api-keys.ts';
import { chatFieldSupport, givenChatFields, supportOf } from '../../../../shared/vendors/field-support.ts';
import { madeUpModel } from '../../../support/routed-model.ts';
import { vendorSettings } from '../../../support/vendor-settings.ts';

/** The least that each endpoint takes. */
const minimal = new Map<Endpoint, object>([
  [chatCompletions, { messages: [{ role: 'user', content: 'Hello' }] }],
  [completions, { prompt: 'Hello' }],
  [messages, { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 16 }],
  [responses, { input: 'Hello' }],
]);

/** What the endpoint names as left out of a request to a vendor's model. */
function check(endpoint: Endpoint, vendor: string, fields: object, unsupported?: UnsupportedParameters): string[] {
  const body = Buffer.from(JSON.stringify({ model: 'm', ...minimal.get(endpoint), ...fields }));
  const parsed = endpoint.parse?.(body);
  assert.ok(parsed);
  return [...(endpoint.check?.(parsed, madeUpModel({ id: 'm', capability: 'chat' }, vendor), unsupported) ?? [])];
}

const schema = { type: 'json_schema', json_schema: { name: 'o', schema: {} } };
const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }];

/** Fields that a vendor refuses, and what the endpoint's caller calls them. */
const refused: readonly (readonly [endpoint: Endpoint, vendor: string, fields: object, param: string])[] = [
  [chatCompletions, 'groq', { n: 2 }, 'n'],
  [chatCompletions, 'groq', { logprobs: true, top_logprobs: 2 }, 'logprobs'],
  [chatCompletions, 'mistral', { logit_bias: { 1: 2 } }, 'logit_bias'],
  [chatCompletions, 'deepseek', { response_format: schema }, 'response_format'],
  [chatCompletions, 'perplexity', { tools }, 'tools'],
  [chatCompletions, 'ollama', { tools, tool_choice: 'required' }, 'tool_choice'],
  [chatCompletions, 'anthropic', { logprobs: true }, 'logprobs'],
  [chatCompletions, 'gemini', { web_search_options: {} }, 'web_search_options'],
  [chatCompletions, 'gemini', { nobody_knows_it: 1 }, 'nobody_knows_it'],
  [chatCompletions, 'gemini', { constructor: 1 }, 'constructor'],
  [completions, 'groq', { n: 2 }, 'n'],
  [completions, 'groq', { logprobs: 0 }, 'logprobs'],
  [messages, 'perplexity', { tools: [{ name: 'f', input_schema: {} }] }, 'tools'],
  [messages, 'deepseek', { output_config: { format: { type: 'json_schema', schema: {} } } }, 'output_config.format'],
  [responses, 'deepseek', { text: { format: { type: 'json_schema', name: 'o', schema: {} } } }, 'text.format'],
  [responses, 'groq', { include: ['message.output_text.logprobs'] }, 'include'],
  [responses, 'perplexity', { tools: [{ type: 'function', name: 'f', parameters: {} }] }, 'tools'],
];

/** Hints that a vendor does nothing with, and what the endpoint's caller calls them. */
const dropped: readonly (readonly [endpoint: Endpoint, vendor: string, fields: object, names: string[]])[] = [
  [chatCompletions, 'groq', { presence_penalty: 1, metadata: { a: 'b' }, seed: 1 }, ['presence_penalty', 'metadata']],
  [
    chatCompletions,
    'mistral',
    { user: 'u', stream: true, stream_options: { include_usage: true, include_obfuscation: false } },
    ['stream_options', 'user'],
  ],
  [chatCompletions, 'mistral', { user: 'u', seed: 1, max_completion_tokens: 5 }, ['user']],
  [
    chatCompletions,
    'anthropic',
    {
      seed: 1,
      messages: [
        {
          role: 'user',
          name: 'Ann',
          content: [{ type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'low' } }],
        },
      ],
    },
    ['seed', 'messages.name', 'messages.content.image_url.detail'],
  ],
  [completions, 'deepseek', { seed: 1, user: 'u', echo: true }, ['seed', 'user']],
  [
    messages,
    'ollama',
    { metadata: { user_id: 'u' }, service_tier: 'standard_only' },
    ['metadata.user_id', 'service_tier'],
  ],
  [responses, 'deepseek', { text: { verbosity: 'low' }, user: 'u', store: true }, ['text.verbosity', 'user']],
  [
    responses,
    'anthropic',
    {
      input: [
        {
          role: 'user',
          content: [{ type: 'input_image', image_url: 'https://a.example/b.png', detail: 'low' }],
        },
      ],
    },
    ['input.content.detail'],
  ],
];

describe('field support of chat vendors', () => {
  for (const [endpoint, vendor, fields, param] of refused) {
    const what = `${endpoint.path} ${JSON.stringify(fields)} with ${vendor}`;

    it(`${what} returns 400 naming ${param}`, () => {
      assert.throws(() => check(endpoint, vendor, fields), { name: 'ApiError', status: 400, param });
    });

    it(`${what} with a key that drops unsupported fields reports ${param} as ignored`, () => {
      assert.ok(check(endpoint, vendor, fields, 'drop').includes(param));
    });
  }

  for (const [endpoint, vendor, fields, names] of dropped) {
    it(`${endpoint.path} ${JSON.stringify(fields)} with ${vendor} reports ${names.join(', ')} as ignored`, () => {
      assert.deepEqual(check(endpoint, vendor, fields).sort(), [...names].sort());
    });
  }

  it('every vendor accepts default values, and a vendor without deviations accepts everything', () => {
    const defaults = {
      ...{ n: 1, logprobs: false, temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, store: false },
      ...{ parallel_tool_calls: true, tools, tool_choice: 'auto', logit_bias: {}, metadata: {}, service_tier: 'auto' },
      ...{ response_format: { type: 'text' }, modalities: ['text'], audio: null, moderation: null },
    };
    const vendors = ['openai', 'sandbox', 'deepseek', 'mistral', 'groq', 'together', 'anthropic', 'gemini'];
    for (const vendor of vendors) assert.deepEqual(check(chatCompletions, vendor, defaults), [], vendor);
    assert.throws(() => check(chatCompletions, 'perplexity', defaults), { param: 'tools' });
    const all = { n: 3, logprobs: true, logit_bias: { 1: 2 }, user: 'u', store: true, response_format: schema };
    for (const vendor of ['openai', 'sandbox', 'nobody']) assert.deepEqual(check(chatCompletions, vendor, all), []);
  });
});

describe('supportOf and givenChatFields', () => {
  it('the support of a field is its own, else that of its parent field, else the default', () => {
    const table = { '*': 'rejected', tools: 'native', 'tools.web': 'ignored' } as const;
    const cases = { tools: 'native', 'tools.web': 'ignored', 'tools.other.deep': 'native', else: 'rejected' };
    for (const [field, support] of Object.entries(cases)) assert.equal(supportOf(table, field), support, field);
    assert.equal(supportOf({}, 'toString'), 'native');
    assert.equal(chatFieldSupport(vendorSettings('openai').row), undefined);
  });

  it("a caller's name of thousands of parts is looked up by its first one", () => {
    const name = `x${'.x'.repeat(100_000)}`;
    assert.equal(supportOf({ '*': 'rejected' }, name), 'rejected');
    assert.equal(supportOf({ '*': 'rejected', x: 'ignored' }, name), 'ignored');
  });

  it('givenChatFields returns only fields that differ from their defaults', () => {
    assert.deepEqual(
      givenChatFields({ model: 'm', messages: [], stream: true, n: 1, seed: 0, tools: [], user: null, stop: 'x' }),
      ['seed', 'stop'],
    );
    assert.deepEqual(givenChatFields({ response_format: { type: 'json_object' } }), ['response_format.json_object']);
  });
});
