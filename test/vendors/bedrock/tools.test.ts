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

  it('Bedrock tools keep their description, and their cache mark when the model takes one there', async () => {
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
      [nova, []],
      [llama, []],
    ];
    for (const [model, point] of points) {
      const { toolConfig } = await sentFor({ tools: [full, blank] }, model);
      assert.deepEqual(toolConfig, { tools: [specs[0], ...point, specs[1]] });
    }
  });

  it('schemas of tools go to Nova with their definitions in place of the references to them, and to others as they are', async () => {
    const schemaSent = async (parameters: Fields, model: string): Promise<unknown> => {
      const { toolConfig } = await sentFor(
        { tools: [{ type: 'function', function: { name: 'f', parameters } }] },
        model,
      );
      return (toolConfig as { tools: { toolSpec: { inputSchema: { json: unknown } } }[] }).tools[0]?.toolSpec
        .inputSchema.json;
    };
    const place = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const node = { type: 'object', description: 'A node.', properties: { next: { $ref: '#/$defs/node' } } };
    const parameters = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: {
        from: { $ref: '#/$defs/place', description: 'Where it begins.' },
        via: { type: 'array', items: { anyOf: [{ $ref: '#/definitions/a~1b' }, { type: 'null' }] } },
        list: { $ref: '#/$defs/node' },
        odd: { $ref: '#/$defs/missing' },
        $ref: { type: 'string' },
      },
      required: ['from'],
      additionalProperties: false,
      $defs: { place, node },
      definitions: { 'a/b': { $ref: '#/$defs/place' } },
    };
    const inlined = {
      type: 'object',
      properties: {
        from: { ...place, description: 'Where it begins.' },
        via: { type: 'array', items: { anyOf: [place, { type: 'null' }] } },
        list: { ...node, properties: { next: { type: 'object', description: 'A node.' } } },
        odd: { $ref: '#/$defs/missing' },
        $ref: { type: 'string' },
      },
      required: ['from'],
      additionalProperties: false,
    };
    for (const model of [nova, 'us.amazon.nova-2-lite-v1:0'])
      assert.deepEqual(await schemaSent(parameters, model), inlined);
    for (const model of [claude, llama]) assert.deepEqual(await schemaSent(parameters, model), parameters);
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
