import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import type { Fields } from '../contracts/chat-field-rows.ts';
import { callOf, collect, sendJson } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { answerOf, text, toJson } from '../recorded/recorded-bedrock.ts';

const apiKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';
const claude = 'us.anthropic.claude-opus-4-6-v1';
const nova = 'us.amazon.nova-lite-v1:0';
const llama = 'us.meta.llama3-3-70b-instruct-v1:0';

describe('tools of a chat at Bedrock', () => {
  const bench = new VendorBench((baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey }));
  before(() => bench.server.answer((response) => sendJson(response, 200, toJson(answerOf([text('Hi')])))));

  async function sentFor(given: Fields, model: string): Promise<Fields> {
    const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hello!' }], ...given });
    await bench.vendor.chat(callOf({ model, stream: false, request }), collect());
    return bench.posted as Fields;
  }

  it('Bedrock tools keep their description, and their cache mark when the model has a cache', async () => {
    const { name, parameters } = { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } };
    const full = {
      type: 'function',
      function: { name, description: 'Does it.', parameters },
      cache_control: { type: 'ephemeral', ttl: '1h' },
    };
    const blank = { type: 'function', function: { name: 'g', description: ' ' } };
    const specs = [
      { toolSpec: { name, description: 'Does it.', inputSchema: { json: parameters } } },
      { toolSpec: { name: 'g', inputSchema: { json: { type: 'object', properties: {} } } } },
    ];
    const points: [string, Fields[]][] = [
      [claude, [{ cachePoint: { type: 'default', ttl: '1h' } }]],
      [nova, [{ cachePoint: { type: 'default' } }]],
      [llama, []],
    ];
    for (const [model, point] of points) {
      const { toolConfig } = await sentFor({ tools: [full, blank] }, model);
      assert.deepEqual(toolConfig, { tools: [specs[0], ...point, specs[1]] });
    }
  });

  it('Bedrock tools are strict only for models that take the field, and are never told false, which the others refuse', async () => {
    const parameters = { type: 'object', properties: { a: { type: 'string', minLength: 1 } }, required: ['a'] };
    const converted = {
      type: 'object',
      properties: { a: { type: 'string', description: '{"minLength":1}' } },
      required: ['a'],
      additionalProperties: false,
    };
    const strictOf = async (model: string, strict: boolean | undefined): Promise<unknown> => {
      const { toolConfig } = await sentFor(
        { tools: [{ type: 'function', function: { name: 'f', parameters, strict } }] },
        model,
      );
      return (toolConfig as { tools: { toolSpec: Fields }[] }).tools[0]?.toolSpec;
    };
    const plain = { name: 'f', inputSchema: { json: parameters } };
    const strict = { name: 'f', inputSchema: { json: converted }, strict: true };
    const sonnet = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
    const haiku = 'global.anthropic.claude-haiku-4-5-20251001-v1:0';
    for (const model of [claude, sonnet, haiku, 'eu.anthropic.claude-sonnet-4-6']) {
      assert.deepEqual(await strictOf(model, true), strict, model);
      for (const loose of [false, undefined]) assert.deepEqual(await strictOf(model, loose), plain, model);
    }
    const refusing = [
      ...['us.anthropic.claude-sonnet-4-20250514-v1:0', 'us.anthropic.claude-opus-4-1-20250805-v1:0'],
      ...['us.anthropic.claude-opus-4-7', 'us.anthropic.claude-opus-4-8', 'us.anthropic.claude-sonnet-5'],
      ...['anthropic.claude-fable-5', 'anthropic.claude-sonnet-4-60', nova, 'openai.gpt-oss-120b-1:0', llama],
    ];
    for (const model of refusing) {
      for (const given of [true, false]) assert.deepEqual(await strictOf(model, given), plain, model);
    }
  });
});
