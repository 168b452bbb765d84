import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import type { ApiError } from '../../../shared/errors.ts';
import { createAnthropic } from '../../../workers/vendors/anthropic/anthropic.ts';
import { chatCalls, describeChatFaults } from '../contracts/chat-faults-contract.ts';
import { failureOf, sameFailureOf } from '../contracts/failure-of.ts';
import { type Answer, beginStream, callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { errorBody, eventsOf, recorded, toWire } from '../recorded/recorded-anthropic.ts';

const apiKey = 'sk-ant-test-0123456789abcdef';
const plain = eventsOf(recorded['plain text'] as Anthropic.Message);

const create = (baseUrl: string) => createAnthropic({ name: 'anthropic', baseUrl, apiKey });

describeChatFaults('Anthropic', {
  create,
  secrets: [apiKey],
  contentType: 'text/event-stream',
  events: plain.map((event) => toWire([event])),
});

describe('Anthropic errors', () => {
  const bench = new VendorBench(create);

  /** The error of a call whose request the server answers like this; streamed, held and counted alike. */
  const errorOf = (answer: Answer): Promise<ApiError> => {
    bench.server.answer(answer);
    return sameFailureOf(chatCalls(bench.vendor), [apiKey]);
  };
  const statusError = (status: number, type: string, message: string, headers: Record<string, string> = {}) =>
    errorOf((response) => sendJson(response, status, errorBody(type, message), headers));

  const stream = async (text: string) => {
    bench.server.answer((response) => sendStream(response, [text]));
    const sink = collect();
    await bench.vendor.chat(callOf(), sink);
  };

  it('a stream of Anthropic that grows without an answer is ended', async () => {
    const signature = 'x'.repeat(1024 * 1024);
    const delta = { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature } };
    const start = { type: 'content_block_start', index: 0, content_block: { type: 'thinking' } };
    bench.server.answer((response) => {
      beginStream(response);
      response.write(`data: ${JSON.stringify(start)}\n\n`);
      const event = `data: ${JSON.stringify(delta)}\n\n`;
      const send = (sent: number): void => {
        if (sent === 200) response.end();
        else if (!response.destroyed) response.write(event, () => send(sent + 1));
      };
      send(0);
    });
    await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'server_error', message: /sent too much/ });
  });

  it('a request that alone exceeds a limit of tokens at Anthropic is too large, and any other waits for its limit', async () => {
    const message = (tokens: string) =>
      `This request would exceed the rate limit for your organization (org_1) of 30,000 ${tokens} per minute. For details, refer to: https://docs.claude.com/en/api/rate-limits.`;
    const told = (kind: string, remaining: string) => ({
      'retry-after': '9',
      [`anthropic-ratelimit-${kind}-limit`]: '30000',
      [`anthropic-ratelimit-${kind}-remaining`]: remaining,
    });
    for (const kind of ['input-tokens', 'output-tokens', 'tokens']) {
      const text = message(kind.replace('-', ' '));
      const alone = await statusError(429, 'rate_limit_error', text, told(kind, '30000'));
      assert.deepEqual(
        [alone.code, alone.status, alone.vendorStatus, alone.message.includes('org_1')],
        ['request_too_large', 413, 413, false],
      );
      for (const headers of [told(kind, '29000'), told(`other-${kind}`, '30000'), told(kind, ''), told(kind, 'all')]) {
        const limited = await statusError(429, 'rate_limit_error', text, headers);
        assert.deepEqual([limited.code, limited.retryAfterMs], ['rate_limit_exceeded', 9000], JSON.stringify(headers));
      }
    }
    // A limit of requests, or of acceleration, is no matter of its length.
    const other = 'This request would exceed the rate limit for your organization (org_1) of 50 requests per minute.';
    const requests = await statusError(429, 'rate_limit_error', other, told('tokens', '30000'));
    assert.equal(requests.code, 'rate_limit_exceeded');
  });

  it("Anthropic's own client recognizes the error fixtures", async () => {
    const client = new Anthropic({ baseURL: bench.server.baseUrl.replace(/\/v1$/, ''), apiKey, maxRetries: 0 });
    const cases: [number, string, new (...fields: never[]) => Error][] = [
      [400, 'invalid_request_error', Anthropic.BadRequestError],
      [401, 'authentication_error', Anthropic.AuthenticationError],
      [403, 'permission_error', Anthropic.PermissionDeniedError],
      [404, 'not_found_error', Anthropic.NotFoundError],
      [429, 'rate_limit_error', Anthropic.RateLimitError],
      [500, 'api_error', Anthropic.InternalServerError],
    ];
    const request = { model: 'claude-opus-4-8', max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi' }] };
    for (const [status, type, errorClass] of cases) {
      bench.server.answer((response) => sendJson(response, status, errorBody(type, 'Odd.')));
      await assert.rejects(client.messages.create(request), (error) => {
        assert.ok(error instanceof Anthropic.APIError && error instanceof errorClass, inspect(error));
        assert.deepEqual([error.status, error.type], [status, type]);
        return true;
      });
    }
    bench.server.answer((response) =>
      sendStream(response, [
        `${toWire(plain.slice(0, 4))}event: error\ndata: ${errorBody('overloaded_error', 'Busy.')}\n\n`,
      ]),
    );
    await assert.rejects(client.messages.stream(request).finalMessage(), {
      type: 'overloaded_error',
    });
  });

  it('an Anthropic 400 stays a 400 with its message and type', async () => {
    const message = 'messages.0.content: Input should be a valid list';
    const error = await statusError(400, 'invalid_request_error', message);
    assert.equal(error.status, 400);
    assert.deepEqual(error.toWire().error, {
      message,
      type: 'invalid_request_error',
      param: null,
      code: 'invalid_request_error',
    });
    const large = await statusError(413, 'request_too_large', 'Request exceeds the maximum size');
    assert.deepEqual([large.status, large.vendorCode], [400, 'request_too_large']);
  });

  it('an Anthropic error for a prompt that is too long becomes context_length_exceeded with the original message', async () => {
    for (const message of [
      'prompt is too long: 209123 tokens > 200000 maximum',
      'input length and `max_tokens` exceed context limit: 195000 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    ]) {
      const error = await statusError(400, 'invalid_request_error', message);
      assert.deepEqual([error.status, error.code, error.message], [400, 'context_length_exceeded', message]);
      assert.equal(error.toWire().error.code, 'context_length_exceeded');
      const event = `event: error\ndata: ${errorBody('invalid_request_error', message)}\n\n`;
      await assert.rejects(stream(event), { code: 'context_length_exceeded', message });
    }
    for (const message of ['messages.0: prompt is too long: 5 tokens > 4 maximum', 'prompt is too long']) {
      assert.equal((await statusError(400, 'invalid_request_error', message)).code, 'invalid_request_error');
    }
  });

  it('an Anthropic 401, 402, 403 or 404 not about the model becomes a 503 with a cause for the operator', async () => {
    for (const [status, type] of [
      [401, 'authentication_error'],
      [402, 'billing_error'],
      [403, 'permission_error'],
      [404, 'not_found_error'],
    ] as const) {
      const error = await statusError(status, type, `Invalid key ${apiKey} of org-secret`);
      const isRefused = status === 401 || status === 403;
      assert.deepEqual([error.code, error.status, error.isRetryable], ['service_unavailable', 503, !isRefused]);
      assert.match(error.message, isRefused ? /its vendor refuses/ : /not available at the moment\.$/);
      assert.equal(error.vendorSentence, isRefused ? 'Invalid key [key] of org-secret' : null);
      assert.equal((error.cause as Error).message, `the vendor anthropic answered ${status} (${type})`);
    }
  });

  it("Anthropic's 400 for an empty, limited or closed account becomes a 503 that reveals nothing of it", async () => {
    const message = 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.';
    const error = await statusError(400, 'invalid_request_error', message);
    assert.deepEqual([error.code, error.message], ['service_unavailable', 'The model is not available at the moment.']);
    assert.equal((error.cause as Error).message, 'the vendor anthropic answered 402 (billing_error)');
    const event = `event: error\ndata: ${errorBody('invalid_request_error', message)}\n\n`;
    await assert.rejects(stream(event), { code: 'service_unavailable' });
    for (const other of [
      'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
      'You have reached your specified workspace API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
      'This organization has been disabled.',
    ]) {
      const { code, message: shown, status } = await statusError(400, 'invalid_request_error', other);
      assert.deepEqual([code, shown, status], ['service_unavailable', error.message, 503]);
    }
    const named = await statusError(400, 'invalid_request_error', 'messages.0: Your credit balance is too low');
    assert.equal(named.code, 'invalid_request_error');
  });

  it('an unknown Anthropic model becomes model_not_found, in a status and in a stream', async () => {
    const error = await statusError(404, 'not_found_error', 'model: claude-4-5-haiku');
    assert.deepEqual([error.status, error.code, error.vendorStatus], [404, 'model_not_found', 404]);
    assert.ok(!error.message.includes('claude-4-5-haiku'));
    const event = `event: error\ndata: ${errorBody('not_found_error', 'model: claude-4-5-haiku')}\n\n`;
    await assert.rejects(stream(event), { code: 'model_not_found' });
  });

  it('an Anthropic 529 or 429 carries the time to wait from a retry-after date', async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    for (const [status, type, code] of [
      [529, 'overloaded_error', 'service_unavailable'],
      [429, 'rate_limit_error', 'rate_limit_exceeded'],
    ] as const) {
      for (const call of chatCalls(bench.vendor)) {
        bench.server.answer((response) =>
          sendJson(response, status, errorBody(type, 'Busy.'), { 'retry-after': date }),
        );
        const error = await failureOf(call(), [apiKey]);
        assert.equal(error.code, code);
        assert.ok((error.retryAfterMs ?? 0) > 30_000 && (error.retryAfterMs ?? 0) <= 65_000, `${error.retryAfterMs}`);
      }
    }
  });

  it('an Anthropic stream without its last event is complete only once its stop reason is known', async () => {
    const at = plain.findIndex(({ type }) => type === 'message_delta');
    await stream(toWire(plain.slice(0, at + 1)));
    for (const events of [plain.slice(0, at), plain.slice(0, 1), []]) {
      const code = at === events.length ? 'stream_interrupted' : 'server_error';
      await assert.rejects(stream(`event: ping\ndata: {"type":"ping"}\n\n${toWire(events)}`), { code });
    }
  });

  it('an Anthropic 429 keeps its retry-after and hides the organization', async () => {
    const error = await statusError(429, 'rate_limit_error', 'The limit of org-secret', { 'retry-after': '7' });
    assert.deepEqual([error.code, error.retryAfterMs], ['rate_limit_exceeded', 7000]);
    assert.ok(!error.message.includes('org-secret'));
  });

  it('an Anthropic 529 becomes a 503 with retry-after, a 500 a server_error and a 504 a timeout', async () => {
    const overloaded = await statusError(529, 'overloaded_error', 'Overloaded', { 'retry-after': '3' });
    assert.deepEqual([overloaded.code, overloaded.retryAfterMs], ['service_unavailable', 3000]);
    assert.equal((await statusError(500, 'api_error', 'Internal server error')).code, 'server_error');
    assert.equal((await statusError(504, 'timeout_error', 'Too slow')).code, 'timeout');
  });

  it('an error inside an Anthropic stream has the code of its type, before and after the first frames', async () => {
    const cases: [string, string][] = [
      ['overloaded_error', 'service_unavailable'],
      ['rate_limit_error', 'rate_limit_exceeded'],
      ['api_error', 'server_error'],
      ['timeout_error', 'timeout'],
      ['authentication_error', 'service_unavailable'],
      ['permission_error', 'service_unavailable'],
      ['invalid_request_error', 'invalid_request_error'],
      ['constructor', 'server_error'],
    ];
    for (const [type, code] of cases) {
      const event = `event: error\ndata: ${errorBody(type, `Odd ${apiKey}.`)}\n\n`;
      for (const before of [[], plain.slice(0, 1), plain.slice(0, 5)]) {
        assert.equal((await failureOf(stream(toWire(before) + event), [apiKey])).code, code, type);
      }
      bench.server.answer((response) => sendJson(response, 200, errorBody(type, 'Odd.')));
      await assert.rejects(bench.vendor.chat(callOf({ stream: false }), collect()), { code });
    }
    const unknown = stream(`data: ${errorBody('constructor', 'Odd.')}\n\n`);
    await assert.rejects(unknown, { message: "The model's vendor had an error (status 500)." });
    const tooLong = errorBody('invalid_request_error', 'prompt is too long: 209123 tokens > 200000 maximum');
    bench.server.answer((response) => sendJson(response, 200, tooLong));
    const held = bench.vendor.chat(callOf({ stream: false }), collect());
    await assert.rejects(held, { code: 'context_length_exceeded' });
  });

  it('an Anthropic failure before the first content emits no frame, although the message has started', async () => {
    bench.server.answer((response) => {
      sendStream(response, [
        `${toWire(plain.slice(0, 2))}event: error\ndata: ${errorBody('overloaded_error', 'Busy.')}\n\n`,
      ]);
    });
    const sink = collect();
    await assert.rejects(bench.vendor.chat(callOf(), sink), { code: 'service_unavailable' });
    assert.equal(sink.frames.length, 0);
  });

  it('a malformed Anthropic event is a clear error, and nothing after it is emitted', async () => {
    const bad = [
      '{"type":"content_block_delta",',
      '[]',
      '"text"',
      '{"type":"content_block_start","index":7}',
      '{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}',
      '{"type":"content_block_delta","index":0}',
      '{"type":"content_block_stop","index":7}',
    ];
    for (const data of bad) {
      bench.server.answer((response) =>
        sendStream(response, [`${toWire(plain.slice(0, 4))}data: ${data}\n\n${toWire(plain)}`]),
      );
      const sink = collect();
      await assert.rejects(bench.vendor.chat(callOf(), sink), {
        code: 'stream_interrupted',
        message: /^The model's vendor/,
      });
      assert.equal(sink.frames.length, 2);
      await assert.rejects(stream(`data: ${data}\n\n`), { code: 'server_error', message: /^The model's vendor/ });
    }
  });

  it('a senseless Anthropic answer is a clear error', async () => {
    for (const body of ['', '<html>', '[]', 'null', '{}']) {
      const error = await errorOf((response) => sendJson(response, 200, body)).catch((thrown) => thrown);
      // A count of tokens lacks something else than a message does.
      if (body !== '{}') assert.equal(error.code, 'server_error');
    }
    bench.server.answer((response) => sendJson(response, 200, '{"content":"text"}'));
    for (const streamed of [true, false]) {
      await assert.rejects(bench.vendor.chat(callOf({ stream: streamed }), collect()), { code: 'server_error' });
    }
  });
});
