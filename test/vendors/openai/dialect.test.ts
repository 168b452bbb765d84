import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import { describeChatVendor, tierIn } from '../contracts/chat-vendor-contract.ts';
import {
  type Answer,
  beginStream,
  callOf,
  collect,
  cut,
  sendJson,
  sendStream,
  startFixtureVendor,
} from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import {
  chunk,
  completion,
  completionBody,
  events,
  frameOf,
  streams,
  usage,
  usageChunk,
} from '../recorded/recorded-openai.ts';

const apiKey = 'sk-test-0123456789abcdef';

const create = (baseUrl: string) => createOpenAiDialect({ name: 'openai', baseUrl, apiKey });
/** Chunks in which the first delta of each choice has a role. */
function withRoles(chunks: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  const begun = new Set<unknown>();
  return chunks.map((each) => ({
    ...each,
    choices: (each.choices as { index: number; delta: object }[]).map((choice) => {
      const isFirst = !begun.has(choice.index);
      begun.add(choice.index);
      return isFirst ? { ...choice, delta: { role: 'assistant', ...choice.delta } } : choice;
    }),
  }));
}

/** The chunk that ends the choices to which no other gave a finish reason. */
function endsOf(chunks: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  const choices = chunks.flatMap((each) => each.choices as Record<string, unknown>[]);
  const open = [...new Set(choices.map(({ index }) => index))].filter(
    (index) => !choices.some((choice) => choice.index === index && choice.finish_reason),
  );
  const ends = open.map((index) => {
    const hasCalls = choices.some((choice) => choice.index === index && 'tool_calls' in (choice.delta as object));
    return { index, delta: {}, finish_reason: hasCalls ? 'tool_calls' : 'stop' };
  });
  return ends.length === 0 ? [] : [{ choices: ends }];
}

const sendEvents =
  (...parts: string[]): Answer =>
  (response) =>
    sendStream(response, parts);

describeChatVendor('the OpenAI dialect', {
  create,
  streams: Object.fromEntries(
    Object.entries(streams).map(([name, chunks]) => {
      return [name, { send: sendEvents(events([...chunks, usageChunk])), data: chunks.map(frameOf), usage }];
    }),
  ),
  held: { send: (response) => sendJson(response, 200, JSON.stringify(completion)), body: completionBody, usage },
  sendBroken: sendEvents(events((streams['plain text'] ?? []).slice(0, 3), '')),
});

describe('the OpenAI dialect', () => {
  const bench = new VendorBench(create);

  const stream = async (...parts: (string | Uint8Array)[]) => {
    bench.server.answer((response) => sendStream(response, parts));
    const sink = collect();
    return { end: await bench.vendor.chat(callOf(), sink), sink };
  };
  const plain = streams['plain text'] ?? [];

  it('the OpenAI dialect puts model and stream options before the request, which it passes on unread', async () => {
    const requests: [string, unknown][] = [
      ['{}', {}],
      [' { } ', {}],
      ['{"messages":[],"seed":7}', { messages: [], seed: 7 }],
      [' {\n"a": {} }', { a: {} }],
    ];
    for (const [request, fields] of requests) {
      for (const streamed of [true, false]) {
        bench.server.answer((response) => {
          if (streamed) sendStream(response, [events(plain)]);
          else sendJson(response, 200, JSON.stringify(completion));
        });
        await bench.vendor.chat(callOf({ model: 'a/"b"', request, stream: streamed }), collect());
        const received = bench.server.requests.at(-1);
        const options = streamed ? { stream: true, stream_options: { include_usage: true } } : {};
        assert.deepEqual(JSON.parse(received?.body ?? ''), { model: 'a/"b"', ...options, ...(fields as object) });
        assert.equal(received?.url, '/v1/chat/completions');
        assert.equal(received?.method, 'POST');
        assert.equal(received?.headers.authorization, `Bearer ${apiKey}`);
        assert.equal(received?.headers['content-type'], 'application/json');
      }
    }
    assert.match(bench.server.requests.at(-1)?.body ?? '', /^\{"model":"a\/\\"b\\"",\n"a": \{\} \}$/);
  });

  it("the OpenAI dialect sends the caller's own stream options once", async () => {
    bench.server.answer((response) => sendStream(response, [events(plain)]));
    const request = '{"stream_options":{"include_usage":true,"include_obfuscation":false},"messages":[]}';
    await bench.vendor.chat(callOf({ model: 'm', request }), collect());
    assert.equal(
      bench.server.requests.at(-1)?.body,
      '{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false},"messages":[]}',
    );
  });

  it('the OpenAI dialect sends the bytes of a large request as it would send its text', async () => {
    const text = 'Grüße, 世界 🌊 "\\n'.repeat(30_000);
    for (const first of ['{', '{"stream_options":{"include_usage":true},', ' {"seed":7,']) {
      const request = `${first}"messages":${JSON.stringify([{ role: 'user', content: text }])}}`;
      for (const stream of [true, false]) {
        const sent = [];
        for (const form of [request, Buffer.from(request)]) {
          bench.server.answer((response) => {
            if (stream) sendStream(response, [events(plain)]);
            else sendJson(response, 200, JSON.stringify(completion));
          });
          await bench.vendor.chat(callOf({ request: form, stream }), collect());
          sent.push(bench.server.requests.at(-1));
        }
        assert.ok(sent[0]?.body === sent[1]?.body);
        assert.deepEqual(JSON.parse(sent[0]?.body ?? '').messages, [{ role: 'user', content: text }]);
        assert.deepEqual(sent[1]?.headers, sent[0]?.headers);
      }
    }
  });

  it("the OpenAI dialect reports a vendor's refusal of a large request that it has not read, and an abort while it is sent", async () => {
    const refusal = JSON.stringify({ error: { message: 'Too long.', type: 'invalid_request_error' } });
    let answers = true;
    const server = createServer((request, response) => {
      request.pause();
      if (answers) response.writeHead(413, { 'content-type': 'application/json' }).end(refusal);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const vendor = create(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
    try {
      const request = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(16_000_000) }] }));
      for (let time = 0; time < 3; time++) {
        await assert.rejects(vendor.chat(callOf({ request }), collect()), { vendorStatus: 413 });
      }
      answers = false;
      const signal = AbortSignal.timeout(100);
      await assert.rejects(vendor.chat(callOf({ request, signal }), collect()), { code: 'cancelled' });
    } finally {
      await vendor.close();
      server.closeAllConnections();
      server.close();
    }
  });

  it('the OpenAI dialect yields the same frames however the bytes of an answer are split', async () => {
    const recordings = fc.constantFrom(...Object.keys(streams));
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
    const at = fc.array(fc.nat(), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(recordings, lineEnd, at, async (name, end, places) => {
        const chunks = streams[name] ?? [];
        const bytes = Buffer.from(`: hello\n\n${events([...chunks, usageChunk])}`.replaceAll('\n', end));
        const { sink, end: answer } = await stream(...cut(bytes, places));
        assert.deepEqual(sink.data(), chunks.map(frameOf));
        assert.deepEqual(answer, { body: JSON.stringify({ usage }), usage, tier: tierIn(sink.data()) });
      }),
      { numRuns: 150 },
    );
  });

  it('the OpenAI dialect yields the frames that parsing each chunk would yield, for any run of chunks', async () => {
    const content = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('"', '\\', '\n', '}', '"}}]}', '{"content":"', ''),
    );
    const choice = fc.record({
      index: fc.nat(1),
      delta: fc.oneof(
        { weight: 5, arbitrary: content.map((text): Record<string, unknown> => ({ content: text })) },
        content.map((text) => ({ delta: { content: text }, content: text })),
        content.map((text) => ({ role: 'assistant', content: text, refusal: null })),
        content.map((text) => ({
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: `!${text}` } }],
        })),
      ),
      finish_reason: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, fc.constant('stop')),
    });
    const more = fc.oneof(
      { weight: 4, arbitrary: fc.constant({}) },
      fc.constant({ usage }),
      content.map((text) => ({ delta: { content: text }, choices_: text })),
    );
    const sent = fc
      .tuple(fc.array(choice, { minLength: 1, maxLength: 2 }), more)
      .map(([choices, rest]) => chunk(choices, rest));
    const first = fc.boolean().map((before) => (before ? { delta: { content: 'x' } } : {}));
    await fc.assert(
      fc.asyncProperty(
        first,
        fc.array(sent, { minLength: 1, maxLength: 12 }),
        fc.nat(1),
        async (before, chunks, space) => {
          const all = chunks.map((each): Record<string, unknown> => ({ ...before, ...each }));
          const text = all
            .map((each) => `data: ${JSON.stringify(each, null, space).replaceAll('\n', '')}\n\n`)
            .join('');
          const { sink, end } = await stream(`${text}data: [DONE]\n\n`);
          assert.deepEqual(sink.data(), [...withRoles(all).map(frameOf), ...endsOf(all)]);
          assert.deepEqual(end.usage, all.some((each) => each.usage) ? usage : null);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('the OpenAI dialect is not misled by a chunk that resembles the token chunks before it', async () => {
    const [role, hello] = plain.map((each) => JSON.stringify(each));
    const last =
      hello?.replace('"Hello"', '"."},"finish_reason":"stop","more":{"x":""').replace(/,"finish_reason":null/, '') ??
      '';
    const { sink } = await stream([role, hello, last].map((data) => `data: ${data}\n\n`).join(''));
    assert.deepEqual(sink.data().at(-1), frameOf(JSON.parse(last)));

    const twice = (outer: string, inner: string) => ({
      delta: { content: outer },
      ...chunk([{ delta: { content: inner } }]),
    });
    const chunks = [plain[0] ?? {}, twice('x', 'x'), twice('y', 'x'), twice('x', 'y'), twice('x', 'x')];
    assert.deepEqual((await stream(events(chunks))).sink.data(), [...chunks.map(frameOf), ...endsOf(chunks)]);
  });

  it('the OpenAI dialect treats an answer without [DONE] as complete when every choice has its finish reason', async () => {
    const { sink, end } = await stream(events([...plain, usageChunk], ''));
    assert.equal(sink.frames.length, plain.length);
    assert.deepEqual(end.usage, usage);
  });

  it('the OpenAI dialect resolves at [DONE] without waiting for the end of the body', async () => {
    let answered: ServerResponse | undefined;
    bench.server.answer((response) => {
      answered = response;
      beginStream(response);
      response.write(events(plain));
    });
    const end = await bench.vendor.chat(callOf(), collect());
    assert.deepEqual(end, { body: '{"usage":null}', usage: null, tier: 'default' });
    answered?.end();
  });

  it('the OpenAI dialect fails when one of several choices has no finish reason, or there is no choice', async () => {
    const open = (streams['several choices'] ?? []).slice(0, -1);
    await assert.rejects(stream(events(open, '')), { code: 'stream_interrupted' });
    await assert.rejects(stream(': nothing\n\n'), { code: 'server_error', status: 500 });
    await assert.rejects(stream(events([usageChunk], '')), { code: 'server_error' });
  });

  it('the OpenAI dialect fails when an answer that says it is whole has no choice', async () => {
    const usageAlone = { choices: [], usage };
    await assert.rejects(stream('data: [DONE]\n\n'), { code: 'server_error' });
    await assert.rejects(stream(events([usageAlone])), { code: 'server_error' });
    for (const isStreamed of [true, false]) {
      bench.server.answer((response) => sendJson(response, 200, JSON.stringify(usageAlone)));
      await assert.rejects(bench.vendor.chat(callOf({ stream: isStreamed }), collect()), { code: 'server_error' });
    }
  });

  it('the OpenAI dialect drops a last event without its blank line', async () => {
    await assert.rejects(stream(events(plain, 'data: [DONE]').slice(0, -20)), { code: 'stream_interrupted' });
  });

  it('the OpenAI dialect skips empty chunks and empty events', async () => {
    const nothing = [
      'data: {}',
      'data:',
      'event: ping\ndata: {}',
      'data: {"choices":null,"usage":null,"id":"x"}',
      ': ping',
    ];
    const { sink } = await stream(`${nothing.join('\n\n')}\n\n${events(plain)}`);
    assert.deepEqual(sink.data(), plain.map(frameOf));
  });

  it("the OpenAI dialect takes Groq's usage from x_groq, and prefers OpenAI's usage when there are both", async () => {
    const told = { ...usage, queue_time: 0.018 };
    const last = (rest: object) =>
      chunk([{ delta: {}, finish_reason: 'stop' }], { x_groq: { id: 'r', usage: told }, ...rest });
    const begun = { ...plain[0], x_groq: { id: 'r' } };
    const alone = await stream(events([begun, ...plain.slice(1), last({})]));
    assert.deepEqual(alone.end.usage, told);
    const both = await stream(events([begun, ...plain.slice(1), last({ usage })]));
    assert.deepEqual(both.end.usage, usage);
    const neither = await stream(events([begun, ...plain.slice(1), { ...last({}), x_groq: { usage: 'none' } }]));
    assert.equal(neither.end.usage, null);
  });

  it('the OpenAI dialect keeps the usage of a last chunk that also has choices', async () => {
    const last = chunk([{ delta: {}, finish_reason: 'stop' }], { usage });
    const { end, sink } = await stream(events([last]));
    assert.deepEqual(end.usage, usage);
    assert.deepEqual(sink.data(), withRoles([last]).map(frameOf));
  });

  it('the OpenAI dialect turns a whole completion to a streamed request into frames', async () => {
    const toolCalls = [{ id: 'call_a', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const message = { role: 'assistant', content: null, tool_calls: toolCalls };
    const body = { ...completion, choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }] };
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(body)));
    const sink = collect();
    const end = await bench.vendor.chat(callOf(), sink);
    const { choices: _choices, usage: _usage, ...rest } = completionBody;
    const delta = { role: 'assistant', content: null, refusal: null, tool_calls: [{ index: 0, ...toolCalls[0] }] };
    assert.deepEqual(sink.data(), [
      { ...rest, choices: [{ index: 0, delta, logprobs: null, finish_reason: 'tool_calls' }] },
    ]);
    assert.deepEqual(end, { body: JSON.stringify({ usage }), usage, tier: 'default' });
  });

  it('the OpenAI dialect writes each call of a chunk with several as a frame, and the finish reason with the last', async () => {
    const call = (index: number) => ({
      index,
      id: `call_${index}`,
      type: 'function',
      function: { name: 'f', arguments: '{}' },
    });
    const finish = { finish_reason: 'tool_calls' };
    const two = { delta: { role: 'assistant', content: 'So', tool_calls: [call(0), call(1)] }, ...finish };
    const one = { index: 1, delta: { role: 'assistant', tool_calls: [call(0)] }, logprobs: null, ...finish };
    const { sink } = await stream(events([chunk([{ index: 0, ...two }, one])]));
    const choicesOf = (data: unknown) => (data as { choices: unknown[] }).choices;
    assert.deepEqual(sink.data().map(choicesOf), [
      [{ index: 0, delta: { ...two.delta, tool_calls: [call(0)] }, logprobs: null, finish_reason: null }, one],
      [{ index: 0, delta: { tool_calls: [call(1)] }, ...finish }],
    ]);
  });

  it('the OpenAI dialect fails with a clear error for a senseless JSON answer', async () => {
    const bodies = ['', '<html>', '[]', 'null', '{"choices":{}}', '{}', '{"choices":[{"text":"a"}]}'];
    for (const body of bodies) {
      bench.server.answer((response) => sendJson(response, 200, body));
      const call = bench.vendor.chat(callOf(), collect());
      await assert.rejects(call, { name: 'ApiError', code: 'server_error', message: /^The model's vendor answered/ });
    }
    for (const body of bodies.slice(0, -1)) {
      bench.server.answer((response) => sendJson(response, 200, body));
      const call = bench.vendor.chat(callOf({ stream: false }), collect());
      await assert.rejects(call, { name: 'ApiError', code: 'server_error', message: /^The model's vendor answered/ });
    }
  });

  it('the OpenAI dialect fails with a clear error for a malformed event, and yields nothing after it', async () => {
    // The last ones resemble the chunk of a token, which the stream has had one of.
    const tokens = ['"a" "b"', '"a\u0001"', '"a', '"\\"', 'a', ''].map((text) =>
      JSON.stringify(plain[1]).replace('"Hello"', text),
    );
    for (const bad of [...tokens, '{"choices":[', '[]', '"text"', '{"choices":5}']) {
      const text = events(plain.slice(0, 2), `data: ${bad}\n\n${events(plain)}`);
      bench.server.answer((response) => sendStream(response, [text]));
      const sink = collect();
      await assert.rejects(bench.vendor.chat(callOf(), sink), {
        code: 'stream_interrupted',
        message: /^The model's vendor/,
      });
      assert.equal(sink.frames.length, 2);
      await assert.rejects(stream(`data: ${bad}\n\n`), { code: 'server_error' });
    }
  });

  it('the OpenAI dialect maps an error event by its status, and otherwise passes its message on', async () => {
    const error = (fields: object) => `data: ${JSON.stringify({ error: { message: 'Too long.', ...fields } })}\n\n`;
    const cases: [string, object][] = [
      [error({ code: 429 }), { code: 'rate_limit_exceeded' }],
      // As LiteLLM writes it. A vendor's message about a limit names the operator's organization.
      [error({ code: '429', type: null, param: null }), { code: 'rate_limit_exceeded', isQuoted: false }],
      [error({ status: 503 }), { code: 'service_unavailable' }],
      [
        error({ code: 'context_length_exceeded', param: 'messages' }),
        {
          code: 'invalid_request_error',
          vendorCode: 'context_length_exceeded',
          param: 'messages',
          message: 'Too long.',
        },
      ],
      [error({ code: 'insufficient_quota' }), { code: 'service_unavailable' }],
      [error({ type: 'server_error' }), { code: 'server_error', message: 'Too long.' }],
      ['data: {"error":"Odd."}\n\n', { code: 'server_error', message: 'Odd.' }],
      ['event: error\ndata: {"message":"Odd."}\n\n', { code: 'server_error', message: 'Odd.' }],
      [`data: {"error":"Key ${apiKey} is odd."}\n\n`, { message: 'Key [key] is odd.' }],
    ];
    for (const [text, expected] of cases) {
      await assert.rejects(stream(text), expected);
      await assert.rejects(stream(events(plain.slice(0, 4), text)), expected);
    }
    bench.server.answer((response) => sendJson(response, 200, '{"error":{"message":"Odd.","code":429}}'));
    await assert.rejects(bench.vendor.chat(callOf({ stream: false }), collect()), { code: 'rate_limit_exceeded' });
  });

  it('a chat whose calls have ids longer than OpenAI takes is asked for again with shorter ones', async () => {
    const long = `chatcmpl-tool-${'3'.repeat(32)}`;
    const call = (id: string) => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: '{"id":9007199254740993}' },
    });
    const messages = [
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: null, tool_calls: [call(long), call('call_1')] },
      { role: 'tool', tool_call_id: long, content: 'a' },
      { role: 'tool', tool_call_id: 'call_1', content: 'b' },
    ];
    const refusal = (param: string) =>
      JSON.stringify({
        error: {
          message: `Invalid '${param}'.`,
          type: 'invalid_request_error',
          param,
          code: 'string_above_max_length',
        },
      });
    const answerWith = (param: string) => {
      bench.server.requests.length = 0;
      bench.server.answer((response, { body }) => {
        if (body.includes(long)) sendJson(response, 400, refusal(param));
        else sendStream(response, [events(plain)]);
      });
    };
    answerWith('messages[1].tool_calls[0].id');
    const sink = collect();
    await bench.vendor.chat(callOf({ request: JSON.stringify({ messages }) }), sink);
    assert.ok(sink.frames.length > 0);
    const { messages: sent } = bench.posted as { messages: (typeof messages)[number][] };
    const [, calling, first, second] = sent as [
      unknown,
      { tool_calls: { id: string }[] },
      ...{ tool_call_id: string }[],
    ];
    const id = calling.tool_calls[0]?.id ?? '';
    assert.match(id, /^[\w-]{1,40}$/);
    assert.deepEqual([calling.tool_calls[1]?.id, first?.tool_call_id, second?.tool_call_id], ['call_1', id, 'call_1']);
    assert.equal(bench.posts.length, 2);
    // What is too long is not an id, or nothing is longer than it may be.
    answerWith('messages[0].content');
    const asked = bench.vendor.chat(callOf({ request: JSON.stringify({ messages }) }), collect());
    await assert.rejects(asked, { vendorCode: 'string_above_max_length' });
    bench.server.answer((response) => sendJson(response, 400, refusal('messages[1].tool_calls[0].id')));
    await assert.rejects(bench.vendor.chat(callOf(), collect()), { vendorCode: 'string_above_max_length' });
    assert.equal(bench.posts.length, 2);
    // An answer that has begun is not asked for a second time.
    bench.server.requests.length = 0;
    const broken = events(plain.slice(0, 4), `data: ${refusal('messages[1].tool_calls[0].id')}\n\n`);
    bench.server.answer((response) => sendStream(response, [broken]));
    const begun = bench.vendor.chat(callOf({ request: JSON.stringify({ messages }) }), collect());
    await assert.rejects(begun, { vendorCode: 'string_above_max_length' });
    assert.equal(bench.posts.length, 1);
  });

  it('a chat whose calls have names that OpenAI does not take is asked for again with others', async () => {
    const call = (name: string) => ({ id: name, type: 'function', function: { name, arguments: '{}' } });
    const messages = [
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: null, tool_calls: [call('functions.search'), call('look_up')] },
      { role: 'tool', tool_call_id: 'functions.search', content: 'There is no such tool.' },
      { role: 'tool', tool_call_id: 'look_up', content: 'b' },
    ];
    const param = 'messages[1].tool_calls[0].function.name';
    const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
    const error = { message, type: 'invalid_request_error', param, code: 'invalid_value' };
    bench.server.answer((response, { body }) => {
      if (body.includes('"name":"functions.search"')) sendJson(response, 400, JSON.stringify({ error }));
      else sendStream(response, [events(plain)]);
    });
    bench.server.requests.length = 0;
    await bench.vendor.chat(callOf({ request: JSON.stringify({ messages }) }), collect());
    const [, calling] = (bench.posted as { messages: { tool_calls: ReturnType<typeof call>[] }[] }).messages;
    const names = calling?.tool_calls.map((each) => each.function.name) ?? [];
    assert.match(String(names[0]), /^functions_search_[0-9a-f]{8}$/);
    assert.equal(names[1], 'look_up');
    assert.equal(bench.posts.length, 2);
    // Whose names are all right is told the refusal.
    bench.server.answer((response) => sendJson(response, 400, JSON.stringify({ error })));
    await assert.rejects(bench.vendor.chat(callOf(), collect()), { code: 'invalid_request_error' });
    assert.equal(bench.posts.length, 3);
  });

  it('the OpenAI dialect reuses its connections for consecutive calls', async () => {
    const fresh = await startFixtureVendor();
    const own = createOpenAiDialect({ name: 'openai', baseUrl: `${fresh.baseUrl}/`, apiKey });
    fresh.answer((response) => sendStream(response, [events(plain)]));
    for (let call = 0; call < 20; call += 1) await own.chat(callOf(), collect());
    // Two, because the next call may come before the last bytes of the body.
    assert.ok(fresh.connections() <= 2);
    assert.equal(fresh.requests[0]?.url, '/v1/chat/completions');
    await own.close();
    await fresh.close();
  });
});
