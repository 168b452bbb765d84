import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { asTurn, ResponseSocketClient, type SocketEvent } from '../../support/response-socket-client.ts';
import { sseEvents } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const unknownId = `resp_${'0'.repeat(32)}`;
const developer = {
  type: 'message',
  role: 'developer',
  content: [{ type: 'input_text', text: 'You are terse. '.repeat(40) }],
};
const tools = [
  {
    type: 'function',
    name: 'exec_command',
    description: 'Runs a command.',
    strict: false,
    parameters: {
      type: 'object',
      properties: { cmd: { type: 'string' } },
      required: ['cmd'],
      additionalProperties: false,
    },
  },
];
const user = (text: string): object => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });

describe('WebSocket mode of /v1/responses', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  const open = (key = gateway.apiKey): Promise<ResponseSocketClient> => ResponseSocketClient.open(gateway.url, { key });

  /** A request over HTTP, with all that the turns before it said. */
  async function post(body: object): Promise<OpenAI.Responses.Response> {
    const response = await gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(body) });
    assert.equal(response.status, 200);
    return (await response.json()) as OpenAI.Responses.Response;
  }

  /** What differs from one run of a request to the next. */
  function comparable(events: SocketEvent[]): unknown {
    const text = JSON.stringify(events);
    const id = events[0]?.response.id.replace('resp_', '');
    return JSON.parse(text.replaceAll(id, 'ID').replace(/_[0-9a-f]{30,}_ID/g, '_ID'), (key, value) =>
      ['created_at', 'completed_at'].includes(key) ? 0 : value,
    );
  }

  for (const model of ['sandbox-chat', 'sandbox-responses']) {
    it(`a response socket sends the events of the SSE view without [DONE] for a text request (${model})`, async () => {
      const request = { model, input: 'Count from 1 to 5', metadata: { a: 'b' } };
      const client = await open();
      const { events, text } = await client.turn(request);
      assert.match(text, /1.*2.*3.*4.*5/);
      const body = JSON.stringify({ ...request, stream: true });
      const streamed = sseEvents(await (await gateway.fetch('/v1/responses', { method: 'POST', body })).text());
      assert.equal(streamed.pop()?.data, '[DONE]');
      assert.deepEqual(comparable(events), comparable(streamed.map(({ data }) => JSON.parse(data))));
      client.webSocket.close();
    });

    it(`a response socket continues a tool call with store: false and the new items only (${model})`, async () => {
      const client = await open();
      const shared = { model, store: false, tools };
      const first = await client.turn({ ...shared, input: 'TOOL:exec_command {"cmd":"ls"}' });
      const call = first.response.output.find(({ type }) => type === 'function_call');
      assert.ok(call?.type === 'function_call');
      const result = { type: 'function_call_output', call_id: call.call_id, output: 'marker-42' };
      const second = await client.turn({ ...shared, previous_response_id: first.response.id, input: [result] });
      assert.match(second.text, /marker-42/);
      assert.equal(second.response.previous_response_id, first.response.id);
      const third = await client.turn({ ...shared, previous_response_id: second.response.id, input: 'Hi' });
      const whole = await post({
        ...shared,
        input: [user('TOOL:exec_command {"cmd":"ls"}'), call, result, ...second.response.output, user('Hi')],
      });
      assert.equal(third.response.usage?.input_tokens, whole.usage?.input_tokens, 'the vendor got all of it');
      client.webSocket.close();
    });

    it(`a response socket serves the requests of Codex, whose warm-up calls no vendor (${model})`, async () => {
      const client = await open();
      const name = `codex-${model}`;
      const shared = {
        model,
        stream: true,
        tools,
        tool_choice: 'auto',
        parallel_tool_calls: true,
        reasoning: { summary: 'auto' },
        store: false,
        include: ['reasoning.encrypted_content'],
        prompt_cache_key: 'key',
        client_metadata: { a: 'b' },
        user: name,
      };
      const prewarm = await client.turn({ ...shared, input: [developer], generate: false });
      assert.deepEqual(
        prewarm.events.map(({ type }) => type),
        ['response.created', 'response.in_progress', 'response.completed'],
      );
      assert.match(prewarm.response.id, /^resp_[0-9a-f]{32}$/);
      assert.deepEqual([prewarm.response.output, prewarm.response.usage], [[], null]);
      assert.deepEqual(await vendorCalls(gateway, name), []);
      const asked = user('TOOL:exec_command {"cmd":"echo"}');
      const turn = await client.turn({ ...shared, previous_response_id: prewarm.response.id, input: [asked] });
      const call = turn.response.output.find(({ type }) => type === 'function_call');
      assert.ok(call?.type === 'function_call');
      const result = { type: 'function_call_output', id: 'fco_1', call_id: call.call_id, output: 'marker-7' };
      const last = await client.turn({ ...shared, previous_response_id: turn.response.id, input: [result] });
      assert.match(last.text, /marker-7/);
      const whole = await post({ ...shared, stream: false, user: 'whole', input: [developer, asked, call, result] });
      assert.equal(last.response.usage?.input_tokens, whole.usage?.input_tokens);
      assert.equal((await vendorCalls(gateway, name)).length, 2);
      client.webSocket.close();
    });
  }

  it('a response socket answers queued requests in order, with errors in their positions', async () => {
    const client = await open();
    client.create({ input: 'Reply with exactly: one', sandbox: { first_token_ms: 200 } });
    client.create({ input: 'Reply with exactly: two', temperature: 'hot' });
    client.webSocket.send('{"type":');
    client.create({ input: 'Reply with exactly: three', model: 'no-such-model' });
    client.create({ input: 'Reply with exactly: four' });
    const turns = [];
    for (let count = 0; count < 5; count++) turns.push(await client.turn());
    assert.deepEqual(
      turns.map(({ text, last }) => [text, last.type === 'error' ? [last.status, last.error.param] : last.type]),
      [
        ['one', 'response.completed'],
        ['', [400, 'temperature']],
        ['', [400, null]],
        ['', [404, 'model']],
        ['four', 'response.completed'],
      ],
    );
    assert.equal(turns[3]?.last.error.code, 'model_not_found');
    client.webSocket.close();
  });

  it('a response socket runs lanes side by side with named events, and one lane continues another', async () => {
    const client = await open();
    client.create({ stream_id: 'slow', input: 'WORDS:40@40', store: false });
    client.create({ stream_id: 'slow', input: 'Reply with exactly: after', store: false });
    await client.until('response.created');
    client.create({ stream_id: 'fast', input: 'Reply with exactly: before', store: false });
    client.create({ input: 'Reply with exactly: unnamed', store: false });
    const order: unknown[] = [];
    const lanes = new Map<unknown, SocketEvent[]>();
    while (order.length < 4) {
      const event = await client.next();
      lanes.set(event.stream_id, [...(lanes.get(event.stream_id) ?? []), event]);
      if (event.type === 'response.completed') order.push(event.stream_id);
    }
    assert.deepEqual([...order.slice(0, 2)].sort(), ['fast', undefined]);
    assert.deepEqual(order.slice(2), ['slow', 'slow']);
    const fast = asTurn(lanes.get('fast') ?? []);
    assert.equal(fast.text, 'before');
    const forked = await client.turn({
      stream_id: 'fork',
      input: 'Hi',
      store: false,
      previous_response_id: fast.response.id,
    });
    const on = await client.turn({
      stream_id: 'fast',
      input: 'Hi',
      store: false,
      previous_response_id: fast.response.id,
    });
    assert.equal(forked.last.stream_id, 'fork');
    assert.equal(forked.response.usage?.input_tokens, on.response.usage?.input_tokens);
    client.webSocket.close();
  });

  it('a response socket refuses an invalid stream_id, and more than 32 lanes', async () => {
    const client = await open();
    for (const streamId of ['', 'a b', 'x'.repeat(257), 5, null]) {
      const { error, status, stream_id } = await client.refusal({ stream_id: streamId, input: 'Hi' });
      assert.deepEqual(
        [status, error.code, error.param, stream_id],
        [400, 'invalid_stream_id', 'stream_id', undefined],
      );
    }
    for (let lane = 0; lane < 32; lane++) await client.turn({ stream_id: `lane-${lane}`, input: [], generate: false });
    const { error, stream_id } = await client.refusal({ stream_id: 'lane-32', input: 'Hi' });
    assert.deepEqual([error.code, stream_id], ['websocket_stream_limit_reached', 'lane-32']);
    assert.equal((await client.turn({ stream_id: 'lane-0', input: 'Reply with exactly: ok' })).text, 'ok');
    client.webSocket.close();
  });

  it('an unstored response is known to its own response socket only, while it is the latest', async () => {
    const client = await open();
    const first = await client.turn({ input: 'Hi', store: false });
    const other = await open();
    const elsewhere = await other.refusal({ input: 'Hi', previous_response_id: first.response.id });
    assert.deepEqual([elsewhere.status, elsewhere.error.code], [400, 'previous_response_not_found']);
    const body = JSON.stringify({ model: 'sandbox-chat', input: 'Hi', previous_response_id: first.response.id });
    assert.equal((await gateway.fetch('/v1/responses', { method: 'POST', body })).status, 400);
    await client.turn({ input: 'Hi', store: false });
    const { error } = await client.refusal({ input: 'Hi', previous_response_id: first.response.id });
    assert.equal(error.code, 'previous_response_not_found');
    client.webSocket.close();
    other.webSocket.close();
  });

  it('a stored response is found by other connections and over HTTP at once, but by no other account', async () => {
    const client = await open();
    const first = await client.turn({ input: 'Reply with exactly: stored' });
    const body = JSON.stringify({ model: 'sandbox-chat', input: 'Hi', previous_response_id: first.response.id });
    const [overHttp, other] = await Promise.all([gateway.fetch('/v1/responses', { method: 'POST', body }), open()]);
    assert.equal(overHttp.status, 200);
    const there = await other.turn({ input: 'Hi', previous_response_id: first.response.id });
    const here = await client.turn({ input: 'Hi', previous_response_id: first.response.id });
    const { usage } = (await overHttp.json()) as OpenAI.Responses.Response;
    assert.deepEqual(
      [there.response.usage?.input_tokens, here.response.usage?.input_tokens],
      [usage?.input_tokens, usage?.input_tokens],
    );
    const foreign = await open(await makeApiKey(gateway, { accountId: 'another' }));
    const refused = await foreign.refusal({ input: 'Hi', previous_response_id: first.response.id });
    assert.equal(refused.error.code, 'previous_response_not_found');
    for (const { webSocket } of [client, other, foreign]) webSocket.close();
  });

  it('a failed request drops the unstored response it continued, unless that is of another lane', async () => {
    const client = await open();
    const first = await client.turn({ input: 'Hi', store: false });
    const on = { previous_response_id: first.response.id, store: false };
    await client.refusal({ ...on, stream_id: 'fork', input: 'Hi', model: 'no-such-model' });
    await client.refusal({ input: 'Hi', previous_response_id: unknownId });
    await client.refusal({ ...on, input: 'Hi', model: 'no-such-model' });
    const { error, status } = await client.refusal({ ...on, input: 'Hi' });
    assert.deepEqual(
      [status, error],
      [
        400,
        {
          message: `Previous response with id '${first.response.id}' not found.`,
          type: 'invalid_request_error',
          param: 'previous_response_id',
          code: 'previous_response_not_found',
        },
      ],
    );
    client.webSocket.close();
  });

  it('a response socket ends a late failure with response.failed, sends an early one as an error, and stays open', async () => {
    const client = await open();
    const cut = await client.turn({ input: 'WORDS:20@100', sandbox: { fault: { kind: 'reset', after_tokens: 5 } } });
    assert.equal(cut.last.type, 'response.failed');
    assert.equal(cut.response.status, 'failed');
    assert.equal(cut.response.error?.code, 'server_error');
    const limited = await client.refusal({ input: 'Hi', sandbox: { fault: { kind: 'rate_limit', retry_after: 30 } } });
    assert.deepEqual([limited.status, limited.error.type], [429, 'rate_limit_exceeded']);
    assert.match(limited.headers['retry-after'] ?? '', /^(3\d|40)$/);
    assert.equal((await client.turn({ input: 'Reply with exactly: ok' })).text, 'ok');
    client.webSocket.close();
  });

  it('a response socket sends a 429 with Retry-After headers above the concurrency limit of its key', async () => {
    const client = await open(await makeApiKey(gateway, { concurrency: 1 }));
    client.create({ stream_id: 'a', input: 'WORDS:20@40' });
    await client.until('response.created');
    client.create({ stream_id: 'b', input: 'Hi' });
    let refused = await client.next();
    while (refused.stream_id !== 'b') refused = await client.next();
    assert.deepEqual([refused.type, refused.status, refused.error.code], ['error', 429, 'rate_limit_exceeded']);
    assert.match(refused.headers['retry-after-ms'] ?? '', /^(1\d{3}|2000)$/);
    assert.equal(refused.headers['x-ratelimit-remaining-requests'], '0');
    await client.until('response.completed');
    client.webSocket.close();
  });

  it('a response socket refuses every request and warm-up after its key is revoked', async () => {
    const key = await makeApiKey(gateway);
    const client = await open(key);
    assert.equal((await client.turn({ input: 'Reply with exactly: ok' })).text, 'ok');
    await revokeKey(gateway, key);
    for (const generate of [true, false]) {
      // Nor does it learn what there is.
      for (const previous of [{}, { previous_response_id: unknownId }]) {
        const { error, status } = await client.refusal({ input: 'Hi', generate, ...previous });
        assert.deepEqual([status, error.code], [401, 'invalid_api_key']);
      }
    }
    client.webSocket.close();
  });

  it('a response socket answers invalid messages with errors and stays open', async () => {
    const client = await open();
    const refusals: [message: string | Buffer, param: string | null][] = [
      ['', null],
      ['nonsense', null],
      ['[]', null],
      [Buffer.from('{}'), null],
      ['{}', 'type'],
      ['{"type":"session.update"}', 'type'],
      ['{"type":5}', 'type'],
      ['{"type":"response.create"}', 'model'],
      ['{"type":"response.create","model":"sandbox-chat","input":"Hi","background":true}', 'background'],
      ['{"type":"response.create","model":"sandbox-chat","input":"Hi","stream":false}', 'stream'],
      ['{"type":"response.create","model":"sandbox-chat","input":"Hi","generate":"no"}', 'generate'],
      ['{"type":"response.create","model":"sandbox-chat","input":[{"role":"user"}]}', 'input[0].content'],
      ['{"type":"response.cancel"}', null],
      ['{"type":"response.cancel","response_id":5}', 'response_id'],
      [`{"type":"response.cancel","response_id":"${unknownId}"}`, 'response_id'],
      ['{"type":"response.cancel","reason":"none"}', null],
    ];
    for (const [message, param] of refusals) {
      client.webSocket.send(message);
      const { status, error, ...rest } = await client.refusal();
      assert.deepEqual([String(message), status, error.param, rest], [String(message), 400, param, { type: 'error' }]);
      assert.deepEqual([error.type, error.code], ['invalid_request_error', 'invalid_request_error']);
    }
    assert.equal((await client.turn({ input: 'Reply with exactly: ok' })).text, 'ok');
    client.webSocket.close();
  });

  it('response.cancel cancels the request of its lane or the named one, and the next one runs', async () => {
    const client = await open();
    for (const isNamed of [false, true]) {
      const name = `cancelled-${isNamed}`;
      client.create({ input: 'WORDS:1000@40', user: name, stream_id: isNamed ? 'lane' : undefined });
      client.create({ input: 'Reply with exactly: next', stream_id: isNamed ? 'lane' : undefined });
      const { response } = await client.until('response.created');
      await client.until('response.output_text.delta');
      client.send({ type: 'response.cancel', ...(isNamed && { response_id: response.id }) });
      const cancelled = await client.turn();
      assert.equal(cancelled.last.type, 'response.failed');
      assert.equal(cancelled.response.status, 'cancelled');
      assert.equal((await client.turn()).text, 'next');
      const job = (await (await gateway.fetch(`/v1/jobs/${response.id}`)).json()) as { status: string };
      assert.equal(job.status, 'cancelled');
      await eventually(async () => assert.equal((await vendorCalls(gateway, name))[0]?.ended, 'client_closed'));
    }
    client.create({ input: 'Hi', sandbox: { first_token_ms: 60_000 }, user: 'cancelled-early' });
    client.send({ type: 'response.cancel' });
    const { status, error } = await client.refusal();
    assert.deepEqual([status, error.code], [499, 'cancelled']);
    client.webSocket.close();
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('a response socket accepts a large message in order, and continues its conversation', async () => {
    const client = await open();
    const long = 'lorem ipsum '.repeat(40_000);
    client.create({ input: `${long} Reply with exactly: large`, store: false });
    client.create({ input: 'Reply with exactly: small', stream_id: 'other', store: false });
    client.create({ input: long, temperature: 'hot', stream_id: 'other' });
    const byLane = new Map<unknown, SocketEvent[]>();
    for (let ended = 0; ended < 3; ) {
      const event = await client.next();
      byLane.set(event.stream_id, [...(byLane.get(event.stream_id) ?? []), event]);
      if (event.type === 'response.completed' || event.type === 'error') ended++;
    }
    const large = asTurn(byLane.get(undefined) ?? []);
    assert.equal(large.last.type, 'response.completed');
    const others = byLane.get('other') ?? [];
    assert.deepEqual([others.at(-1)?.type, others.at(-1)?.error.param], ['error', 'temperature']);
    const on = await client.turn({ input: 'Hi', store: false, previous_response_id: large.response.id });
    assert.ok((on.response.usage?.input_tokens ?? 0) > (large.response.usage?.input_tokens ?? Number.NaN));
    client.webSocket.close();
  });

  it('a response socket refuses to continue a conversation that is too large as a whole, as POST does', async () => {
    const client = await open();
    const long = 'lorem ipsum '.repeat(1_000_000);
    const one = await client.turn({ input: long, store: false, generate: false });
    const refused = await client.refusal({ input: long, store: false, previous_response_id: one.response.id });
    assert.deepEqual([refused.status, refused.error.code], [413, 'request_too_large']);
    assert.equal(refused.error.param, 'previous_response_id');
    client.webSocket.close();
  });

  it('a response socket closes with 1009 for a message over the largest body size', async () => {
    const client = await open();
    client.create({ input: 'x'.repeat(20 * 1024 * 1024) });
    assert.equal(await client.closed, 1009);
  });

  it('a response socket serves the OpenAI client', async () => {
    const socket = new ResponsesWS(gateway.client());
    const text = await new Promise<string>((resolve, reject) => {
      let said = '';
      socket.on('response.output_text.delta', ({ delta }) => {
        said += delta;
      });
      socket.on('response.completed', () => resolve(said));
      socket.on('error', reject);
      socket.send({ type: 'response.create', model: 'sandbox-chat', input: 'Reply with exactly: official' });
    });
    assert.equal(text, 'official');
    const refused = new Promise<unknown>((resolve) => {
      socket.on('error', ({ error }) => resolve(error));
    });
    socket.send({ type: 'response.create', model: 'sandbox-chat', input: 'Hi', previous_response_id: unknownId });
    // The client's type of it is that of the SSE view, which is flat.
    assert.equal(((await refused) as SocketEvent).error.code, 'previous_response_not_found');
    socket.close();
  });
});
