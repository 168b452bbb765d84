import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { inspect } from 'node:util';
import { ApiError } from '../../../shared/errors.ts';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import type { FrameSink, Offering, VendorCall } from '../../../workers/vendors/vendor.ts';
import {
  beginStream,
  callOf,
  collect,
  type FixtureVendor,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { errorBody } from '../recorded/recorded-openai.ts';
import { recorded, responseObject, wireEvents, written } from '../recorded/recorded-responses.ts';

const apiKey = 'sk-test-0123456789abcdef';
const events = wireEvents(recorded('plain text'));
/** Up to and with the first piece of text: three frames. */
const begun = written(events.slice(0, 5));
const call = (more: Partial<VendorCall> = {}) => callOf({ request: '{"input":[]}', ...more });
const failed = (code: string, message: string) => responseObject('failed', { error: { code, message } });
const failedEvent = (code: string, message: string) =>
  written([{ type: 'response.failed', sequence_number: 5, response: failed(code, message) }]);

describe('faults of native responses', () => {
  let server: FixtureVendor;
  let vendor: Offering<'respond'>;
  before(async () => {
    server = await startFixtureVendor();
    vendor = createOpenAiDialect({ name: 'openai', baseUrl: server.baseUrl, apiKey });
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  async function thrown(more: Partial<VendorCall> = {}, sink: FrameSink = collect()): Promise<ApiError> {
    const error = await vendor.respond(call(more), sink).then(
      () => assert.fail('no error'),
      (reason) => reason,
    );
    assert.ok(error instanceof ApiError, inspect(error));
    assert.ok(!inspect(error, { depth: 10 }).includes(apiKey));
    return error;
  }
  /** The error of a request that the server answers like this, streamed and held alike. */
  async function errorOf(answer: (response: ServerResponse) => void, silenceMs = 20_000): Promise<ApiError> {
    server.answer(answer);
    const [streamed, held] = [await thrown({ silenceMs }), await thrown({ silenceMs, stream: false })];
    assert.deepEqual(streamed.toData(), held.toData());
    return held;
  }
  it('native responses are asked for again without reasoning that another account has encrypted', async () => {
    const message = 'The encrypted content gAAA could not be verified.';
    const refusal = JSON.stringify({
      error: { message, type: 'invalid_request_error', code: 'invalid_encrypted_content' },
    });
    const called = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' };
    const searched = { type: 'web_search_call', id: 'ws_1', status: 'completed' };
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' };
    const request = JSON.stringify({ input: [reasoning, { ...called, id: 'fc_1' }, searched] });
    for (const stream of [true, false]) {
      server.answer((response) => sendJson(response, 400, refusal));
      const error = await thrown({ request: JSON.stringify({ input: [called] }), stream });
      assert.equal(error.vendorCode, 'invalid_encrypted_content');
      let isRefused = false;
      server.answer((response) => {
        if (!isRefused) sendJson(response, 400, refusal);
        else if (stream) sendStream(response, [written(events)]);
        else sendJson(response, 200, JSON.stringify(responseObject('completed', {})));
        isRefused = true;
      });
      await vendor.respond(call({ request, stream }), collect());
      const sent = JSON.parse(server.requests.at(-1)?.body ?? '') as { input: unknown };
      assert.deepEqual(sent.input, [called, searched]);
    }
  });

  const streamError = async (...parts: string[]) => {
    server.answer((response) => sendStream(response, parts));
    return await thrown();
  };

  it('native responses map each status to the matching code with retry-after, and never reveal the key', async () => {
    const invalid = errorBody(`Invalid 'input[0].id', says ${apiKey}`, 'invalid_value', 'x', 'input[0].id');
    const cases: [status: number, body: string, code: string, retryAfterMs?: number][] = [
      [400, invalid, 'invalid_request_error'],
      [401, errorBody(`Incorrect API key provided: ${apiKey}`, 'invalid_api_key'), 'service_unavailable'],
      [403, errorBody('Country not supported', 'unsupported_country'), 'service_unavailable'],
      [429, errorBody('Rate limit reached', 'rate_limit_exceeded'), 'rate_limit_exceeded', 7000],
      [500, errorBody('Oops', null), 'server_error', 7000],
      [529, '<html>', 'service_unavailable', 7000],
    ];
    for (const [status, body, code, retryAfterMs] of cases) {
      const error = await errorOf((response) => sendJson(response, status, body, { 'retry-after': '7' }));
      assert.deepEqual([error.code, error.retryAfterMs], [code, retryAfterMs]);
      if (status !== 400) continue;
      assert.deepEqual(error.toWire().error, {
        message: "Invalid 'input[0].id', says [key]",
        type: 'invalid_request_error',
        param: 'input[0].id',
        code: 'invalid_value',
      });
    }
  });

  it('a failed native response has the error of its code, in a stream, after output and held', async () => {
    const cases: [code: string, expected: string, vendorCode: string | null][] = [
      ['rate_limit_exceeded', 'rate_limit_exceeded', null],
      ['server_error', 'server_error', 'server_error'],
      ['something_new', 'server_error', 'something_new'],
      ['invalid_prompt', 'invalid_request_error', 'invalid_prompt'],
      ['bio_policy', 'invalid_request_error', 'bio_policy'],
      ['image_too_large', 'invalid_request_error', 'image_too_large'],
      ['context_length_exceeded', 'invalid_request_error', 'context_length_exceeded'],
      ['insufficient_quota', 'service_unavailable', null],
      ['server_is_overloaded', 'service_unavailable', null],
      ['vector_store_timeout', 'timeout', null],
    ];
    for (const [code, expected, vendorCode] of cases) {
      const message = `What happened, with ${apiKey}.`;
      const early = await streamError(written(events.slice(0, 2)), failedEvent(code, message));
      const late = await streamError(begun, failedEvent(code, message));
      const body = JSON.stringify(failed(code, message));
      const held = await errorOf((response) => sendJson(response, 200, body));
      for (const error of [early, late, held]) assert.deepEqual([error.code, error.vendorCode], [expected, vendorCode]);
      if (vendorCode !== null) assert.equal(late.message, 'What happened, with [key].');
    }
  });

  it('an error event ends a native response, in either of its shapes', async () => {
    const flat = { type: 'error', code: 'rate_limit_exceeded', message: 'Slow down', param: null, sequence_number: 3 };
    assert.equal((await streamError(begun, written([flat]))).code, 'rate_limit_exceeded');
    const unnamed = await streamError(begun, written([{ ...flat, code: null, message: 'Something went wrong' }]));
    assert.deepEqual(unnamed.toData(), { code: 'server_error', message: 'Something went wrong' });
    const error = { type: 'invalid_request_error', code: 'invalid_value', message: 'Bad', param: 'input' };
    const nested = await streamError(begun, written([{ type: 'error', sequence_number: 3, error }]));
    assert.deepEqual(
      [nested.code, nested.vendorCode, nested.param],
      ['invalid_request_error', 'invalid_value', 'input'],
    );
  });

  it('a native stream without its last event is a server_error before the first frame, and interrupted after it', async () => {
    for (const tail of ['', 'data: [DONE]\n\n', ': nothing\n\n', 'event: response.completed\n']) {
      assert.equal((await streamError(written(events.slice(0, 2)), tail)).code, 'server_error');
      const late = await streamError(begun, tail);
      assert.equal(late.code, 'stream_interrupted');
      assert.match(late.message, /ended its stream before the answer was whole/);
    }
  });

  it('malformed events of a native response are an error', async () => {
    const bad = [
      'data: {"type":\n\n',
      'data: []\n\n',
      'data: {"sequence_number":9}\n\n',
      'event: response.completed\ndata: {"type":"response.completed"}\n\n',
      written([{ type: 'response.completed', response: responseObject('in_progress') }]),
      written([{ type: 'response.failed', response: responseObject('failed') }]),
      written([{ type: 'response.cancelled', response: responseObject('cancelled') }]),
    ];
    for (const event of bad) {
      assert.equal((await streamError(event)).code, 'server_error', event);
      assert.equal((await streamError(begun, event)).code, 'stream_interrupted', event);
    }
  });

  it('held native responses that are malformed or unfinished are an error', async () => {
    for (const body of [
      '',
      '[]',
      '{}',
      JSON.stringify(responseObject('queued')),
      JSON.stringify(responseObject('failed')),
    ]) {
      server.answer((response) => sendJson(response, 200, body));
      assert.equal((await thrown({ stream: false })).code, 'server_error');
    }
    server.answer((response) => sendJson(response, 200, JSON.stringify(responseObject('completed'))));
    assert.match((await thrown()).message, /answered a request for a stream without one/);
  });

  it('a reset of a native response is a server_error before the first frame, and stream_interrupted after it', async () => {
    assert.equal((await errorOf((response) => response.socket?.resetAndDestroy())).code, 'server_error');
    server.answer((response) => {
      beginStream(response);
      response.write(begun);
    });
    const sink = collect();
    const write: FrameSink['write'] = (frame) => {
      sink.write(frame);
      if (sink.frames.length === 3) server.reset();
      return true;
    };
    assert.equal((await thrown({}, { ...sink, write })).code, 'stream_interrupted');
    assert.equal(sink.frames.length, 3);
  });

  it('a native response is a timeout when the vendor falls silent, before the headers and inside the answer', async () => {
    assert.equal((await errorOf(() => {}, 100)).code, 'timeout');
    server.answer((response) => {
      beginStream(response);
      response.write(begun);
    });
    assert.equal((await thrown({ silenceMs: 100 })).code, 'timeout');
  });

  it("an abort of a native response closes the vendor's connection", async () => {
    for (const stream of [true, false]) {
      let left: Promise<unknown> | undefined;
      const controller = new AbortController();
      const reason = new ApiError('timeout', 'The deadline has passed.');
      server.answer((response) => {
        left = once(response, 'close');
        if (stream) {
          beginStream(response);
          response.write(begun);
        }
        setImmediate(() => controller.abort(reason));
      });
      assert.equal(await thrown({ stream, signal: controller.signal }), reason);
      await left;
    }
  });
});
