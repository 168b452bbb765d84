import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConsoleClient } from '../support/console-client.ts';
import { TestGateway } from '../support/gateway.ts';
import { wav } from '../support/wav.ts';

/** Somebody who has just signed up, and their first API key. */
async function newUser(gateway: TestGateway): Promise<{ client: ConsoleClient; key: string }> {
  const client = new ConsoleClient(gateway.url);
  await client.signUp('ada@example.com');
  const { status, body } = await client.call('POST', '/console/api/keys', { name: 'first' });
  assert.equal(status, 201, JSON.stringify(body));
  return { client, key: body.key };
}

function post(gateway: TestGateway, key: string, path: string, body: object | FormData): Promise<Response> {
  const authorization = `Bearer ${key}`;
  const headers = body instanceof FormData ? { authorization } : { authorization, 'content-type': 'application/json' };
  return fetch(gateway.url + path, {
    method: 'POST',
    headers,
    body: body instanceof FormData ? body : JSON.stringify(body),
  });
}

function recording(): FormData {
  const form = new FormData();
  form.append('model', 'sandbox-transcribe');
  form.append('file', new Blob([new Uint8Array(wav(2))], { type: 'audio/wav' }), 'a.wav');
  return form;
}

const messages = [{ role: 'user', content: 'Hello' }];

describe('the first requests of somebody who has just signed up and has no credit', () => {
  test('the first requests of somebody who has just signed up and has no credit are answered by the sandbox, whatever they are for, and cost nothing', async () => {
    const gateway = await TestGateway.start({ settings: { SLUICE_SANDBOX: 'on', SLUICE_SIGN_UP: 'open' } });
    try {
      const { client, key } = await newUser(gateway);
      const requests: readonly (readonly [path: string, body: object | FormData])[] = [
        ['/v1/chat/completions', { model: 'sandbox-chat', messages }],
        ['/v1/chat/completions', { model: 'sandbox-reasoning', messages, stream: true }],
        ['/v1/responses', { model: 'sandbox-responses', input: 'Hello' }],
        ['/v1/messages', { model: 'sandbox-chat', max_tokens: 100, messages }],
        ['/v1/completions', { model: 'sandbox-instruct', prompt: 'Hello' }],
        ['/v1/embeddings', { model: 'sandbox-embedding', input: 'Hello' }],
        ['/v1/images/generations', { model: 'sandbox-image', prompt: 'A lighthouse' }],
        ['/v1/audio/speech', { model: 'sandbox-speech', input: 'Hello', voice: 'alloy' }],
        ['/v1/audio/transcriptions', recording()],
        ['/v1/videos', { model: 'sandbox-video', prompt: 'A lighthouse', seconds: '4' }],
      ];
      for (const [path, body] of requests) {
        const answer = await post(gateway, key, path, body);
        assert.equal(answer.status, 200, `${path}: ${answer.ok ? '' : await answer.text()}`);
        await answer.arrayBuffer();
      }
      const { body } = await client.call('GET', '/console/api/session');
      assert.equal(body.account.balance, 0);
    } finally {
      await gateway.stop();
    }
  });

  test('the first requests of somebody who has just signed up and has no credit are refused where models have prices, with the sentence of the operator that says whom to ask', async () => {
    const SLUICE_CONTACT = 'Write to credit@example.com.';
    const gateway = await TestGateway.start({
      settings: { SLUICE_SANDBOX: 'priced', SLUICE_SIGN_UP: 'open', SLUICE_CONTACT },
    });
    try {
      const { key } = await newUser(gateway);
      const answer = await post(gateway, key, '/v1/chat/completions', { model: 'sandbox-chat', messages });
      assert.equal(answer.status, 429);
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      assert.equal(error.code, 'insufficient_quota');
      assert.match(error.message, / or get more credit\. Write to credit@example\.com\.$/);
    } finally {
      await gateway.stop();
    }
  });
});
