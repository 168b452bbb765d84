import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { pngBytes } from '../support/image-files.ts';
import { type TypedValue, typeMistakes } from '../support/sdk-types.ts';
import { wav } from '../support/wav.ts';

/*
 * Requests of every kind go through the whole gateway, and the compiler holds what reaches a vendor against the types of the
 * vendor's own SDK. What the vendor would answer is of no account here: it refuses everything.
 */

type Fields = Record<string, unknown>;

interface Sent {
  readonly vendor: string;
  readonly path: string;
  readonly body: unknown;
}

const openAi = "import type OpenAI from 'openai';";
const openAiTypes: readonly (readonly [RegExp, string, string])[] = [
  [/\/chat\/completions$/, openAi, 'OpenAI.Chat.ChatCompletionCreateParams'],
  [/\/responses$/, openAi, 'OpenAI.Responses.ResponseCreateParams'],
  [/\/completions$/, openAi, 'OpenAI.CompletionCreateParams'],
  [/\/embeddings$/, openAi, 'OpenAI.EmbeddingCreateParams'],
  [/\/images\/generations$/, openAi, 'OpenAI.ImageGenerateParams'],
  [/\/audio\/speech$/, openAi, 'OpenAI.Audio.SpeechCreateParams'],
];
const anthropic = "import type Anthropic from '@anthropic-ai/sdk';";
/** The newest SDK's types have these no more, since its newest models refuse them; those before still take them. */
const sampling = '{ temperature?: number; top_p?: number; top_k?: number }';
const bedrock = "import type { ConverseStreamRequest } from '@aws-sdk/client-bedrock-runtime';";
const runway = "import type RunwayML from '@runwayml/sdk';";
const luma = "import type { GenerationCreateParams } from 'lumaai/resources/generations/generations';";
const lumaImage = "import type { ImageCreateParams } from 'lumaai/resources/generations/image';";
const fal = "import type { EndpointTypeMap } from '@fal-ai/client/endpoints';";

/** What is sent to which path is of which type; the first that fits. */
const types: Readonly<Record<string, readonly (readonly [path: RegExp, imports: string, type: string])[]>> = {
  openai: openAiTypes,
  azure: openAiTypes,
  anthropic: [
    [/\/messages$/, anthropic, `Anthropic.MessageCreateParams & ${sampling}`],
    [/\/messages\/count_tokens$/, anthropic, 'Anthropic.MessageCountTokensParams'],
  ],
  // The model stands in the path.
  bedrock: [[/\/model\/[^/]+\/converse(-stream)?$/, bedrock, "Omit<ConverseStreamRequest, 'modelId'>"]],
  runway: [
    [/\/text_to_video$/, runway, 'RunwayML.TextToVideoCreateParams'],
    [/\/image_to_video$/, runway, 'RunwayML.ImageToVideoCreateParams'],
  ],
  luma: [
    [/\/generations\/image$/, lumaImage, 'ImageCreateParams'],
    [/\/generations(\/video)?$/, luma, 'GenerationCreateParams'],
  ],
  fal: [[/^\/fal-ai\//, fal, "EndpointTypeMap['PATH']['input']"]],
  assemblyai: [[/\/transcript$/, "import type { TranscriptParams } from 'assemblyai';", 'TranscriptParams']],
};

const picture = `data:image/png;base64,${pngBytes(8).toString('base64')}`;
const weather = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const toolOf = (name: string) => ({
  type: 'function',
  function: { name, description: 'It tells.', parameters: weather },
});
const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } };
const user = (content: unknown) => ({ role: 'user', content });

/** Chats, without their model. */
const chats: readonly Fields[] = [
  { messages: [{ role: 'system', content: 'Be short.' }, { role: 'developer', content: 'Be kind.' }, user('Hi')] },
  { messages: [user('Hi')], temperature: 0.5, max_tokens: 100, stop: ['END'], user: 'u-1' },
  { messages: [user('Hi')], top_p: 0.9, max_completion_tokens: 100, stop: 'END' },
  { messages: [user('Hi')], reasoning_effort: 'low' },
  { messages: [user('Hi')], service_tier: 'default', metadata: { team: 'a' }, store: false, seed: 7 },
  {
    messages: [
      user([
        { type: 'text', text: 'What is it?' },
        { type: 'image_url', image_url: { url: picture } },
      ]),
    ],
  },
  ...['auto', 'none', 'required', { type: 'function', function: { name: 'get_weather' } }].map((choice) => ({
    messages: [
      user('Weather?'),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'Rain' },
    ],
    ...{ tools: [toolOf('get_weather')], tool_choice: choice, parallel_tool_calls: false },
  })),
  {
    messages: [user('A city?')],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'city', strict: true, schema: { ...weather, additionalProperties: false } },
    },
  },
];

const toolResult = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'Rain' }] };
/** Messages of Anthropic's API. */
const messages: readonly Fields[] = [
  { system: [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral' } }], messages: [user('Hi')] },
  { messages: [user('Hi')], top_k: 5, temperature: 0.2, stop_sequences: ['END'], metadata: { user_id: 'u-1' } },
  { messages: [user('Hi')], thinking: { type: 'enabled', budget_tokens: 1024 } },
  {
    messages: [
      user([
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pngBytes(8).toString('base64') } },
      ]),
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Oslo' } }],
      },
      user([toolResult, { type: 'text', text: 'And?' }]),
    ],
    tools: [
      { name: 'get_weather', description: 'It tells.', input_schema: weather, cache_control: { type: 'ephemeral' } },
    ],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
  },
];

/** Responses. */
const responses: readonly Fields[] = [
  { instructions: 'Be short.', input: 'Hi', max_output_tokens: 100, temperature: 0.4 },
  { input: 'Hi', reasoning: { effort: 'low' }, store: false },
  {
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is it?' },
          { type: 'input_image', image_url: picture, detail: 'auto' },
        ],
      },
      { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: '{"city":"Oslo"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Rain' },
    ],
    tools: [{ type: 'function', name: 'get_weather', parameters: weather, strict: false }],
    tool_choice: { type: 'function', name: 'get_weather' },
  },
  {
    input: 'A city?',
    text: {
      format: { type: 'json_schema', name: 'city', schema: { ...weather, additionalProperties: false }, strict: true },
    },
  },
];

/** Models of chats, by who serves them. */
const chatModels = [
  'gpt-4o-mini',
  'gpt-5.6-sol',
  'azure/my-deployment',
  'anthropic-only',
  'bedrock-only',
  'bedrock/amazon.nova-lite-v1:0',
];

/** Of other kinds: a path, and what is asked for there. */
const others: readonly (readonly [path: string, body: Fields])[] = [
  ['/v1/embeddings', { model: 'text-embedding-3-small', input: ['a', 'b'], dimensions: 256, encoding_format: 'float' }],
  [
    '/v1/audio/speech',
    { model: 'gpt-4o-mini-tts', input: 'Hi', voice: 'alloy', response_format: 'wav', instructions: 'Softly.' },
  ],
  [
    '/v1/images/generations',
    { model: 'gpt-image-1', prompt: 'An otter', size: '1024x1024', quality: 'low', output_format: 'webp' },
  ],
  ['/v1/messages/count_tokens', { model: 'anthropic-only', messages: [user('Hi')], system: 'Be short.' }],
  ['/v1/images/generations', { model: 'fal/flux/dev', prompt: 'An otter', size: '1024x1024', n: 2 }],
  ['/v1/images/generations', { model: 'fal/flux-pro/v1.1-ultra', prompt: 'An otter', size: '1536x1024' }],
  ['/v1/images/generations', { model: 'luma/photon-1', prompt: 'An otter', size: '1024x1024' }],
  ['/v1/videos', { model: 'luma/ray-2', prompt: 'A lighthouse' }],
  ['/v1/videos', { model: 'runway/gen4.5', prompt: 'A lighthouse' }],
  ['/v1/videos', { model: 'runway/gen4_turbo', prompt: 'A lighthouse', input_reference: { image_url: picture } }],
  ['/v1/videos', { model: 'fal/veo3/fast', prompt: 'A lighthouse' }],
];

describe('requests to vendors and the types of their SDKs', () => {
  let gateway: TestGateway;
  let server: Server;
  const sent: Sent[] = [];

  before(async () => {
    server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const [, vendor = '', path = ''] = /^\/([^/]+)([^?]*)/.exec(request.url ?? '') ?? [];
      const isJson = request.headers['content-type']?.startsWith('application/json') === true;
      if (isJson) sent.push({ vendor, path, body: JSON.parse(Buffer.concat(parts).toString()) });
      const isUpload = path.endsWith('/upload');
      response.writeHead(isUpload ? 200 : 400, { 'content-type': 'application/json' });
      const refusal = { error: { message: 'No.', type: 'invalid_request_error' }, message: 'No.' };
      response.end(JSON.stringify(isUpload ? { upload_url: 'https://cdn.example/audio' } : refusal));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const vendors = Object.keys(types).map((name) => [
      name,
      { base_url: `${url}/${name}`, api_key: `key-of-${name}-0123456789` },
    ]);
    const claude = { capability: 'chat' as const, reasoning: true, input: ['text' as const, 'image' as const] };
    const routing = { attempts: 1, breaker: { calls: 10_000 } };
    const models = {
      'anthropic-only': { ...claude, routes: [{ vendor: 'anthropic', model: 'claude-haiku-4-5' }] },
      'bedrock-only': {
        ...claude,
        routes: [{ vendor: 'bedrock', model: 'global.anthropic.claude-haiku-4-5-20251001-v1:0' }],
      },
    };
    gateway = await TestGateway.start({ configuration: { vendors: Object.fromEntries(vendors), models, routing } });
  });
  after(async () => {
    await gateway?.stop();
    server?.closeAllConnections();
    server?.close();
  });

  /** Asks for all of it, and leaves what is refused before it is sent: fields that a vendor does not have. */
  async function askAll(): Promise<void> {
    const asked: [string, Fields][] = [...others.map(([path, body]): [string, Fields] => [path, body])];
    for (const model of chatModels) {
      for (const stream of [false, true]) {
        for (const body of chats) asked.push(['/v1/chat/completions', { model, ...body, ...(stream && { stream }) }]);
        for (const body of responses) asked.push(['/v1/responses', { model, ...body, stream }]);
        for (const body of messages) asked.push(['/v1/messages', { model, max_tokens: 2000, ...body, stream }]);
      }
    }
    // A busy machine may refuse for a moment; what is sent twice is the same.
    const post = ([path, body]: [string, Fields]): Promise<void> =>
      eventually(async () => {
        const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) });
        const text = await response.text();
        assert.ok(response.status < 500, `${path} ${JSON.stringify(body)}: ${text}`);
      }, 60_000);
    for (let from = 0; from < asked.length; from += 8) await Promise.all(asked.slice(from, from + 8).map(post));
    const form = new FormData();
    form.append('model', 'assemblyai/universal-2');
    form.append('language', 'en');
    form.append('file', new File([new Uint8Array(wav(1))], 'a.wav', { type: 'audio/wav' }));
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    await (await fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', body: form, headers })).text();
  }

  it("every request to a vendor has the type of the vendor's own SDK, whatever the endpoint", async () => {
    await askAll();
    const values = new Map<string, TypedValue>();
    for (const { vendor, path, body } of sent) {
      const [, imports = '', type = ''] = types[vendor]?.find(([pattern]) => pattern.test(path)) ?? [];
      assert.notEqual(type, '', `${vendor} has no type for ${path}`);
      const name = `${vendor} ${path} ${JSON.stringify(body)}`;
      values.set(name, { name, imports, type: type.replace('PATH', path.slice(1)), value: body });
    }
    const counts = Object.fromEntries(
      Object.keys(types).map((vendor) => [
        vendor,
        [...values.keys()].filter((name) => name.startsWith(`${vendor} `)).length,
      ]),
    );
    for (const [vendor, least] of Object.entries({
      openai: 40,
      azure: 20,
      anthropic: 30,
      bedrock: 40,
      runway: 2,
      luma: 2,
      fal: 3,
      assemblyai: 1,
    })) {
      assert.ok((counts[vendor] ?? 0) >= least, `only ${counts[vendor]} requests reached ${vendor}`);
    }
    const wrong = {
      ...{ imports: anthropic, type: 'Anthropic.MessageCreateParams' },
      value: { model: 'm', max_tokens: 1, messages: [], made_up: 1 },
    };
    const mistakes = await typeMistakes([...values.values(), { name: 'one that is wrong', ...wrong }]);
    assert.match(mistakes.get('one that is wrong') ?? '', /made_up/, 'the compiler has looked');
    mistakes.delete('one that is wrong');
    assert.deepEqual([...mistakes], []);
  });
});
