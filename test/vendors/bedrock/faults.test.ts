import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import {
  BedrockRuntimeServiceException,
  ConverseCommand,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import type { ApiError } from '../../../shared/errors.ts';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import { chatCalls, describeChatFaults } from '../contracts/chat-faults-contract.ts';
import { failureOf, sameFailureOf } from '../contracts/failure-of.ts';
import { type Answer, callOf, collect, sendJson } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import {
  answerOf,
  type Answer as BedrockAnswer,
  bedrockClient,
  errorBody,
  eventMessage,
  eventStream,
  eventsOf,
  exceptionMessage,
  messageOf,
  recorded,
  sendEvents,
  text,
  toJson,
  toWire,
} from '../recorded/recorded-bedrock.ts';

const secretAccessKey = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const sessionToken = 'IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJHMEUCIQ==';
const apiKey = `AKIAIOSFODNN7EXAMPLE:${secretAccessKey}:${sessionToken}`;
const plain = eventsOf(recorded['plain text'] as BedrockAnswer);
/** The beginning of the message, and two deltas. */
const begun = toWire(plain.slice(0, 3));

const tooLongMessages = [
  'The model returned the following errors: Input is too long for requested model.',
  'The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum',
  'The model returned the following errors: Prompt contains 248198 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
  'The model returned the following errors: input length and `max_tokens` exceed context limit: 195000 + 21333 > 200000',
  'Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.',
  "This model's maximum context length is 8192 tokens. Please reduce the length of the prompt",
];

const create = (baseUrl: string) => createBedrock({ name: 'bedrock', baseUrl, apiKey });
const secrets = [secretAccessKey, sessionToken];

describeChatFaults('Bedrock', {
  create,
  secrets,
  contentType: eventStream,
  events: plain.map((event) => toWire([event])),
});

describe('Bedrock errors', () => {
  const bench = new VendorBench(create);

  /** The error of a call whose request the server answers like this; streamed and held alike. */
  const errorOf = (answer: Answer): Promise<ApiError> => {
    bench.server.answer(answer);
    return sameFailureOf(chatCalls(bench.vendor), secrets);
  };
  const statusError = (status: number, type: string, message: string, headers: Record<string, string> = {}) =>
    errorOf((response) =>
      sendJson(response, status, errorBody(message), {
        'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
        ...headers,
      }),
    );

  const stream = async (...parts: Uint8Array[]) => {
    bench.server.answer((response) => sendEvents(response, parts));
    const sink = collect();
    await bench.vendor.chat(callOf(), sink);
    return sink;
  };

  it("Amazon's own client recognizes the error fixtures, in answers and inside streams", async () => {
    const client = bedrockClient(bench.server.baseUrl, {
      credentials: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey },
    });
    const request = { modelId: 'm', messages: [{ role: 'user' as const, content: [text('Hi')] }] };
    const cases: [number, string][] = [
      [400, 'ValidationException'],
      [403, 'AccessDeniedException'],
      [404, 'ResourceNotFoundException'],
      [408, 'ModelTimeoutException'],
      [424, 'ModelErrorException'],
      [429, 'ThrottlingException'],
      [500, 'InternalServerException'],
      [503, 'ServiceUnavailableException'],
    ];
    for (const [status, type] of cases) {
      bench.server.answer((response) => sendJson(response, status, errorBody('Odd.'), { 'x-amzn-errortype': type }));
      await assert.rejects(client.send(new ConverseCommand(request)), (error) => {
        assert.ok(error instanceof BedrockRuntimeServiceException, inspect(error));
        assert.deepEqual([error.name, error.message, error.$metadata.httpStatusCode], [type, 'Odd.', status]);
        return true;
      });
    }
    for (const type of ['throttlingException', 'modelStreamErrorException', 'validationException']) {
      bench.server.answer((response) => sendEvents(response, [begun, exceptionMessage(type, errorBody('Odd.'))]));
      const { stream: events } = await client.send(new ConverseStreamCommand(request));
      const name = type.slice(0, 1).toUpperCase() + type.slice(1);
      await assert.rejects(
        async () => {
          for await (const _ of events ?? []);
        },
        { name, message: 'Odd.' },
      );
    }
    client.destroy();
  });

  it('a Bedrock 400 stays a 400 with its message and error name', async () => {
    const message = 'The text field in the ContentBlock object at messages.0.content.0 is blank.';
    const error = await statusError(400, 'ValidationException', message);
    assert.equal(error.status, 400);
    const { param, code, ...said } = error.toWire().error;
    assert.deepEqual([param, code, said], [null, 'ValidationException', { message, type: 'invalid_request_error' }]);
    const named = JSON.stringify({ __type: 'com.amazon.coral.validate#ValidationException', message });
    assert.equal((await errorOf((response) => sendJson(response, 400, named))).vendorCode, 'ValidationException');
    assert.equal((await errorOf((response) => sendJson(response, 400, 'not JSON'))).code, 'invalid_request_error');
    const leak = await statusError(400, 'ValidationException', `Odd: ${apiKey} ${sessionToken}`);
    assert.equal(leak.message, 'Odd: [key]:[key]:[key] [key]');
  });

  it('a Bedrock error for a prompt that is too long becomes context_length_exceeded with the original message', async () => {
    for (const message of tooLongMessages) {
      const error = await statusError(400, 'ValidationException', message);
      assert.deepEqual([error.status, error.code, error.message], [400, 'context_length_exceeded', message]);
      await assert.rejects(stream(exceptionMessage('validationException', errorBody(message))), {
        ...{ code: 'context_length_exceeded', message },
      });
    }
    const other = await statusError(400, 'ValidationException', 'The tool name is too long.');
    assert.equal(other.code, 'invalid_request_error');
  });

  it('a Bedrock 401, 403 or rejected signature becomes a 503 with a cause for the operator', async () => {
    for (const [status, type] of [
      [401, 'UnrecognizedClientException'],
      [403, 'AccessDeniedException'],
      [403, 'InvalidSignatureException'],
      [400, 'ExpiredTokenException'],
    ] as const) {
      const error = await statusError(status, type, `User arn:aws:iam::123456789012 ${secretAccessKey}`);
      assert.deepEqual([error.code, error.status, error.isRetryable], ['service_unavailable', 503, false]);
      assert.match(error.message, /its vendor refuses/);
      const told = type === 'UnrecognizedClientException' || status === 400 ? 403 : status;
      assert.equal((error.cause as Error).message, `the vendor bedrock answered ${told} (${type})`);
    }
  });

  it('a model that Bedrock does not know, or not by this name, becomes model_not_found', async () => {
    for (const [status, type, message] of [
      [404, 'ResourceNotFoundException', 'Could not resolve the foundation model.'],
      [400, 'ValidationException', 'The provided model identifier is invalid.'],
      [400, 'ValidationException', 'Invocation of model ID x with on-demand throughput isn’t supported. Retry …'],
    ] as const) {
      assert.equal((await statusError(status, type, message)).code, 'model_not_found');
    }
  });

  it('a Bedrock 429 or exhausted quota becomes a 429 with the time to wait, without the account', async () => {
    for (const [status, type] of [
      [429, 'ThrottlingException'],
      [400, 'ServiceQuotaExceededException'],
    ] as const) {
      const error = await statusError(status, type, 'Too many tokens, 123456789012', { 'retry-after': '7' });
      assert.deepEqual([error.code, error.retryAfterMs], ['rate_limit_exceeded', 7000]);
      assert.ok(!error.message.includes('123456789012'));
    }
  });

  it('a Bedrock 503, 529 or model that is not ready becomes a 503, a 408 a timeout, a 424 or 500 a server_error', async () => {
    for (const [status, type, code] of [
      [503, 'ServiceUnavailableException', 'service_unavailable'],
      [529, 'OverloadedException', 'service_unavailable'],
      [429, 'ModelNotReadyException', 'service_unavailable'],
      [408, 'ModelTimeoutException', 'timeout'],
      [424, 'ModelErrorException', 'server_error'],
      [500, 'InternalServerException', 'server_error'],
      [500, 'constructor', 'server_error'],
    ] as const) {
      assert.equal((await statusError(status, type, 'Odd.')).code, code, type);
    }
  });

  it('a Bedrock error carries the vendor status that decides about a retry, in a status and in a stream', async () => {
    for (const [status, type, told] of [
      [400, 'ValidationException', 400],
      [400, 'ExpiredTokenException', 403],
      [404, 'ResourceNotFoundException', 404],
      [424, 'ModelErrorException', 500],
      [429, 'ThrottlingException', 429],
      [429, 'ModelNotReadyException', 503],
      [500, 'constructor', 500],
    ] as const) {
      assert.equal((await statusError(status, type, 'Odd.')).vendorStatus, told, type);
    }
    for (const [type, told] of [
      ['throttlingException', 429],
      ['modelStreamErrorException', 500],
      ['serviceUnavailableException', 503],
    ] as const) {
      const exception = exceptionMessage(type, errorBody('Odd.'));
      await assert.rejects(stream(toWire(plain.slice(0, 1)), exception), { vendorStatus: told });
    }
    const [tooLong = ''] = tooLongMessages;
    assert.equal((await statusError(400, 'ValidationException', tooLong)).vendorStatus, 400);
  });

  it('an exception inside a Bedrock stream has the code of its type, before and after the first frames', async () => {
    const cases: [string, string][] = [
      ['throttlingException', 'rate_limit_exceeded'],
      ['modelStreamErrorException', 'server_error'],
      ['validationException', 'invalid_request_error'],
      ['serviceUnavailableException', 'service_unavailable'],
      ['internalServerException', 'server_error'],
      ['accessDeniedException', 'service_unavailable'],
      ['constructor', 'server_error'],
    ];
    for (const [type, code] of cases) {
      const exception = exceptionMessage(type, errorBody(`Odd ${sessionToken}.`));
      for (const before of [Buffer.alloc(0), toWire(plain.slice(0, 1)), begun]) {
        assert.equal((await failureOf(stream(before, exception, toWire(plain)), secrets)).code, code, type);
      }
    }
    const error = messageOf(
      { ':message-type': 'error', ':error-code': 'InternalFailure', ':error-message': 'Odd.' },
      '',
    );
    await assert.rejects(stream(begun, error), { code: 'server_error' });
    const unparsable = exceptionMessage('validationException', '{"message":');
    await assert.rejects(stream(unparsable), { code: 'invalid_request_error' });
  });

  it('every exception of the Bedrock service model has the code of its type', async () => {
    // ConverseStreamOutput of @aws-sdk/client-bedrock-runtime; a stream error holds the model's own status and message.
    const original = { originalStatusCode: 424, originalMessage: 'Model had an error.' };
    for (const [type, code] of [
      ['internalServerException', 'server_error'],
      ['modelStreamErrorException', 'server_error'],
      ['modelTimeoutException', 'timeout'],
      ['validationException', 'invalid_request_error'],
      ['throttlingException', 'rate_limit_exceeded'],
      ['serviceUnavailableException', 'service_unavailable'],
    ] as const) {
      const body = JSON.stringify({ message: 'Odd.', ...original });
      const error = await failureOf(stream(begun, exceptionMessage(type, body)), secrets);
      assert.equal(error.code, code, type);
    }
  });

  it('a rate-limited Bedrock answer carries the time to wait from a retry-after date', async () => {
    const date = new Date(Date.now() + 60_000).toUTCString();
    for (const call of chatCalls(bench.vendor)) {
      bench.server.answer((response) =>
        sendJson(response, 429, errorBody('Slow down.'), {
          'x-amzn-errortype': 'ThrottlingException',
          'retry-after': date,
        }),
      );
      const { retryAfterMs = 0 } = await failureOf(call(), secrets);
      assert.ok(retryAfterMs > 30_000 && retryAfterMs <= 65_000, `${retryAfterMs}`);
    }
  });

  it('a Bedrock stream that ends before its message does is an error', async () => {
    for (
      let events = 0;
      plain[events - 1] === undefined || !('messageStop' in (plain[events - 1] as object));
      events++
    ) {
      const part = stream(toWire(plain.slice(0, events)));
      await assert.rejects(part, { code: /^(server_error|stream_interrupted)$/ });
    }
  });

  it('a Bedrock failure before the first content emits no frame, although the message has started', async () => {
    const exception = exceptionMessage('throttlingException', errorBody('Slow down.'));
    bench.server.answer((response) => sendEvents(response, [toWire(plain.slice(0, 1)), exception]));
    const sink = collect();
    await assert.rejects(bench.vendor.chat(callOf(), sink), { code: 'rate_limit_exceeded' });
    assert.equal(sink.frames.length, 0);
  });

  it('a damaged Bedrock message is a clear error, whichever byte is damaged, and nothing after it is emitted', async () => {
    const [first, second] = [toWire(plain.slice(0, 2)), toWire(plain.slice(2, 3))];
    for (let at = 0; at < second.length; at++) {
      const bad = Buffer.from(second);
      bad[at] = (bad[at] as number) ^ 0x10;
      bench.server.answer((response) => sendEvents(response, [first, bad, toWire(plain)]));
      const sink = collect();
      await assert.rejects(bench.vendor.chat(callOf(), sink), {
        code: 'stream_interrupted',
        message: /^The model's vendor/,
      });
      assert.equal(sink.frames.length, 1, `byte ${at}`);
    }
  });

  it('a Bedrock message of an impossible length is rejected at its prelude', async () => {
    for (const length of [0, 15, 16 * 1024 * 1024 + 1, 0xffff_ffff]) {
      const prelude = Buffer.alloc(12);
      prelude.writeUInt32BE(length);
      await assert.rejects(stream(prelude), { code: 'server_error', message: /damaged/ });
    }
  });

  it('a senseless Bedrock event is a clear error', async () => {
    const bad: [string, string][] = [
      ['contentBlockDelta', '{"delta":'],
      ['contentBlockDelta', '[]'],
      ['contentBlockDelta', '{"contentBlockIndex":0}'],
      ['contentBlockDelta', '{"contentBlockIndex":7,"delta":{"toolUse":{"input":"{}"}}}'],
      ['metadata', '{"usage":{}}'],
    ];
    for (const [type, body] of bad) {
      await assert.rejects(stream(eventMessage(type, body)), { code: 'server_error', message: /^The model's vendor/ });
      await assert.rejects(stream(begun, eventMessage(type, body)), { code: 'stream_interrupted' });
    }
  });

  it('an unusable Bedrock answer is an error, held and streamed', async () => {
    for (const reason of ['malformed_model_output', 'malformed_tool_use'] as const) {
      const answer = answerOf([text('{"a"')], reason);
      bench.server.answer((response) => sendJson(response, 200, toJson(answer)));
      await assert.rejects(bench.vendor.chat(callOf({ stream: false }), collect()), {
        ...{ code: 'server_error', message: `The model made an answer that cannot be used (${reason}).` },
      });
      await assert.rejects(stream(toWire(eventsOf(answer))), { code: 'stream_interrupted' });
    }
    for (const body of [
      '',
      '<html>',
      '[]',
      'null',
      '{}',
      '{"output":{}}',
      '{"output":{"message":{"content":"text"}}}',
    ]) {
      assert.equal((await errorOf((response) => sendJson(response, 200, body))).code, 'server_error');
    }
  });
});
