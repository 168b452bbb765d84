import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type OpenAI from 'openai';
import { AuthenticationError, NotFoundError, RateLimitError } from 'openai';
import { assertErrorAnswer, type ErrorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { pngFile } from '../../support/image-files.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { wav } from '../../support/wav.ts';

type Fields = Readonly<Record<string, unknown>>;

describe('requests of published OpenAI clients', () => {
  let gateway: TestGateway;
  let client: OpenAI;
  before(async () => {
    gateway = await TestGateway.start({ configuration: oneAttempt });
    client = gateway.client();
  });
  after(() => gateway.stop());

  const post = (path: string, body: unknown): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) });

  describe('penalties of a Response object', () => {
    for (const model of ['sandbox-chat', 'sandbox-responses']) {
      it(`POST /v1/responses with ${model} shows both penalties as 0, held, streamed and retrieved`, async () => {
        const held = await client.responses.create({ model, input: 'Hi' });
        const again = await client.responses.retrieve(held.id);
        const streamed: unknown[] = [];
        for await (const event of await client.responses.create({ model, input: 'Hi', stream: true })) {
          if ('response' in event) streamed.push(event.response);
        }
        for (const response of [held, again, ...streamed] as Fields[]) {
          assert.deepEqual([response.presence_penalty, response.frequency_penalty], [0, 0]);
        }
      });
    }

    it('POST /v1/responses over a chat model shows the requested penalties, and refuses invalid ones', async () => {
      const more = { presence_penalty: 0.5, frequency_penalty: -0.25 };
      const response = await client.responses.create({ model: 'sandbox-chat', input: 'Hi', ...more });
      const { presence_penalty: presence, frequency_penalty: frequency } = response as unknown as Fields;
      assert.deepEqual([presence, frequency], [0.5, -0.25]);
      const wrong = await post('/v1/responses', { model: 'sandbox-chat', input: 'Hi', presence_penalty: 'lots' });
      assert.equal((await assertErrorAnswer(wrong, 400, 'invalid_request_error')).param, 'presence_penalty');
    });
  });

  describe('POST /v1/responses over a chat model', () => {
    const refused = async (more: object, param: string): Promise<ErrorDetails> => {
      const error = await assertErrorAnswer(
        await post('/v1/responses', { model: 'sandbox-chat', input: 'Hi', ...more }),
        400,
        'invalid_request_error',
      );
      assert.equal(error.param, param, error.message);
      assert.doesNotMatch(error.message, /messages/);
      return error;
    };

    it('POST /v1/responses refuses the output of an unknown tool call, and accepts one for a call of an earlier response', async () => {
      for (const type of ['function_call_output', 'custom_tool_call_output']) {
        const { message } = await refused({ input: [{ type, call_id: 'call_missing', output: 'x' }] }, 'input');
        assert.match(
          message,
          /^No tool call found for (function|custom tool) call output with call_id call_missing\.$/,
        );
      }
      const tools = [{ type: 'function', name: 'add', strict: false, parameters: { type: 'object' } }] as const;
      const first = await client.responses.create({ model: 'sandbox-chat', input: 'TOOL:add {}', tools: [...tools] });
      const call = first.output.find((item) => item.type === 'function_call');
      assert.ok(call);
      const next = await client.responses.create({
        model: 'sandbox-chat',
        previous_response_id: first.id,
        input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sum 4' }],
      });
      assert.match(next.output_text, /sum 4/);
    });

    it('POST /v1/responses over a chat model names its own field when the input cannot become a chat', async () => {
      await refused({ input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 'input');
      await refused({ input: [{ role: 'user', content: [] }] }, 'input[0].content');
      await refused(
        {
          input: [
            { role: 'user', content: 'Hi' },
            { role: 'user', content: [] },
          ],
        },
        'input[1].content',
      );
    });

    it('POST /v1/responses over a chat model refuses values that the Response object of OpenAI cannot have', async () => {
      await refused({ prompt_cache_retention: 'NaN' }, 'prompt_cache_retention');
      await refused({ service_tier: 'ultrafast'.repeat(300) }, 'service_tier');
      await refused({ reasoning: { context: '\ud800' } }, 'reasoning.context');
      await refused({ reasoning: { effort: 'enormous' } }, 'reasoning.effort');
      await refused({ text: { verbosity: 'x' } }, 'text.verbosity');
      const taken = { service_tier: 'flex', prompt_cache_retention: '24h', reasoning: { context: 'auto' } };
      const answer = await post('/v1/responses', { model: 'sandbox-chat', input: 'Hi', ...taken });
      assert.equal(answer.status, 200, await answer.text());
    });
  });

  describe('null in optional fields', () => {
    const base = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Reply with exactly: hi' }] };
    const chatFields = [
      ...['tools', 'tool_choice', 'response_format', 'user', 'functions', 'function_call', 'parallel_tool_calls'],
      ...['temperature', 'stop', 'stream', 'prompt_cache_options', 'web_search_options', 'metadata', 'an_unknown_one'],
    ];

    it('POST /v1/chat/completions treats null in optional fields as absent, at the top level and nested', async () => {
      const nulls = Object.fromEntries(chatFields.map((name) => [name, null]));
      assert.equal((await post('/v1/chat/completions', { ...base, ...nulls })).status, 200);
      const url = 'data:image/png;base64,iVBORw0KGgo=';
      const fn = { name: 'add', description: null, parameters: null, strict: null };
      const messages = [
        { role: 'user', name: null, content: [{ type: 'image_url', image_url: { url, detail: null } }] },
        { role: 'assistant', name: null, content: 'ok', tool_calls: null, refusal: null, function_call: null },
        { role: 'user', content: 'Reply with exactly: hi' },
      ];
      const schema = { name: 'x', description: null, schema: null };
      const answer = await post('/v1/chat/completions', {
        ...{ model: 'sandbox-chat', messages, tools: [{ type: 'function', function: fn }] },
        ...{ stream_options: null, tool_choice: null, response_format: null },
      });
      assert.equal(answer.status, 200, await answer.text());
      const formatted = await post('/v1/chat/completions', {
        ...base,
        response_format: { type: 'json_schema', json_schema: { ...schema, schema: { type: 'object' } } },
      });
      assert.equal(formatted.status, 200, await formatted.text());
    });

    it('embeddings, images, speech, completions and videos treat null in optional fields as absent', async () => {
      const requests: readonly (readonly [string, Fields])[] = [
        [
          '/v1/embeddings',
          { model: 'sandbox-embedding', input: 'a', dimensions: null, encoding_format: null, user: null },
        ],
        ['/v1/images/generations', { model: 'sandbox-image', prompt: 'a', size: '256x256', user: null, n: null }],
        [
          '/v1/audio/speech',
          {
            ...{ model: 'sandbox-speech', input: 'a', voice: 'alloy' },
            ...{ response_format: null, speed: null, instructions: null, stream_format: null },
          },
        ],
        ['/v1/completions', { model: 'sandbox-instruct', prompt: 'a', user: null, suffix: null }],
        ['/v1/videos', { model: 'sandbox-video', prompt: 'a', size: null, seconds: null, input_reference: null }],
      ];
      for (const [path, body] of requests) {
        const answer = await post(path, body);
        assert.equal(answer.status, 200, `${path}: ${await answer.clone().text()}`);
        await answer.body?.cancel();
      }
    });

    it('chat, embeddings, images, speech and videos return 400 naming a required field that is null', async () => {
      const requests: readonly (readonly [string, Fields, string])[] = [
        ['/v1/chat/completions', { ...base, messages: null }, 'messages'],
        ['/v1/chat/completions', { ...base, model: null }, 'model'],
        ['/v1/chat/completions', { ...base, messages: [{ role: 'user', content: null }] }, 'messages[0].content'],
        ['/v1/embeddings', { model: 'sandbox-embedding', input: null }, 'input'],
        ['/v1/images/generations', { model: 'sandbox-image', prompt: null }, 'prompt'],
        ['/v1/audio/speech', { model: 'sandbox-speech', input: 'a', voice: null }, 'voice'],
        ['/v1/videos', { model: 'sandbox-video', prompt: null }, 'prompt'],
      ];
      for (const [path, body, param] of requests) {
        const error = await assertErrorAnswer(await post(path, body), 400, 'invalid_request_error');
        assert.equal(error.param, param, error.message);
      }
    });
  });

  it('POST /v1/images/edits treats empty form fields as absent, except prompt and model', async () => {
    const send = (fields: Fields): Promise<Response> => {
      const form = new FormData();
      form.append('image', pngFile('a.png'));
      for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
      return fetch(`${gateway.url}/v1/images/edits`, {
        ...{ method: 'POST', body: form },
        headers: { authorization: `Bearer ${gateway.apiKey}` },
      });
    };
    const good = { model: 'sandbox-image', prompt: 'night', size: '256x256' };
    const answer = await send({ ...good, response_format: '', n: '', stream: '', mask: '', user: '', quality: '' });
    assert.equal(answer.status, 200, await answer.text());
    const refused = await assertErrorAnswer(await send({ ...good, prompt: '' }), 400, 'invalid_request_error');
    assert.equal(refused.param, 'prompt');
    const unnamed = await assertErrorAnswer(await send({ ...good, model: '' }), 400, 'invalid_request_error');
    assert.equal(unnamed.param, 'model');
  });

  it('POST /v1/chat/completions accepts a gzip body', async () => {
    const messages = [{ role: 'user', content: `${'word '.repeat(2000)}\nReply with exactly: packed` }];
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-encoding': 'gzip' },
      body: new Uint8Array(gzipSync(JSON.stringify({ model: 'sandbox-chat', messages }))),
    });
    assert.equal(response.status, 200);
    const { choices } = (await response.json()) as OpenAI.ChatCompletion;
    assert.equal(choices[0]?.message.content, 'packed');
  });

  describe('error messages in the wording of OpenAI', () => {
    const failure = async (promise: PromiseLike<unknown>): Promise<unknown> =>
      await promise.then(
        () => assert.fail('it was answered'),
        (error: unknown) => error,
      );
    const chat = (other: OpenAI, more: object = {}): PromiseLike<unknown> =>
      other.chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }], ...more });

    it('a wrong, revoked or malformed key gets the OpenAI message without the key itself', async () => {
      const revoked = await makeApiKey(gateway);
      await chat(gateway.client({ apiKey: revoked }));
      await revokeKey(gateway, revoked);
      const wrong = `sk-ab${'c'.repeat(40)}yz`;
      for (const [apiKey, shown] of [
        [wrong, 'sk-ab***yz'],
        [revoked, undefined],
        ['aShortOne', '***'],
      ] as const) {
        const error = await failure(chat(gateway.client({ apiKey })));
        assert.ok(error instanceof AuthenticationError && error.code === 'invalid_api_key');
        assert.match(error.message, /Incorrect API key provided/);
        if (shown !== undefined)
          assert.ok(error.message.includes(`Incorrect API key provided: ${shown}. `), error.message);
        assert.ok(!error.message.includes(apiKey), 'the key is not repeated');
        assert.ok(!error.message.includes(apiKey.slice(4, 14)), 'nor most of it');
      }
    });

    it('an unknown model gets the OpenAI message, from a chat and from GET /v1/models/{id}', async () => {
      const model = 'sandbox-nothing';
      for (const ask of [() => chat(client, { model }), () => client.models.retrieve(model)]) {
        const error = await failure(ask());
        assert.ok(error instanceof NotFoundError && error.code === 'model_not_found');
        assert.match(error.message, /The model `sandbox-nothing` does not exist or you do not have access to it\./);
      }
    });

    it('an exhausted quota and a rate limit get the OpenAI messages', async () => {
      const { key } = await makeLimitedAccount(gateway);
      const error = await failure(chat(gateway.client({ apiKey: key })));
      assert.ok(error instanceof RateLimitError && error.code === 'insufficient_quota');
      assert.match(error.message, /You exceeded your current quota, please check your plan and billing details\./);
      const limited = gateway.client({ apiKey: await makeApiKey(gateway, { rpm: 1 }) });
      await chat(limited);
      const late = await failure(chat(limited));
      assert.ok(late instanceof RateLimitError && late.code === 'rate_limit_exceeded');
      assert.match(late.message, /Rate limit reached for .* on requests per min \(RPM\): Limit 1\b/);
      assert.match(late.message, /Please try again in \d+(\.\d+)?s\./);
    });
  });

  it('the sandbox accepts the native fields of OpenAI for responses and transcriptions', async () => {
    const native = {
      prompt_cache_options: { ttl: '30m' },
      context_management: [{ type: 'compaction', compact_threshold: 1000 }],
      moderation: { model: 'omni-moderation-latest' },
    };
    const response = await post('/v1/responses', { model: 'sandbox-responses', input: 'Hi', ...native });
    assert.equal(response.status, 200, await response.text());
    const form = new FormData();
    form.append('file', new File([new Uint8Array(wav(1))], 'a.wav', { type: 'audio/wav' }));
    form.append('model', 'sandbox-transcribe');
    for (const [name, value] of [
      ['keywords[]', 'otter'],
      ['languages[]', 'en'],
      ['languages[]', 'no'],
    ] as const) {
      form.append(name, value);
    }
    const transcript = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      ...{ method: 'POST', body: form },
      headers: { authorization: `Bearer ${gateway.apiKey}` },
    });
    assert.equal(transcript.status, 200, await transcript.text());
  });

  it('an error message truncates a long id', async () => {
    const long = `resp_${'x'.repeat(3000)}`;
    for (const answer of [
      await gateway.fetch(`/v1/responses/${long}`),
      await gateway.fetch(`/v1/videos/${long}`),
      await post('/v1/responses', { model: 'sandbox-chat', input: [{ type: 'item_reference', id: long }] }),
      await post('/v1/chat/completions', { model: `m${'x'.repeat(250)}`, messages: [{ role: 'user', content: 'a' }] }),
    ]) {
      const { error } = (await answer.json()) as { error: { message: string } };
      assert.ok(answer.status >= 400 && error.message.length < 500, error.message);
    }
  });

  it('a worker logs no warning for a 400 of a vendor, and logs a 500', async () => {
    const [worker] = gateway.workers;
    assert.ok(worker);
    const request = (fault: object): object => ({
      ...{ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }] },
      sandbox: { fault },
    });
    const bad = await post('/v1/chat/completions', request({ kind: 'error', status: 400 }));
    assert.equal(bad.status, 400, await bad.text());
    const failed = await post('/v1/chat/completions', request({ kind: 'error', status: 500 }));
    assert.equal(failed.status, 500, await failed.text());
    await eventually(() => assert.match(worker.output(), /answered 500/));
    assert.doesNotMatch(worker.output(), /answered 400/);
  });
});
