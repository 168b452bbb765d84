import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { anthropicClient, message, textOfMessage } from '../../support/anthropic-client.ts';
import { assertAnthropicError } from '../../support/anthropic-errors.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt, TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

type ErrorClass = new (...args: never[]) => APIError;

describe('errors of POST /v1/messages', () => {
  let gateway: TestGateway;
  let client: Anthropic;
  before(async () => {
    gateway = await TestGateway.start({
      configuration: oneAttempt,
      settings: { SLUICE_VENDOR_SILENCE_SECONDS: '2' },
    });
    client = anthropicClient(gateway);
  });
  after(() => gateway.stop());

  async function errorOf(
    request: PromiseLike<unknown>,
    kind: ErrorClass,
    status: number | undefined,
    type: string,
  ): Promise<APIError> {
    const error = await request.then(
      () => assert.fail('it was answered'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof kind, String(error));
    assert.ok(error instanceof APIError);
    assert.equal(error.status, status);
    assert.equal(error.type, type);
    assert.match(error.requestID ?? '', /^(job|req)_/);
    return error;
  }

  const failing = (fault: object, text = 'WORDS:20') => message(text, { sandbox: { fault } });
  const post = (body: string, init: RequestInit = {}) =>
    gateway.fetch('/v1/messages', { method: 'POST', body, ...init });

  it('a wrong or revoked key is an AuthenticationError of the Anthropic client on every route', async () => {
    const revoked = await makeApiKey(gateway);
    await anthropicClient(gateway, { apiKey: revoked }).messages.create(message('Hi'));
    await revokeKey(gateway, revoked);
    for (const apiKey of ['sk-wrong', revoked]) {
      const other = anthropicClient(gateway, { apiKey });
      const { max_tokens: _, ...counted } = message('Hi');
      for (const request of [
        () => other.messages.create(message('Hi')),
        () => other.messages.stream(message('Hi')).finalMessage(),
        () => other.messages.countTokens(counted),
        () => other.models.list(),
        () => other.models.retrieve('sandbox-chat'),
      ]) {
        await errorOf(request(), Anthropic.AuthenticationError, 401, 'authentication_error');
      }
    }
  });

  it('401, 404, 405, 413 and 415 under /v1/messages have the Anthropic shape, and other paths do not', async () => {
    const body = JSON.stringify(message('Hi'));
    await assertAnthropicError(await post(body, { headers: { authorization: '' } }), 401, 'authentication_error');
    await assertAnthropicError(await gateway.fetch('/v1/messages/batches'), 404, 'not_found_error');
    const got = await gateway.fetch('/v1/messages');
    assert.equal(got.headers.get('allow'), 'POST');
    await assertAnthropicError(got, 405, 'invalid_request_error');
    const text = await post(body, { headers: { 'content-type': 'text/plain' } });
    await assertAnthropicError(text, 415, 'invalid_request_error');
    await assertAnthropicError(await post(' '.repeat(20 * 1024 * 1024 + 1)), 413, 'request_too_large');
    const unknown = await gateway.fetch('/v1/models/none', { headers: { 'anthropic-version': '2023-06-01' } });
    await assertAnthropicError(unknown, 404, 'not_found_error');
    await assertErrorAnswer(await gateway.fetch('/v1/models/none'), 404, 'model_not_found');
    await assertErrorAnswer(await gateway.fetch('/v1/messagesx'), 404, 'not_found');
  });

  it('POST /v1/messages returns 400 in the Anthropic shape for malformed JSON, without repeating it', async () => {
    for (const body of ['', '{', 'secret words', '[]', '"secret words"', '{"a":'.repeat(100)]) {
      const error = await assertAnthropicError(await post(body), 400, 'invalid_request_error');
      assert.doesNotMatch(error.message, /secret/);
    }
  });

  const bad: readonly (readonly [param: string, more: object])[] = [
    ['max_tokens', { max_tokens: undefined }],
    ['max_tokens', { max_tokens: 0 }],
    ['model', { model: 5 }],
    ['model', { model: 'sandbox-nothing' }],
    ['model', { model: 'sandbox-image' }],
    ['model', { model: 'sandbox-instruct' }],
    ['messages', { messages: [] }],
    ['messages[0].role', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: [] }] }],
    ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'audio' }] }] }],
    [
      'messages[0].content[0].type',
      { messages: [{ role: 'user', content: [{ type: 'tool_use', id: 'a', name: 'b', input: {} }] }] },
    ],
    [
      'messages[0].content[0].source.type',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] },
    ],
    [
      'messages[0].content[0].source.media_type',
      {
        messages: [
          { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'x/y', data: 'AA' } }] },
        ],
      },
    ],
    [
      'messages[0].content[0].source.type',
      {
        messages: [
          { role: 'user', content: [{ type: 'document', source: { type: 'url', url: 'https://a.example' } }] },
        ],
      },
    ],
    [
      'messages[0].content[0].tool_use_id',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_9' }] }] },
    ],
    ['system', { system: 5 }],
    ['temperature', { temperature: 1.5 }],
    ['top_p', { top_p: -1 }],
    ['top_k', { top_k: 0.5 }],
    ['stop_sequences', { stop_sequences: Array.from({ length: 65 }, (_, at) => String(at)) }],
    ['stream', { stream: 'yes' }],
    ['tools[0].name', { tools: [{ name: 'a b', input_schema: {} }] }],
    ['tools[0].input_schema', { tools: [{ name: 'a' }] }],
    ['tool_choice.type', { tool_choice: { type: 'maybe' } }],
    ['tool_choice.name', { tool_choice: { type: 'tool', name: 'none' } }],
    ['tool_choice', { tools: [{ type: 'web_search_20250305', name: 'web_search' }], tool_choice: { type: 'any' } }],
    [
      'tool_choice.name',
      { tools: [{ type: 'bash_20250124', name: 'bash' }], tool_choice: { type: 'tool', name: 'bash' } },
    ],
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 10 } }],
    ['thinking.type', { thinking: { type: 'sometimes' } }],
    ['output_config.format.type', { output_config: { format: { type: 'regex' } } }],
    ['metadata.user_id', { metadata: { user_id: 5 } }],
    ['service_tier', { service_tier: 'flex' }],
    ['mcp_servers', { mcp_servers: [{ type: 'url', url: 'https://a.example', name: 'a' }] }],
    ['container', { container: 'container_1' }],
    ['inference_geo', { inference_geo: 'us' }],
    ['thread', { thread: { id: 'thread_1' } }],
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
  ];

  it('POST /v1/messages returns 400 naming an invalid field, and 404 for an unknown model', async () => {
    for (const [param, more] of bad) {
      const isUnknown = 'model' in more && more.model === 'sandbox-nothing';
      const response = await post(JSON.stringify(message('Hi', more)));
      const [status, type] = isUnknown ? [404, 'not_found_error'] : [400, 'invalid_request_error'];
      const error = await assertAnthropicError(response, status as number, type as string);
      assert.ok(error.message.includes(param), `${param}: ${error.message}`);
    }
  });

  it('POST /v1/messages accepts empty lists and nulls without meaning', async () => {
    const answer = await client.messages.create(
      message('Reply with exactly: taken', {
        ...{
          system: [],
          tools: [],
          stop_sequences: [],
          mcp_servers: [],
          container: null,
          tool_choice: { type: 'auto' },
        },
        ...{ thinking: null, metadata: {}, inference_geo: 'global', temperature: null, cache_control: null },
      }),
    );
    assert.equal(textOfMessage(answer), 'taken');
  });

  it('a 429 of a vendor is a RateLimitError with Retry-After, and the retry of the Anthropic client succeeds', async () => {
    const fault = { kind: 'rate_limit', retry_after: 7 };
    const limited = await errorOf(
      client.messages.create(failing(fault)),
      Anthropic.RateLimitError,
      429,
      'rate_limit_error',
    );
    assert.match(limited.headers?.get('retry-after') ?? '', /^([7-9]|1[0-4])$/);
    const once = { kind: 'rate_limit', retry_after: 1, times: 1, key: 'messages' };
    const again = await anthropicClient(gateway, { maxRetries: 1 }).messages.create(
      failing(once, 'Reply with exactly: ok'),
    );
    assert.equal(textOfMessage(again), 'ok');
  });

  it('a 400 of a vendor stays 400, its 401 and 529 become 503 overloaded_error, and its 500 an api_error', async () => {
    const refused = client.messages.create(failing({ kind: 'error', status: 400, message: 'Too long.' }));
    assert.match(
      (await errorOf(refused, Anthropic.BadRequestError, 400, 'invalid_request_error')).message,
      /Too long\./,
    );
    for (const status of [401, 529]) {
      const overloaded = client.messages.create(failing({ kind: 'error', status, message: 'secret words' }));
      const error = await errorOf(overloaded, Anthropic.InternalServerError, 503, 'overloaded_error');
      assert.doesNotMatch(error.message, /secret/);
    }
    for (const stream of [false, true]) {
      const failed = client.messages.create({ ...failing({ kind: 'error', status: 500 }), stream });
      await errorOf(failed, Anthropic.InternalServerError, 500, 'api_error');
    }
  });

  it("a prompt beyond the context window is refused in Anthropic's words, whichever vendor says so", async () => {
    const openAis =
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
    const anthropics = 'prompt is too long: 209123 tokens > 200000 maximum';
    for (const [said, shown] of [
      [openAis, `prompt is too long: ${openAis}`],
      [anthropics, anthropics],
    ] as const) {
      for (const stream of [false, true]) {
        const fault = { kind: 'error', status: 400, message: said, code: 'context_length_exceeded' };
        const refused = client.messages.create({ ...failing(fault), stream });
        const error = await errorOf(refused, Anthropic.BadRequestError, 400, 'invalid_request_error');
        assert.equal(error.apiMessage, shown);
      }
    }
  });

  for (const kind of ['reset', 'eof', 'malformed', 'silence']) {
    it(`a message stream broken by ${kind} ends with the event error, after the text so far`, async () => {
      const request = failing({ kind, after_tokens: 5 });
      let text = '';
      const said = (async () => {
        for await (const event of await client.messages.create({ ...request, stream: true })) {
          if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text;
          assert.notEqual(event.type, 'message_stop');
        }
      })();
      const type = kind === 'silence' ? 'timeout_error' : 'api_error';
      const error = await said.then(
        () => assert.fail('it ended well'),
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof APIError);
      assert.ok([type, 'api_error'].includes(error.type ?? ''), String(error.type));
      assert.equal(text, 'word1 word2 word3 word4 word5');
    });
  }

  it('a client disconnect mid-stream cancels the vendor call of a message', async () => {
    const request = message('WORDS:1000@50', { metadata: { user_id: 'leaves' } });
    for await (const event of await client.messages.create({ ...request, stream: true })) {
      if (event.type === 'content_block_delta') break;
    }
    const call = await eventually(async () => {
      const [found] = await vendorCalls(gateway, 'leaves');
      assert.ok(found && found.ended !== null, 'it still runs');
      return found;
    });
    assert.equal(call.ended, 'client_closed');
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });
});
