import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { endpoints } from '../../../../api/endpoints/endpoints.ts';
import {
  parseSocketMessage,
  type SocketRequirements,
} from '../../../../api/endpoints/responses/socket/parse-socket-message.ts';
import type { Endpoint } from '../../../../api/pipeline/endpoint.ts';
import type { Form, Parse, ParsedRequest } from '../../../../api/pipeline/parsed-request.ts';
import { Upload } from '../../../../shared/blobs/upload.ts';
import type { RoutedModel } from '../../../../shared/catalogue/catalogue.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { pathsOf, replaced } from '../../../support/replaced-values.ts';
import { madeUpModel, routedModel } from '../../../support/routed-model.ts';

/** What may stand where something else is expected. */
const hostile: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, '', 'x', 'constructor', '\ud800', [], {}, [null], [[]], [{}], ['x'], [0]],
  ...[{ type: null }, { type: 'text' }, { type: 'message' }, { type: ['a'] }, { type: {} }, { content: [null] }],
  ...[
    { length: -1 },
    { length: { toString: null, valueOf: null } },
    { toString: null, valueOf: null },
    { toJSON: 1 },
    [{ type: 'text', text: null }],
  ],
];

const schema = { type: 'object', properties: { a: { type: 'string' } } };
const image = { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' };
const parts = [{ type: 'input_text', text: 'Hi' }, image, { type: 'input_file', file_data: 'data:x', filename: 'a' }];
const cache = { cache_control: { type: 'ephemeral' } };
const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' };

/** Requests that hold something in every place that is read. */
const samples: Readonly<Record<string, readonly object[]>> = {
  chat: [
    {
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'Be brief' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
            { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
            { type: 'file', file: { file_data: 'data:x', filename: 'a' } },
          ],
        },
        {
          role: 'assistant',
          content: [{ type: 'refusal', refusal: 'no' }],
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } },
            { id: 'b', type: 'custom', custom: { name: 'c', input: 'x' } },
          ],
        },
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'done' }] },
      ],
      stream: true,
      stream_options: { include_usage: true, other: 1 },
      tools: [
        { type: 'function', function: { name: 'f', description: 'd', parameters: schema, strict: true } },
        {
          type: 'custom',
          custom: {
            name: 'c',
            format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'x' } },
          },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'f' } },
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
      stop: ['a'],
      metadata: { a: 'b' },
      logit_bias: { 1: 2 },
      modalities: ['text'],
      prediction: { type: 'content', content: [{ type: 'text', text: 'x' }] },
      web_search_options: { user_location: { type: 'approximate', approximate: { city: 'x' } } },
      max_tokens: 5,
      n: 2,
      functions: [{ name: 'g', parameters: schema }],
      function_call: { name: 'g' },
    },
  ],
  completions: [
    { prompt: ['Hi', 'You'], stop: ['a'], suffix: 'x', logit_bias: { 1: 2 }, echo: true, logprobs: 2, n: 2 },
    { prompt: [[1, 2], [3]], stream: true, stream_options: { include_usage: true }, best_of: 1 },
  ],
  embeddings: [
    { input: ['a', 'b'], dimensions: 3, encoding_format: 'base64', metadata: { a: 'b' } },
    { input: [[1], [2]] },
  ],
  'images.generations': [
    { service_tier: 'flex', prompt: 'a', n: 2, size: '256x256', stream: true, partial_images: 2, metadata: { a: 'b' } },
  ],
  'images.edits': [
    {
      prompt: 'a',
      images: [{ image_url: 'https://a.example/a.png' }],
      mask: { image_url: 'data:image/png;base64,AAAA' },
      metadata: { a: 'b' },
    },
  ],
  'audio.speech': [{ input: 'Hi', voice: 'alloy', response_format: 'wav', stream_format: 'sse', metadata: { a: 'b' } }],
  responses: [
    {
      input: [
        { role: 'user', content: parts },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [] }] },
        { type: 'function_call', call_id: 'a', name: 'f', namespace: 'n', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: parts },
        { type: 'custom_tool_call', call_id: 'b', name: 'c', input: 'x' },
        { type: 'custom_tool_call_output', call_id: 'b', output: 'x' },
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'x' }], content: [{ type: 't', text: 'x' }] },
        { type: 'item_reference', id: 'rs_1' },
        { type: 'web_search_call', content: [{ file_id: 'a' }], output: [{ file_url: 'a' }], action: { type: 's' } },
        { type: 'image_generation_call', result: 'AAAA' },
        { type: 'additional_tools', role: 'developer', tools: [{ type: 'function', name: 'g', parameters: schema }] },
        { type: 'compaction', content: [{ type: 'x', detail: 'y' }], output: [{ file_data: 'x' }] },
      ],
      tools: [
        { type: 'function', name: 'f', parameters: schema, strict: true },
        { type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
        { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f', parameters: schema }] },
        { type: 'web_search', filters: { allowed_domains: ['a'] }, user_location: { city: 'x' } },
        { type: 'mcp', server_label: 'a', allowed_tools: ['x'] },
      ],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
      stream: true,
      stream_options: { include_obfuscation: true },
      text: { format: { type: 'json_schema', name: 'n', schema, strict: true }, verbosity: 'low' },
      reasoning: { effort: 'low', summary: 'auto', context: 'x', mode: 'y' },
      include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
      context_management: [{ type: 'compaction', compact_threshold: 1000 }],
      metadata: { a: 'b' },
      prompt_cache_options: { ttl: '1h' },
      moderation: { model: 'x' },
      client_metadata: { a: 'b' },
      previous_response_id: 'resp_1',
      max_output_tokens: 16,
      top_logprobs: 2,
    },
    // Alone: the first image, or file, that is found is not looked for again.
    { input: [{ type: 'web_search_call', content: [{ type: 'x', text: 'x', content: [{ type: 'x' }] }] }] },
    { input: [{ type: 'compaction', output: [{ type: 'x', content: [{ type: 'x', content: [{}] }] }] }] },
  ],
  messages: [
    {
      max_tokens: 2000,
      system: [{ type: 'text', text: 'Be brief', ...cache }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi', ...cache },
            { type: 'image', source },
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA' }, title: 'x' },
            { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }] } },
            { type: 'search_result', source: 'a', title: 'b', content: [{ type: 'text', text: 'x' }] },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'x', signature: 'y' },
            { type: 'redacted_thinking', data: 'x' },
            { type: 'text', text: 'x' },
            { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 't',
              content: [
                { type: 'text', text: 'x' },
                { type: 'image', source },
                { type: 'tool_reference', tool_name: 'f' },
                { type: 'search_result', source: 'a', title: 'b', content: [{ type: 'text', text: 'x' }] },
              ],
            },
          ],
        },
        {
          role: 'system',
          content: [
            { type: 'text', text: 'x' },
            { type: 'tool_addition', tool: { type: 'tool_reference', name: 'f' } },
            {
              type: 'tool_addition',
              tool: { type: 'tool_definition', definition: { name: 'h', input_schema: schema } },
            },
            { type: 'tool_removal', tool: { type: 'tool_reference', name: 'f' } },
          ],
        },
        { role: 'user', content: 'Go on' },
      ],
      tools: [
        { name: 'f', description: 'd', input_schema: schema, ...cache },
        { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['a'] },
      ],
      tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 1024, display: 'omitted' },
      output_config: { effort: 'low', format: { type: 'json_schema', schema }, other: 1 },
      metadata: { user_id: 'a', other: 'b' },
      stop_sequences: ['a'],
      service_tier: 'auto',
      context_management: { edits: [{ type: 'x' }] },
      top_k: 3,
    },
  ],
  videos: [{ prompt: 'a', seconds: '4', size: '1280x720', input_reference: { image_url: 'https://a.example/a.png' } }],
  'videos.remix': [{ prompt: 'a' }],
};

const models: readonly RoutedModel[] = [
  madeUpModel({ id: 'm', capability: 'chat' }),
  madeUpModel({ id: 'm', capability: 'chat', responses: true }),
  madeUpModel({ id: 'm', capability: 'chat', contextWindow: 10, maxOutputTokens: 5 }, 'anthropic'),
  ...['sandbox-chat', 'sandbox-instruct', 'sandbox-embedding', 'sandbox-image', 'sandbox-speech', 'sandbox-video'].map(
    routedModel,
  ),
];

/** All that becomes of a request before it is a job, and of its view before the first frame. */
function followRequest(endpoint: Endpoint, parsed: ParsedRequest): void {
  JSON.parse(String(parsed.request));
  for (const model of models) {
    if (model.capability !== endpoint.capability) continue;
    for (const unsupported of ['drop', 'refuse'] as const) {
      try {
        endpoint.check?.(parsed, model, unsupported);
      } catch (error) {
        assertRefusal(error);
      }
    }
  }
  const { viewOptions } = parsed;
  const job = { id: '1', model: 'm', createdAt: 0, viewOptions: JSON.parse(JSON.stringify(viewOptions)) };
  const viewed = { ...job, link: (file: string) => file };
  endpoint.view.opensAtOnce?.(viewed);
  endpoint.view.contentType?.(viewed);
  endpoint.view.bytes?.(viewed);
  endpoint.view.stream(viewed)({ seq: 0, type: 'progress', text: '{}' });
}

function assertRefusal(error: unknown): void {
  if (!(error instanceof ApiError)) throw error;
  assert.ok(error.status >= 400 && error.status < 500, `${error.status} ${error.message}`);
}

const byName = new Map<string, Endpoint>(endpoints.map((endpoint) => [endpoint.name, endpoint]));

/** Takes a body as the endpoint's handler does: it is parsed, or refused with a 4xx; nothing else may happen. */
function take(endpoint: Endpoint, parse: Parse, body: unknown): void {
  let parsed: ParsedRequest;
  try {
    parsed = parse(Buffer.from(JSON.stringify(body) ?? ''));
  } catch (error) {
    assertRefusal(error);
    return;
  }
  followRequest(endpoint, parsed);
}

/** What a message on a response socket is parsed to: its refusal is no exception. */
const prepareMessage: Parse = (body) => {
  const parsed = parseSocketMessage(body);
  const { refusal } = (parsed.requirements as SocketRequirements).envelope;
  if (refusal !== undefined) throw ApiError.fromData(refusal);
  return parsed;
};

/** Every endpoint that takes JSON, and what it is fed with. */
const cases = [...byName.values()].flatMap((endpoint) => {
  const { name, parse } = endpoint;
  if (parse === undefined) return [];
  const own = samples[name === 'messages.count_tokens' ? 'messages' : name];
  assert.ok(own, `no sample of a request for ${name}`);
  const bodies = own.map((sample) => ({ model: 'm', ...sample }));
  if (name !== 'responses') return [{ name: name as string, endpoint, parse, bodies }];
  // The same schema: what is beside the request is what matters here.
  const messages = bodies
    .slice(1)
    .map((body) => ({ type: 'response.create', stream_id: 'a', generate: true, ...body }));
  return [
    { name: name as string, endpoint, parse, bodies },
    { name: 'responses.ws', endpoint, parse: prepareMessage, bodies: messages },
  ];
});

describe('requests with arbitrary values in any field', () => {
  for (const { name, endpoint, parse, bodies } of cases) {
    it(`parse of ${name} accepts the sample requests`, () => {
      for (const body of bodies) parse(Buffer.from(JSON.stringify(body)));
    });

    it(`parse of ${name} accepts a request with an arbitrary value in any one position or rejects it with 4xx`, () => {
      for (const body of bodies) {
        for (const path of pathsOf(body)) {
          for (const value of hostile) take(endpoint, parse, replaced(body, path, value));
          take(endpoint, parse, replaced(body, path, null, true));
        }
      }
    });

    it(`parse of ${name} accepts a request with arbitrary values in several positions or rejects it with 4xx`, () => {
      for (const body of bodies) {
        const paths = pathsOf(body);
        const value = fc.oneof(fc.constantFrom(...hostile), fc.jsonValue({ maxDepth: 3 }));
        const change = fc.tuple(fc.constantFrom(...paths), value, fc.boolean());
        fc.assert(
          fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
            const changed = changes.reduce<unknown>(
              (before, [path, by, isAdded]) => replaced(before, path, by, isAdded),
              body,
            );
            take(endpoint, parse, changed);
          }),
          { numRuns: 300 },
        );
      }
    });
  }

  it('parseForm of every endpoint accepts or rejects with 4xx a form with arbitrary fields and files', () => {
    const names = ['model', 'prompt', 'n', 'size', 'stream', 'image', 'mask', 'file', 'input_reference', 'include'];
    const more = ['temperature', 'response_format', 'seconds', 'chunking_strategy', '__proto__', 'constructor', ''];
    const name = fc.oneof(fc.constantFrom(...names, ...more, 'input_reference[image_url]'), fc.string());
    const text = fc.oneof(fc.constantFrom('', 'true', '1', '-1', '1e999', 'auto', 'json', 'x'), fc.string());
    const file = fc
      .record({
        field: name,
        blob: fc.string(),
        name: fc.string(),
        type: fc.string(),
        bytes: fc.constantFrom(0, 1, 1e9),
      })
      .map((record) => new Upload(record));
    const form: fc.Arbitrary<Form> = fc.record({
      fields: fc.array(fc.tuple(name, fc.array(text))).map((fields) => new Map<string, string[]>(fields)),
      files: fc.array(file, { maxLength: 3 }),
    });
    for (const endpoint of byName.values()) {
      const { parseForm } = endpoint;
      if (parseForm === undefined) continue;
      fc.assert(
        fc.property(form, (given) => {
          let parsed: ParsedRequest;
          try {
            parsed = parseForm(given);
          } catch (error) {
            assertRefusal(error);
            return;
          }
          followRequest(endpoint, parsed);
        }),
        { numRuns: 300 },
      );
    }
  });
});
