import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type OpenAI from 'openai';
import { parseChat } from '../../../../api/endpoints/chat/parse-chat.ts';
import { textOf } from '../../../../api/pipeline/request-text.ts';
import { ApiError } from '../../../../shared/errors.ts';

const user = { role: 'user', content: 'Hello' };
const minimal = { model: 'gpt-4o-mini', messages: [user] };

const parse = (request: unknown) => parseChat(Buffer.from(JSON.stringify(request)));

/** The 400 that a request gets: its `param` and message. */
function refusal(request: unknown): { param: string | null; message: string } {
  try {
    parse(request);
  } catch (error) {
    assert(error instanceof ApiError);
    assert.equal(error.status, 400);
    return error.toWire().error;
  }
  throw new assert.AssertionError({ message: `accepted: ${JSON.stringify(request)}` });
}

const refused = (fields: object): string | null => refusal({ ...minimal, ...fields }).param;
const refusedMessage = (message: unknown): string | null => refusal({ ...minimal, messages: [user, message] }).param;
const accepted = (fields: object) => parse({ ...minimal, ...fields });
const acceptedMessage = (message: unknown) => parse({ ...minimal, messages: [user, message] });

const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } };
const custom = { type: 'custom', custom: { name: 'shell', format: { type: 'text' } } };

describe('parseChat', () => {
  it('parseChat keeps the body without model, stream and stream_options, unknown fields and odd keys included', () => {
    const oddKey = fc.constantFrom(
      '',
      ' ',
      '0',
      '1e3',
      'toString',
      'hasOwnProperty',
      'constructor',
      'prototype',
      'é\u0000',
    );
    // JSON has one zero.
    const value = fc.jsonValue({ maxDepth: 4 }).map((any) => JSON.parse(JSON.stringify(any)) as unknown);
    const unknown = fc.dictionary(
      fc.oneof(
        oddKey,
        fc.string().map((key) => `x_${key}`),
      ),
      value,
    );
    fc.assert(
      fc.property(unknown, unknown, fc.boolean(), (top, inMessage, stream) => {
        const rest = { ...top, messages: [{ ...inMessage, ...user }], temperature: 1 };
        // A field named for a link has to be one.
        fc.pre(!/"__proto__"|"prototype"|url/i.test(JSON.stringify(rest)));
        const parsed = parse({ model: 'a/b', stream, ...(stream && { stream_options: {} }), ...rest });
        // Null at the top is the field left out.
        const given = Object.entries(rest).filter(([, value]) => value !== null);
        assert.deepEqual(JSON.parse(textOf(parsed.request)), Object.fromEntries(given));
        assert.equal(parsed.model, 'a/b');
        assert.equal(parsed.stream, stream);
      }),
    );
  });

  it('parseChat knows whether usage was requested, and puts the other stream options first in the request', () => {
    assert.deepEqual(accepted({}).viewOptions, { includeUsage: false });
    assert.deepEqual(accepted({ stream: true, stream_options: null }).viewOptions, { includeUsage: false });
    const options = { include_usage: true, include_obfuscation: false, other: 1 };
    const streamed = accepted({ stream: true, stream_options: options });
    assert.deepEqual(streamed.viewOptions, { includeUsage: true });
    assert.match(
      textOf(streamed.request),
      /^\{"stream_options":\{"include_usage":true,"include_obfuscation":false,"other":1\},/,
    );
    assert.equal('stream_options' in JSON.parse(textOf(accepted({ stream: true, stream_options: {} }).request)), false);
    assert.equal(accepted({ stream: null }).stream, false);
  });

  it('parseChat detects inline images, audio and files as media, but not links to them', () => {
    const media = (part: object): boolean => acceptedMessage({ role: 'user', content: [part] }).hasMedia;
    assert.equal(accepted({}).hasMedia, false);
    assert.equal(media({ type: 'text', text: 'data:' }), false);
    assert.equal(media({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }), false);
    assert.equal(media({ type: 'image_url', image_url: { url: 'DATA:image/png;base64,AAAA', detail: 'low' } }), true);
    assert.equal(media({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }), true);
    assert.equal(media({ type: 'file', file: { file_data: 'AAAA', filename: 'a.pdf' } }), true);
    assert.equal(media({ type: 'file', file: { file_id: 'file-1' } }), false);
  });

  it('parseChat accepts every parameter of the official client', () => {
    const everything: OpenAI.ChatCompletionCreateParams = {
      model: 'vendor/family/model-1',
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }], name: 'dev' },
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: [{ type: 'text', text: 'Look' }], name: 'ann' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } },
            { id: 'call_2', type: 'custom', custom: { name: 'shell', input: 'ls' } },
          ],
        },
        { role: 'tool', content: [{ type: 'text', text: 'sunny' }], tool_call_id: 'call_1' },
        { role: 'function', content: null, name: 'legacy' },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
      ],
      audio: { voice: 'alloy', format: 'wav' },
      frequency_penalty: -2,
      function_call: { name: 'legacy' },
      functions: [{ name: 'legacy', parameters: {} }],
      logit_bias: { '50256': -100 },
      logprobs: true,
      max_completion_tokens: 1,
      max_tokens: 1,
      metadata: { key: 'value' },
      modalities: ['text', 'audio'],
      n: 128,
      parallel_tool_calls: false,
      prediction: { type: 'content', content: 'text' },
      presence_penalty: 2,
      prompt_cache_key: 'key',
      prompt_cache_retention: '24h',
      reasoning_effort: 'high',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'a-b_1', schema: { type: 'object' }, strict: true },
      },
      safety_identifier: 'caller',
      seed: -(2 ** 62),
      service_tier: 'auto',
      stop: ['a', 'b', 'c', 'd'],
      store: false,
      stream: true,
      stream_options: { include_usage: true },
      temperature: 2,
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [weather] } },
      tools: [
        { type: 'function', function: { name: 'weather', parameters: { type: 'object' }, strict: true } },
        { type: 'custom', custom: { name: 'shell', format: { type: 'text' } } },
      ],
      top_logprobs: 20,
      top_p: 0,
      user: 'ann',
      verbosity: 'low',
      web_search_options: {
        search_context_size: 'low',
        user_location: { type: 'approximate', approximate: { city: 'Oslo' } },
      },
    };
    const { model, stream, stream_options, ...rest } = everything;
    assert.deepEqual(JSON.parse(textOf(parse(everything).request)), rest);
  });

  it('parseChat treats null in any optional field as a missing field', () => {
    const nullable = ['temperature', 'top_p', 'n', 'stop', 'max_tokens', 'max_completion_tokens', 'presence_penalty'];
    nullable.push('frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'seed', 'metadata', 'store', 'audio');
    nullable.push(
      'reasoning_effort',
      'verbosity',
      'service_tier',
      'modalities',
      'prediction',
      'stream_options',
      'stream',
    );
    nullable.push('tools', 'tool_choice', 'user', 'response_format', 'parallel_tool_calls', 'functions', 'anything');
    for (const name of nullable) {
      const { request } = parse({ model: 'a', messages: [user], [name]: null });
      assert.deepEqual(JSON.parse(textOf(request)), { messages: [user] }, name);
    }
    const assistant = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'b', arguments: '' } }],
    };
    const nulls = { refusal: null, audio: null, function_call: null, name: null };
    const { request } = parse({ model: 'a', messages: [user, { ...assistant, ...nulls, extra: null }] });
    assert.deepEqual(
      JSON.parse(textOf(request)).messages[1],
      { ...assistant, extra: null },
      'what the vendor may mean stays',
    );
    const schema = { type: 'object', properties: { a: { enum: [null], default: null } } };
    const fn = { name: 'add', parameters: schema };
    const tools = [{ type: 'function', function: { ...fn, description: null, strict: null } }];
    const offered = parse({ model: 'a', messages: [user], tools });
    assert.deepEqual(JSON.parse(textOf(offered.request)).tools, [{ type: 'function', function: fn }]);
    for (const name of ['model', 'messages']) assert.equal(refused({ [name]: null }), name);
  });

  it('parseChat leaves the values of efforts, tiers, verbosities and modalities to the vendor', () => {
    accepted({ reasoning_effort: 'colossal', service_tier: 'platinum', verbosity: 'chatty', modalities: ['smell'] });
  });
});

describe('parseChat, rejected requests', () => {
  it('parseChat rejects a missing model and a model that is no valid name', () => {
    assert.deepEqual(refusal({ messages: [user] }).param, 'model');
    assert.equal(refusal({ messages: [user] }).message, "Missing required parameter: 'model'.");
    for (const model of ['', 'a'.repeat(257), 5, null, ['a']]) assert.equal(refused({ model }), 'model');
    accepted({ model: 'a'.repeat(256) });
  });

  it('parseChat rejects messages that are missing, empty or not a list', () => {
    assert.equal(refusal({ model: 'm' }).param, 'messages');
    for (const messages of [[], {}, 'text', null]) assert.equal(refused({ messages }), 'messages');
    for (const message of [null, 'text', 5, []]) assert.equal(refused({ messages: [message] }), 'messages[0]');
  });

  it('parseChat rejects a number that is out of range or of the wrong type', () => {
    const wrong: Record<string, unknown[]> = {
      temperature: [-0.1, 2.1, '1', true, {}],
      top_p: [-0.1, 1.1, '1'],
      n: [0, 129, 1.5, '1'],
      max_tokens: [0, -1, 1.5, '10'],
      max_completion_tokens: [0, 1.5],
      presence_penalty: [-2.1, 2.1, '0'],
      frequency_penalty: [-2.1, 2.1],
      seed: [1.5, 1e20, '1'],
      top_logprobs: [-1, 21, 1.5],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) assert.equal(refused({ logprobs: true, [name]: value }), name, `${name}: ${value}`);
    }
    const { message } = refusal({ ...minimal, temperature: 2.5 });
    assert.equal(message, "Invalid 'temperature': expected a value <= 2, but got 2.5 instead.");
  });

  it('parseChat rejects a flag, a text or a map of the wrong type', () => {
    for (const name of ['stream', 'logprobs', 'parallel_tool_calls', 'store']) {
      for (const value of ['true', 1, {}]) assert.equal(refused({ [name]: value }), name);
    }
    for (const name of ['user', 'reasoning_effort', 'service_tier', 'prompt_cache_key', 'safety_identifier']) {
      assert.equal(refused({ [name]: 5 }), name);
    }
    for (const name of ['metadata', 'logit_bias', 'audio', 'prediction', 'web_search_options', 'response_format']) {
      assert.equal(refused({ [name]: [] }), name);
    }
    assert.equal(refused({ logit_bias: { '5': 101 } }), 'logit_bias.5');
  });

  it('parseChat rejects a stop that is empty, too long or mixed', () => {
    for (const stop of [5, [], ['a', 'b', 'c', 'd', 'e']]) assert.equal(refused({ stop }), 'stop');
    assert.equal(refused({ stop: ['a', 5] }), 'stop[1]');
  });

  it('parseChat rejects metadata that is too large, and does not repeat an arbitrary key', () => {
    const pairs = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
    accepted({ metadata: pairs(16) });
    assert.equal(refused({ metadata: pairs(17) }), 'metadata');
    assert.equal(refused({ metadata: { key: 5 } }), 'metadata.key');
    assert.equal(refused({ metadata: { key: 'v'.repeat(513) } }), 'metadata.key');
    assert.equal(refused({ metadata: { ['k'.repeat(65)]: 'v' } }), 'metadata');
    assert.equal(refused({ metadata: { 'a secret': 5 } }), 'metadata');
  });

  it('parseChat rejects an unknown or missing role', () => {
    assert.equal(refusedMessage({ role: 'wizard', content: 'x' }), 'messages[1].role');
    const { message } = refusal({ ...minimal, messages: [{ role: 'wizard', content: 'x' }] });
    assert.match(message, /^Invalid value for 'messages\[0\]\.role'\. Supported values are: 'system', /);
    assert.equal(refusedMessage({ content: 'x' }), 'messages[1].role');
  });

  it('parseChat rejects a message that lacks a field its role requires', () => {
    for (const role of ['system', 'developer', 'user', 'tool']) {
      assert.equal(refusedMessage({ role, tool_call_id: 'a' }), 'messages[1].content');
      assert.equal(refusedMessage({ role, tool_call_id: 'a', content: null }), 'messages[1].content');
      assert.equal(refusedMessage({ role, tool_call_id: 'a', content: [] }), 'messages[1].content');
      assert.equal(refusedMessage({ role, tool_call_id: 'a', content: 5 }), 'messages[1].content');
    }
    assert.equal(refusedMessage({ role: 'tool', content: 'x' }), 'messages[1].tool_call_id');
    assert.equal(refusedMessage({ role: 'function', content: 'x' }), 'messages[1].name');
    assert.equal(refusedMessage({ ...user, name: 5 }), 'messages[1].name');
  });

  it('parseChat rejects an assistant message without any content', () => {
    for (const nothing of [{}, { content: null }, { content: null, tool_calls: [] }, { refusal: null, audio: null }]) {
      assert.equal(refusedMessage({ role: 'assistant', ...nothing }), 'messages[1].content');
    }
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '' } };
    for (const said of [{ content: '' }, { tool_calls: [call] }, { refusal: 'no' }, { audio: { id: 'a' } }]) {
      acceptedMessage({ role: 'assistant', ...said });
    }
    acceptedMessage({ role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } });
    const broken = { ...call, function: { name: 'f' } };
    const param = refusedMessage({ role: 'assistant', tool_calls: [broken] });
    assert.equal(param, 'messages[1].tool_calls[0].function.arguments');
  });

  it('parseChat rejects a content part that is broken, of an unknown type or of another role', () => {
    const part = (value: unknown, role = 'user') => refusedMessage({ role, content: [value], tool_call_id: 'a' });
    assert.equal(part({ type: 'smell', smell: 'rose' }), 'messages[1].content[0].type');
    assert.equal(part({ text: 'x' }), 'messages[1].content[0].type');
    assert.equal(part('x'), 'messages[1].content[0]');
    assert.equal(part({ type: 'text' }), 'messages[1].content[0].text');
    assert.equal(part({ type: 'image_url', image_url: 'https://a' }), 'messages[1].content[0].image_url');
    assert.equal(part({ type: 'image_url', image_url: {} }), 'messages[1].content[0].image_url.url');
    assert.equal(part({ type: 'input_audio', input_audio: { data: '' } }), 'messages[1].content[0].input_audio.format');
    assert.equal(part({ type: 'file', file: { file_id: 5 } }), 'messages[1].content[0].file.file_id');
    for (const role of ['system', 'developer', 'tool', 'assistant']) {
      const image = { type: 'image_url', image_url: { url: 'https://a' } };
      assert.equal(part(image, role), 'messages[1].content[0].type');
    }
  });

  it('parseChat rejects malformed tools and a tool_choice that does not match them', () => {
    assert.equal(refused({ tools: {} }), 'tools');
    assert.equal(refused({ tools: [{ type: 'gadget' }] }), 'tools[0].type');
    assert.equal(refused({ tools: [{ type: 'function', function: { name: 'two words' } }] }), 'tools[0].function.name');
    assert.equal(refused({ tools: [{ type: 'function' }] }), 'tools[0].function');
    const parameters = { type: 'function', function: { name: 'f', parameters: [] } };
    assert.equal(refused({ tools: [parameters] }), 'tools[0].function.parameters');
    assert.equal(refused({ tool_choice: 'auto' }), 'tool_choice');
    const tools = [weather, custom];
    assert.equal(refused({ tools, tool_choice: 'sometimes' }), 'tool_choice');
    assert.equal(refused({ tools, tool_choice: 5 }), 'tool_choice');
    assert.equal(refused({ tools, tool_choice: { type: 'gadget' } }), 'tool_choice.type');
    const named = (type: string, name: string) => ({ tools, tool_choice: { type, [type]: { name } } });
    assert.equal(refused(named('function', 'tides')), 'tool_choice.function.name');
    assert.equal(refused(named('function', 'shell')), 'tool_choice.function.name');
    assert.equal(refused(named('custom', 'weather')), 'tool_choice.custom.name');
    accepted(named('function', 'weather'));
    accepted(named('custom', 'shell'));
    for (const choice of ['none', 'auto', 'required']) accepted({ tools, tool_choice: choice });
    const allowed = (entry: object) => ({ type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [entry] } });
    accepted({ tools, tool_choice: allowed({ type: 'function', function: { name: 'weather' } }) });
    const absent = allowed({ type: 'function', function: { name: 'tides' } });
    assert.equal(refused({ tools, tool_choice: absent }), 'tool_choice.allowed_tools.tools[0]');
  });

  it('parseChat rejects malformed legacy functions and a function_call that does not match them', () => {
    assert.equal(refused({ functions: [] }), 'functions');
    assert.equal(refused({ function_call: 'auto' }), 'function_call');
    assert.equal(refused({ functions: [{ name: 'a' }], function_call: { name: 'b' } }), 'function_call.name');
    accepted({ functions: [{ name: 'a' }], function_call: { name: 'a' } });
  });

  it('parseChat rejects an incomplete response_format', () => {
    const named = (json_schema: object) => ({ response_format: { type: 'json_schema', json_schema } });
    assert.equal(refused({ response_format: { type: 'yaml' } }), 'response_format.type');
    assert.equal(refused({ response_format: { type: 'json_schema' } }), 'response_format.json_schema');
    assert.equal(refused(named({})), 'response_format.json_schema.name');
    assert.equal(refused(named({ name: 'a b' })), 'response_format.json_schema.name');
    assert.equal(refused(named({ name: 'a', schema: 'x' })), 'response_format.json_schema.schema');
  });

  it('parseChat rejects a field without the field it depends on', () => {
    assert.equal(refused({ stream_options: {} }), 'stream_options');
    assert.equal(refused({ stream: false, stream_options: { include_usage: true } }), 'stream_options');
    assert.equal(refused({ stream: true, stream_options: { include_usage: 'yes' } }), 'stream_options.include_usage');
    assert.equal(refused({ top_logprobs: 5 }), 'top_logprobs');
    assert.equal(refused({ logprobs: false, top_logprobs: 5 }), 'top_logprobs');
  });

  it('parseChat repeats no text of the caller in its error messages', () => {
    const secret = 'sesame-open';
    const requests = [
      { ...minimal, messages: [{ role: secret, content: secret }] },
      { ...minimal, messages: [{ role: 'user', content: [{ type: secret }] }] },
      { ...minimal, tools: [{ type: 'function', function: { name: `${secret} !` } }] },
      { ...minimal, tool_choice: secret, tools: [weather] },
      { ...minimal, tool_choice: { type: 'function', function: { name: secret } }, tools: [weather] },
      { ...minimal, temperature: secret },
      { ...minimal, metadata: { [secret]: 5 } },
    ];
    for (const request of requests) assert.doesNotMatch(JSON.stringify(refusal(request)), /sesame/);
  });

  it('parseChat stops at the first of a hundred thousand faults', () => {
    const messages = Array.from({ length: 100_000 }, () => ({}));
    assert.equal(refusal({ ...minimal, messages }).param, 'messages[0].role');
    assert.equal(refusedMessage({ role: 'user', content: messages }), 'messages[1].content[0].type');
  });

  it('parseChat notes a mark for the prompt cache wherever its caller has set it, and counts null as none', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const text = { type: 'text', text: 'Hi' };
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    const marked: readonly object[] = [
      mark,
      { tools: [weather, { ...weather, ...mark }] },
      { messages: [{ role: 'system', content: [{ ...text, ...mark }] }, user] },
      { messages: [user, { role: 'user', content: [text, { ...text, text: '', ...mark }] }] },
      { messages: [user, { ...user, ...mark }] },
      { messages: [user, { role: 'assistant', content: null, tool_calls: [{ ...call, ...mark }] }] },
      { messages: [user, { role: 'tool', tool_call_id: 'c1', content: [{ ...text, ...mark }] }] },
    ];
    for (const fields of marked) {
      assert.equal(accepted(fields).marksCache, true, JSON.stringify(fields));
      const unmarked = JSON.parse(JSON.stringify(fields).replaceAll('{"type":"ephemeral"}', 'null')) as object;
      assert.equal(accepted(unmarked).marksCache, undefined, JSON.stringify(unmarked));
    }
    const quoted = { messages: [{ role: 'user', content: JSON.stringify(mark) }] };
    assert.equal(accepted(quoted).marksCache, undefined);
  });

  it('parseChat finds each of very many tools among as many that may be called', () => {
    const named = { type: 'function', function: { name: 'last' } };
    const tools = [...Array(100_000).fill(weather), named];
    const chosen = { mode: 'auto', tools: Array(100_000).fill(named) };
    assert.equal(accepted({ tools, tool_choice: { type: 'allowed_tools', allowed_tools: chosen } }).stream, false);
  });
});
