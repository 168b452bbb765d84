import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  parseResponse,
  type ResponseRequirements,
  type ResponseViewOptions,
} from '../../../../api/endpoints/responses/parse-response.ts';
import { prependItems } from '../../../../api/endpoints/responses/prepend-items.ts';
import { responses } from '../../../../api/endpoints/responses/responses.ts';
import { bytesOf, requestBytes, textOf } from '../../../../api/pipeline/request-text.ts';
import type { Model } from '../../../../shared/catalogue/models.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

const minimal = { model: 'gpt-5', input: 'Hello' };
const parse = (fields: object) => parseResponse(Buffer.from(JSON.stringify({ ...minimal, ...fields })));
const requestOf = (fields: object): Record<string, unknown> => JSON.parse(textOf(parse(fields).request));
const echoOf = (fields: object): Record<string, unknown> =>
  (parse(fields).viewOptions as unknown as ResponseViewOptions).echo;
const requirementsOf = (fields: object): ResponseRequirements => parse(fields).requirements;

/** The parameter that a request's 400 names. */
function refused(fields: object): string | null {
  try {
    parse(fields);
  } catch (error) {
    assert(error instanceof ApiError);
    assert.equal(error.status, 400);
    return error.param;
  }
  throw new assert.AssertionError({ message: `accepted: ${JSON.stringify(fields)}` });
}

const hello = { type: 'message', role: 'user', content: 'Hello' };
const weather = { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: true };
const shell = { type: 'custom', name: 'shell', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } };
const search = { type: 'web_search', external_web_access: true };
const desk = { type: 'namespace', name: 'desk', description: '', tools: [weather, shell] };

describe('parseResponse', () => {
  it('parseResponse puts the input first as items, and removes nulls and the fields that the gateway handles', () => {
    const { request, model, stream, store, background } = parse({
      ...{ 0: 'first', stream: true, store: false, background: false, previous_response_id: 'resp_1', unknown: [1] },
      ...{ temperature: null, conversation: null, prompt: null, instructions: 'Be brief', stream_options: {} },
    });
    assert.ok(textOf(request).startsWith('{"input":[{'));
    const expected = { 0: 'first', input: [hello], unknown: [1], instructions: 'Be brief', stream_options: {} };
    assert.deepEqual(JSON.parse(textOf(request)), expected);
    assert.deepEqual([model, stream, store, background], ['gpt-5', true, false, false]);
    assert.deepEqual([parse({}).stream, parse({}).store, parse({ store: null }).store], [false, true, true]);
    assert.equal(parse({ background: true }).background, true);
    assert.equal(parse({ previous_response_id: 'resp_1', input: null }).request, '{"input":[]}');
  });

  it('parseResponse gives each item a type, and lists the referenced items', () => {
    const items = [{ role: 'user', content: 'Hi' }, { id: 'msg_1' }, { type: 'item_reference', id: 'rs_2' }, hello];
    assert.deepEqual(
      (requestOf({ input: items }).input as { type: string }[]).map(({ type }) => type),
      ['message', 'item_reference', 'item_reference', 'message'],
    );
    assert.deepEqual(requirementsOf({ input: items }).references, ['msg_1', 'rs_2']);
    assert.equal(requirementsOf({ previous_response_id: 'resp_1' }).previousResponseId, 'resp_1');
    assert.equal(requirementsOf({}).previousResponseId, undefined);
  });

  it('parseResponse accepts the items and tools that agents send, undocumented types included', () => {
    const input = [
      { type: 'message', id: 'msg_x', role: 'developer', content: [{ type: 'input_text', text: 'a' }] },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x', content: null },
      { type: 'function_call', status: 'completed', id: 'fc_1', name: 'f', arguments: '{}', call_id: 'c' },
      { type: 'function_call_output', id: 'fco_1', call_id: 'c', output: [{ type: 'input_text', text: 'x' }] },
      { type: 'custom_tool_call', id: 'ctc_1', name: 'shell', input: 'x', call_id: 'd' },
      { type: 'custom_tool_call_output', call_id: 'd', output: 'done' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a', annotations: [] }] },
      { type: 'of_tomorrow', anything: { goes: true } },
    ];
    assert.deepEqual(requestOf({ input }).input, input);
    assert.deepEqual(requestOf({ tools: [weather, shell, search, desk] }).tools, [weather, shell, search, desk]);
  });

  it("parseResponse echoes the fields that the response object shows, with OpenAI's defaults", () => {
    assert.deepEqual(echoOf({}), {
      ...{ presence_penalty: 0, frequency_penalty: 0 },
      ...{ background: false, instructions: null, max_output_tokens: null, max_tool_calls: null, metadata: {} },
      ...{
        parallel_tool_calls: true,
        previous_response_id: null,
        prompt_cache_key: null,
        prompt_cache_retention: null,
      },
      ...{ reasoning: { effort: null, summary: null }, safety_identifier: null, service_tier: 'auto', store: true },
      ...{ temperature: 1, text: { format: { type: 'text' }, verbosity: 'medium' }, tool_choice: 'auto', tools: [] },
      ...{ top_logprobs: 0, top_p: 1, truncation: 'disabled', user: null },
    });
    const given = { temperature: 0, top_p: 0.5, metadata: { a: 'b' }, store: false, user: 'me', max_output_tokens: 16 };
    const echo = echoOf({
      ...given,
      tools: [{ type: 'function', name: 'f' }],
      reasoning: { generate_summary: 'auto' },
    });
    assert.deepEqual({ ...echo, ...given }, echo);
    assert.deepEqual(echo.tools, [{ type: 'function', name: 'f', description: null, parameters: null, strict: true }]);
    assert.deepEqual(echo.reasoning, { generate_summary: 'auto', effort: null, summary: 'auto' });
  });

  it('parseResponse detects inline images, files, audio and image results as media, but not links', () => {
    const withPart = (part: object): boolean => parse({ input: [{ role: 'user', content: [part] }] }).hasMedia;
    assert.equal(withPart({ type: 'input_image', image_url: 'data:image/png;base64,QUJD' }), true);
    assert.equal(withPart({ type: 'input_image', image_url: 'https://example.com/a.png' }), false);
    assert.equal(withPart({ type: 'input_file', filename: 'a.pdf', file_data: 'data:x' }), true);
    assert.equal(withPart({ type: 'input_audio', input_audio: { data: 'QUJD', format: 'wav' } }), true);
    const output = [{ type: 'input_image', image_url: 'data:image/png;base64,QUJD' }];
    assert.equal(parse({ input: [{ type: 'function_call_output', call_id: 'c', output }] }).hasMedia, true);
    assert.equal(parse({ input: [{ type: 'image_generation_call', id: 'ig', result: 'QUJD' }] }).hasMedia, true);
    assert.equal(parse({}).hasMedia, false);
  });

  it('parseResponse rejects what OpenAI rejects, and names the field', () => {
    const bad: [object, string | null][] = [
      [{ model: undefined }, 'model'],
      [{ input: undefined }, 'input'],
      [{ input: [] }, 'input'],
      [{ input: 5 }, 'input'],
      [{ input: [{ role: 'wizard', content: 'x' }] }, 'input[0].role'],
      [{ input: [hello, { role: 'user' }] }, 'input[1].content'],
      [{ input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }, 'input[0].content[0].type'],
      [{ input: [{ role: 'user', content: [{ type: 'input_image' }] }] }, 'input[0].content[0]'],
      [{ input: [{ type: 'function_call', call_id: 'c', name: 'f' }] }, 'input[0].arguments'],
      [{ input: [{ type: 'function_call_output', output: 'x' }] }, 'input[0].call_id'],
      [{ input: [{}] }, 'input[0].role'],
      [{ input: [{ type: 5 }] }, 'input[0].type'],
      [{ temperature: 2.1 }, 'temperature'],
      [{ top_p: -1 }, 'top_p'],
      [{ max_output_tokens: 15 }, 'max_output_tokens'],
      [{ max_tool_calls: 0 }, 'max_tool_calls'],
      [{ top_logprobs: 21 }, 'top_logprobs'],
      [{ metadata: { a: 1 } }, 'metadata.a'],
      [{ metadata: { a: 'x'.repeat(513) } }, 'metadata.a'],
      [{ metadata: Object.fromEntries([...Array(17).keys()].map((key) => [`k${key}`, ''])) }, 'metadata'],
      [{ include: ['everything'] }, 'include[0]'],
      [{ truncation: 'middle' }, 'truncation'],
      [{ text: { format: { type: 'json_schema', schema: {} } } }, 'text.format.name'],
      [{ text: { format: { type: 'json_schema', name: 'x' } } }, 'text.format.schema'],
      [{ text: { format: { type: 'xml' } } }, 'text.format.type'],
      [{ reasoning: { summary: 'long' } }, 'reasoning.summary'],
      [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
      [{ tools: [{ type: 'function', name: 'a b' }] }, 'tools[0].name'],
      [{ tools: [{ ...desk, tools: [{ type: 'function', name: 'a b' }] }] }, 'tools[0].tools[0].name'],
      [{ tools: [{ ...shell, format: { type: 'grammar', syntax: 'lark' } }] }, 'tools[0].format.definition'],
      [{ tools: [{ name: 'untyped' }] }, 'tools[0].type'],
      [{ tool_choice: 'sometimes' }, 'tool_choice'],
      [{ tool_choice: 'required' }, 'tool_choice'],
      [{ tool_choice: { type: 'function' } }, 'tool_choice.name'],
      [{ tools: [shell], tool_choice: { type: 'function', name: 'shell' } }, 'tool_choice.name'],
      [
        {
          tools: [weather],
          tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [weather, { type: 'custom', name: 'x' }] },
        },
        'tool_choice.tools[1]',
      ],
      [{ background: true, store: false }, 'background'],
      [{ stream_options: { include_obfuscation: false } }, 'stream_options'],
      [{ conversation: 'conv_1' }, 'conversation'],
      [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
      [{ safety_identifier: 'x'.repeat(65) }, 'safety_identifier'],
    ];
    for (const [fields, param] of bad) assert.equal(refused(fields), param, JSON.stringify(fields));
  });

  it('parseResponse accepts a tool_choice among the given tools, also in namespaces and additional_tools', () => {
    for (const fields of [
      { tools: [weather], tool_choice: { type: 'function', name: 'weather' } },
      { tools: [desk], tool_choice: { type: 'function', name: 'weather', namespace: 'desk' } },
      { tools: [search], tool_choice: { type: 'web_search_preview' } },
      { tools: [], tool_choice: 'auto' },
      { input: [{ type: 'additional_tools', role: 'developer', tools: [weather] }, hello], tool_choice: 'required' },
    ]) {
      assert.doesNotThrow(() => parse(fields));
    }
  });

  it('parseResponse finds each of very many tools among as many that may be called, before it refuses so many', () => {
    const last = { type: 'function', name: 'last' };
    const tools = [...Array(100_000).fill(weather), last];
    const choice = { type: 'allowed_tools', mode: 'auto', tools: Array(100_000).fill(last) };
    assert.throws(() => parse({ tools, tool_choice: choice }), /at most 50000 are accepted/);
  });
});

describe('the check of a response request against its model', () => {
  const check = (fields: object, more: Partial<Model> = {}): readonly string[] | undefined =>
    responses.check?.(parse(fields), madeUpModel({ id: 'm', capability: 'chat', ...more }));

  it('the response check over a chat rejects what only a native responses vendor supports', () => {
    const bad: [object, string][] = [
      [{ context_management: [{ type: 'compaction', compact_threshold: 5000 }] }, 'context_management'],
      [{ response_format: { type: 'json_object' } }, 'response_format'],
      [{ reasoning_effort: 'low' }, 'reasoning_effort'],
      [{ verbosity: 'low' }, 'verbosity'],
      [{ tools: [search], tool_choice: 'required' }, 'tool_choice'],
      [{ tools: [weather, search], tool_choice: { type: 'web_search_preview' } }, 'tool_choice'],
      [
        { tools: [search], tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] } },
        'tool_choice',
      ],
      [{ input: [hello, { type: 'computer_call_output', call_id: 'c', output: {} }] }, 'input[1]'],
      [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }] }, 'input[0].content[0]'],
      [
        { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://example.com' }] }] },
        'input[0].content[0]',
      ],
    ];
    for (const [fields, param] of bad) {
      assert.throws(() => check(fields), { code: 'invalid_request_error', param }, JSON.stringify(fields));
      assert.equal(check(fields, { responses: true }), undefined);
    }
  });

  it('the response check over a chat says where a chat field has moved to, and passes on those without another form', () => {
    assert.throws(() => check({ response_format: { type: 'json_object' } }), {
      message: "'response_format' cannot be used with the model `m`: in a response it is 'text.format'.",
    });
    assert.deepEqual(check({ reasoning_effort: null, stop: ['x'], seed: 7 }), []);
  });

  it('the response check over a chat lists the ignored fields in words that are safe in a header', () => {
    assert.deepEqual(check({ tools: [weather, shell, desk], reasoning: { effort: 'low', summary: 'auto' } }), []);
    const fields = {
      tools: [weather, search, search, { type: 'odd\r\ntype' }],
      ...{ max_tool_calls: 3, client_metadata: { a: 'b' }, include: ['web_search_call.action.sources'] },
      ...{ reasoning: { context: 'all_turns' }, stream: true, stream_options: { include_obfuscation: true } },
      input: [hello, { type: 'file_search_call', id: 'fs_1' }],
    };
    assert.deepEqual(check(fields), [
      ...['max_tool_calls', 'client_metadata', 'reasoning.context', 'include', 'stream_options.include_obfuscation'],
      ...['web_search', 'tools', 'file_search_call'],
    ]);
    assert.deepEqual(check({ include: ['message.output_text.logprobs', 'reasoning.encrypted_content'] }), []);
  });

  it('the response check over a chat takes every service tier of OpenAI', () => {
    const tiers = ['auto', 'default', 'flex', 'scale', 'priority', 'fast', 'ultrafast'];
    for (const tier of tiers) assert.deepEqual(check({ service_tier: tier }), [], tier);
  });

  it('the response check rejects models for legacy completions', () => {
    assert.throws(() => check({}, { legacyCompletions: true }), { code: 'invalid_request_error', param: 'model' });
  });
});

describe('prependItems', () => {
  const items = [{ type: 'message', role: 'user', content: 'Zürich "]' }, hello];
  const later = parse({ instructions: 'x' }).request;
  const empty = parse({ previous_response_id: 'resp_1', input: [], instructions: 'x' }).request;

  it('prependItems puts earlier items before those of a request, as text and as bytes, empty lists included', () => {
    for (const [request, earlier] of [
      [later, items],
      [later, []],
      [empty, items],
      [empty, []],
    ] as const) {
      const { input, ...rest } = JSON.parse(textOf(request));
      const expected = { input: [...earlier, ...input], ...rest };
      for (const list of [JSON.stringify(earlier), ` ${JSON.stringify(earlier, undefined, 2)}\n`]) {
        assert.deepEqual(JSON.parse(textOf(prependItems(request, list))), expected);
        const bytes = prependItems(requestBytes([bytesOf(request)]), list);
        assert.deepEqual(JSON.parse(textOf(bytes)), expected);
        assert.equal(bytes.length, Buffer.concat(bytes.parts).length);
      }
    }
  });

  it('prependItems can be repeated, with the earliest items last', () => {
    const twice = prependItems(prependItems(later, '[{"n":2}]'), '[{"n":1}]');
    assert.deepEqual(JSON.parse(textOf(twice)).input, [{ n: 1 }, { n: 2 }, hello]);
  });
});
