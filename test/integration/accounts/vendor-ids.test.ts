import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AdminKeys } from '../../support/admin-keys.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const messages = [{ role: 'user', content: 'Hello' }];
const chat = { model: 'sandbox-chat', messages, max_tokens: 16 };
const response = { model: 'sandbox-responses', input: 'Hello' };
const said = (...content: object[]): object[] => [{ role: 'user', content }];

/** Requests that name something in the operator's own account at a vendor, and where. */
const naming: readonly (readonly [path: string, param: string, body: object])[] = [
  [
    '/v1/chat/completions',
    'messages[0].content[0].file.file_id',
    { ...chat, messages: said({ type: 'file', file: { file_id: 'file-1' } }) },
  ],
  [
    '/v1/chat/completions',
    'messages[0].audio.id',
    { ...chat, messages: [{ role: 'assistant', audio: { id: 'audio_1' } }, ...messages] },
  ],
  ['/v1/chat/completions', 'container', { ...chat, container: 'container_1' }],
  ['/v1/chat/completions', 'container.id', { ...chat, container: { id: 'container_1' } }],
  ['/v1/chat/completions', 'audio.voice.id', { ...chat, audio: { format: 'wav', voice: { id: 'voice_1' } } }],
  ['/v1/chat/completions', 'x.y[0].cachedContent', { ...chat, x: { y: [{ cachedContent: 'cachedContents/1' }] } }],
  ['/v1/completions', 'file_ids[0]', { model: 'sandbox-instruct', prompt: 'Hello', file_ids: ['file-1'] }],
  ['/v1/messages', 'thread_ids[1]', { ...chat, thread_ids: ['', 'thread_1'] }],
  ['/v1/messages', 'user_profile_id', { ...chat, user_profile_id: 'uprof_1' }],
  ['/v1/messages', 'workspace_id', { ...chat, workspace_id: 'wrkspc_1' }],
  [
    '/v1/responses',
    'input[0].content[0].file_id',
    { ...response, input: said({ type: 'input_file', file_id: 'file-1' }) },
  ],
  [
    '/v1/responses',
    'input[0].content[0].file_id',
    { ...response, input: said({ type: 'input_image', file_id: 'file-1' }) },
  ],
  [
    '/v1/responses',
    'tools[0].vector_store_ids[0]',
    { ...response, tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
  ],
  ['/v1/responses', 'tools[0].container', { ...response, tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }],
  [
    '/v1/responses',
    'tools[0].container.file_ids[0]',
    { ...response, tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['file-1'] } }] },
  ],
  [
    '/v1/responses',
    'tools[0].connector_id',
    { ...response, tools: [{ type: 'mcp', server_label: 'a', connector_id: 'connector_1' }] },
  ],
  [
    '/v1/responses',
    'tools[0].input_image_mask.file_id',
    { ...response, tools: [{ type: 'image_generation', input_image_mask: { file_id: 'file-1' } }] },
  ],
  [
    '/v1/responses',
    'input[0].tools[0].vector_store_ids[0]',
    {
      ...response,
      input: [{ type: 'additional_tools', tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }, ...messages],
    },
  ],
  ['/v1/embeddings', 'file_id', { model: 'sandbox-embedding', input: 'Hello', file_id: 'file-1' }],
  ['/v1/images/generations', 'file_id', { model: 'sandbox-image', prompt: 'Hello', file_id: 'file-1' }],
  [
    '/v1/images/generations',
    'images[0].file_id',
    { model: 'sandbox-image', prompt: 'Hello', images: [{ file_id: 'file-1' }] },
  ],
  // Styles of Recraft's, finetunes of Black Forest Labs', dictionaries of ElevenLabs'.
  ['/v1/images/generations', 'style_id', { model: 'sandbox-image', prompt: 'Hello', style_id: 'style_1' }],
  ['/v1/images/generations', 'finetune_id', { model: 'sandbox-image', prompt: 'Hello', finetune_id: 'tune_1' }],
  [
    '/v1/audio/speech',
    'pronunciation_dictionary_locators[0].pronunciation_dictionary_id',
    {
      ...{ model: 'sandbox-speech', voice: 'alloy', input: 'Hello' },
      pronunciation_dictionary_locators: [{ pronunciation_dictionary_id: 'dictionary_1' }],
    },
  ],
  ['/v1/audio/speech', 'voice.id', { model: 'sandbox-speech', voice: { id: 'voice_1' }, input: 'Hello' }],
  ['/v1/videos', 'character_ids[0]', { model: 'sandbox-video', prompt: 'Hello', character_ids: ['char_1'] }],
];

describe("ids in the operator's accounts at vendors", () => {
  let gateway: TestGateway;
  let keys: AdminKeys;
  before(async () => {
    gateway = await TestGateway.start();
    keys = await AdminKeys.open(gateway);
  });
  after(() => gateway?.stop());

  const send = (key: string, path: string, body: string): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body });

  test('every endpoint returns 403 naming a vendor id that the key lacks, also when field names are escaped', async () => {
    const { key } = await keys.create();
    const before = (await vendorCalls(gateway)).length;
    for (const [path, param, body] of naming) {
      const text = JSON.stringify(body);
      for (const written of [text, text.replaceAll('_id', '\\u005f\\u0069d').replaceAll('"c', '"\\u0063')]) {
        const answer = await send(key, path, written);
        const told = await answer.clone().text();
        assert.equal(answer.status, 403, `${path} ${param}: ${told}`);
        if (path === '/v1/messages') assert.ok(told.includes(`'${param}' names something`), told);
        else assert.equal((await assertErrorAnswer(answer, 403, 'permission_denied')).param, param);
      }
    }
    assert.equal((await vendorCalls(gateway)).length, before);
  });

  test('every endpoint passes vendor ids on for a key that has them, their prefix, or all', async () => {
    const own = [
      'file-1',
      'uprof_1',
      'wrkspc_*',
      'vs_*',
      'cntr_1',
      'container_*',
      'connector_1',
      'audio_1',
      'voice_1',
      'style_1',
      'tune_1',
      'dictionary_1',
      'cachedContents/1',
    ];
    const some = await keys.create({ vendor_ids: [...own, 'thread_1', 'char_*'] });
    const all = await keys.create({ vendor_ids: ['*'] });
    assert.deepEqual(all.vendor_ids, ['*']);
    for (const { key } of [some, all]) {
      for (const [path, param, body] of naming) {
        const answer = await send(key, path, JSON.stringify(body));
        const text = await answer.text();
        // What its vendor says of an id that is not there is another thing.
        assert.notEqual(answer.status, 403, `${path} ${param}: ${text}`);
      }
    }
  });

  test('a key loses vendor ids from the moment of a change, and keeps them when it is rotated', async () => {
    const [path, , body] = naming[0] as (typeof naming)[0];
    const made = await keys.create({ vendor_ids: ['file-1'] });
    assert.notEqual((await send(made.key, path, JSON.stringify(body))).status, 403);
    const rotated = await keys.rotate(made.id);
    assert.deepEqual(rotated.vendor_ids, ['file-1']);
    const changed = await keys.change(rotated.id, { vendor_ids: null });
    assert.equal(changed.vendor_ids, null);
    assert.equal((await send(rotated.key, path, JSON.stringify(body))).status, 403);
    assert.notEqual((await send(made.key, path, JSON.stringify(body))).status, 403);
    await keys.change(made.id, { vendor_ids: ['file-2'] });
    assert.equal((await send(made.key, path, JSON.stringify(body))).status, 403);
  });

  test('a chat may have vendor id names in texts, schemas, metadata and tool calls', async () => {
    const { key } = await keys.create();
    const schema = { type: 'object', properties: { file_id: { type: 'string' } }, default: { file_id: 'file-1' } };
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"file_id":"file-1"}' } };
    const answer = await send(
      key,
      '/v1/chat/completions',
      JSON.stringify({
        ...chat,
        messages: [
          { role: 'user', content: '{"file_id":"file-1"}' },
          { role: 'assistant', content: null, tool_calls: [call] },
          { role: 'tool', tool_call_id: 'c', content: 'done' },
        ],
        metadata: { file_id: 'file-1' },
        tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
      }),
    );
    assert.equal(answer.status, 200, await answer.text());
  });

  test('a response socket refuses a vendor id that the key lacks with 403', async () => {
    const { key } = await keys.create();
    const socket = await ResponseSocketClient.open(gateway.url, { key });
    try {
      const { last } = await socket.turn({ ...response, tools: [{ type: 'code_interpreter', container: 'cntr_1' }] });
      assert.deepEqual([last.type, last.status, last.error?.param], ['error', 403, 'tools[0].container']);
    } finally {
      socket.webSocket.close();
    }
  });

  test('POST /admin/v1/accounts/{id}/keys returns 400 for an invalid list of vendor ids', async () => {
    for (const ids of [[], [''], ['a*b'], 'file-1', [1]]) {
      const refused = await keys.ask('POST', '/accounts/default/keys', { name: 'k', vendor_ids: ids });
      assert.equal(refused.status, 400, JSON.stringify(ids));
    }
  });
});
