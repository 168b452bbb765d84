import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import type { ApiError } from '../../../shared/errors.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import type { FrameSink } from '../../../workers/vendors/vendor.ts';
import { chatCalls, describeChatFaults } from '../contracts/chat-faults-contract.ts';
import { sameFailureOf } from '../contracts/failure-of.ts';
import { type Answer, beginStream, callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { answer, errorBody, event, events, lastEvent, streams } from '../recorded/recorded-gemini.ts';

const apiKey = 'AIzaSyTest0123456789abcdefghijklmnopqrs';
const plain = streams['plain text']?.sent ?? [];

const create = (baseUrl: string) => createGemini({ name: 'gemini', baseUrl, apiKey });

describeChatFaults('Gemini', {
  create,
  secrets: [apiKey],
  contentType: 'text/event-stream',
  events: plain.map((each) => events([each])),
});

describe('Gemini errors', () => {
  const bench = new VendorBench(create);

  /** The error of a call whose request the server answers like this; streamed and held alike. */
  const errorOf = (answer: Answer): Promise<ApiError> => {
    bench.server.answer(answer);
    return sameFailureOf(chatCalls(bench.vendor).slice(0, 2), [apiKey]);
  };
  const statusError = (status: number, body = '{}', headers: Record<string, string> = {}) =>
    errorOf((response) => sendJson(response, status, body, headers));

  it("a Gemini 400 stays a 400 with Gemini's message and status", async () => {
    const message = '* GenerateContentRequest.contents: contents is not specified';
    const error = await statusError(400, errorBody(400, 'INVALID_ARGUMENT', message));
    assert.equal(error.status, 400);
    assert.deepEqual(error.toWire().error, {
      message,
      type: 'invalid_request_error',
      param: null,
      code: 'INVALID_ARGUMENT',
    });
    for (const text of ['', '<html>', '[]', '{"error":5}', '{"error":{"message":5,"status":"a b","details":[null]}}']) {
      const odd = await statusError(400, text);
      assert.deepEqual([odd.status, odd.message], [400, "The model's vendor refused the request."]);
    }
  });

  it("the key is removed from Gemini's error messages", async () => {
    const error = await statusError(400, errorBody(400, 'INVALID_ARGUMENT', `The header says ${apiKey}.`));
    assert.equal(error.message, 'The header says [key].');
  });

  it('a Gemini prompt over the context window becomes context_length_exceeded', async () => {
    const message = 'The input token count (2100000) exceeds the maximum number of tokens allowed (1048576).';
    const error = await statusError(400, errorBody(400, 'INVALID_ARGUMENT', message));
    assert.equal(error.toWire().error.code, 'context_length_exceeded');
    assert.equal(error.message, message);
  });

  it('an invalid Gemini key, a blocked region or a missing right becomes a 503 with a cause for the operator', async () => {
    const reason = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' };
    const cases: [number, string, object[], string][] = [
      [400, 'INVALID_ARGUMENT', [reason], '403 (INVALID_ARGUMENT)'],
      [400, 'FAILED_PRECONDITION', [], '403 (FAILED_PRECONDITION)'],
      [401, 'UNAUTHENTICATED', [], '401 (UNAUTHENTICATED)'],
      [403, 'PERMISSION_DENIED', [], '403 (PERMISSION_DENIED)'],
      [402, 'UNKNOWN', [], '402 (UNKNOWN)'],
    ];
    for (const [status, name, details, cause] of cases) {
      const body = errorBody(status, name, `API key not valid: ${apiKey}`, details as Record<string, unknown>[]);
      const error = await statusError(status, body);
      assert.equal(error.code, 'service_unavailable');
      assert.match(error.message, status === 402 ? /not available at the moment\.$/ : /its vendor refuses/);
      assert.equal(error.isRetryable, status === 402);
      assert.equal((error.cause as Error).message, `the vendor gemini answered ${cause}`);
    }
    assert.equal((await statusError(302, '', { location: 'http://127.0.0.1:1/' })).code, 'service_unavailable');
  });

  it("an unknown Gemini model becomes model_not_found, without the vendor's name for it", async () => {
    const message = 'models/gemini-9 is not found for API version v1beta, or is not supported for generateContent.';
    const error = await statusError(404, errorBody(404, 'NOT_FOUND', message));
    assert.equal(error.code, 'model_not_found');
    assert.ok(!error.message.includes('gemini-9'));
    assert.equal((await statusError(404, '<html>')).code, 'service_unavailable');
  });

  it('a Gemini 429 carries the time to wait, from its header or its RetryInfo', async () => {
    const waitFor = async (delay: unknown, headers: Record<string, string> = {}) => {
      const details = [
        { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'org-secret' }] },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: delay },
      ];
      const body = errorBody(429, 'RESOURCE_EXHAUSTED', 'You exceeded your quota of org-secret.', details);
      const error = await statusError(429, body, headers);
      assert.equal(error.code, 'rate_limit_exceeded');
      assert.ok(!inspect(error, { depth: 10 }).includes('org-secret'));
      return error.retryAfterMs;
    };
    assert.equal(await waitFor('34.5s'), 34_500);
    assert.equal(await waitFor('34s', { 'retry-after': '7' }), 7000);
    for (const delay of ['soon', undefined, 5, '-1s', {}]) assert.equal(await waitFor(delay), 1000);
  });

  it('a Gemini 503 or 529 becomes a 503 with retry-after, a 504 a timeout, and any other 5xx a server_error', async () => {
    assert.equal((await statusError(500, errorBody(500, 'INTERNAL', 'An internal error.'))).code, 'server_error');
    assert.equal((await statusError(502, '<html>')).code, 'server_error');
    for (const status of [503, 529]) {
      const error = await statusError(status, errorBody(status, 'UNAVAILABLE', 'Overloaded.'), { 'retry-after': '3' });
      assert.deepEqual([error.code, error.retryAfterMs], ['service_unavailable', 3000]);
    }
    assert.equal((await statusError(504, errorBody(504, 'DEADLINE_EXCEEDED', 'Late.'))).code, 'timeout');
  });

  it('a Gemini error in place of an answer has its own code, also as the first event of a stream', async () => {
    const body = errorBody(503, 'UNAVAILABLE', 'The model is overloaded.');
    assert.equal((await statusError(200, body)).code, 'service_unavailable');
    bench.server.answer((response) => sendStream(response, [`data: ${body}\n\n`]));
    await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'service_unavailable' });
    const odd = await statusError(200, '{"error":{"message":"Odd."}}');
    assert.deepEqual([odd.code, odd.message], ['server_error', 'Odd.']);
  });

  it('a Gemini error in a list, as that of a stream may come, is read as one outside of it', async () => {
    const key = errorBody(400, 'INVALID_ARGUMENT', 'API key not valid.', [{ reason: 'API_KEY_INVALID' }]);
    assert.equal((await statusError(400, `[${key}]`)).code, 'service_unavailable');
    const limit = errorBody(429, 'RESOURCE_EXHAUSTED', 'Slower.', [{ retryDelay: '34s' }]);
    assert.equal((await statusError(429, `[${limit}]`)).retryAfterMs, 34_000);
  });

  it('an error inside a Gemini stream has its own code', async () => {
    const body = errorBody(429, 'RESOURCE_EXHAUSTED', 'Slower.');
    bench.server.answer((response) => sendStream(response, [events(plain.slice(0, 2)), `data: ${body}\n\n`]));
    const sink = collect();
    await assert.rejects(bench.vendor.chat(callOf(), sink), { code: 'rate_limit_exceeded' });
    assert.equal(sink.frames.length, 2);
  });

  it('a senseless Gemini answer is a 500 before the first frame, and an interruption after it', async () => {
    const bodies = [
      ...['', '<html>', '[]', '5', '{}', '{"candidates":{}}', '{"candidates":[]}', '{"candidates":[5]}'],
      '{"candidates":[{"content":{"parts":5},"finishReason":"STOP"}]}',
      '{"candidates":[{"content":{"parts":[5]},"finishReason":"STOP"}]}',
      '{"candidates":[{"index":"a","finishReason":"STOP"}]}',
      '{"candidates":[{"content":{"parts":[{"text":"half"}]}}]}',
      JSON.stringify(answer).slice(0, -20),
    ];
    for (const body of bodies) {
      bench.server.answer((response) => sendJson(response, 200, body));
      await assert.rejects(bench.vendor.chat(callOf({ stream: false }), collect()), { code: 'server_error' }, body);
    }
    for (const data of ['<html>', '[]', '{"candidates":[5]}', '{"candidates":[{"content":{"parts":[5]}}]}']) {
      bench.server.answer((response) => sendStream(response, [`data: ${data}\n\n`, events(plain)]));
      await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'server_error' }, data);
      bench.server.answer((response) => sendStream(response, [events(plain.slice(0, 1)), `data: ${data}\n\n`]));
      await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'stream_interrupted' }, data);
    }
    for (const nothing of ['', ': hello\n\n', events([{ usageMetadata: {} }])]) {
      bench.server.answer((response) => sendStream(response, [nothing]));
      await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'server_error' });
    }
  });

  it('a malformed Gemini answer, or one with a malformed call, is an error and no refusal', async () => {
    for (const reason of [
      ...['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'],
      ...['MALFORMED_RESPONSE', 'MISSING_THOUGHT_SIGNATURE'],
    ]) {
      const error = await errorOf((response) => sendJson(response, 200, JSON.stringify(lastEvent([], reason))));
      assert.equal(error.code, 'server_error');
      assert.ok(error.message.includes(reason));
      bench.server.answer((response) =>
        sendStream(response, [events([event([{ text: 'a' }]), lastEvent([], reason)])]),
      );
      await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'stream_interrupted' });
    }
  });

  it('a Gemini stream in which one of several candidates has no end is interrupted', async () => {
    const [both = {}, second = {}] = streams['several candidates']?.sent ?? [];
    bench.server.answer((response) => sendStream(response, [events([both, second])]));
    await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'stream_interrupted' });
  });

  it('a Gemini event over the size limit is a clear error', async () => {
    bench.server.answer((response) => {
      beginStream(response);
      response.write('data: ');
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(1 << 20)));
      };
      response.on('drain', pour);
      pour();
    });
    await assert.rejects(bench.vendor.chat(callOf(), collect()), {
      code: 'server_error',
      message: /more than 8388608/,
    });
  });

  it("an abort inside a Gemini stream closes the vendor's connection", async () => {
    let left: Promise<unknown> | undefined;
    bench.server.answer((response) => {
      left = once(response, 'close');
      beginStream(response);
      response.write(events(plain.slice(0, 1)));
    });
    const controller = new AbortController();
    const sink: FrameSink = {
      write: () => {
        setImmediate(() => controller.abort());
        return true;
      },
      drained: () => Promise.resolve(),
    };
    await assert.rejects(bench.vendor.chat(callOf({ signal: controller.signal }), sink), { code: 'cancelled' });
    await left;
  });
});
