import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { transformJSONSchema } from '@anthropic-ai/sdk/lib/transform-json-schema';
import { anthropicChatFields } from '../../../shared/vendors/anthropic.ts';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import {
  dropped,
  type FieldRow,
  type Fields,
  fieldTrial,
  itProvesFields,
  refused,
  sentAs,
  translatedRows,
} from '../contracts/chat-field-rows.ts';
import { sendJson } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { messageOf, text } from '../recorded/recorded-anthropic.ts';

const apiKey = 'sk-ant-test-0123456789abcdef';
const messages = [{ role: 'user', content: 'Hello!' }];
const oldModel = 'claude-opus-4-6';

const weather = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } };
const time = { type: 'function', function: { name: 'get_time' } };
const tools = [weather, time];
const sentTools = [
  { name: 'get_weather', input_schema: { type: 'object' } },
  { name: 'get_time', input_schema: { type: 'object', properties: {} } },
];
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const answerFormat = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } };

const jsonInWords =
  'Whenever you answer with text, the whole text must be one JSON object: no words before or after it, and no code fence.';

/** Beside the most tokens. */
const rows: readonly FieldRow[] = [
  ...translatedRows,
  ...kept('temperature', 0.5),
  ...kept('top_p', 0.9),
  ...kept('top_k', 40),
  ...kept('cache_control', { type: 'ephemeral', ttl: '1h' }),
  ...kept('thinking', { type: 'enabled', budget_tokens: 3000, display: 'omitted' }),
  ...kept('output_config', { effort: 'max', task_budget: { type: 'tokens', total: 50_000 } }),
  ...kept('inference_geo', 'us'),
  ...kept('a_field_nobody_has_heard_of', { a: [1] }),
  ...mapped('max_tokens', [5, { max_tokens: 5 }]),
  ...mapped('max_completion_tokens', [6, { max_tokens: 6 }]),
  ...mapped('stop', ['END', { stop_sequences: ['END'] }], [['a', 'b'], { stop_sequences: ['a', 'b'] }]),
  ...mapped('user', ['user-1', { metadata: { user_id: 'user-1' } }]),
  ...mapped('safety_identifier', ['user-2', { metadata: { user_id: 'user-2' } }]),
  ...mapped(
    'service_tier',
    ['auto', {}],
    ['default', { service_tier: 'standard_only' }],
    ['priority', {}],
    ['flex', {}],
  ),
  ...mapped('stream_options', [{ include_usage: true }, {}]),
  ...mapped('tools', [tools, { tools: sentTools }], [[], {}]),
  ...mapped(
    'response_format',
    [{ type: 'text' }, {}],
    [answerFormat, { output_config: { format: { type: 'json_schema', schema } } }],
  ),
  ...mapped('reasoning_effort', [
    'high',
    { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } },
  ]),
  choice('auto', { type: 'auto' }),
  choice('none', { type: 'none' }),
  choice('required', { type: 'any' }),
  choice({ type: 'function', function: { name: 'get_time' } }, { type: 'tool', name: 'get_time' }),
  {
    field: 'tool_choice',
    support: 'translated',
    given: { tools, tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [time] } } },
    sent: { tools: sentTools.slice(1), tool_choice: { type: 'any' } },
  },
  parallel({}, { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }),
  parallel({ tool_choice: 'required' }, { tool_choice: { type: 'any', disable_parallel_tool_use: true } }),
  parallel({ tool_choice: 'none' }, { tool_choice: { type: 'none' } }),
  {
    field: 'parallel_tool_calls',
    support: 'translated',
    given: { parallel_tool_calls: true, tools },
    sent: { tools: sentTools },
  },
  ...dropped('frequency_penalty', 0.5),
  ...dropped('presence_penalty', -0.5),
  ...dropped('seed', 7),
  ...refused('n', 2),
  ...refused('logprobs', true),
  { field: 'top_logprobs', support: 'rejected', given: { logprobs: true, top_logprobs: 2 }, refused: 'logprobs' },
  {
    field: 'function_call',
    support: 'rejected',
    given: { functions: [{ name: 'f' }], function_call: 'none' },
    refused: 'functions',
  },
  {
    field: 'response_format.json_object',
    support: 'translated',
    given: { response_format: { type: 'json_object' } },
    sent: { system: [{ type: 'text', text: jsonInWords }] },
  },
];

function kept(field: string, value: unknown): FieldRow[] {
  return sentAs(field, 'native', [value, { [field]: value }]);
}
function mapped(field: string, ...pairs: [unknown, Fields][]): FieldRow[] {
  return sentAs(field, 'translated', ...pairs);
}
function choice(given: unknown, sent: Fields): FieldRow {
  return {
    field: 'tool_choice',
    support: 'translated',
    given: { tools, tool_choice: given },
    sent: { tools: sentTools, tool_choice: sent },
  };
}
function parallel(given: Fields, sent: Fields): FieldRow {
  const field = 'parallel_tool_calls';
  return {
    field,
    support: 'translated',
    given: { [field]: false, tools, ...given },
    sent: { tools: sentTools, ...sent },
  };
}

describe('the chat fields of Anthropic', () => {
  const bench = new VendorBench((baseUrl) => createAnthropic({ name: 'anthropic', baseUrl, apiKey }));
  before(() => bench.server.answer((response) => sendJson(response, 200, JSON.stringify(messageOf([text('Hi')])))));
  const trial = fieldTrial(bench, oldModel);
  const { sentFor, refuses } = trial;
  itProvesFields(rows, anthropicChatFields, trial, { max_tokens: 128_000 });

  it("Anthropic chat treats OpenAI's default values and null as missing fields", async () => {
    const defaults = {
      ...{ n: 1, logprobs: false, temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, store: false },
      ...{ modalities: ['text'], logit_bias: {}, response_format: { type: 'text' }, service_tier: 'auto' },
    };
    for (const model of [oldModel, 'claude-opus-5-5']) {
      assert.deepEqual(await sentFor(defaults, model), { max_tokens: 128_000 });
      const nothing = Object.fromEntries(Object.keys(anthropicChatFields).map((field) => [field, null]));
      const { messages: _messages, tools: _tools, tool_choice: _choice, ...nullable } = nothing;
      assert.deepEqual(await sentFor(nullable, model), { max_tokens: 128_000 });
    }
  });

  it('Anthropic chat caps a temperature over 1, and rejects one beside thinking and all sampling for models without it', async () => {
    for (const high of [1.2, 2]) assert.deepEqual(await sentFor({ temperature: high }), await sentFor({}));
    await refuses({ temperature: 0.2, reasoning_effort: 'low' }, 'temperature');
    await refuses({ temperature: 0.2, thinking: { type: 'adaptive' } }, 'temperature');
    assert.equal((await sentFor({ temperature: 0.2, reasoning_effort: 'none' })).temperature, 0.2);
    for (const model of ['claude-opus-4-7', 'claude-sonnet-5', 'claude-haiku-5-5', 'claude-of-tomorrow']) {
      await refuses({ temperature: 0 }, 'temperature', model);
      await refuses({ top_p: 0.9 }, 'top_p', model);
      await refuses({ top_k: 4 }, 'top_k', model);
    }
  });

  it('the refusal of a temperature that the caller may not have chosen says how to get an answer', async () => {
    const call = sentFor({ temperature: 0.1 }, 'claude-sonnet-5');
    await assert.rejects(
      call,
      /takes only its default, 1\. Leave it out, or use an API key with 'unsupported_parameters'/,
    );
    await assert.rejects(sentFor({ top_k: 4 }, 'claude-sonnet-5'), /takes only its default\. Leave it out/);
    assert.equal((await sentFor({ temperature: 1 }, 'claude-sonnet-5')).temperature, undefined);
  });

  it('of temperature and top_p, models of Claude that refuse both get the temperature alone', async () => {
    const both = { temperature: 0.2, top_p: 0.9 };
    for (const model of ['claude-opus-4-1-20250805', 'claude-sonnet-4-5', 'claude-haiku-4-5@20251001', oldModel]) {
      const { temperature, top_p: topP } = await sentFor({ ...both, top_k: 5 }, model);
      assert.deepEqual([temperature, topP], [0.2, undefined], model);
      assert.equal((await sentFor({ top_p: 0.9 }, model)).top_p, 0.9);
      // The default, 1, is not sent.
      assert.equal((await sentFor({ temperature: 1, top_p: 0.9 }, model)).top_p, 0.9);
    }
    for (const model of ['claude-opus-4-20250514', 'claude-sonnet-4-20250514', 'claude-3-7-sonnet-20250219']) {
      const { temperature, top_p: topP } = await sentFor(both, model);
      assert.deepEqual({ temperature, top_p: topP }, both, model);
    }
  });

  it('an empty text among those that stop Claude is left out, and one of white space is refused before the call', async () => {
    assert.deepEqual((await sentFor({ stop: ['', 'END', ' end'] })).stop_sequences, ['END', ' end']);
    for (const stop of ['', ['', '']]) assert.equal((await sentFor({ stop })).stop_sequences, undefined);
    for (const stop of ['\n', ['END', ' \t']]) await refuses({ stop }, 'stop');
  });

  it('a user whose id Anthropic would refuse, such as an address of mail, is known to it by the SHA-256 of the id', async () => {
    for (const id of ['ann@example.com', '+48 600 700 800', '(555) 123-4567', '12345678', 'u'.repeat(257)]) {
      const hash = createHash('sha256').update(id).digest('hex');
      assert.deepEqual((await sentFor({ user: id })).metadata, { user_id: hash }, id);
      assert.deepEqual((await sentFor({ safety_identifier: id })).metadata, { user_id: hash }, id);
    }
    for (const id of ['ann', '42', 'user_7-a', 'u'.repeat(256), '3f1c2f0a-1111-2222-3333-444455556666']) {
      assert.deepEqual((await sentFor({ user: id })).metadata, { user_id: id });
    }
  });

  it('Anthropic tools keep their description, strictness and cache mark', async () => {
    const full = {
      type: 'function',
      function: { name: 'f', description: 'Does it.', parameters: schema, strict: true },
      cache_control: { type: 'ephemeral' },
    };
    const { tools: sent } = await sentFor({ tools: [full] });
    const { strict, description } = full.function;
    assert.deepEqual(sent, [
      { name: 'f', description, input_schema: schema, strict, cache_control: { type: 'ephemeral' } },
    ]);
  });

  it('Anthropic tools get type object when their parameters have no type', async () => {
    const { tools: sent } = await sentFor({ tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] });
    assert.deepEqual(sent, [{ name: 'f', input_schema: { type: 'object' } }]);
  });

  it("Anthropic chat sends the model's maximum of max_tokens when the request has none", async () => {
    const most: [string, number][] = [
      ['claude-opus-4-1', 32_000],
      ['claude-haiku-4-5-20251001', 64_000],
      ['claude-sonnet-4-6', 64_000],
      ['claude-opus-5-5', 128_000],
      ['claude-opus-4-20250514', 32_000],
      ['claude-sonnet-4-20250514', 64_000],
      ['claude-3-7-sonnet-20250219', 64_000],
      ['claude-3-5-haiku-20241022', 8192],
      ['anthropic.claude-3-5-sonnet-20240620-v1:0', 8192],
      ['claude-3-opus-20240229', 4096],
      ['us.anthropic.claude-3-haiku-20240307-v1:0', 4096],
      ['anthropic.claude-instant-v1', 4096],
      ['claude-opus-9', 128_000],
    ];
    for (const [model, tokens] of most) assert.deepEqual(await sentFor({}, model), { max_tokens: tokens });
    assert.equal((await sentFor({ max_tokens: 5, max_completion_tokens: 6 })).max_tokens, 6);
  });

  it('an older Claude model samples like its family, and reasons only when its family does', async () => {
    for (const model of ['claude-3-haiku-20240307', 'claude-3-5-sonnet-20241022', 'claude-3-7-sonnet-20250219']) {
      assert.equal((await sentFor({ temperature: 0.2 }, model)).temperature, 0.2);
    }
    const { thinking } = await sentFor({ reasoning_effort: 'low' }, 'claude-3-7-sonnet-20250219');
    assert.deepEqual(thinking, { type: 'enabled', budget_tokens: 2048 });
    assert.deepEqual(await sentFor({ reasoning_effort: 'none' }, 'claude-3-5-haiku-20241022'), { max_tokens: 8192 });
    await assert.rejects(sentFor({ reasoning_effort: 'low' }, 'claude-3-5-haiku-20241022'), {
      param: 'reasoning_effort',
    });
  });

  it('Anthropic chat translates reasoning_effort to the form of each model', async () => {
    const adaptive = (effort: string) => ({
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort },
    });
    const budget = (tokens: number) => ({ thinking: { type: 'enabled', budget_tokens: tokens } });
    const cases: [string, string, Fields][] = [
      ['claude-opus-5-5', 'minimal', adaptive('low')],
      ['claude-opus-5-5', 'low', adaptive('low')],
      ['claude-opus-5-5', 'medium', adaptive('medium')],
      ['claude-opus-5-5', 'xhigh', adaptive('xhigh')],
      ['claude-opus-5-5', 'max', adaptive('max')],
      ['claude-opus-5-5', 'none', { output_config: { effort: 'low' } }],
      ['claude-fable-5', 'none', { output_config: { effort: 'low' } }],
      ['claude-opus-5', 'none', { thinking: { type: 'disabled' } }],
      ['claude-sonnet-5-5', 'none', { thinking: { type: 'between_tools' } }],
      ['claude-haiku-5-5', 'none', { thinking: { type: 'disabled' } }],
      ['claude-opus-4-6', 'xhigh', adaptive('high')],
      ['us.anthropic.claude-opus-4-6-v1', 'max', adaptive('max')],
      ['claude-opus-4-5', 'minimal', budget(1024)],
      ['claude-sonnet-4-5', 'low', budget(2048)],
      ['claude-sonnet-4-5', 'medium', budget(8192)],
      ['claude-haiku-4-5', 'high', budget(16_384)],
      ['claude-sonnet-4-5', 'xhigh', budget(32_000)],
      ['claude-sonnet-4-5', 'none', { thinking: { type: 'disabled' } }],
    ];
    for (const [model, effort, expected] of cases) {
      const { max_tokens: _most, ...sent } = await sentFor({ reasoning_effort: effort }, model);
      assert.deepEqual(sent, expected, `${model} ${effort}`);
    }
    await refuses({ reasoning_effort: 'constructor' }, 'reasoning_effort');
  });

  it('an Anthropic thinking budget leaves half of the tokens to the answer, and is omitted for a short answer', async () => {
    const sonnet = 'claude-sonnet-4-5';
    const thought = await sentFor({ reasoning_effort: 'high', max_tokens: 6000 }, sonnet);
    assert.deepEqual(thought, { max_tokens: 6000, thinking: { type: 'enabled', budget_tokens: 3000 } });
    assert.deepEqual(await sentFor({ reasoning_effort: 'high', max_tokens: 2000 }, sonnet), { max_tokens: 2000 });
  });

  it('Anthropic chat leaves thinking out where the choice of tools forces a call, which Anthropic refuses together', async () => {
    const forced = [
      'required',
      { type: 'function', function: { name: 'get_time' } },
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'get_time' } }] },
      },
    ];
    for (const choice of [...forced, 'auto', 'none']) {
      const asked = { tools, tool_choice: choice, reasoning_effort: 'low' };
      const isForced = forced.includes(choice);
      const adaptive = await sentFor(asked, 'claude-opus-4-6');
      assert.deepEqual([adaptive.thinking === undefined, adaptive.output_config], [isForced, { effort: 'low' }]);
      assert.equal((await sentFor(asked, 'claude-sonnet-4-5')).thinking === undefined, isForced);
    }
    const own = { thinking: { type: 'adaptive' }, tools, tool_choice: 'required' };
    assert.deepEqual((await sentFor(own, 'claude-opus-4-6')).thinking, { type: 'adaptive' });
  });

  it('Anthropic chat forbids all calls where no tool is allowed', async () => {
    const choice = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } };
    const sent = await sentFor({ tools, tool_choice: choice, reasoning_effort: 'low' });
    assert.deepEqual(sent.tool_choice, { type: 'none' });
    assert.equal((sent.tools as unknown[]).length, tools.length);
  });

  it('Anthropic chat sends the description of a format in its schema, which may have its own', async () => {
    const formatOf = (given: Fields) => ({
      type: 'json_schema',
      json_schema: { name: 'a', description: 'How.', schema: given },
    });
    for (const [given, sent] of [
      [schema, { description: 'How.', ...schema }],
      [
        { ...schema, description: 'Mine.' },
        { ...schema, description: 'Mine.' },
      ],
    ] as const) {
      const { output_config: config } = await sentFor({ response_format: formatOf(given) });
      assert.deepEqual(config, { format: { type: 'json_schema', schema: sent } });
    }
  });

  it("a schema of an answer, or of a strict tool, goes to Claude as Anthropic's own SDK would send it", async () => {
    const given = {
      type: 'object',
      properties: {
        score: { type: 'integer', description: 'Of ten.', minimum: 1, maximum: 10 },
        name: { type: 'string', minLength: 1, format: 'date' },
        code: { type: 'string', format: 'zip' },
        tags: { type: 'array', items: { type: 'string', maxLength: 9 }, minItems: 2, maxItems: 5 },
        some: { type: 'array', items: { $ref: '#/$defs/part' }, minItems: 1 },
        either: {
          oneOf: [
            { type: 'number', exclusiveMinimum: 0 },
            { type: 'object', properties: {} },
          ],
        },
        minimum: { type: 'string' },
      },
      required: ['score'],
      $defs: { part: { type: 'object', properties: { of: { type: 'number', multipleOf: 2 } } } },
    };
    const json = { name: 'a', schema: given, strict: true };
    const tool = { type: 'function', function: { name: 'f', parameters: given, strict: true } };
    const loose = { type: 'function', function: { name: 'g', parameters: given } };
    const sent = await sentFor({ response_format: { type: 'json_schema', json_schema: json }, tools: [tool, loose] });
    const { schema: answer } = (sent.output_config as { format: { schema: Fields } }).format;
    const [strict, other] = sent.tools as { input_schema: Fields }[];
    const plain = (schema: unknown) =>
      JSON.parse(JSON.stringify(schema, (name, value) => (name === 'description' ? undefined : value)));
    assert.deepEqual(plain(answer), plain(transformJSONSchema(given)));
    assert.deepEqual(strict?.input_schema, answer);
    assert.deepEqual(other?.input_schema, given);
    const { score, tags, code } = answer.properties as Record<string, Fields>;
    assert.equal(score?.description, 'Of ten.\n\n{"minimum":1,"maximum":10}');
    assert.deepEqual([tags?.description, code?.description], ['{"minItems":2,"maxItems":5}', '{"format":"zip"}']);
  });

  it('a schema keeps patterns that structured outputs have, and one that is nested beyond all use is sent as it is', async () => {
    const schemaFor = async (given: Fields) => {
      const format = { type: 'json_schema', json_schema: { name: 'a', schema: given } };
      return ((await sentFor({ response_format: format })).output_config as { format: { schema: Fields } }).format
        .schema;
    };
    assert.deepEqual(await schemaFor({ type: 'string', pattern: '^[a-z]{2}$' }), {
      type: 'string',
      pattern: '^[a-z]{2}$',
    });
    assert.deepEqual(await schemaFor({ type: 'string', pattern: '^(?!a)' }), {
      type: 'string',
      description: '{"pattern":"^(?!a)"}',
    });
    let deep: Fields = { type: 'string', minLength: 1 };
    for (let level = 0; level < 1000; level++) deep = { type: 'array', items: deep };
    assert.ok(JSON.stringify(await schemaFor(deep)).includes('"minLength":1'));
  });

  it('Anthropic chat omits the thinking budget after results of calls made without signed thinking', async () => {
    const calls = [{ id: 'c1', type: 'function', function: { name: 'get_time', arguments: '{}' } }];
    const signed = [{ type: 'thinking', thinking: 'Hm.', signature: 'EqQ=' }];
    const result = { role: 'tool', tool_call_id: 'c1', content: '12:00' };
    const after = (more: Fields, model: string, ...next: Fields[]) => {
      const turns = [...messages, { role: 'assistant', tool_calls: calls, ...more }, result, ...next];
      return sentFor({ messages: turns, tools, reasoning_effort: 'low' }, model);
    };
    const enabled = { type: 'enabled', budget_tokens: 2048 };
    const sonnet = 'claude-sonnet-4-5';
    assert.equal((await after({}, sonnet)).thinking, undefined);
    assert.deepEqual((await after({ thinking_blocks: signed }, sonnet)).thinking, enabled);
    assert.deepEqual((await after({}, sonnet, { role: 'assistant', content: 'Noon.' }, ...messages)).thinking, enabled);
    assert.deepEqual((await after({}, oldModel)).thinking, { type: 'adaptive', display: 'summarized' });
  });

  it("Anthropic's own thinking and output_config override reasoning_effort and combine with a response_format", async () => {
    const thinking = { type: 'adaptive', display: 'omitted' };
    assert.deepEqual(await sentFor({ reasoning_effort: 'low', thinking, max_tokens: 9 }), { max_tokens: 9, thinking });
    const given = { reasoning_effort: 'low', output_config: { effort: 'max' }, response_format: answerFormat };
    assert.deepEqual(await sentFor(given), {
      max_tokens: 128_000,
      output_config: { effort: 'max', format: { type: 'json_schema', schema } },
    });
  });
});
