import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { AdminKeys } from '../../support/admin-keys.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { pngFile } from '../../support/image-files.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { createVideo, pollToEnd } from '../../support/sandbox-videos.ts';

const messages = [{ role: 'user', content: 'Hello' }];

/** A good JSON request for every endpoint that takes one, and the capability it asks for. */
const jsonRequests: [path: string, capability: string, body: object][] = [
  ['/v1/chat/completions', 'chat', { model: 'sandbox-chat', messages }],
  ['/v1/chat/completions', 'chat', { model: 'sandbox-chat', messages, stream: true }],
  ['/v1/completions', 'chat', { model: 'sandbox-instruct', prompt: 'Hello' }],
  ['/v1/messages', 'chat', { model: 'sandbox-chat', max_tokens: 10, messages }],
  ['/v1/messages/count_tokens', 'chat', { model: 'sandbox-chat', messages }],
  ['/v1/responses', 'chat', { model: 'sandbox-chat', input: 'Hello' }],
  ['/v1/responses', 'chat', { model: 'sandbox-chat', input: 'Hello', background: true }],
  ['/v1/embeddings', 'embedding', { model: 'sandbox-embedding', input: 'Hello' }],
  ['/v1/images/generations', 'image', { model: 'sandbox-image', prompt: 'Hello' }],
  ['/v1/audio/speech', 'speech', { model: 'sandbox-speech', voice: 'alloy', input: 'Hello' }],
  ['/v1/videos', 'video', { model: 'sandbox-video', prompt: 'Hello' }],
];

const picture = () => pngFile('picture.png', 32);
const sound = () => new File([new Uint8Array(100)], 'sound.wav', { type: 'audio/wav' });
/** The same for forms. */
const forms: [path: string, capability: string, model: string, fields: () => [string, string | File][]][] = [
  [
    '/v1/images/edits',
    'image',
    'sandbox-image',
    () => [
      ['prompt', 'Hello'],
      ['image', picture()],
    ],
  ],
  ['/v1/images/variations', 'image', 'sandbox-image', () => [['image', picture()]]],
  ['/v1/audio/transcriptions', 'transcription', 'sandbox-transcribe', () => [['file', sound()]]],
  ['/v1/audio/translations', 'transcription', 'sandbox-transcribe', () => [['file', sound()]]],
];

describe('scopes of an API key', () => {
  let gateway: TestGateway;
  let keys: AdminKeys;
  before(async () => {
    gateway = await TestGateway.start({
      configuration: {
        vendors: {
          sandbox: { open: true },
          broken: { like: 'openai', base_url: 'http://127.0.0.1:1/v1', api_key: 'k' },
        },
        models: {
          frail: { capability: 'chat', routes: [{ vendor: 'broken', model: 'f' }], fallbacks: ['sandbox-chat'] },
          'team/chat': { capability: 'chat', routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }] },
        },
      },
    });
    keys = await AdminKeys.open(gateway);
  });
  after(() => gateway?.stop());

  const ask = (key: string, path: string, body: object): Promise<Response> =>
    gateway.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    });
  const askForm = (key: string, path: string, model: string, fields: [string, string | File][]): Promise<Response> => {
    const form = new FormData();
    for (const [field, value] of [['model', model] as [string, string], ...fields]) form.append(field, value);
    return fetch(`${gateway.url}${path}`, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: form });
  };
  const chat = (key: string, model: string) => ask(key, '/v1/chat/completions', { model, messages });
  const assertRefused = async (response: Response, named: string): Promise<void> => {
    const text = await response.text();
    assert.equal(response.status, 403, text);
    assert.match(text, /permission/);
    assert.ok(text.includes(`\`${named}\``), text);
  };
  const statusOf = async (asked: Promise<Response>): Promise<number> => {
    const response = await asked;
    await response.arrayBuffer();
    return response.status;
  };

  it('every endpoint that makes jobs returns 403 naming a model outside the scope of the key', async () => {
    const { key } = await keys.create({ models: ['nothing-else'] });
    for (const [path, , body] of jsonRequests) {
      await assertRefused(await ask(key, path, body), (body as { model: string }).model);
    }
    for (const [path, , model, fields] of forms) await assertRefused(await askForm(key, path, model, fields()), model);
  });

  it('every endpoint that makes jobs returns 403 naming a capability outside the scope of the key', async () => {
    const all = ['chat', 'embedding', 'image', 'transcription', 'speech', 'video'];
    for (const wanted of all) {
      const { key } = await keys.create({ capabilities: all.filter((capability) => capability !== wanted) });
      for (const [path, capability, body] of jsonRequests) {
        if (capability === wanted) await assertRefused(await ask(key, path, body), wanted);
      }
      for (const [path, capability, model, fields] of forms) {
        if (capability === wanted) await assertRefused(await askForm(key, path, model, fields()), wanted);
      }
    }
  });

  it('a key for some models only may not name further ones for its vendor to try', async () => {
    const { id, key } = await keys.create({ models: ['sandbox-chat'] });
    const { key: other } = await keys.create({});
    const model = 'sandbox-chat';
    for (const [path, body] of [
      ['/v1/chat/completions', { model, messages }],
      ['/v1/responses', { model, input: 'Hello' }],
    ] as const) {
      for (const field of ['models', 'fallbacks', 'user_config']) {
        const further = { ...body, [field]: ['sandbox-reasoning'] };
        const refused = await ask(key, path, further);
        const { error } = (await refused.json()) as { error: { param: string } };
        assert.deepEqual([refused.status, error.param], [403, field], path);
        assert.equal(await statusOf(ask(other, path, further)), 200, `${path} ${field}`);
      }
      assert.equal(await statusOf(ask(key, path, { ...body, models: [] })), 200);
    }
    await keys.change(id, { models: null });
    assert.equal(await statusOf(ask(key, '/v1/chat/completions', { model, messages, models: ['more'] })), 200);
    await keys.change(id, { models: ['sandbox-*'] });
    assert.equal(await statusOf(ask(key, '/v1/chat/completions', { model, messages, models: ['more'] })), 403);
  });

  it('a key for some models only may not have a tool, a plugin or the field of a form ask others', async () => {
    const model = 'sandbox-responses';
    const { key } = await keys.create({ models: [model, 'sandbox-chat', 'sandbox-transcribe', 'listed-image'] });
    const { key: other } = await keys.create({});
    const image = { type: 'image_generation', model: 'dear-image' };
    const response = { model, input: 'Hello' };
    const chat = { model: 'sandbox-chat', messages };
    const requests: [path: string, param: string, body: object][] = [
      ['/v1/responses', 'tools[0]', { ...response, tools: [image] }],
      ['/v1/responses', 'tools[0]', { ...response, tools: [{ type: 'openrouter:fusion' }] }],
      ['/v1/responses', 'tools[0]', { ...response, tools: [{ type: 'advisor', parameters: { model: 'dear' } }] }],
      [
        '/v1/responses',
        'input[0].tools[0]',
        { ...response, input: [{ type: 'additional_tools', tools: [image] }, ...messages] },
      ],
      ['/v1/chat/completions', 'plugins', { ...chat, plugins: [{ id: 'web' }, { id: 'fusion' }] }],
      ['/v1/chat/completions', 'plugins', { ...chat, plugins: [{ id: 'a-panel', analysis_models: ['dear'] }] }],
      ['/v1/chat/completions', 'extra_body', { ...chat, extra_body: { models: ['dear'] } }],
      ['/v1/chat/completions', 'providerOptions', { ...chat, providerOptions: { gateway: { models: ['dear'] } } }],
    ];
    for (const [path, param, body] of requests) {
      const refused = await ask(key, path, body);
      const { error } = (await refused.json()) as { error: { param: string } };
      assert.deepEqual([refused.status, error.param], [403, param]);
      assert.notEqual(await statusOf(ask(other, path, body)), 403, param);
    }
    for (const tool of [{ ...image, model: 'listed-image' }, { type: 'image_generation' }, { type: 'web_search' }]) {
      assert.notEqual(await statusOf(ask(key, '/v1/responses', { ...response, tools: [tool] })), 403);
    }
    assert.equal(await statusOf(ask(key, '/v1/chat/completions', { ...chat, plugins: [{ id: 'web' }] })), 200);

    // LiteLLM's proxy reads a form's list so.
    const fields = (): [string, string | File][] => [
      ['file', sound()],
      ['fallbacks[]', 'dear'],
    ];
    const refused = await askForm(key, '/v1/audio/transcriptions', 'sandbox-transcribe', fields());
    const { error } = (await refused.json()) as { error: { param: string } };
    assert.deepEqual([refused.status, error.param], [403, 'fallbacks']);
    assert.notEqual(await statusOf(askForm(other, '/v1/audio/transcriptions', 'sandbox-transcribe', fields())), 403);
  });

  it('POST /v1/videos/{id}/remix returns 403 when the key lacks the model of the video', async () => {
    const video = await createVideo(gateway.client());
    await pollToEnd(gateway.client(), video.id);
    const { key } = await keys.create({ models: ['sandbox-chat'] });
    await assertRefused(await ask(key, `/v1/videos/${video.id}/remix`, { prompt: 'At night' }), 'sandbox-video');
  });

  it('a response socket checks the current scopes and expiry of its key on every message', async () => {
    const { id, key } = await keys.create({ models: ['sandbox-chat'] });
    const socket = await ResponseSocketClient.open(gateway.url, { key });
    assert.equal((await socket.turn({ input: 'Hello' })).last.type, 'response.completed');
    const refused = await socket.refusal({ input: 'Hello', model: 'sandbox-reasoning' });
    assert.match(JSON.stringify(refused), /permission_denied.*sandbox-reasoning|sandbox-reasoning.*permission_denied/);
    await keys.change(id, { models: ['sandbox-reasoning'] });
    assert.match(JSON.stringify(await socket.refusal({ input: 'Hello' })), /permission_denied/);
    assert.equal((await socket.turn({ input: 'Hello', model: 'sandbox-reasoning' })).last.type, 'response.completed');
    const soon = Date.now() + 1500;
    await keys.change(id, { expires_at: soon, models: null });
    assert.equal((await socket.turn({ input: 'Hello' })).last.type, 'response.completed');
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, soon - Date.now()) + 20));
    assert.match(JSON.stringify(await socket.refusal({ input: 'Hello' })), /expired/);
    socket.webSocket.close();
    await socket.closed;
  });

  it('the models of a key match by id or by prefix, and cover the fallback of an allowed model', async () => {
    const { key } = await keys.create({ models: ['frail', 'team/*'], capabilities: ['chat'] });
    const standIn = await chat(key, 'frail');
    assert.equal(standIn.headers.get('x-sluice-model'), 'sandbox-chat');
    assert.equal(await statusOf(Promise.resolve(standIn)), 200);
    assert.equal(await statusOf(chat(key, 'team/chat')), 200);
    for (const model of ['sandbox-chat', 'sandbox/sandbox-chat']) await assertRefused(await chat(key, model), model);
  });

  it('the models of a key match an unlisted model by the id in the request', async () => {
    const passed = await keys.create({ models: ['sandbox/*'] });
    assert.equal(await statusOf(chat(passed.key, 'sandbox/sandbox-chat')), 200);
    await assertRefused(await chat(passed.key, 'sandbox-chat'), 'sandbox-chat');
    const listed = await keys.create({ models: ['sandbox-chat'] });
    await assertRefused(await chat(listed.key, 'sandbox/sandbox-reasoning'), 'sandbox/sandbox-reasoning');
  });

  it('a key with scopes gets 404 for an unknown model, with suggestions from its own models only', async () => {
    const { key } = await keys.create({ models: ['sandbox-chat'] });
    const { message } = await assertErrorAnswer(await chat(key, 'sandbox-chatt'), 404, 'model_not_found');
    assert.match(message, /Did you mean sandbox-chat\?$/);
    const other = await keys.create({ models: ['sandbox-image'] });
    const unknown = await assertErrorAnswer(await chat(other.key, 'sandbox-chatt'), 404, 'model_not_found');
    assert.doesNotMatch(unknown.message, /sandbox-chat\b/);
  });

  it('GET /v1/models lists only the models that the key may use, in the OpenAI and the Anthropic shape', async () => {
    const { key } = await keys.create({ models: ['sandbox-chat', 'sandbox-image', 'team/*'], capabilities: ['chat'] });
    for (const headers of [{}, { 'anthropic-version': '2023-06-01' }] as Record<string, string>[]) {
      const read = (path: string) => gateway.fetch(path, { headers: { ...headers, authorization: `Bearer ${key}` } });
      const { data } = (await (await read('/v1/models')).json()) as { data: { id: string }[] };
      assert.deepEqual(data.map(({ id }) => id).sort(), ['sandbox-chat', 'team/chat']);
      assert.equal(await statusOf(read('/v1/models/team/chat')), 200);
      assert.equal(await statusOf(read('/v1/models/sandbox-reasoning')), 403);
      assert.equal(await statusOf(read('/v1/models/sandbox-image')), 403);
      assert.equal(await statusOf(read('/v1/models/nothing')), 404);
    }
  });
});
