import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI, { APIError } from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

type ErrorClass = new (...args: never[]) => APIError;

describe('errors', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start({ configuration: oneAttempt });
    client = gateway.client();
  });
  after(() => gateway.stop());

  /** The error of the official client that a request ends with. */
  async function errorOf(
    request: PromiseLike<unknown>,
    kind: ErrorClass,
    status: number,
    code: string,
  ): Promise<APIError> {
    const error = await request.then(
      () => assert.fail('it was answered'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof kind, String(error));
    assert.ok(error instanceof APIError);
    assert.equal(error.status, status);
    assert.equal(error.code, code);
    assert.equal(error.type, status >= 500 ? 'server_error' : status === 429 ? code : 'invalid_request_error');
    assert.match(error.requestID ?? '', /^(job|req)_/);
    return error;
  }

  const failing = (fault: object, text = 'WORDS:5') => held(text, { sandbox: { fault } });

  it('a parameter out of range is a BadRequestError of the OpenAI client that names it', async () => {
    const error = await errorOf(
      client.chat.completions.create(held('Hi', { temperature: 3 })),
      OpenAI.BadRequestError,
      400,
      'invalid_request_error',
    );
    assert.equal(error.param, 'temperature');
  });

  it('a wrong or revoked key is an AuthenticationError of the OpenAI client', async () => {
    const revoked = await makeApiKey(gateway);
    await gateway.client({ apiKey: revoked }).chat.completions.create(held('Hi'));
    await revokeKey(gateway, revoked);
    for (const apiKey of ['sk-wrong', revoked]) {
      const other = gateway.client({ apiKey });
      const requests = [
        () => other.chat.completions.create(held('Hi')),
        () => other.chat.completions.create(streamed('Hi')),
        () => other.models.list(),
      ];
      for (const request of requests) {
        await errorOf(request(), OpenAI.AuthenticationError, 401, 'invalid_api_key');
      }
    }
  });

  it('POST /v1/chat/completions returns 401 for a missing or malformed Authorization', async () => {
    for (const authorization of ['', 'Bearer', 'Bearer a b', 'Basic dXNlcg==', gateway.apiKey]) {
      const body = JSON.stringify(held('Hi'));
      const init = { method: 'POST', headers: { authorization }, body };
      await assertErrorAnswer(await gateway.fetch('/v1/chat/completions', init), 401, 'invalid_api_key');
    }
  });

  it('an unknown model is a NotFoundError of the OpenAI client that suggests a similar model', async () => {
    const request = client.chat.completions.create(held('Hi', { model: 'sandbox-chatt' }));
    const error = await errorOf(request, OpenAI.NotFoundError, 404, 'model_not_found');
    assert.match(error.message, /sandbox-chat\b/);
    assert.equal(error.param, 'model');
  });

  it('an unknown path returns 404, and a wrong method returns 405 with Allow', async () => {
    for (const path of ['/v1/nothing', '/v1/fine_tuning/jobs', '/v2/models', '/v1/chat']) {
      await assertErrorAnswer(await gateway.fetch(path), 404, 'not_found');
    }
    for (const [method, path] of [
      ['GET', '/v1/chat/completions'],
      ['DELETE', '/v1/models'],
      ['POST', '/v1/models/x'],
    ] as const) {
      const response = await gateway.fetch(path, { method });
      assert.ok((response.headers.get('allow') ?? '').length > 0, `${method} ${path}: Allow`);
      const { message } = await assertErrorAnswer(response, 405, 'method_not_allowed');
      assert.ok(message.includes(`The method ${method} is not allowed`), message);
      assert.ok(message.includes(`Allowed: ${response.headers.get('allow')}.`), message);
    }
  });

  it('a model of another capability returns 400 naming the paths to use', async () => {
    for (const [path, model, use] of [
      ['/v1/chat/completions', 'sandbox-image', 'use /v1/images/generations or /v1/images/edits'],
      ['/v1/chat/completions', 'sandbox-speech', 'use /v1/audio/speech.'],
      ['/v1/embeddings', 'sandbox-chat', 'use /v1/chat/completions or /v1/responses or /v1/messages.'],
      ['/v1/messages', 'sandbox-embedding', 'use /v1/embeddings.'],
      ['/v1/images/generations', 'sandbox-video', 'use /v1/videos.'],
    ] as const) {
      const body = JSON.stringify({ ...held('Hi'), model, max_tokens: 10, input: 'Hi', prompt: 'Hi' });
      const response = await gateway.fetch(path, { method: 'POST', body });
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as { error: { message: string } };
      assert.ok(error.message.includes(`\`${model}\` cannot be used with ${path}: ${use}`), error.message);
    }
  });

  it('POST /v1/chat/completions returns 400 with line and column for a JSON syntax error', async () => {
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: '{\n  "model": nothing\n}' });
    const { message } = await assertErrorAnswer(response, 400, 'invalid_request_error');
    assert.ok(message.includes('at line 2, column 12'), message);
  });

  it('POST /v1/chat/completions returns 413 for a body over 20 MiB, and 415 for a content type other than JSON', async () => {
    const large = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: ' '.repeat(20 * 1024 * 1024 + 1),
    });
    await assertErrorAnswer(large, 413, 'request_too_large');
    for (const type of ['text/plain', 'multipart/form-data; boundary=x', 'application/json; charset=utf-16']) {
      const init = { method: 'POST', headers: { 'content-type': type }, body: JSON.stringify(held('Hi')) };
      await assertErrorAnswer(await gateway.fetch('/v1/chat/completions', init), 415, 'unsupported_media_type');
    }
  });

  it('a 400 of a vendor reaches the client with its message and code', async () => {
    const fault = { kind: 'error', status: 400, code: 'context_length_exceeded', message: 'Too long.' };
    for (const request of [failing(fault), { ...failing(fault), stream: true as const }]) {
      const error = await errorOf(
        client.chat.completions.create(request),
        OpenAI.BadRequestError,
        400,
        'context_length_exceeded',
      );
      assert.match(error.message, /Too long\./);
    }
  });

  it('a 429 of a vendor reaches the client with Retry-After, held and streamed', async () => {
    const fault = { kind: 'rate_limit', retry_after: 7 };
    for (const request of [failing(fault), { ...failing(fault), stream: true as const }]) {
      const error = await errorOf(
        client.chat.completions.create(request),
        OpenAI.RateLimitError,
        429,
        'rate_limit_exceeded',
      );
      // Never earlier than the vendor says; later, so that callers do not meet again.
      const wait = Number(error.headers?.get('retry-after-ms'));
      assert.ok(wait >= 7000 && wait <= 14_000, `${wait} ms`);
      assert.equal(error.headers?.get('retry-after'), String(Math.ceil(wait / 1000)));
    }
  });

  it('the automatic retry of the OpenAI client by Retry-After succeeds', async () => {
    const sandbox = { fault: { kind: 'rate_limit', retry_after: 1, times: 1, key: 'retry-after' } };
    const started = Date.now();
    const answer = await gateway
      .client({ maxRetries: 2 })
      .chat.completions.create(held('Reply with exactly: at last', { sandbox, user: 'retry-after' }));
    assert.equal(answer.choices[0]?.message.content, 'at last');
    assert.ok(Date.now() - started >= 950, 'it waited as it was told');
    assert.equal((await vendorCalls(gateway, 'retry-after')).length, 2);
  });

  it('a 401, 402 or 403 of a vendor becomes a 503 without the message of the vendor', async () => {
    for (const status of [401, 402, 403]) {
      const request = client.chat.completions.create(
        failing({ kind: 'error', status, message: 'secret account words' }),
      );
      const error = await errorOf(request, OpenAI.InternalServerError, 503, 'service_unavailable');
      assert.ok(!error.message.includes('secret'));
      // The client that the operator's key is refused by need not try again before the operator has seen to it.
      if (status === 402) assert.ok(Number(error.headers?.get('retry-after')) >= 1);
      else {
        assert.match(error.message, /operator must check the vendor settings/);
        assert.equal(error.headers?.get('x-should-retry'), 'false');
        for (const name of ['retry-after', 'retry-after-ms']) assert.equal(error.headers?.get(name), null);
      }
    }
  });

  it('a 401 of a vendor is not retried by the OpenAI client, and POST /v1/messages returns the same headers', async () => {
    const body = { ...failing({ kind: 'error', status: 401 }), user: 'refused-key' };
    await assert.rejects(gateway.client({ maxRetries: 3 }).chat.completions.create(body));
    assert.equal((await vendorCalls(gateway, 'refused-key')).length, 1);
    const fault = { kind: 'error', status: 401 };
    const answer = await gateway.fetch('/v1/messages', {
      method: 'POST',
      body: JSON.stringify({
        ...{ model: 'sandbox-chat', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] },
        sandbox: { fault },
      }),
    });
    assert.equal(answer.status, 503, await answer.text());
    assert.equal(answer.headers.get('x-should-retry'), 'false');
    assert.equal(answer.headers.get('retry-after'), null);
  });

  it('a 500 or broken answer of a vendor becomes a 500, and a 529 becomes a 503', async () => {
    for (const fault of [{ kind: 'error', status: 500 }, { kind: 'reset' }, { kind: 'eof' }, { kind: 'malformed' }]) {
      await errorOf(client.chat.completions.create(failing(fault)), OpenAI.InternalServerError, 500, 'server_error');
    }
    const overloaded = client.chat.completions.create(failing({ kind: 'error', status: 529 }));
    await errorOf(overloaded, OpenAI.InternalServerError, 503, 'service_unavailable');
    const reset = client.chat.completions.create(streamed('WORDS:5', { sandbox: { fault: { kind: 'reset' } } }));
    await errorOf(reset, OpenAI.InternalServerError, 500, 'server_error');
  });

  it('a silent vendor becomes a 504 after the X-Stainless-Timeout of the client, held and streamed', async () => {
    for (const stream of [false, true]) {
      const request = { ...failing({ kind: 'silence' }), stream, user: `silence-${stream}` };
      const init = { method: 'POST', headers: { 'x-stainless-timeout': '1' }, body: JSON.stringify(request) };
      await assertErrorAnswer(await gateway.fetch('/v1/chat/completions', init), 504, 'timeout');
      await eventually(async () => {
        const [call] = await vendorCalls(gateway, `silence-${stream}`);
        assert.equal(call?.ended, 'client_closed', 'the vendor was not let go');
      });
    }
  });
});
