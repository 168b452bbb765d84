import assert from 'node:assert/strict';
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';

interface WireBody {
  readonly type?: string;
  readonly object?: string;
  readonly error: { readonly code: string; readonly type: string; readonly message: string };
}

describe('mistaken base URLs', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ settings: { PUBLIC_URL: 'http://gateway.example' } });
  });
  after(() => gateway?.stop());

  const slips = ['//v1', '/v1/', '/v1/v1', '', '/openai/v1', '/api/v1', '/V1'];
  /** A request whose path no client puts right. */
  async function send(path: string, headers: Record<string, string>, body?: object) {
    const { hostname, port } = new URL(gateway.url);
    const outgoing = request({ hostname, port, path, method: body === undefined ? 'GET' : 'POST', headers });
    const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      outgoing
        .on('response', resolve)
        .on('error', reject)
        .end(body && JSON.stringify(body));
    });
    return { status: answer.statusCode, headers: answer.headers, body: (await json(answer)) as WireBody };
  }

  for (const slip of slips) {
    it(`the base URL ${slip || 'without /v1'} serves the API with the same key and host checks`, async () => {
      const authorization = `Bearer ${gateway.apiKey}`;
      const chat = await send(`${slip}/chat/completions`, { authorization }, held('Hi'));
      assert.deepEqual([chat.status, chat.body.object], [200, 'chat.completion']);
      const models = await send(`${slip}/models`, { authorization });
      assert.deepEqual([models.status, models.body.object], [200, 'list']);
      assert.equal((await send(`${slip}/models`, {})).status, 401);
      assert.equal((await send(`${slip}/chat/completions`, {}, held('Hi'))).status, 401);
      const foreign = await send(`${slip}/models`, { authorization, host: 'elsewhere.example' });
      assert.deepEqual([foreign.status, foreign.body.error.code], [403, 'permission_denied']);
    });
  }

  it('an error under a mistaken /v1/messages path has the Anthropic shape in any case', async () => {
    for (const path of [
      '/V1/messages',
      '//v1/messages',
      '/v1/Messages',
      '/messages',
      '/openai/v1/messages/count_tokens',
    ]) {
      const { status, headers, body } = await send(path, {}, {});
      assert.deepEqual([status, body.type, body.error.type], [401, 'error', 'authentication_error'], path);
      assert.equal(headers['request-id'], headers['x-request-id']);
    }
  });

  it('the limits of a key hold for every spelling of the base URL', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { rpm: 2 })}`;
    const answers = [];
    for (const slip of ['/v1', '/v1/v1', '//v1']) {
      answers.push((await send(`${slip}/chat/completions`, { authorization }, held('Hi'))).status);
    }
    assert.deepEqual(answers, [200, 200, 429]);
  });

  it('the response socket is served under a mistaken base URL', async () => {
    const client = await ResponseSocketClient.open(`${gateway.url}/openai`, { key: gateway.apiKey });
    assert.equal((await client.turn({ model: 'sandbox-responses', input: 'Reply with exactly: ok' })).text, 'ok');
    client.webSocket.close();
  });

  it('the api-key header of Azure is accepted as the key only without an Authorization', async () => {
    assert.equal((await send('/v1/models', { 'api-key': gateway.apiKey })).status, 200);
    assert.equal((await send('/v1/models', { 'api-key': 'sk-sluice-wrong' })).status, 401);
    const headers = { 'api-key': gateway.apiKey, authorization: 'Bearer sk-sluice-wrong' };
    assert.equal((await send('/v1/models', headers)).status, 401);
  });

  it('a base URL that ends with the path of an endpoint is a 404 that names the right one', async () => {
    const authorization = `Bearer ${gateway.apiKey}`;
    for (const path of [
      '/v1/chat/completions/chat/completions',
      '/v1/chat/completions/embeddings',
      '/v1/responses/responses',
      '/v1/embeddings/embeddings',
      '/v1/messages/v1/messages',
    ]) {
      const { status, body } = await send(path, { authorization }, held('Hi'));
      const message = `Unknown path: POST ${path}. The base URL of the API is http://gateway.example/v1`;
      // Under /v1/messages the error is Anthropic's.
      assert.deepEqual([status, body.error.message], [404, message]);
    }
    // Clients ask for the models, too.
    const { status, body } = await send('/v1/chat/completions/models', { authorization });
    assert.equal(status, 404);
    assert.match(body.error.message, /The base URL of the API is http:\/\/gateway\.example\/v1$/);
  });

  it('a mistyped path is a 404 that names the nearest one', async () => {
    const named: Record<string, string> = {
      '/v1/chat/completion': '/v1/chat/completions',
      '/chat/completion': '/v1/chat/completions',
      '/v1/chat': '/v1/chat/completions',
      '/v1/response': '/v1/responses',
      '/v1/message': '/v1/messages',
      '/v1/image/generations': '/v1/images/generations',
      '/v1/audio': '/v1/audio/transcriptions or /v1/audio/translations or /v1/audio/speech',
      '/v1/keys': '/v1/key',
    };
    for (const [path, near] of Object.entries(named)) {
      const { status, body } = await send(path, {}, held('Hi'));
      assert.equal(status, 404, path);
      assert.ok(body.error.message.endsWith(`. Did you mean ${near}?`), body.error.message);
    }
    for (const path of ['/v1/nothing', `/v1/${'chat/completion'.repeat(9)}`]) {
      const { body } = await send(path, {}, held('Hi'));
      assert.equal(body.error.message, `Unknown path: POST ${path}`);
    }
  });

  it('a mistaken base URL opens no console or operator path, and a 404 names the right base URL', async () => {
    const authorization = `Bearer ${gateway.apiKey}`;
    const paths = ['//console/api/models', '/api/admin/v1/jobs', '/openai/deployments/x/chat/completions', '//metrics'];
    for (const path of paths) {
      const { status, body } = await send(path, { authorization });
      assert.equal(status, 404, path);
      assert.match(
        body.error.message,
        /^Unknown path: GET .*\. The base URL of the API is http:\/\/gateway\.example\/v1$/,
      );
    }
    await assertErrorAnswer(await gateway.fetch('/v1/nothing'), 404, 'not_found');
  });
});
