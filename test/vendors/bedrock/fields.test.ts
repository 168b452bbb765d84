import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { bedrockChatFields } from '../../../shared/vendors/bedrock.ts';
import { chatFieldSupport } from '../../../shared/vendors/field-support.ts';
import { findVendorRow } from '../../../shared/vendors/vendors.ts';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
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
import { answerOf, text, toJson } from '../recorded/recorded-bedrock.ts';

const apiKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';
const claude = 'us.anthropic.claude-opus-4-6-v1';
const sonnet = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const nova = 'us.amazon.nova-lite-v1:0';
const nova2 = 'global.amazon.nova-2-lite-v1:0';
const gpt = 'us.openai.gpt-6-sol';
const gptOss = 'openai.gpt-oss-120b-1:0';
const llama = 'us.meta.llama3-3-70b-instruct-v1:0';

const weather = { type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } };
const time = { type: 'function', function: { name: 'get_time' } };
const tools = [weather, time];
const sentTools = [
  { toolSpec: { name: 'get_weather', inputSchema: { json: { type: 'object' } } } },
  { toolSpec: { name: 'get_time', inputSchema: { json: { type: 'object', properties: {} } } } },
];
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const answerFormat = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } };
const sentFormat = {
  type: 'json_schema',
  structure: { jsonSchema: { schema: JSON.stringify(schema), name: 'answer' } },
};
const additional = (fields: Fields): Fields => ({ additionalModelRequestFields: fields });
const inference = (config: Fields): Fields => ({ inferenceConfig: config });

/** The model is Claude. */
const rows: readonly FieldRow[] = [
  ...translatedRows,
  ...sentAs('temperature', 'native', [0.5, inference({ temperature: 0.5 })]),
  ...sentAs('top_p', 'native', [0.9, inference({ topP: 0.9 })]),
  ...sentAs('top_k', 'translated', [40, additional({ top_k: 40 })]),
  ...sentAs('max_tokens', 'translated', [5, inference({ maxTokens: 5 })]),
  ...sentAs('max_completion_tokens', 'translated', [6, inference({ maxTokens: 6 })]),
  ...sentAs(
    'stop',
    'translated',
    ['END', { ...inference({ stopSequences: ['END'] }), additionalModelResponseFieldPaths: ['/stop_sequence'] }],
    [
      ['a', 'b'],
      { ...inference({ stopSequences: ['a', 'b'] }), additionalModelResponseFieldPaths: ['/stop_sequence'] },
    ],
  ),
  ...sentAs('stream_options', 'translated', [{ include_usage: true }, {}]),
  ...sentAs('tools', 'translated', [tools, { toolConfig: { tools: sentTools } }], [[], {}]),
  ...sentAs(
    'response_format',
    'translated',
    [{ type: 'text' }, {}],
    [answerFormat, { outputConfig: { textFormat: sentFormat } }],
  ),
  ...sentAs('reasoning_effort', 'translated', [
    'high',
    {
      ...additional({ thinking: { type: 'adaptive', display: 'summarized' } }),
      outputConfig: { effort: 'high' },
    },
  ]),
  ...sentAs(
    'service_tier',
    'translated',
    ['auto', {}],
    ['default', { serviceTier: { type: 'default' } }],
    ['flex', { serviceTier: { type: 'flex' } }],
    ['priority', { serviceTier: { type: 'priority' } }],
  ),
  ...sentAs('thinking', 'translated', [
    { type: 'enabled', budget_tokens: 3000 },
    { ...additional({ thinking: { type: 'enabled', budget_tokens: 3000 } }), ...inference({ maxTokens: 128_000 }) },
  ]),
  ...sentAs(
    'output_config',
    'translated',
    [{ effort: 'max' }, { outputConfig: { effort: 'max' } }],
    [
      { task_budget: { type: 'tokens', total: 50_000 } },
      additional({ output_config: { task_budget: { type: 'tokens', total: 50_000 } } }),
    ],
  ),
  ...sentAs('additionalModelRequestFields', 'native', [{ a: [1] }, additional({ a: [1] })]),
  ...sentAs('guardrailConfig', 'native', [
    { guardrailIdentifier: 'abc', guardrailVersion: '1' },
    { guardrailConfig: { guardrailIdentifier: 'abc', guardrailVersion: '1' } },
  ]),
  ...sentAs('performanceConfig', 'native', [{ latency: 'optimized' }, { performanceConfig: { latency: 'optimized' } }]),
  choice('auto', {}),
  choice('required', { toolChoice: { any: {} } }),
  choice({ type: 'function', function: { name: 'get_time' } }, { toolChoice: { tool: { name: 'get_time' } } }),
  { field: 'tool_choice', support: 'translated', given: { tools, tool_choice: 'none' }, sent: {} },
  {
    field: 'tool_choice',
    support: 'translated',
    given: { tools, tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [time] } } },
    sent: { toolConfig: { tools: sentTools.slice(1), toolChoice: { any: {} } } },
  },
  parallel({}, {}, { type: 'auto', disable_parallel_tool_use: true }),
  parallel({ tool_choice: 'required' }, { toolChoice: { any: {} } }, { disable_parallel_tool_use: true }),
  ...['none', undefined].map(
    (toolChoice): FieldRow => ({
      ...{ field: 'parallel_tool_calls', support: 'translated', sent: {} },
      given: { parallel_tool_calls: false, ...(toolChoice && { tools, tool_choice: toolChoice }) },
    }),
  ),
  ...dropped('user', 'user-1'),
  ...dropped('safety_identifier', 'user-2'),
  ...dropped('seed', 7),
  ...dropped('frequency_penalty', 0.5),
  ...dropped('presence_penalty', -0.5),
  ...dropped('cache_control', { type: 'ephemeral' }),
  ...refused('n', 2),
  ...refused('logprobs', true),
  ...refused('function_call', 'none'),
  ...refused('a_field_nobody_has_heard_of', { a: [1] }),
  { field: 'top_logprobs', support: 'rejected', given: { top_logprobs: 2 }, refused: 'top_logprobs' },
  {
    field: 'response_format.json_object',
    support: 'translated',
    given: { response_format: { type: 'json_object' } },
    sent: {
      system: [
        {
          text: 'Whenever you answer with text, the whole text must be one JSON object: no words before or after it, and no code fence.',
        },
      ],
    },
  },
];

function choice(given: unknown, sent: Fields): FieldRow {
  const toolConfig = { tools: sentTools, ...sent };
  return { field: 'tool_choice', support: 'translated', given: { tools, tool_choice: given }, sent: { toolConfig } };
}
function parallel(given: Fields, config: Fields, toolChoice: Fields): FieldRow {
  return {
    ...{ field: 'parallel_tool_calls', support: 'translated' },
    given: { parallel_tool_calls: false, tools, ...given },
    sent: { toolConfig: { tools: sentTools, ...config }, ...additional({ tool_choice: toolChoice }) },
  };
}

describe('the chat fields of Bedrock', () => {
  const bench = new VendorBench((baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey }));
  before(() => bench.server.answer((response) => sendJson(response, 200, toJson(answerOf([text('Hi')])))));
  const trial = fieldTrial(bench, claude);
  const { sentFor, refuses } = trial;
  itProvesFields(rows, bedrockChatFields, trial);

  it('the vendor row of Bedrock uses bedrockChatFields', () => {
    assert.equal(chatFieldSupport(findVendorRow('bedrock') ?? assert.fail()), bedrockChatFields);
  });

  it("Bedrock chat treats OpenAI's default values and null as missing fields, except for models with other defaults", async () => {
    const defaults = {
      ...{ n: 1, logprobs: false, temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, store: false },
      ...{ modalities: ['text'], logit_bias: {}, response_format: { type: 'text' }, service_tier: 'auto' },
      ...{ parallel_tool_calls: true, tool_choice: 'auto' },
    };
    assert.deepEqual(await sentFor(defaults), {});
    // Others have defaults of their own, so that OpenAI's is a value like others.
    assert.deepEqual(await sentFor(defaults, llama), inference({ temperature: 1, topP: 1 }));
    const nothing = Object.fromEntries(Object.keys(bedrockChatFields).map((field) => [field, null]));
    const { messages: _messages, tools: _tools, tool_choice: _choice, '*': _any, ...nullable } = nothing;
    for (const model of [claude, nova, nova2, gpt, gptOss, llama]) assert.deepEqual(await sentFor(nullable, model), {});
  });

  it('Bedrock chat rejects a temperature over 1, which Claude gets as 1, or beside thinking, and all sampling for models without it', async () => {
    for (const model of [nova, llama]) await refuses({ temperature: 1.2 }, 'temperature', model);
    assert.deepEqual(await sentFor({ temperature: 1.2 }), {});
    await refuses({ temperature: 0.2, reasoning_effort: 'low' }, 'temperature');
    for (const model of ['us.anthropic.claude-opus-4-7', 'global.anthropic.claude-sonnet-5']) {
      await refuses({ temperature: 0 }, 'temperature', model);
      await refuses({ top_p: 0.9 }, 'top_p', model);
      await refuses({ top_k: 4 }, 'top_k', model);
    }
  });

  it('Bedrock chat translates top_k for each model family, and rejects it for families without it', async () => {
    const ofNova = additional({ inferenceConfig: { topK: 40 } });
    assert.deepEqual(await sentFor({ top_k: 40 }, nova), ofNova);
    assert.deepEqual(await sentFor({ top_k: 40 }, nova2), ofNova);
    for (const model of [gpt, gptOss, llama]) await refuses({ top_k: 40 }, 'top_k', model);
  });

  it('Bedrock chat translates reasoning_effort for each model family, and rejects it for families without it', async () => {
    const novaEffort = (effort: string) =>
      additional({ reasoningConfig: { type: 'enabled', maxReasoningEffort: effort } });
    const budget = (tokens: number) => ({
      ...additional({ thinking: { type: 'enabled', budget_tokens: tokens } }),
      ...inference({ maxTokens: 64_000 }),
    });
    const cases: [string, string, Fields][] = [
      [claude, 'none', additional({ thinking: { type: 'disabled' } })],
      ['global.anthropic.claude-opus-5-5', 'none', { outputConfig: { effort: 'low' } }],
      [sonnet, 'minimal', budget(1024)],
      [sonnet, 'high', budget(16_384)],
      [nova2, 'none', additional({ reasoningConfig: { type: 'disabled' } })],
      [nova2, 'minimal', novaEffort('low')],
      [nova2, 'medium', novaEffort('medium')],
      [nova2, 'max', novaEffort('high')],
      [gpt, 'none', additional({ reasoning: { effort: 'none' } })],
      [gpt, 'minimal', additional({ reasoning: { effort: 'low' } })],
      [gpt, 'xhigh', additional({ reasoning: { effort: 'xhigh' } })],
      [gptOss, 'none', additional({ reasoning_effort: 'low' })],
      [gptOss, 'medium', additional({ reasoning_effort: 'medium' })],
      [gptOss, 'xhigh', additional({ reasoning_effort: 'high' })],
    ];
    for (const [model, effort, expected] of cases) {
      assert.deepEqual(await sentFor({ reasoning_effort: effort }, model), expected, `${model} ${effort}`);
    }
    for (const model of [claude, nova2, gpt, gptOss]) {
      await refuses({ reasoning_effort: 'constructor' }, 'reasoning_effort', model);
    }
    for (const model of [nova, llama]) {
      await refuses({ reasoning_effort: 'low' }, 'reasoning_effort', model);
      assert.deepEqual(await sentFor({ reasoning_effort: 'none' }, model), await sentFor({}, model), model);
    }
    for (const model of [nova, nova2, gpt, gptOss, llama]) {
      await refuses({ thinking: { type: 'adaptive' } }, 'thinking', model);
      await refuses({ output_config: { effort: 'low' } }, 'output_config', model);
    }
  });

  it('Bedrock is not told parallel_tool_calls: false for models that do not know it', async () => {
    for (const model of [nova, gpt, llama]) {
      assert.deepEqual(await sentFor({ tools, parallel_tool_calls: false }, model), {
        toolConfig: { tools: sentTools },
      });
      assert.deepEqual(await sentFor({ parallel_tool_calls: false }, model), {});
    }
  });

  it("Bedrock combines a response_format with an effort, and the model's own fields with those of the chat", async () => {
    const given = {
      ...{ reasoning_effort: 'low', response_format: answerFormat, max_tokens: 9 },
      additionalModelRequestFields: { anthropic_beta: ['some-beta'] },
    };
    assert.deepEqual(await sentFor(given), {
      ...inference({ maxTokens: 9 }),
      outputConfig: { textFormat: sentFormat, effort: 'low' },
      ...additional({ thinking: { type: 'adaptive', display: 'summarized' }, anthropic_beta: ['some-beta'] }),
    });
  });

  it('the schema of an answer goes to Bedrock without the keywords that its structured outputs refuse', async () => {
    const given = { type: 'object', properties: { age: { type: 'integer', minimum: 0 } } };
    const sent = { type: 'object', properties: { age: { type: 'integer', description: '{"minimum":0}' } } };
    const format = { type: 'json_schema', json_schema: { name: 'answer', schema: given } };
    for (const model of [claude, llama]) {
      const { outputConfig } = await sentFor({ response_format: format }, model);
      const { schema: text } = (outputConfig as { textFormat: typeof sentFormat }).textFormat.structure.jsonSchema;
      assert.deepEqual(JSON.parse(text), { ...sent, additionalProperties: false });
    }
  });

  it('of texts that stop an answer Bedrock gets no empty ones, and Claude there none of white space', async () => {
    assert.deepEqual(await sentFor({ stop: ['', '\n'] }, nova), inference({ stopSequences: ['\n'] }));
    for (const model of [claude, nova]) assert.deepEqual(await sentFor({ stop: '' }, model), {});
    await refuses({ stop: ['END', '\n'] }, 'stop');
  });

  it('Claude at Bedrock gets the temperature alone beside top_p', async () => {
    assert.deepEqual(await sentFor({ temperature: 0.2, top_p: 0.9 }), inference({ temperature: 0.2 }));
    assert.deepEqual(await sentFor({ temperature: 0.2, top_p: 0.9 }, nova), inference({ temperature: 0.2, topP: 0.9 }));
  });

  it('Bedrock requests the stop sequence that was hit only from Claude', async () => {
    assert.deepEqual(await sentFor({ stop: 'END' }, nova), inference({ stopSequences: ['END'] }));
  });
});
