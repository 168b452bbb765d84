import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ChatRequest, chatRequest } from '../../../shared/capabilities/chat.ts';
import { geminiChatFields } from '../../../shared/vendors/gemini.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import type { Offering } from '../../../workers/vendors/vendor.ts';
import { callOf, collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { answer } from '../recorded/recorded-gemini.ts';

type Known<Fields> = keyof { [Name in keyof Fields as string extends Name ? never : Name]: unknown };
/** Every field of the schema, and those of other APIs' requests that a chat may hold. */
type Field = Exclude<Known<ChatRequest>, 'model' | 'stream'> | 'top_k' | 'cache_control';

interface Sent {
  /** The field's value. */
  readonly value: unknown;
  /** Fields that the schema wants beside it. */
  readonly beside?: Record<string, unknown>;
  /** What the vendor's request holds then beside the contents; left out for what is refused. */
  readonly body?: Record<string, unknown>;
}

const config = (generationConfig: Record<string, unknown>) => ({ generationConfig });
const kept = (name: string, value: unknown): Sent => ({ value, body: config({ [name]: value }) });
const dropped = (value: unknown): Sent => ({ value, body: {} });
const parameters = { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather.', parameters } }];
const declared = [
  { functionDeclarations: [{ name: 'get_weather', description: 'The weather.', parametersJsonSchema: parameters }] },
];
const choosing = (functionCallingConfig: object) => ({ tools: declared, toolConfig: { functionCallingConfig } });
const contents = [{ role: 'user', parts: [{ text: 'Hello!' }] }];

/** The round trip: what is sent for each field, and what arrives. */
const table: Record<Field, readonly Sent[]> = {
  messages: [{ value: [{ role: 'user', content: 'Hello!' }], body: {} }],
  stream_options: [{ value: { include_usage: true }, beside: { stream: true }, body: {} }],
  max_tokens: [{ value: 50, body: config({ maxOutputTokens: 50 }) }],
  max_completion_tokens: [
    { value: 60, body: config({ maxOutputTokens: 60 }) },
    { value: 60, beside: { max_tokens: 50 }, body: config({ maxOutputTokens: 60 }) },
  ],
  temperature: [kept('temperature', 0), kept('temperature', 2)],
  top_p: [kept('topP', 0.25)],
  top_k: [kept('topK', 40)],
  presence_penalty: [kept('presencePenalty', -1.5), { value: 0, body: {} }],
  frequency_penalty: [kept('frequencyPenalty', 1.5), { value: 0, body: {} }],
  seed: [
    { value: 42, body: config({ seed: 42 }) },
    { value: -1, body: config({ seed: -1 }) },
    { value: 2 ** 32 + 7, body: config({ seed: 7 }) },
  ],
  stop: [
    { value: '\n', body: config({ stopSequences: ['\n'] }) },
    { value: ['a', '', 'b'], body: config({ stopSequences: ['a', 'b'] }) },
    { value: '', body: {} },
  ],
  n: [{ value: 8, body: config({ candidateCount: 8 }) }, { value: 1, body: {} }, { value: 9 }],
  logprobs: [
    { value: true, body: config({ responseLogprobs: true }) },
    { value: false, body: {} },
  ],
  top_logprobs: [
    { value: 5, beside: { logprobs: true }, body: config({ responseLogprobs: true, logprobs: 5 }) },
    { value: 0, beside: { logprobs: true }, body: config({ responseLogprobs: true }) },
  ],
  tools: [
    { value: tools, body: { tools: declared } },
    {
      value: [{ type: 'function', function: { name: 'now', strict: true } }],
      body: {
        tools: [{ functionDeclarations: [{ name: 'now' }] }],
        toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } },
      },
    },
    { value: [], body: {} },
  ],
  tool_choice: [
    { value: 'auto', beside: { tools }, body: choosing({ mode: 'AUTO' }) },
    { value: 'none', beside: { tools }, body: choosing({ mode: 'NONE' }) },
    { value: 'required', beside: { tools }, body: choosing({ mode: 'ANY' }) },
    {
      value: { type: 'function', function: { name: 'get_weather' } },
      beside: { tools },
      body: choosing({ mode: 'ANY', allowedFunctionNames: ['get_weather'] }),
    },
    ...(['auto', 'required'] as const).map((mode) => ({
      value: {
        type: 'allowed_tools',
        allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'get_weather' } }] },
      },
      beside: { tools },
      body: choosing({ mode: mode === 'auto' ? 'VALIDATED' : 'ANY', allowedFunctionNames: ['get_weather'] }),
    })),
  ],
  response_format: [
    { value: { type: 'text' }, body: {} },
    { value: { type: 'json_object' }, body: config({ responseMimeType: 'application/json' }) },
    {
      value: { type: 'json_schema', json_schema: { name: 'weather', schema: parameters, strict: true } },
      body: config({ responseMimeType: 'application/json', responseJsonSchema: parameters }),
    },
  ],
  reasoning_effort: [{ value: 'none', body: {} }, { value: 'high' }],
  user: [dropped('u-1')],
  safety_identifier: [dropped('s-1')],
  metadata: [dropped({ a: 'b' })],
  store: [dropped(true)],
  service_tier: [
    { value: 'auto', body: {} },
    { value: 'default', body: { serviceTier: 'standard' } },
    { value: 'flex', body: { serviceTier: 'flex' } },
    { value: 'priority', body: { serviceTier: 'priority' } },
    { value: 'fast', body: { serviceTier: 'priority' } },
    // Gemini itself says what it does not know.
    { value: 'scale', body: { serviceTier: 'scale' } },
  ],
  prompt_cache_key: [dropped('k')],
  prompt_cache_retention: [dropped('24h')],
  prompt_cache_options: [dropped({ ttl: '1h' })],
  cache_control: [dropped({ type: 'ephemeral' })],
  prediction: [dropped({ type: 'content', content: 'x' })],
  verbosity: [dropped('low')],
  parallel_tool_calls: [
    { value: false, beside: { tools }, body: { tools: declared } },
    { value: true, body: {} },
  ],
  logit_bias: [{ value: { 50256: -100 } }, { value: {}, body: {} }],
  functions: [{ value: [{ name: 'f' }] }],
  function_call: [{ value: { name: 'f' }, beside: { functions: [{ name: 'f' }] } }],
  modalities: [{ value: ['text', 'audio'] }, { value: ['text'], body: {} }],
  audio: [{ value: { voice: 'alloy', format: 'mp3' } }],
  moderation: [{ value: { model: 'omni-moderation-latest' } }],
  web_search_options: [{ value: { search_context_size: 'low' } }],
};

describe('the chat fields of Gemini', () => {
  let server: FixtureVendor;
  let vendor: Offering<'chat'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createGemini({
      name: 'gemini',
      baseUrl: server.baseUrl,
      apiKey: 'AIzaSyTest0123456789abcdefghijklmnopqrs',
    });
    server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  const messages = [{ role: 'user', content: 'Hello!' }];
  /** What arrives of a request beside its contents, from a model that does not think. */
  const arriving = async (fields: Record<string, unknown>, model = 'gemini-2.0-flash') => {
    const request = JSON.stringify({ messages, ...fields });
    await vendor.chat(callOf({ model, stream: false, request }), collect());
    const { contents: sent, ...rest } = JSON.parse(server.requests.at(-1)?.body ?? '');
    assert.deepEqual(sent, contents);
    return rest;
  };

  for (const [name, cases] of Object.entries(table)) {
    it(`Gemini chat field ${name} is ${geminiChatFields[name]}`, async () => {
      for (const { value, beside, body } of cases) {
        // What is tried here is what the gateway lets through.
        assert.ok(chatRequest.validate({ model: 'm', messages, [name]: value, ...beside }), JSON.stringify(value));
        const asked = server.requests.length;
        const sent = arriving({ [name]: value, ...beside });
        if (body !== undefined) {
          assert.deepEqual(await sent, body);
          continue;
        }
        await assert.rejects(sent, {
          code: 'invalid_request_error',
          status: 400,
          param: name,
          vendorCode: 'unsupported_value',
        });
        assert.equal(server.requests.length, asked);
      }
    });

    it(`Gemini chat treats null in ${name} as a missing field`, async () => {
      if (name !== 'messages') assert.deepEqual(await arriving({ [name]: null }), {});
    });
  }

  // Of what is inside of messages the suite of messages says what is dropped.
  const elsewhere = ['*', ...Object.keys(geminiChatFields).filter((name) => name.startsWith('messages.'))];

  it('the support table of Gemini states the support of each chat field', () => {
    assert.deepEqual(
      Object.keys(geminiChatFields).toSorted(),
      [...Object.keys(table), 'model', 'stream', ...elsewhere].toSorted(),
    );
    for (const [name, cases] of Object.entries(table)) {
      const isRefused = cases[0]?.body === undefined;
      assert.equal(geminiChatFields[name] === 'rejected', isRefused, name);
      if (geminiChatFields[name] === 'ignored')
        assert.ok(cases.every(({ body }) => Object.keys(body ?? {}).length === 0));
    }
  });

  it('Gemini chat rejects an unknown field by its name', async () => {
    await assert.rejects(arriving({ google_search: true }), { status: 400, param: 'google_search' });
    await assert.rejects(arriving({ constructor: 1 }), { status: 400, param: 'constructor' });
  });

  it('Gemini chat translates several fields together', async () => {
    const fields = { temperature: 1, n: 1, seed: 5, user: 'u', tools, logprobs: false, stop: ['x'], top_p: 1 };
    assert.deepEqual(await arriving(fields), {
      tools: declared,
      generationConfig: { temperature: 1, topP: 1, seed: 5, stopSequences: ['x'] },
    });
  });

  it("Gemini chat translates reasoning_effort to each model's own measure, and requests summaries of thoughts", async () => {
    const efforts = [undefined, 'none', 'minimal', 'low', 'medium', 'high', 'xhigh'];
    const expected: Record<string, unknown[]> = {
      'gemini-2.5-flash': [undefined, 0, 1024, 1024, 8192, 24_576, 24_576],
      'gemini-2.5-pro': [undefined, 128, 1024, 1024, 8192, 24_576, 24_576],
      'gemini-3-flash-preview': [undefined, 'MINIMAL', 'MINIMAL', 'LOW', 'MEDIUM', 'HIGH', 'HIGH'],
      'gemini-3.5-flash-lite': [undefined, 'MINIMAL', 'MINIMAL', 'LOW', 'MEDIUM', 'HIGH', 'HIGH'],
      'gemini-3.8-flash': [undefined, 'LOW', 'LOW', 'LOW', 'MEDIUM', 'HIGH', 'HIGH'],
      'gemini-3.1-pro-preview': [undefined, 'LOW', 'LOW', 'LOW', 'MEDIUM', 'HIGH', 'HIGH'],
      'gemini-4-argon': [undefined, 'LOW', 'LOW', 'LOW', 'MEDIUM', 'HIGH', 'HIGH'],
      'gemini-flash-latest': [undefined, 'LOW', 'LOW', 'LOW', 'MEDIUM', 'HIGH', 'HIGH'],
      'gemma-4-31b-it': [undefined, 'MINIMAL', 'MINIMAL', 'HIGH', 'HIGH', 'HIGH', 'HIGH'],
      'gemma-4-26b-a4b-it': [undefined, 'MINIMAL', 'MINIMAL', 'HIGH', 'HIGH', 'HIGH', 'HIGH'],
    };
    for (const [model, settings] of Object.entries(expected)) {
      for (const [index, effort] of efforts.entries()) {
        const setting = settings[index];
        const named = typeof setting === 'number' ? { thinkingBudget: setting } : setting && { thinkingLevel: setting };
        const thinkingConfig = setting === 0 ? named : { includeThoughts: true, ...(named as object) };
        assert.deepEqual(await arriving({ reasoning_effort: effort }, model), { generationConfig: { thinkingConfig } });
      }
    }
    await assert.rejects(arriving({ reasoning_effort: 'low' }, 'gemma-3-27b-it'), { param: 'reasoning_effort' });
    await assert.rejects(arriving({ reasoning_effort: 'much' }, 'gemini-3.8-flash'), { param: 'reasoning_effort' });
    await assert.rejects(arriving({ reasoning_effort: 'toString' }, 'gemini-3.8-flash'), { param: 'reasoning_effort' });
  });

  it('Gemini chat rejects tools that are no functions with their path', async () => {
    const custom = { type: 'custom', custom: { name: 'patch' } };
    await assert.rejects(arriving({ tools: [...tools, custom] }), { status: 400, param: 'tools[1].type' });
    const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'image_generation' }] } };
    await assert.rejects(arriving({ tools, tool_choice: allowed }), {
      status: 400,
      param: 'tool_choice.allowed_tools.tools[0]',
    });
    const choice = { type: 'custom', custom: { name: 'patch' } };
    await assert.rejects(arriving({ tools, tool_choice: choice }), { status: 400, param: 'tool_choice.type' });
  });

  it('the parameters of a tool that have no type are those of an object for Gemini, which requires one', async () => {
    const tool = (parameters: object) => ({ type: 'function', function: { name: 'f', parameters } });
    const properties = { a: { type: 'string' } };
    const { tools } = await arriving({ tools: [tool({}), tool({ properties })] });
    assert.deepEqual(tools[0].functionDeclarations, [
      { name: 'f', parametersJsonSchema: { type: 'object' } },
      { name: 'f', parametersJsonSchema: { type: 'object', properties } },
    ]);
  });

  it('Gemini chat sends the description of a format in its schema, which may have its own', async () => {
    for (const [given, sent] of [
      [{ type: 'object' }, { description: 'How.', type: 'object' }],
      [{ description: 'Mine.' }, { description: 'Mine.' }],
    ]) {
      const format = { type: 'json_schema', json_schema: { name: 'a', description: 'How.', schema: given } };
      const { generationConfig } = (await arriving({ response_format: format }, 'gemini-2.5-flash')) as {
        generationConfig: { responseJsonSchema: unknown };
      };
      assert.deepEqual(generationConfig.responseJsonSchema, sent);
    }
  });

  it('Gemini chat forbids all calls where no tool is allowed, because an empty list would allow all', async () => {
    for (const mode of ['auto', 'required']) {
      const choice = { type: 'allowed_tools', allowed_tools: { mode, tools: [] } };
      const { toolConfig } = (await arriving({ tools, tool_choice: choice })) as { toolConfig: unknown };
      assert.deepEqual(toolConfig, { functionCallingConfig: { mode: 'NONE' } });
    }
  });
});
