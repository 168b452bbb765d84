import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { messages } from '../../../api/endpoints/messages/messages.ts';
import { type MessageViewOptions, parseMessages } from '../../../api/endpoints/messages/parse-messages.ts';
import { textOf } from '../../../api/pipeline/request-text.ts';
import type { Model } from '../../../shared/catalogue/models.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { throughLog } from '../../support/through-log.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';

type Fields = Record<string, unknown>;
type Request = Anthropic.MessageCreateParamsNonStreaming;

const apiKey = 'a-key-of-some-length-0123456789';

/** What a vendor is sent for a message, and the message that its answer becomes. @param answer made from what it was sent */
async function ask(
  name: string,
  request: Request,
  answer: (sent: Fields) => object,
  facts: Pick<Model, 'maxOutputTokens'> = {},
): Promise<[Fields, Anthropic.Message]> {
  const server = await startFixtureVendor();
  const vendor = createVendor(name, vendorSettings(name, server.baseUrl, apiKey), apiKey);
  server.answer((response, { body }) => sendJson(response, 200, JSON.stringify(answer(JSON.parse(body)))));
  const parsed = await parseMessages(Buffer.from(JSON.stringify(request)));
  const call = callOf({ model: request.model, stream: false, request: textOf(parsed.request) });
  const row = { ...madeUpModel({ id: request.model, capability: 'chat' }, name), ...facts };
  const end = await executeChat({ vendor, row, endpoint: 'messages', keep: false, call, sink: collect() });
  await vendor.close();
  await server.close();
  const viewOptions = JSON.parse(JSON.stringify(parsed.viewOptions)) as MessageViewOptions;
  const job = { id: 'j', model: request.model, createdAt: 0, viewOptions, link: (file: string) => file };
  const held = messages.view.held(job, throughLog([{ type: 'end', text: end.body }], [1]));
  return [JSON.parse(server.requests[0]?.body ?? ''), JSON.parse(held)];
}

const long = `mcp__${'a'.repeat(118)}__get`;
const request: Request = {
  model: 'a-model',
  max_tokens: 100,
  tools: [
    { name: long, input_schema: { type: 'object' } },
    { name: 'short', input_schema: { type: 'object' } },
  ],
  tool_choice: { type: 'tool', name: long },
  messages: [
    { role: 'user', content: 'Go.' },
    {
      role: 'assistant',
      content: [
        { type: 'tool_use', id: 'toolu_1', name: long, input: {} },
        { type: 'tool_use', id: 'toolu_2', name: 'short', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: 'no such file', is_error: true },
        { type: 'tool_result', tool_use_id: 'toolu_2', content: 'Error: said, not meant' },
      ],
    },
  ],
};
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

describe("messages at vendors with other limits than Anthropic's", () => {
  it('a limit above the maximum of its model is lowered to that, except at Anthropic', async () => {
    const message = { role: 'assistant', content: 'Hello.' };
    const completion = () => ({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage });
    const asked = { '"max_completion_tokens":99999': ['x'] };
    const said = { role: 'user' as const, content: 'Say "max_completion_tokens":99999' };
    for (const [given, maxOutputTokens, expected] of [
      [32_000, 8192, 8192],
      [8192, 8192, 8192],
      [100, 8192, 100],
      [32_000, undefined, 32_000],
    ] as const) {
      const facts = maxOutputTokens === undefined ? {} : { maxOutputTokens };
      const tool = { name: 'get', input_schema: { type: 'object' as const, properties: asked } };
      const own = { model: 'a-model', max_tokens: given, messages: [said], tools: [tool] };
      const [{ max_completion_tokens: sent, ...rest }] = await ask('openai', own, completion, facts);
      assert.equal(sent, expected);
      const [{ max_completion_tokens: _, ...unlimited }] = await ask('openai', own, completion);
      assert.deepEqual(rest, unlimited);
    }
    const claude = {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
    };
    const answer = () => ({ ...claude, usage: { input_tokens: 1, output_tokens: 1 } });
    const [{ max_tokens: sent }] = await ask('anthropic', { ...request, max_tokens: 32_000 }, answer, {
      maxOutputTokens: 8192,
    });
    assert.equal(sent, 32_000);
  });

  it('a tool with a name too long for a chat is called under a shorter one, and shown under its own', async () => {
    for (const name of ['openai', 'deepseek', 'azure']) {
      const [sent, shown] = await ask(name, request, ({ tool_choice: choice }) => {
        const { function: chosen } = choice as { function: { name: string } };
        const call = { id: 'call_1', type: 'function', function: { name: chosen.name, arguments: '{}' } };
        const message = { role: 'assistant', content: null, tool_calls: [call] };
        return { choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage };
      });
      const { name: flat } = (sent.tool_choice as { function: { name: string } }).function;
      assert.match(flat, /^mcp__a{50}_[0-9a-f]{8}$/);
      const named = (calls: unknown): unknown =>
        (calls as { function: { name: string } }[]).map(({ function: { name: each } }) => each);
      assert.deepEqual(named(sent.tools), [flat, 'short']);
      const [, turn, failed, fine] = sent.messages as [unknown, Fields, Fields, Fields];
      assert.deepEqual(named(turn.tool_calls), [flat, 'short']);
      assert.deepEqual(failed, { role: 'tool', tool_call_id: 'toolu_1', content: 'Error: no such file' });
      assert.deepEqual(fine, { role: 'tool', tool_call_id: 'toolu_2', content: 'Error: said, not meant' });
      const [block] = shown.content;
      assert.equal(block?.type === 'tool_use' && block.name, long);
    }
  });

  it('a schema with properties that may be left out is not strict at OpenAI, which refuses it so, and is at Anthropic', async () => {
    const whole = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    };
    const other = {
      whole,
      choice: { ...whole, properties: { ...whole.properties, b: { type: 'string' } } },
      inner: { ...whole, properties: { a: { type: 'array', items: { type: 'object', properties: {} } } } },
      uri: { ...whole, properties: { a: { type: 'string', format: 'uri' } } },
      either: { ...whole, properties: { a: { anyOf: [whole, { $ref: '#/$defs/b' }] } }, $defs: { b: whole } },
    };
    const fitting = ['whole', 'either'];
    for (const [name, schema] of Object.entries(other)) {
      const asked = {
        ...{ model: 'a-model', max_tokens: 100, messages: [{ role: 'user', content: 'Go.' }] },
        tools: [{ name: 'f', input_schema: schema, strict: true }],
        output_config: { format: { type: 'json_schema', schema } },
      } as Request;
      const answer = {
        choices: [{ index: 0, message: { role: 'assistant', content: '{}' }, finish_reason: 'stop' }],
        usage,
      };
      const [sent] = await ask('openai', asked, () => answer);
      const [tool] = sent.tools as { function: Fields }[];
      const { json_schema: format } = sent.response_format as { json_schema: Fields };
      const isStrict = fitting.includes(name) ? true : undefined;
      assert.deepEqual([tool?.function.strict, format.strict], [isStrict, isStrict], name);
      assert.deepEqual([tool?.function.parameters, format.schema], [schema, schema], name);
      const [atAnthropic] = await ask('anthropic', asked, () => ({
        ...{ type: 'message', content: [{ type: 'text', text: '{}' }], stop_reason: 'end_turn' },
      }));
      assert.equal((atAnthropic.tools as Fields[])[0]?.strict, true);
    }
  });

  it('Anthropic itself gets long names and failed results as they are', async () => {
    const [sent, shown] = await ask('anthropic', request, () => ({
      ...{
        type: 'message',
        content: [{ type: 'tool_use', id: 'toolu_3', name: long, input: {} }],
        stop_reason: 'tool_use',
      },
    }));
    const [, turn, results] = sent.messages as [unknown, { content: Fields[] }, { content: Fields[] }];
    assert.equal(turn.content[0]?.name, long);
    const text = (said: string) => [{ type: 'text', text: said }];
    assert.deepEqual(results.content, [
      { type: 'tool_result', tool_use_id: 'toolu_1', content: text('no such file'), is_error: true },
      { type: 'tool_result', tool_use_id: 'toolu_2', content: text('Error: said, not meant') },
    ]);
    assert.equal(shown.content[0]?.type === 'tool_use' && shown.content[0].name, long);
  });

  it('Bedrock and Gemini get failed results in their own form', async () => {
    const converse = { output: { message: { role: 'assistant', content: [{ text: 'Hm.' }] } }, stopReason: 'end_turn' };
    const [atBedrock] = await ask('bedrock', { ...request, model: 'us.anthropic.claude-opus-4-6-v1' }, () => converse);
    const [, , results] = atBedrock.messages as [unknown, unknown, { content: Fields[] }];
    assert.deepEqual(results.content, [
      { toolResult: { toolUseId: 'toolu_1', content: [{ text: 'no such file' }], status: 'error' } },
      { toolResult: { toolUseId: 'toolu_2', content: [{ text: 'Error: said, not meant' }] } },
    ]);
    const [atLlama] = await ask('bedrock', { ...request, model: 'us.meta.llama3-3-70b-instruct-v1:0' }, () => converse);
    assert.deepEqual((atLlama.messages as [unknown, unknown, { content: Fields[] }])[2].content[0], {
      toolResult: { toolUseId: 'toolu_1', content: [{ text: 'Error: no such file' }] },
    });
    const { tool_choice: _choice, tools: _tools, ...untooled } = request;
    const [asText] = await ask('bedrock', { ...untooled, model: 'us.anthropic.claude-opus-4-6-v1' }, () => converse);
    assert.match(JSON.stringify(asText.messages), /toolu_1..>..Error: no such file/);
    const candidate = { content: { role: 'model', parts: [{ text: 'Hm.' }] }, finishReason: 'STOP', index: 0 };
    const [atGemini] = await ask('gemini', { ...request, model: 'gemini-2.5-flash' }, () => ({
      candidates: [candidate],
    }));
    const [, , answered] = atGemini.contents as [unknown, unknown, { parts: { functionResponse: Fields }[] }];
    assert.deepEqual(
      answered.parts.map(({ functionResponse: { response } }) => response),
      [{ error: 'no such file' }, { output: 'Error: said, not meant' }],
    );
  });
});

describe('thinking of messages at Bedrock', () => {
  const converse = { output: { message: { role: 'assistant', content: [{ text: 'Hm.' }] } }, stopReason: 'end_turn' };
  const thinking = { type: 'adaptive' as const, display: 'summarized' as const };
  const sentFor = async (model: string, more: object): Promise<unknown[]> => {
    const asked = { model, max_tokens: 4000, messages: [{ role: 'user' as const, content: 'Hi' }], ...more };
    const [sent] = await ask('bedrock', asked, () => converse);
    return [sent.additionalModelRequestFields, sent.outputConfig];
  };

  it('adaptive thinking of a Claude at Bedrock, which thinks only if that is requested, is requested', async () => {
    for (const model of ['us.anthropic.claude-opus-4-6-v1', 'global.anthropic.claude-opus-4-8']) {
      assert.deepEqual(await sentFor(model, { thinking }), [{ thinking }, undefined]);
    }
    assert.deepEqual(await sentFor('us.anthropic.claude-opus-4-6-v1', { thinking, output_config: { effort: 'low' } }), [
      { thinking },
      { effort: 'low' },
    ]);
  });

  it('adaptive thinking is left out for a model at Bedrock that does not have it', async () => {
    for (const model of [
      'us.anthropic.claude-haiku-4-5-20251001-v1:0',
      'us.amazon.nova-2-lite-v1:0',
      'an-own-profile',
    ]) {
      assert.deepEqual(await sentFor(model, { thinking }), [undefined, undefined]);
    }
  });
});

it("a vendor's error about a field of the chat names the caller's own field, in messages and in completions", async () => {
  const server = await startFixtureVendor();
  const vendor = createVendor('openai', vendorSettings('openai', server.baseUrl, apiKey), apiKey);
  const row = madeUpModel({ id: 'm', capability: 'chat' });
  const refusal = async (endpoint: string, fields: object, param: string): Promise<unknown> => {
    const error = { message: `Invalid value: '${param}': too many.`, type: 'invalid_request_error', param, code: 'x' };
    server.answer((response) => sendJson(response, 400, JSON.stringify({ error })));
    const call = callOf({ model: 'm', stream: false, request: JSON.stringify(fields) });
    const failed = await executeChat({ vendor, row, endpoint, keep: false, call, sink: collect() }).catch(
      (thrown) => thrown,
    );
    return [failed.param, failed.message, failed.status];
  };
  const chat = { messages: [{ role: 'user', content: 'Hi' }], max_completion_tokens: 9, stop: ['a'] };
  const result = { role: 'tool', tool_call_id: 'a', content: 'x' };
  const [hi, answer] = [chat.messages[0], { role: 'assistant', content: 'Ho' }];
  const long = { messages: [{ role: 'system', content: 'Be kind.' }, hi, answer, result, result, hi, answer, hi] };
  for (const [endpoint, fields, param, own] of [
    ['messages', chat, 'max_completion_tokens', 'max_tokens'],
    ['messages', chat, 'stop', 'stop_sequences'],
    ['messages', chat, 'messages[0].content', 'messages[0].content'],
    ['messages', long, 'messages[0].content', 'system'],
    ['messages', long, 'messages[1].content[2].image_url.url', 'messages[0].content[2]'],
    ['messages', long, 'messages[2].tool_calls[0].function.name', 'messages[1]'],
    ['messages', long, 'messages[3].content', 'messages[2]'],
    ['messages', long, 'messages[4].content', 'messages[2]'],
    ['messages', long, 'messages[5].content[0]', 'messages[2]'],
    ['messages', long, 'messages[6].content', 'messages[3]'],
    ['messages', long, 'messages[7].content[1]', 'messages[4].content[1]'],
    ['messages', long, 'messages[9].content', 'messages[9].content'],
    ['completions', { prompt: 'Hi' }, 'max_completion_tokens', 'max_tokens'],
    ['completions', { prompt: 'Hi' }, 'messages[0].content', 'prompt'],
    ['chat', chat, 'max_completion_tokens', 'max_completion_tokens'],
  ] as const) {
    assert.deepEqual(await refusal(endpoint, fields, param), [own, `Invalid value: '${own}': too many.`, 400]);
  }
  await vendor.close();
  await server.close();
});
