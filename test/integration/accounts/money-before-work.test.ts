import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { ensureAccount } from '../../../shared/accounts/accounts.ts';
import { openDatabase } from '../../../shared/database/database.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { pngFile } from '../../support/image-files.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

/** A link that hides in fields of any name, which passes for an image where nobody is shown one. */
const data = `data:${'A'.repeat(12_000)}`;
const nested = { image_url: { image_url: { image_url: data } } };
const messages = [{ role: 'user', content: 'anything' }];
const schema = { type: 'object', properties: { a: nested } };

/** Every endpoint whose work is paid for by tokens, and a request that tries to cost nothing. */
const requests: readonly (readonly [path: string, body: object])[] = [
  ['/v1/chat/completions', { model: 'sandbox-chat', messages, x: nested }],
  ['/v1/chat/completions', { model: 'sandbox-chat', messages, x: nested, stream: true }],
  ['/v1/chat/completions', { model: 'sandbox-chat', messages: [{ ...messages[0], ...nested }] }],
  [
    '/v1/chat/completions',
    { model: 'sandbox-chat', messages, tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] },
  ],
  ['/v1/completions', { model: 'sandbox-instruct', prompt: 'anything', x: nested }],
  ['/v1/responses', { model: 'sandbox-chat', input: 'anything', x: nested }],
  ['/v1/responses', { model: 'sandbox-responses', input: 'anything', x: nested }],
  ['/v1/responses', { model: 'sandbox-responses', input: 'anything', x: nested, background: true }],
  ['/v1/messages', { model: 'sandbox-chat', max_tokens: 100, messages, x: nested }],
  ['/v1/messages', { model: 'sandbox-chat', max_tokens: 100, messages, tools: [{ name: 'f', input_schema: schema }] }],
  ['/v1/messages/count_tokens', { model: 'sandbox-chat', messages, tools: [{ name: 'f', input_schema: schema }] }],
  ['/v1/embeddings', { model: 'sandbox-embedding', input: 'anything', x: nested }],
  ['/v1/images/generations', { model: 'painter', prompt: 'anything', x: nested }],
  [
    '/v1/images/edits',
    { model: 'painter', prompt: 'anything', images: [{ image_url: 'https://a.example/b.png' }], x: nested },
  ],
  ['/v1/videos', { model: 'sandbox-video', prompt: 'anything', x: nested }],
  ['/v1/audio/speech', { model: 'sandbox-speech', voice: 'alloy', input: 'anything', x: nested }],
];

describe('payment before work', () => {
  let gateway: TestGateway;
  /** By who asks. */
  const keys = new Map<string, string>();

  before(async () => {
    gateway = await TestGateway.start({
      configuration: {
        models: {
          painter: {
            capability: 'image',
            prices: { input: 5, image_output: 40 },
            routes: [{ vendor: 'sandbox', model: 'sandbox-image' }],
          },
        },
      },
    });
    const db = await openDatabase(gateway);
    try {
      await ensureAccount(db, { id: 'stranger', name: 'stranger' });
    } finally {
      await db.destroy();
    }
    keys.set('an account with a balance of 0', await makeApiKey(gateway, { accountId: 'stranger' }));
    const budget = { amount: 0, period: 'month' } as const;
    keys.set('a key with a budget of 0', await makeApiKey(gateway, { budget }));
  });
  after(() => gateway?.stop());

  const ask = (key: string, path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: JSON.stringify(body) });

  for (const who of ['an account with a balance of 0', 'a key with a budget of 0']) {
    test(`${who} gets no work from any endpoint by nested links, on the first or the second request`, async () => {
      const before = (await vendorCalls(gateway)).length;
      for (const [path, body] of requests) {
        // The second time the api remembers that this key pays.
        for (const _ of [1, 2]) {
          const answer = await ask(keys.get(who) as string, path, body);
          assert.ok([403, 429].includes(answer.status), `${path} ${answer.status} ${await answer.text()}`);
        }
      }
      assert.equal((await vendorCalls(gateway)).length, before, 'the vendor was called');
    });
  }

  test('a chat of an account without balance returns 429 insufficient_quota', async () => {
    const key = keys.get('an account with a balance of 0') as string;
    const answer = await ask(key, '/v1/chat/completions', {
      model: 'sandbox-chat',
      messages: [{ ...messages[0], ...nested }],
    });
    await assertErrorAnswer(answer, 429, 'insufficient_quota');
  });

  test('a response socket refuses a message of an account without balance', async () => {
    const before = (await vendorCalls(gateway)).length;
    const key = keys.get('an account with a balance of 0') as string;
    const socket = await ResponseSocketClient.open(gateway.url, { key });
    try {
      socket.create({ input: 'anything', x: nested });
      const { type, status } = (await socket.next()) as { type: string; status: number };
      assert.equal(type, 'error');
      assert.ok(status === 429 || status === 403, `${status}`);
    } finally {
      socket.webSocket.close();
    }
    assert.equal((await vendorCalls(gateway)).length, before);
  });

  test('a response that continues another one holds an earlier image as an image, not as text', async () => {
    // As text it would be 400,000 tokens, for 4,000,000 nano-dollars.
    const png = Buffer.concat([Buffer.from(await pngFile('a.png', 8).arrayBuffer()), Buffer.alloc(300_000)]);
    const image = { type: 'input_image', image_url: `data:image/png;base64,${png.toString('base64')}` };
    const limits = { max_output_tokens: 16 };
    const db = await openDatabase(gateway);
    await ensureAccount(
      db,
      { id: 'viewer', name: 'viewer' },
      { amount: 500_000, note: 'a test', createdBy: 'test' },
    ).finally(() => db.destroy());
    const key = await makeApiKey(gateway, { accountId: 'viewer' });
    const respond = async (fields: object): Promise<{ id: string }> => {
      const answer = await ask(key, '/v1/responses', { model: 'sandbox-chat', ...limits, ...fields });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      return JSON.parse(text) as { id: string };
    };
    const first = await respond({ input: [{ role: 'user', content: [image] }] });
    const second = await respond({ input: 'And now?', previous_response_id: first.id });
    await respond({ input: 'And then?', previous_response_id: second.id });
    const items = await gateway.fetch(`/v1/responses/${second.id}/input_items?order=asc`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const [shown] = ((await items.json()) as { data: { id: string }[] }).data;
    await respond({ input: [{ type: 'item_reference', id: shown?.id }] });
    const socket = await ResponseSocketClient.open(gateway.url, { key });
    try {
      socket.create({ ...limits, store: false, input: [{ role: 'user', content: [image] }] });
      const { last, response } = await socket.turn();
      assert.equal(last.type, 'response.incomplete', JSON.stringify(last));
      socket.create({ ...limits, store: false, input: 'And now?', previous_response_id: response.id });
      assert.equal((await socket.turn()).last.type, 'response.incomplete');
    } finally {
      socket.webSocket.close();
    }
  });

  test('an account whose requests were all refused has nothing held or charged', async () => {
    const redis = await connectRedis(gateway.redisUrl, createLogger('silent', 'test').log);
    try {
      assert.deepEqual(await readAccountMoney(redis.client, 'stranger'), { credit: 0, charged: 0, held: 0 });
    } finally {
      await redis.close();
    }
  });
});
