import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import {
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';
import { completion, events, streams, usageChunk } from '../../vendors/recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;

const messages = [{ role: 'user', content: 'Hello' }];
const model = 'groq/llama-3.1-8b-instant';

/** A request of each endpoint that makes chats, and a field of it that Groq refuses: as sent, and as its caller knows it. */
const refused: readonly (readonly [path: string, request: Fields, param: string])[] = [
  ['/v1/chat/completions', { messages, n: 2 }, 'n'],
  ['/v1/completions', { prompt: 'Hello', logprobs: 2 }, 'logprobs'],
  ['/v1/messages', { messages, max_tokens: 16, logit_bias: { 1: 2 } }, 'logit_bias'],
  ['/v1/responses', { input: 'Hello', include: ['message.output_text.logprobs'] }, 'include'],
];

/** Of a Claude. */
const message = { type: 'message', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage: {} };

/** A request of each endpoint to a Claude, with fields that only some of them take. */
const sampled: readonly (readonly [path: string, request: Fields])[] = [
  ['/v1/chat/completions', { messages }],
  ['/v1/completions', { prompt: 'Hello' }],
  ['/v1/messages', { messages, max_tokens: 16 }],
  ['/v1/responses', { input: 'Hello' }],
];

describe('parameters that a vendor does not support', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    gateway = await TestGateway.start({
      settings: {
        ...{ GROQ_API_KEY: 'a-key', GROQ_BASE_URL: vendor.baseUrl },
        ...{ ANTHROPIC_API_KEY: 'a-key', ANTHROPIC_BASE_URL: vendor.baseUrl },
      },
    });
    vendor.answer((response, { body, url }) => {
      if (url === '/v1/messages') sendJson(response, 200, JSON.stringify(message));
      else if (body.includes('"stream":true'))
        sendStream(response, [events([...(streams['plain text'] ?? []), usageChunk])]);
      else sendJson(response, 200, JSON.stringify(completion));
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const post = (path: string, request: Fields, key = gateway.apiKey) =>
    gateway.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model, ...request }),
    });
  const sent = () => JSON.parse(vendor.requests.at(-1)?.body ?? '') as Fields;

  for (const [path, request, param] of refused) {
    test(`POST ${path} with ${param} returns 400 naming it before the vendor is called`, async () => {
      const asked = vendor.requests.length;
      const response = await post(path, request);
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as { error: { message: string; param?: string } };
      assert.match(error.message, new RegExp(`'${param}' is not supported by the vendor of the model`));
      if (path !== '/v1/messages') assert.equal(error.param, param);
      assert.equal(vendor.requests.length, asked);
    });

    test(`POST ${path} with ${param} names it as ignored for a key with unsupported_parameters: drop`, async () => {
      const key = await makeApiKey(gateway, { unsupportedParameters: 'drop' });
      const response = await post(path, { ...request, temperature: 0.5 }, key);
      assert.equal(response.status, 200, await response.clone().text());
      assert.equal(response.headers.get('x-sluice-ignored'), param);
      const { model: name, temperature, ...rest } = sent();
      assert.deepEqual([name, temperature], ['llama-3.1-8b-instant', 0.5]);
      for (const field of ['n', 'logprobs', 'logit_bias', 'include']) assert.equal(field in rest, false, field);
    });
  }

  for (const [path, request] of sampled) {
    test(`POST ${path} drops and names what only some models of the vendor refuse, for a key with unsupported_parameters: drop`, async () => {
      const key = await makeApiKey(gateway, { unsupportedParameters: 'drop' });
      const sampling = { temperature: 0.5, top_p: 0.9 };
      const dropped = await post(path, { model: 'claude-opus-4-8', ...request, ...sampling }, key);
      assert.equal(dropped.status, 200, await dropped.clone().text());
      assert.equal(dropped.headers.get('x-sluice-ignored'), 'temperature, top_p');
      for (const field of Object.keys(sampling)) assert.equal(field in sent(), false, field);
      const taken = await post(path, { model: 'claude-haiku-4-5', ...request, temperature: 0.5 }, key);
      assert.equal(taken.headers.get('x-sluice-ignored'), null);
      assert.equal(sent().temperature, 0.5);
      const asked = vendor.requests.length;
      const refusedOne = await post(path, { model: 'claude-opus-4-8', ...request, ...sampling });
      assert.equal(refusedOne.status, 400);
      assert.equal(vendor.requests.length, asked);
    });
  }

  test('POST /v1/chat/completions drops and names unsupported hints, and no parameters without effect', async () => {
    for (const stream of [true, false]) {
      const hints = { presence_penalty: 1, metadata: { a: 'b' }, n: 1, logprobs: false, user: 'u', stream };
      const response = await post('/v1/chat/completions', { messages, ...hints });
      assert.equal(response.status, 200);
      await response.text();
      assert.equal(response.headers.get('x-sluice-ignored'), 'presence_penalty, metadata');
      const { messages: said, user, ...rest } = sent();
      assert.deepEqual([said, user], [messages, 'u']);
      assert.deepEqual(
        Object.keys(rest).filter((name) => name in hints && name !== 'stream'),
        [],
      );
    }
  });

  test('POST /v1/chat/completions passes every parameter to a vendor that supports all', async () => {
    const response = await post('/v1/chat/completions', {
      model: 'sandbox-chat',
      messages,
      n: 2,
      user: 'u',
      store: true,
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('x-sluice-ignored'), null);
    const { choices } = (await response.json()) as { choices: unknown[] };
    assert.equal(choices.length, 2);
  });
});
