import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ensureAccount } from '../../../shared/accounts/accounts.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const messages = [{ role: 'user', content: 'Hello' }];
const chat = { model: 'sandbox-chat', messages, max_tokens: 16 };
const response = { model: 'sandbox-responses', input: 'Hello', max_output_tokens: 16 };
const hour = { type: 'ephemeral', ttl: '1h' };
const cached = [{ role: 'user', content: [{ type: 'text', text: 'Hello', cache_control: hour }] }];

/** What vendors bill beside tokens, images, seconds and characters; the parameter that a refusal names. */
const extras: readonly (readonly [path: string, param: string, body: object])[] = [
  ['/v1/chat/completions', 'service_tier', { ...chat, service_tier: 'priority' }],
  ['/v1/chat/completions', 'service_tier', { ...chat, service_tier: 'scale', stream: true }],
  ['/v1/chat/completions', 'web_search_options', { ...chat, web_search_options: { search_context_size: 'high' } }],
  // The usual way to have a search.
  ['/v1/chat/completions', 'web_search_options', { ...chat, web_search_options: {} }],
  ['/v1/messages', 'web_search_options', { ...chat, web_search_options: {} }],
  [
    '/v1/chat/completions',
    'modalities',
    { ...chat, modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } },
  ],
  ['/v1/chat/completions', 'prediction', { ...chat, prediction: { type: 'content', content: 'Hello' } }],
  ['/v1/chat/completions', 'inference_geo', { ...chat, inference_geo: 'us' }],
  ['/v1/chat/completions', 'plugins', { ...chat, plugins: [{ id: 'web' }] }],
  ['/v1/chat/completions', 'models', { ...chat, models: ['a-dear-one'] }],
  ['/v1/chat/completions', 'best_of', { ...chat, best_of: 20 }],
  ['/v1/chat/completions', 'messages[0].content[0].cache_control.ttl', { ...chat, messages: cached }],
  ['/v1/messages', 'messages[0].content[0].cache_control.ttl', { ...chat, messages: cached }],
  ['/v1/messages', 'search_parameters', { ...chat, search_parameters: { mode: 'on' } }],
  ['/v1/completions', 'service_tier', { model: 'sandbox-instruct', prompt: 'Hello', service_tier: 'priority' }],
  ['/v1/responses', 'service_tier', { ...response, service_tier: 'priority' }],
  ['/v1/responses', 'service_tier', { ...response, model: 'sandbox-chat', service_tier: 'priority' }],
  ['/v1/responses', 'tools[1]', { ...response, tools: [{ type: 'local_shell' }, { type: 'web_search' }] }],
  ['/v1/responses', 'tools[0]', { ...response, tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
  [
    '/v1/responses',
    'tools[0]',
    { ...response, tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://a.example' }] },
  ],
  ['/v1/responses', 'tools[0]', { ...response, tools: [{ type: 'something_new' }] }],
  [
    '/v1/responses',
    'input[0].tools[0]',
    { ...response, input: [{ type: 'additional_tools', tools: [{ type: 'image_generation' }] }, ...messages] },
  ],
  ['/v1/responses', 'reasoning.mode', { ...response, reasoning: { mode: 'pro' } }],
  ['/v1/responses', 'something_new', { ...response, something_new: true }],
  ['/v1/embeddings', 'something_new', { model: 'sandbox-embedding', input: 'Hello', something_new: 1 }],
  ['/v1/images/generations', 'something_new', { model: 'sandbox-image', prompt: 'Hello', something_new: 1 }],
  ['/v1/images/generations', 'quality', { model: 'sandbox-image', prompt: 'Hello', quality: 'hd' }],
  ['/v1/audio/speech', 'something_new', { model: 'sandbox-speech', voice: 'alloy', input: 'Hello', something_new: 1 }],
  ['/v1/videos', 'resolution', { model: 'sandbox-video', prompt: 'Hello', resolution: '4k' }],
];

/** What costs no more than a plain request does. */
const plain: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { ...chat, service_tier: 'auto' }],
  ['/v1/chat/completions', { ...chat, service_tier: 'default', user: 'u', seed: 1, prompt_cache_key: 'k', top_k: 4 }],
  ['/v1/chat/completions', { ...chat, modalities: ['text'], logit_bias: {} }],
  ['/v1/messages', { ...chat, service_tier: 'standard_only', thinking: { type: 'disabled' } }],
  // Nothing is billed for a count.
  ['/v1/messages/count_tokens', { model: 'sandbox-chat', messages: cached }],
  ['/v1/completions', { model: 'sandbox-instruct', prompt: 'Hello', best_of: 2, echo: true, suffix: 'b' }],
  [
    '/v1/responses',
    { ...response, service_tier: 'auto', include: ['reasoning.encrypted_content'], truncation: 'auto' },
  ],
  // Over a chat it is left out, and named.
  ['/v1/responses', { ...response, model: 'sandbox-chat', tools: [{ type: 'web_search' }] }],
  ['/v1/images/generations', { model: 'sandbox-image', prompt: 'Hello', size: '256x256', quality: 'high' }],
  ['/v1/audio/speech', { model: 'sandbox-speech', voice: 'alloy', input: 'Hello', speed: 2 }],
  // As the operator's file says.
  ['/v1/chat/completions', { ...chat, service_tier: 'flex', known_to_be_free: true }],
];

describe('extras that vendors bill beside the prices of a model', () => {
  let gateway: TestGateway;
  const keys = { balance: '', budget: '', unlimited: '' };

  before(async () => {
    gateway = await TestGateway.start({
      configuration: {
        vendors: { sandbox: { unbilled: ['service_tier.flex', 'known_to_be_free'] } },
        models: {
          'half-priced': {
            capability: 'chat',
            routes: [
              { vendor: 'sandbox', model: 'sandbox-chat', prices: { input: 1, output: 1 } },
              { vendor: 'sandbox', model: 'sandbox-reasoning', order: 1 },
            ],
          },
        },
      },
    });
    const db = await openDatabase(gateway);
    const credit = { amount: 1_000_000_000, note: 'a test', createdBy: 'test' };
    await ensureAccount(db, { id: 'prepaid', name: 'prepaid' }, credit).finally(() => db.destroy());
    keys.balance = await makeApiKey(gateway, { accountId: 'prepaid' });
    keys.budget = await makeApiKey(gateway, { budget: { amount: 1_000_000_000, period: 'month' } });
    keys.unlimited = await makeApiKey(gateway);
  });
  after(() => gateway?.stop());

  const ask = (key: string, path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: JSON.stringify(body) });

  for (const who of ['balance', 'budget'] as const) {
    test(`a key with a limited ${who} gets 403 naming each unpriced extra, and the vendor is not called`, async () => {
      const before = (await vendorCalls(gateway)).length;
      for (const [path, param, body] of extras) {
        const answer = await ask(keys[who], path, body);
        const text = await answer.clone().text();
        assert.equal(answer.status, 403, `${path} ${param}: ${text}`);
        if (path === '/v1/messages') {
          assert.match(text, /"permission_error".* has no price here/);
          continue;
        }
        const error = await assertErrorAnswer(answer, 403, 'permission_denied');
        assert.equal(error.param, param, text);
        assert.match(error.message, /unbilled/);
      }
      assert.equal((await vendorCalls(gateway)).length, before);
    });

    test(`a key with a limited ${who} may use parameters that cost nothing extra`, async () => {
      for (const [path, body] of plain) {
        const answer = await ask(keys[who], path, body);
        assert.equal(answer.status, 200, `${path} ${JSON.stringify(body)}: ${await answer.text()}`);
      }
    });
  }

  test('a key without limits may use every unpriced extra', async () => {
    for (const [path, param, body] of extras) {
      const answer = await ask(keys.unlimited, path, body);
      const text = await answer.text();
      // What its vendor says of it is another thing.
      assert.ok(![401, 403, 429].includes(answer.status), `${path} ${param}: ${answer.status} ${text}`);
    }
  });

  test('a response socket refuses an unpriced extra of a limited account with 403', async () => {
    const socket = await ResponseSocketClient.open(gateway.url, { key: keys.balance });
    try {
      const { last } = await socket.turn({ ...response, service_tier: 'priority' });
      assert.deepEqual([last.type, last.status, last.error?.param], ['error', 403, 'service_tier']);
    } finally {
      socket.webSocket.close();
    }
  });

  test('a model with an unpriced route returns 403 to a limited account and serves an unlimited one', async () => {
    const body = { ...chat, model: 'half-priced' };
    await assertErrorAnswer(await ask(keys.balance, '/v1/chat/completions', body), 403, 'permission_denied');
    assert.equal((await ask(keys.unlimited, '/v1/chat/completions', body)).status, 200);
  });

  test('POST /v1/responses returns 400 for chat fields that multiply or replace what is held', async () => {
    for (const [name, value] of Object.entries({ n: 128, max_tokens: 100_000, messages: [], best_of: 9 })) {
      const answer = await ask(keys.unlimited, '/v1/responses', { ...response, model: 'sandbox-chat', [name]: value });
      const { param } = await assertErrorAnswer(answer, 400, 'invalid_request_error');
      assert.equal(param, name);
    }
  });
});
