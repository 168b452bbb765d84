import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { ApiError } from '../../shared/errors.ts';
import { createOpenAiDialect } from '../../workers/vendors/openai/dialect.ts';
import { readVendorError } from '../../workers/vendors/support/read-vendor-error.ts';
import type { FrameSink } from '../../workers/vendors/vendor.ts';
import { heapInUse } from '../support/heap-in-use.ts';
import { beginStream, callOf, collect, sendJson, sendStream } from './contracts/fixture-vendor.ts';
import { VendorBench } from './contracts/vendor-bench.ts';
import { completion, errorBody, events, streams } from './recorded/recorded-openai.ts';

const apiKey = 'sk-test-0123456789abcdef';
const plain = streams['plain text'] ?? [];

describe('vendor faults', () => {
  const bench = new VendorBench((baseUrl) => createOpenAiDialect({ name: 'openai', baseUrl, apiKey }));

  /** The error of a call whose request the server answers like this; streamed and held alike. */
  async function errorOf(answer: (response: ServerResponse) => void, silenceMs = 20_000): Promise<ApiError> {
    const errors: ApiError[] = [];
    for (const stream of [true, false]) {
      bench.server.answer(answer);
      const error = await bench.vendor.chat(callOf({ stream, silenceMs }), collect()).then(
        () => assert.fail('no error'),
        (thrown) => thrown,
      );
      assert.ok(error instanceof ApiError, inspect(error));
      assert.ok(!inspect(error, { depth: 10 }).includes(apiKey));
      errors.push(error);
    }
    const [streamed, held] = errors as [ApiError, ApiError];
    assert.deepEqual({ ...streamed.toData(), retryAfterMs: 0 }, { ...held.toData(), retryAfterMs: 0 });
    return held;
  }
  const statusError = (status: number, body = '{}', headers: Record<string, string> = {}) =>
    errorOf((response) => sendJson(response, status, body, headers));

  it("a vendor's 400, 413 or 422 becomes a 400 with the vendor's message, param and code", async () => {
    const body = errorBody(
      "'messages' must be shorter.",
      'context_length_exceeded',
      'invalid_request_error',
      'messages',
    );
    for (const status of [400, 413, 422]) {
      const error = await statusError(status, body);
      assert.equal(error.status, 400);
      assert.deepEqual(error.toWire().error, {
        message: "'messages' must be shorter.",
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      });
    }
    for (const text of [
      '{"message":"Odd."}',
      '{"detail":"Odd."}',
      '{"error":"Odd."}',
      '{"error":{"message":"Odd.","code":400}}',
    ]) {
      const error = await statusError(400, text);
      assert.deepEqual([error.message, error.code, error.vendorCode], ['Odd.', 'invalid_request_error', null]);
    }
    for (const text of ['', '<html>', '[]', '{"error":{"message":5,"param":{},"code":"a b"}}']) {
      const error = await statusError(400, text);
      assert.deepEqual(
        [error.status, error.message, error.vendorCode],
        [400, "The model's vendor refused the request.", null],
      );
    }
  });

  it('the key that an error repeats is removed from message, param and code, however it is encoded', async () => {
    const key = 'fal/0123456789abcdef=:+AbCdEfGh~ijkl';
    const escaped = [...key].map((sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    const basic = Buffer.from(`a:${key}`).toString('base64');
    const bearer = Buffer.from(`Bearer ${key}`).toString('base64');
    const plain = Buffer.from(key).toString('base64');
    for (const echo of [key, key.replaceAll('/', '\\/'), escaped, encodeURIComponent(key), plain, basic, bearer]) {
      const body = `{"error":{"message":"Bad header: ${echo}.","param":"${echo}","code":"${echo}"}}`;
      const { message, param, code } = readVendorError(body, key);
      assert.match(
        `${message} ${param} ${code}`,
        /^Bad header: .{0,12}\[key\].{0,12}\. .{0,12}\[key\].{0,12} null$/,
        echo,
      );
    }
    // Nothing is removed for a key that is none.
    assert.equal(readVendorError('{"message":"Use auto."}', 'auto').message, 'Use auto.');
  });

  it("a vendor's 401, 402, 403, exhausted quota, unknown path or redirect becomes a 503 with a cause for the operator", async () => {
    const cases: [number, string | null][] = [
      [401, 'invalid_api_key'],
      [402, null],
      [403, 'unsupported_country'],
      [429, 'insufficient_quota'],
      [404, null],
      [302, null],
    ];
    for (const [status, code] of cases) {
      const error = await statusError(status, errorBody(`Incorrect API key provided: ${apiKey}`, code, ''), {
        location: 'http://127.0.0.1:1/',
      });
      assert.equal(error.code, 'service_unavailable');
      const isRefused = status === 401 || status === 403;
      assert.match(
        error.message,
        isRefused ? /its vendor refuses this gateway's credentials/ : /not available at the moment\.$/,
      );
      assert.equal(error.isRetryable, !isRefused);
      assert.equal(error.vendorSentence, isRefused ? 'Incorrect API key provided: [key]' : null);
      assert.doesNotMatch(JSON.stringify(error.toData()), /Incorrect/);
      assert.equal((error.cause as Error).message, `the vendor openai answered ${status}${code ? ` (${code})` : ''}`);
    }
  });

  it("Groq's 400 for an account over its limit of spending, or closed, becomes a 503 that reveals nothing of it", async () => {
    for (const code of ['blocked_api_access', 'organization_restricted']) {
      const body = errorBody('Organization org_1 is blocked.', code, 'invalid_request_error');
      const { code: ours, message, isRetryable } = await statusError(400, body);
      assert.deepEqual([ours, isRetryable], ['service_unavailable', true]);
      assert.match(message, /not available at the moment\.$/);
    }
  });

  it("OpenAI's flex tier without capacity is its own error, by which clients choose another tier", async () => {
    const error = await statusError(429, errorBody('Resource unavailable.', 'resource_unavailable', ''));
    assert.deepEqual([error.status, error.toWire().error.code], [429, 'resource_unavailable']);
    assert.equal(error.isRetryable, true);
  });

  it("an error in a vendor's own words says so, whatever its status: they may quote the request", async () => {
    const sentence = 'You asked for the secret lighthouse.';
    let own = 0;
    for (const status of [400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503, 504, 529]) {
      for (const type of ['invalid_request_error', 'context_length_exceeded', 'server_error', 'billing_error']) {
        const error = await statusError(status, errorBody(sentence, null, type));
        assert.equal(error.isQuoted, error.message.includes('lighthouse'), `${status} ${type}`);
        if (error.isQuoted) own++;
      }
    }
    assert.ok(own > 0);
  });

  it('a status as text in the place of a code is no code, as LiteLLM and Azure write it', async () => {
    for (const [type, code] of [
      [null, 'invalid_request_error'],
      // LiteLLM's word for null.
      ['None', 'invalid_request_error'],
      ['content_policy', 'content_policy'],
    ] as const) {
      const param = type === 'None' ? 'None' : null;
      const body = JSON.stringify({ error: { message: 'No.', type, param, code: '400' } });
      assert.deepEqual((await statusError(400, body)).toWire().error, {
        ...{ message: 'No.', type: 'invalid_request_error', param: null },
        code,
      });
    }
  });

  it("a vendor's 404 with model_not_found stays one, without the vendor's name for the model", async () => {
    const error = await statusError(404, errorBody('The model `gpt-9` does not exist.', 'model_not_found'));
    assert.equal(error.code, 'model_not_found');
    assert.ok(!error.message.includes('gpt-9'));
  });

  it('a prompt that is too long becomes context_length_exceeded, in the wording of every vendor', async () => {
    const told: [string, object][] = [
      [
        "This model's maximum context length is 65536 tokens. However, you requested 99999",
        { code: 'invalid_request_error' },
      ],
      ["This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021", { code: 400 }],
      ['prompt too long; exceeded max context length by 1119046 tokens', { type: 'invalid_request_error', code: null }],
      ['The total length of all messages is too long.', { type: 'too_many_prompt_tokens', code: 400 }],
      ["This model's maximum prompt length is 131072 but the request contains 200000 tokens.", {}],
      ['Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length', {}],
      ['Prompt contains 65673 tokens, too large for model with 32768 maximum context length', {}],
      ['prompt is too long: 210000 tokens > 200000 maximum', { code: 400 }],
      ['input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length', {}],
      ['Unable to submit request because the input token count is 135538 but model only supports up to 131072.', {}],
      ['Your request exceeded model token limit: 8192', { type: 'invalid_request_error' }],
      ['the request exceeds the available context size, try increasing it', { type: 'exceed_context_size_error' }],
      ['Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000', {}],
      ["The input (140000 tokens) is longer than the model's context length (131072 tokens).", {}],
      ["Requested token count exceeds the model's maximum context length of 256000 tokens.", {}],
      ['Prompt 超长', { code: '1261' }],
      ['Prompt exceeds max length', { code: '1261' }],
      ['max tokens of 200000 exceeded', {}],
      ['{"message":"Input is too long for requested model."}', { error_code: 'BAD_REQUEST' }],
      [
        "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens",
        { param: null, code: 400 },
      ],
      [
        "You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only 40960",
        { code: 400 },
      ],
      ['The decoder prompt (length 9000) is longer than the maximum model length of 8192.', { code: 400 }],
      [
        "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - This model's maximum context length",
        { type: 'invalid_request_error', param: null, code: '400' },
      ],
      ['Trying to keep the first 7268 tokens when context the overflows. However, the model is loaded with', {}],
      ['The number of tokens to keep from the initial prompt is greater than the context length. Try to load', {}],
    ];
    for (const [message, fields] of told) {
      const body = JSON.stringify({ error: { message, ...fields } });
      const error = await statusError(400, body);
      assert.deepEqual(
        [error.status, error.toWire().error.code, error.message],
        [400, 'context_length_exceeded', message],
      );
      assert.equal(error.vendorStatus, 400);
    }
    // In a stream of LM Studio, whose status is that of a success.
    const [overflow] = told.at(-1) as [string, object];
    const body = JSON.stringify({ error: { message: overflow } });
    assert.equal((await errorOf((response) => sendJson(response, 200, body))).code, 'context_length_exceeded');
    for (const message of [
      "messages[0].name: 'prompt too long; exceeded max context length'",
      'The tool name is too long.',
      'Prompt is too long, max 1000 characters',
      "messages[0].name: 'Input is too long for requested model'",
    ]) {
      assert.equal((await statusError(400, errorBody(message, null))).toWire().error.code, 'invalid_request_error');
    }
  });

  it('an unknown model becomes model_not_found with a retry elsewhere, in the wording of every vendor', async () => {
    const told: [number, string, object][] = [
      [400, 'Model Not Exist', { type: 'invalid_request_error', code: 'invalid_request_error' }],
      [400, 'gpt-nine is not a valid model ID', { code: 400 }],
      [404, 'No endpoints found for x-ai/grok-9.', { code: 404 }],
      [
        400,
        "Invalid model 'sonar-9'. Permitted models can be found in the documentation.",
        { type: 'invalid_model', code: 400 },
      ],
      [400, 'Invalid model: mistral-nine', { type: 'invalid_model', code: '1500' }],
      [404, "model 'llama9' not found", { type: 'not_found_error', code: null }],
      [404, 'The model `gpt-nine` does not exist.', { type: 'NotFoundError', code: 404 }],
      [
        404,
        'litellm.NotFoundError: NotFoundError: OpenAIException - The model `gpt-nine` does not exist or you do not have',
        { type: 'invalid_request_error', code: '404' },
      ],
      [400, '/chat/completions: Invalid model name passed in model=gpt-nine. Call `/v1/models` to', { code: '400' }],
      [404, 'Unable to access model x.', { code: 'model_not_available' }],
      [404, 'Model not found, inaccessible, and/or not deployed', { code: 'NOT_FOUND' }],
      [404, 'Not found the model kimi-nine or Permission denied', { type: 'resource_not_found_error' }],
      [400, '模型不存在，请检查模型代码。', { code: '1211' }],
      [400, 'Unknown Model, please check the model code.', { code: '1211' }],
      [404, 'The given endpoint does not exist.', { error_code: 'RESOURCE_DOES_NOT_EXIST' }],
      [400, 'The model `nine` has been decommissioned and is no longer supported.', { code: 'model_decommissioned' }],
      [400, 'Model not found: grok-nine', { code: 'Client specified an invalid argument' }],
    ];
    for (const [status, message, fields] of told) {
      const error = await statusError(status, JSON.stringify({ error: { message, ...fields } }));
      assert.deepEqual([error.code, error.status, error.vendorStatus], ['model_not_found', 404, 404], message);
      assert.ok(!error.message.includes('nine'));
    }
  });

  it('what the vendor behind OpenRouter says reaches the caller, with its param and code', async () => {
    const error = (status: number, raw: unknown) =>
      statusError(
        status,
        JSON.stringify({
          error: { message: 'Provider returned error', code: status, metadata: { raw, provider_name: 'OpenAI' } },
        }),
      );
    const inner = errorBody("Invalid schema for 'x'.", 'invalid_json_schema', 'invalid_request_error', 'tools');
    const refused = await error(400, inner);
    assert.deepEqual([refused.message, refused.param, refused.isQuoted], ["Invalid schema for 'x'.", 'tools', true]);
    assert.equal(refused.vendorCode, 'invalid_json_schema');
    const tooLong = await error(400, '{"message":"Input is too long for requested model."}');
    assert.equal(tooLong.code, 'context_length_exceeded');
    const plain = await error(400, 'The image is not readable.');
    assert.equal(plain.message, 'The image is not readable.');
    for (const empty of ['', '<html>Bad gateway</html>', '{"a":1}', null, 5]) {
      assert.equal((await error(400, empty)).message, 'Provider returned error');
    }
    const escaped = JSON.stringify({ message: 'Bad key KEY.' }).replace('KEY', `\\u0073${apiKey.slice(1)}`);
    assert.equal((await error(400, escaped)).message, 'Bad key [key].');
    // Who refuses OpenRouter's key is no concern of the caller's, nor what that vendor says of it.
    const secret = await error(403, inner);
    assert.deepEqual([secret.code, secret.message.includes('schema')], ['service_unavailable', false]);
  });

  it("Mistral's list of faults in place of a message, and a detail that is an object, name the fault", async () => {
    const detail = [{ type: 'extra_forbidden', loc: ['body', 'top_k'], msg: 'Extra inputs are not permitted' }];
    const body = { object: 'error', message: { detail }, type: 'invalid_request_error', param: null, code: null };
    const mistral = await statusError(422, JSON.stringify(body));
    assert.deepEqual([mistral.message, mistral.param], ['Extra inputs are not permitted', 'top_k']);
    const object = await statusError(400, JSON.stringify({ detail: { error: 'The image is not readable.' } }));
    assert.equal(object.message, 'The image is not readable.');
  });

  it("Cloudflare's list of errors is read, and Zhipu's 429 for arrears becomes a 503", async () => {
    const cloudflare = (code: number, message: string) =>
      JSON.stringify({ errors: [{ code, message }], success: false, result: {}, messages: [] });
    const bad = await statusError(400, cloudflare(5006, 'AiError: Bad input'));
    assert.deepEqual([bad.code, bad.message], ['invalid_request_error', 'AiError: Bad input']);
    assert.equal((await statusError(400, cloudflare(5007, 'No such model @cf/nine or task'))).code, 'model_not_found');
    const tooLong =
      'AiError: The estimated number of input and maximum output tokens (30000) exceeded this model context window limit (24000).';
    assert.equal((await statusError(413, cloudflare(5021, tooLong))).code, 'context_length_exceeded');
    for (const message of [
      '您的账户已欠费，请充值后重试。',
      'Your account is in arrears, please recharge and try again',
    ]) {
      const error = await statusError(429, JSON.stringify({ error: { code: '1113', message } }));
      assert.equal(error.code, 'service_unavailable');
    }
  });

  it("a vendor's 429 stays one, with the time to wait in each of its forms", async () => {
    const body = errorBody('Rate limit reached in organization org-secret', 'rate_limit_exceeded', 'tokens');
    const waitFor = async (headers: Record<string, string>) => {
      const error = await statusError(429, body, headers);
      assert.equal(error.code, 'rate_limit_exceeded');
      assert.ok(!error.message.includes('org-secret'));
      return error.retryAfterMs;
    };
    assert.equal(await waitFor({ 'retry-after': '7' }), 7000);
    assert.equal(await waitFor({ 'retry-after-ms': '250.5', 'retry-after': '7' }), 250.5);
    assert.equal(await waitFor({}), 1000);
    assert.equal(await waitFor({ 'retry-after': 'soon' }), 1000);
    for (const nonsense of ['-5', '1e9', '7s', '2 minutes'])
      assert.equal(await waitFor({ 'retry-after': nonsense }), 1000);
    assert.equal(await waitFor({ 'retry-after': new Date(Date.now() - 60_000).toUTCString() }), 0);
    // The vendor's date is that of its own clock, beside which this host's may be an hour ahead, or late.
    for (const offMs of [0, -3_600_000, 3_600_000]) {
      const [date, then] = [0, 60_000].map((ms) => new Date(Date.now() + offMs + ms).toUTCString());
      const wait = (await waitFor({ date: `${date}`, 'retry-after': `${then}` })) ?? 0;
      assert.ok(wait > 50_000 && wait <= 62_000, `${wait}`);
    }
  });

  it('a request that alone exceeds the limits of the account at its vendor is too large, and the answer reveals nothing of the account', async () => {
    for (const [status, message] of [
      [
        429,
        'Request too large for gpt-4o in organization org_1 on tokens per min (TPM): Limit 30000, Requested 41022. The input or output tokens must be reduced in order to run successfully.',
      ],
      [
        413,
        'Request too large for model `m` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 8192, please reduce your message size and try again.',
      ],
      [
        429,
        'Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-08-01-preview have exceeded token rate limit of your current OpenAI S0 pricing tier in org_1. Please retry after 86400 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.',
      ],
    ] as const) {
      const error = await statusError(status, errorBody(message, 'rate_limit_exceeded', 'tokens'));
      assert.deepEqual(
        [error.code, error.status, error.vendorStatus, error.isQuoted, error.message.includes('org_1')],
        ['request_too_large', 413, 413, false, false],
      );
    }
    // Anything else with Groq's status is a limit as it was, which a wait may end.
    const other = await statusError(413, errorBody('Too much at once in org_1', 'rate_limit_exceeded', 'tokens'));
    assert.deepEqual([other.code, other.message.includes('org_1')], ['rate_limit_exceeded', false]);
  });

  it("a vendor's 503 or 529 becomes a 503 with retry-after, a 408 or 504 a timeout, and any other 5xx a server_error", async () => {
    for (const status of [500, 502, 520, 409]) assert.equal((await statusError(status, '<html>')).code, 'server_error');
    for (const status of [503, 529]) {
      const error = await statusError(status, errorBody('Overloaded', null), { 'retry-after': '3' });
      assert.deepEqual([error.code, error.retryAfterMs], ['service_unavailable', 3000]);
    }
    for (const status of [408, 504]) assert.equal((await statusError(status)).code, 'timeout');
  });

  it('an endless error body of a vendor is read up to a limit', async () => {
    const error = await errorOf((response) => {
      response.writeHead(500, { 'content-type': 'text/html' });
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384)));
      };
      response.on('drain', pour);
      pour();
    });
    assert.equal(error.code, 'server_error');
  });

  it('a refused connection to a vendor becomes a 503', async () => {
    const unused = createServer().listen(0, '127.0.0.1');
    await once(unused, 'listening');
    const { port } = unused.address() as AddressInfo;
    unused.close();
    await once(unused, 'close');
    const lost = createOpenAiDialect({ name: 'openai', baseUrl: `http://127.0.0.1:${port}/v1`, apiKey });
    const call = lost.chat(callOf(), collect());
    await assert.rejects(call, { code: 'service_unavailable', message: "The model's vendor cannot be reached." });
    await lost.close();
  });

  it('a connection to a vendor that ends before the headers is a server_error', async () => {
    assert.equal((await errorOf((response) => response.socket?.resetAndDestroy())).code, 'server_error');
    assert.equal((await errorOf((response) => response.socket?.end())).code, 'server_error');
    assert.equal((await errorOf((response) => response.socket?.end('not HTTP\r\n\r\n'))).code, 'server_error');
  });

  it("a reset inside a vendor's stream is stream_interrupted, also with connection: close", async () => {
    for (const connection of ['keep-alive', 'close']) {
      bench.server.answer((response) => {
        beginStream(response, { connection });
        response.write(events(plain.slice(0, 4), ''));
      });
      const sink = collect();
      const breaking: FrameSink = {
        drained: sink.drained,
        write: (frame) => {
          sink.write(frame);
          return sink.frames.length < 4 || breakOff();
        },
      };
      const breakOff = () => {
        bench.server.reset();
        return true;
      };
      await assert.rejects(bench.vendor.chat(callOf(), breaking), { code: 'stream_interrupted' });
      assert.equal(sink.frames.length, 4);
    }
  });

  it('a reset before the first frame is a retryable server_error, even after the headers', async () => {
    bench.server.answer((response) => {
      beginStream(response);
      response.write(': hello\n\n', () => response.socket?.resetAndDestroy());
    });
    await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'server_error' });
  });

  it('a reset while the sink is full ends the call, and not the process', async () => {
    for (const connection of ['keep-alive', 'close']) {
      bench.server.answer((response) => {
        beginStream(response, { connection });
        for (const each of plain) response.write(events([each], ''));
      });
      const full: FrameSink = {
        write: () => {
          bench.server.reset();
          return false;
        },
        drained: () => new Promise(() => {}),
      };
      await assert.rejects(bench.vendor.chat(callOf(), full), { code: 'stream_interrupted' });
    }
  });

  it('a truncated held answer of a vendor is a server_error', async () => {
    const text = JSON.stringify(completion);
    const head = { 'content-type': 'application/json', 'content-length': String(text.length * 2) };
    bench.server.answer((response) => response.writeHead(200, head).write(text, () => response.socket?.end()));
    await assert.rejects(bench.vendor.chat(callOf({ stream: false }), collect()), { code: 'server_error' });
  });

  it('hints (103) are no sign of an answer: a vendor that sends nothing else is silent', {
    timeout: 60_000,
  }, async () => {
    const hint = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n';
    bench.server.answer(({ socket }) => {
      const timer = setInterval(() => socket?.write(hint), 50);
      socket?.once('close', () => clearInterval(timer));
    });
    await assert.rejects(bench.vendor.chat(callOf({ silenceMs: 1000 }), collect()), {
      code: 'timeout',
      message: "The model's vendor was silent for 1000 ms.",
    });
    bench.server.answer((response) => {
      response.socket?.write(hint.repeat(3));
      sendJson(response, 200, JSON.stringify(completion));
    });
    const { body } = await bench.vendor.chat(callOf({ stream: false }), collect());
    assert.equal(JSON.parse(body).choices.length, completion.choices.length);
  });

  it('a compressed answer, which no request asks for, is an error of the vendor, and no speech', async () => {
    const speech = JSON.stringify({ input: 'Hi', voice: 'alloy', response_format: 'mp3' });
    for (const [coding, type] of [
      ['gzip', 'application/json'],
      ['br', 'text/event-stream'],
      ['identity, zstd', 'audio/mpeg'],
    ]) {
      bench.server.answer((response, { headers }) => {
        assert.equal(headers['accept-encoding'], 'identity');
        response.writeHead(200, { 'content-type': type, 'content-encoding': coding }).end(gzipSync('ID3'));
      });
      const sink = collect();
      const call =
        type === 'audio/mpeg'
          ? bench.vendor.speak(callOf({ request: speech }), sink)
          : bench.vendor.chat(callOf(), sink);
      await assert.rejects(call, { code: 'server_error', message: /compressed/ });
      assert.equal(sink.frames.length, 0);
    }
    const head = { 'content-type': 'application/json', 'content-encoding': 'utf-8' };
    bench.server.answer((response) => response.writeHead(200, head).end(JSON.stringify(completion)));
    const { body } = await bench.vendor.chat(callOf({ stream: false }), collect());
    assert.equal(JSON.parse(body).choices.length, completion.choices.length);
  });

  it('JSON behind a byte order mark is read, of answers and of errors', async () => {
    bench.server.answer((response) => sendJson(response, 200, `\uFEFF${JSON.stringify(completion)}`));
    for (const stream of [true, false]) await bench.vendor.chat(callOf({ stream }), collect());
    const answer = { data: [{ index: 0, embedding: [0.5] }], usage: { prompt_tokens: 1, total_tokens: 1 } };
    bench.server.answer((response) => sendJson(response, 200, `\uFEFF${JSON.stringify(answer)}`));
    const { vectors } = await bench.vendor.embed(callOf({ request: '{"input":"Hi"}' }));
    assert.equal(String(vectors[0]), '[0.5]');
    const error = await statusError(400, `\uFEFF${errorBody('Too long.', 'context_length_exceeded', '')}`);
    assert.equal(error.message, 'Too long.');
  });

  it('a vendor that sends each byte as a chunk of its own costs little more memory than its answer', async () => {
    const bytes = 3_000_000;
    const before = heapInUse();
    let used: number | undefined;
    bench.server.answer(({ socket }) => {
      const send = async (): Promise<void> => {
        socket?.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
        const chunks = '1\r\n \r\n'.repeat(10_000);
        for (let sent = 0; sent < bytes; sent += 10_000) {
          await new Promise<void>((resolve) => socket?.write(chunks, () => resolve()));
        }
        used = heapInUse() - before;
        const text = JSON.stringify(completion);
        socket?.end(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`);
      };
      void send();
    });
    const { body } = await bench.vendor.chat(callOf({ stream: false }), collect());
    assert.equal(JSON.parse(body).choices.length, completion.choices.length);
    assert.ok(used !== undefined && used < 10 * bytes, `${used} bytes`);
  });

  it('a vendor that goes on after the end of its answer loses the connection', { timeout: 8000 }, async () => {
    let onClosed = (): void => undefined;
    const closed = new Promise<void>((resolve) => {
      onClosed = resolve;
    });
    bench.server.answer((response) => {
      beginStream(response);
      response.write(events(plain));
      const dripping = setInterval(() => response.write(':\n'), 200);
      response.on('close', () => {
        clearInterval(dripping);
        onClosed();
      });
    });
    await bench.vendor.chat(callOf(), collect());
    await closed;
  });

  it("a vendor's silence is a timeout, before the headers and inside the answer", async () => {
    assert.equal((await errorOf(() => {}, 100)).code, 'timeout');
    assert.equal((await errorOf((response) => beginStream(response), 100)).code, 'timeout');
  });

  it("a full sink is not mistaken for a vendor's silence", async () => {
    bench.server.answer((response) =>
      sendStream(response, plain.map((each) => events([each], '')).concat('data: [DONE]\n\n')),
    );
    // Longer than undici takes to notice silence of 100 ms: its clock ticks twice a second.
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 1500));
    const frames: unknown[] = [];
    const sink: FrameSink = { write: (frame) => frames.push(frame) !== 2, drained: pause };
    await bench.vendor.chat(callOf({ silenceMs: 100 }), sink);
    assert.equal(frames.length, plain.length);
  });

  it('an event or a held answer over its size limit is a clear error', async () => {
    const pourInto = (contentType: string) => (response: ServerResponse) => {
      response.writeHead(200, { 'content-type': contentType });
      response.write('data: ');
      const part = 'x'.repeat(1 << 20);
      const pour = () => {
        while (!response.destroyed && response.write(part));
      };
      response.on('drain', pour);
      pour();
    };
    bench.server.answer(pourInto('text/event-stream'));
    await assert.rejects(bench.vendor.chat(callOf(), collect()), {
      code: 'server_error',
      message: /more than 8388608 characters/,
    });
    bench.server.answer(pourInto('application/json'));
    const held = bench.vendor.chat(callOf({ stream: false }), collect());
    await assert.rejects(held, { code: 'server_error', message: /larger than 67108864 bytes/ });
  });

  it("an abort inside a stream closes the vendor's connection, also while the sink is full", async () => {
    for (const taken of [true, false]) {
      let left: Promise<unknown> | undefined;
      bench.server.answer((response) => {
        left = once(response, 'close');
        beginStream(response);
        response.write(events(plain.slice(0, 2), ''));
      });
      const controller = new AbortController();
      const sink: FrameSink = {
        write: () => {
          setImmediate(() => controller.abort());
          return taken;
        },
        drained: () => new Promise(() => {}),
      };
      await assert.rejects(bench.vendor.chat(callOf({ signal: controller.signal }), sink), { code: 'cancelled' });
      await left;
    }
  });

  // undici itself would give the handshake up after 10 s.
  it("an abort during the connection's handshake closes it at once and sends nothing", { timeout: 8000 }, async () => {
    let heard = '';
    const silent = createServer((socket) => {
      socket.on('data', (data) => {
        heard += data.toString('latin1');
      });
      socket.on('error', () => {});
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    // The TLS handshake never comes to an end.
    const slow = createOpenAiDialect({ name: 'openai', baseUrl: `https://127.0.0.1:${port}/v1`, apiKey });
    const controller = new AbortController();
    const call = slow.chat(callOf({ signal: controller.signal }), collect());
    const [socket] = await once(silent, 'connection');
    const left = once(socket, 'close');
    controller.abort();
    await assert.rejects(call, { code: 'cancelled' });
    await left;
    await slow.close();
    silent.close();
    await once(silent, 'close');
    assert.ok(!heard.includes('POST'));

    const early = new AbortController();
    const asked = bench.server.requests.length;
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
    const fresh = createOpenAiDialect({ name: 'openai', baseUrl: bench.server.baseUrl, apiKey });
    const cut = fresh.chat(callOf({ signal: early.signal }), collect());
    early.abort();
    await assert.rejects(cut, { code: 'cancelled' });
    await fresh.chat(callOf({ stream: false }), collect());
    assert.equal(bench.server.requests.length, asked + 1);
    await fresh.close();
  });

  it("an error of the sink ends the call and closes the vendor's connection", async () => {
    let left: Promise<unknown> | undefined;
    bench.server.answer((response) => {
      left = once(response, 'close');
      beginStream(response);
      response.write(events(plain.slice(0, 2), ''));
    });
    const drained = () => Promise.reject(new ApiError('outcome_unknown', 'The relay is gone.'));
    await assert.rejects(bench.vendor.chat(callOf(), { write: () => false, drained }), { code: 'outcome_unknown' });
    await left;
  });

  it('a sink that stays full stops the vendor, and gets every frame once it is drained', async () => {
    const text = 'x'.repeat(16_384);
    const count = 4096;
    const part = events([{ choices: [{ index: 0, delta: { content: text } }] }], '');
    let response: ServerResponse | undefined;
    bench.server.answer((each) => {
      response = each;
      beginStream(each);
      for (let sent = 0; sent < count; sent += 1) each.write(part);
      each.end(events([{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }]));
    });
    let drain = () => {};
    let blocked = () => {};
    let released = false;
    const full = new Promise<void>((resolve) => {
      blocked = resolve;
    });
    let frames = 0;
    const sink: FrameSink = {
      write: (frame) => {
        frames += 1;
        assert.ok(frame.text.length > text.length || frames > count);
        return released;
      },
      drained: () =>
        new Promise((resolve) => {
          drain = resolve;
          blocked();
        }),
    };
    const call = bench.vendor.chat(callOf(), sink);
    await full;
    // Whole calls over other connections come and go meanwhile: what was to flow would have flowed.
    const unsent: number[] = [];
    for (let other = 0; other < 20; other += 1) {
      bench.server.answer((each) => sendJson(each, 200, JSON.stringify(completion)));
      await bench.vendor.chat(callOf({ stream: false }), collect());
      unsent.push(response?.writableLength ?? 0);
    }
    assert.ok(frames * text.length <= 1 << 20, `${frames} frames`);
    assert.ok((unsent.at(-1) ?? 0) > (count * text.length) / 2, `${unsent.at(-1)} bytes unsent`);
    released = true;
    drain();
    await call;
    assert.equal(frames, count + 1);
  });

  it('a connection that the vendor has closed is not used again', async () => {
    const answer = (response: ServerResponse) => sendJson(response, 200, JSON.stringify(completion));
    for (let round = 0; round < 5; round += 1) {
      let closed: Promise<unknown> | undefined;
      bench.server.answer((response) => {
        const { socket } = response;
        closed = socket ? once(socket, 'close') : undefined;
        response.on('finish', () => socket?.end());
        answer(response);
      });
      await bench.vendor.chat(callOf({ stream: false }), collect());
      await closed;
    }
  });
});
