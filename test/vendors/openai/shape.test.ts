import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import { createOpenAiDialect } from '../../../workers/vendors/openai/dialect.ts';
import { callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { chunk, events } from '../recorded/recorded-openai.ts';

type Fields = Record<string, unknown>;

const apiKey = 'sk-test-0123456789abcdef';
const stop = chunk([{ delta: {}, finish_reason: 'stop' }]);

describe("normalization to OpenAI's shape", () => {
  const bench = new VendorBench((baseUrl) => createOpenAiDialect({ name: 'near', baseUrl, apiKey }));

  const stream = async (chunks: readonly Fields[]): Promise<Fields[]> => {
    bench.server.answer((response) => sendStream(response, [events(chunks)]));
    const sink = collect();
    await bench.vendor.chat(callOf(), sink);
    return sink.data() as Fields[];
  };
  const hold = async (choices: readonly unknown[]): Promise<Fields[]> => {
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify({ choices })));
    const { body } = await bench.vendor.chat(callOf({ stream: false }), collect());
    return (JSON.parse(body) as { choices: Fields[] }).choices;
  };
  /** What OpenAI's own client makes of the chunks. */
  const accumulate = async (frames: readonly Fields[]) => {
    const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' };
    const lines = frames.map((frame) => `${JSON.stringify({ ...head, ...frame })}\n`);
    const stream = new Response(lines.join('')).body as ReadableStream;
    const [choice] = (await ChatCompletionStream.fromReadableStream(stream).finalChatCompletion()).choices;
    return choice ?? assert.fail('no choice');
  };

  it('tool calls that are no objects are dropped, so that whoever reads the answer finds calls alone', async () => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    for (const [given, kept] of [
      [[null, call, 5], [call]],
      ['call', undefined],
    ] as const) {
      const [first = {}] = await stream([chunk([{ delta: { tool_calls: given } as never }]), stop]);
      assert.deepEqual((first.choices as { delta: Fields }[])[0]?.delta.tool_calls, kept);
      const said = { index: 0, message: { content: null, tool_calls: given }, finish_reason: 'stop' };
      const [held = {}] = await hold([said]);
      assert.deepEqual((held.message as Fields).tool_calls, kept);
    }
  });

  it('an event of very many pieces of calls is read at once, however they are numbered', async () => {
    const count = 60_000;
    const pieceOf = (number: number): Fields => ({ id: `call_${number}`, function: { name: 'f' } });
    for (const numbering of [() => 0, (number: number) => number, () => undefined]) {
      const pieces = Array.from({ length: count }, (_, number) => ({ index: numbering(number), ...pieceOf(number) }));
      const [frame = {}] = await stream([chunk([{ delta: { tool_calls: pieces }, finish_reason: 'tool_calls' }])]);
      const [{ delta = {} } = {}] = frame.choices as { delta: Fields }[];
      const calls = delta.tool_calls as Fields[];
      const expected = { id: `call_${count - 1}`, type: 'function', function: { name: 'f', arguments: '{}' } };
      assert.equal(calls.length, count);
      assert.deepEqual(calls.at(-1), { index: count - 1, ...expected });
    }
  });

  it('a choice of very many calls may end as often as its vendor likes', async () => {
    const count = 60_000;
    const calls = Array.from({ length: count }, (_, index) => ({ index, function: { name: 'f' } }));
    const ends = Array.from({ length: count }, () => chunk([{ delta: {}, finish_reason: 'tool_calls' }]));
    const frames = await stream([chunk([{ delta: { tool_calls: calls } }]), ...ends]);
    const told = frames.flatMap(
      ({ choices }) => ((choices as { delta: Fields }[])[0]?.delta.tool_calls ?? []) as Fields[],
    );
    assert.equal(frames.length, count + 1);
    assert.equal(told.filter(({ function: body }) => (body as Fields).arguments === '{}').length, count);
  });

  it('the first delta of every choice gets a role when the vendor omits it', async () => {
    const frames = await stream([
      chunk([{ index: 0, delta: { content: 'Hi' } }]),
      chunk([{ index: 1, delta: { role: '', content: 'Ho' } }]),
      chunk([{ index: 0, delta: { content: '!' }, finish_reason: 'stop' }]),
      chunk([{ index: 1, delta: { content: '!' }, finish_reason: 'stop' }]),
    ]);
    assert.deepEqual(
      frames.map(({ choices }) => (choices as { delta: Fields }[])[0]?.delta),
      [{ role: 'assistant', content: 'Hi' }, { role: 'assistant', content: 'Ho' }, { content: '!' }, { content: '!' }],
    );
    assert.equal((await accumulate(frames)).message.content, 'Hi!');
  });

  it('streamed tool calls get an index, an id, a type and arguments, which later empty pieces do not overwrite', async () => {
    const named = (id: string, name: string, written?: string) => ({ id, function: { name, arguments: written } });
    const frames = await stream([
      // Without index and type, as Mistral's of 2024; the second call without arguments.
      chunk([{ delta: { role: 'assistant', tool_calls: [named('a', 'first', '{"x":'), named('b', 'second')] } }]),
      // Empty texts, as DashScope and Mistral send them.
      chunk([{ delta: { tool_calls: [{ index: 0, id: '', type: '', function: { name: '', arguments: '1}' } }] } }]),
      chunk([{ delta: {}, finish_reason: 'tool_calls' }]),
    ]);
    const { message } = await accumulate(frames);
    assert.deepEqual(
      message.tool_calls?.map((call) => ({ ...call, function: call.type === 'function' && call.function })),
      [
        { id: 'a', type: 'function', function: { name: 'first', arguments: '{"x":1}' } },
        { id: 'b', type: 'function', function: { name: 'second', arguments: '{}' } },
      ],
    );
    const pieces = frames.flatMap(({ choices }) => (choices as { delta: Fields }[])[0]?.delta.tool_calls ?? []);
    for (const piece of pieces as Fields[]) {
      assert.equal(typeof piece.index, 'number');
      assert.ok(
        piece.id !== '' && piece.type !== '' && (piece.function as Fields).name !== '',
        'an empty text says nothing',
      );
    }
  });

  it('parallel tool calls that the vendor streams under one index stay two calls, each with its own arguments', async () => {
    const piece = (index: number, id?: string, name?: string, written = '') => {
      const begun = { ...(id !== undefined && { id, type: 'function' }) };
      return { index, ...begun, function: { ...(name !== undefined && { name }), arguments: written } };
    };
    const gemini = [[piece(0, 'a', 'f', '{"x":1}'), piece(0, 'b', 'f', '{"x":2}')], [piece(0, 'c', 'g', '{}')]];
    const inPieces = [[piece(0, 'a', 'f', '{"x"')], [piece(0, undefined, undefined, ':1}')], [piece(0, 'b', 'f')]];
    const mixed = [[piece(0, undefined, undefined, '{"x":2}')], [piece(1, 'c', 'g', '{}')], [piece(1, 'c', 'g')]];
    for (const parts of [gemini, [...inPieces, ...mixed]]) {
      const chunks = parts.map((calls) => chunk([{ delta: { tool_calls: calls } as never }]));
      const frames = await stream([...chunks, chunk([{ delta: {}, finish_reason: 'tool_calls' }])]);
      const { message } = await accumulate(frames);
      const called = message.tool_calls?.map((call) => [call.id, call.type === 'function' && call.function]);
      const expected = ['{"x":1}', '{"x":2}'].map((written) => ({ name: 'f', arguments: written }));
      assert.deepEqual(called, [
        ['a', expected[0]],
        ['b', expected[1]],
        ['c', { name: 'g', arguments: '{}' }],
      ]);
    }
  });

  it('of parallel calls of a vendor that cannot be told, the caller who wants one at a time gets the first, whole and streamed', async () => {
    const vendor = createOpenAiDialect({
      ...{ name: 'near', baseUrl: bench.server.baseUrl, apiKey },
      deviations: { parallelToolCalls: false },
    });
    const call = (index: number, name: string, written: unknown) => ({
      ...{ index, id: `call_${name}`, type: 'function', function: { name, arguments: written } },
    });
    const [first, second, third] = [call(0, 'f', '{"x"'), call(1, 'g', '{'), call(2, 'h', undefined)];
    const rest = { index: 0, function: { arguments: ':1}' } };
    const pieces = [[first], [second], [third, rest], [{ index: 1, function: { arguments: '}' } }]];
    const chunks = [
      chunk([{ delta: { role: 'assistant', content: 'I look.' } }]),
      ...pieces.map((calls) => chunk([{ delta: { tool_calls: calls } as never }])),
      chunk([{ delta: {}, finish_reason: 'tool_calls' }]),
    ];
    const message = {
      role: 'assistant',
      content: 'I look.',
      tool_calls: [call(0, 'f', '{"x":1}'), call(1, 'g', '{}'), third],
    };
    for (const [wanted, names] of [
      [{ parallel_tool_calls: false }, ['f']],
      [{ parallel_tool_calls: true }, ['f', 'g', 'h']],
      [{}, ['f', 'g', 'h']],
    ] as const) {
      const request = JSON.stringify({
        messages: [{ role: 'user', content: '"parallel_tool_calls": false' }],
        ...wanted,
      });
      for (const given of [request, Buffer.from(request)]) {
        bench.server.answer((response) => sendStream(response, [events(chunks)]));
        const sink = collect();
        await vendor.chat(callOf({ request: given }), sink);
        assert.ok(!('parallel_tool_calls' in JSON.parse(bench.server.requests.at(-1)?.body ?? '')));
        const frames = sink.data() as Fields[];
        const streamed = await accumulate(frames);
        bench.server.answer((response) =>
          sendJson(response, 200, JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })),
        );
        const { body } = await vendor.chat(callOf({ request: given, stream: false }), collect());
        const [held] = (JSON.parse(body) as { choices: (typeof streamed)[] }).choices;
        for (const said of [streamed, held]) {
          const calls = said?.message.tool_calls?.map((made) => made.type === 'function' && made.function);
          assert.deepEqual(calls, [
            { name: 'f', arguments: '{"x":1}' },
            ...names.slice(1).map((name) => ({ name, arguments: '{}' })),
          ]);
          assert.deepEqual([said?.message.content, said?.finish_reason], ['I look.', 'tool_calls']);
        }
        const isEmpty = ({ choices }: Fields) => (choices as unknown[]).length === 0;
        assert.deepEqual([frames.filter(isEmpty).length, frames.length], [0, names.length === 1 ? 4 : 7]);
      }
    }
    await vendor.close();
  });

  it('a call whose name and id each piece repeats, or whose id changes with each, stays one call', async () => {
    for (const ids of [
      ['a', 'a', 'a'],
      ['a', 'b', 'c'],
      ['a', undefined, ''],
    ]) {
      const pieces = ids.map((id, at) => {
        const name = at === 0 || id === 'a' ? 'f' : undefined;
        const written = ['{"x"', ':', '1}'][at];
        return chunk([{ delta: { tool_calls: [{ index: 0, id, function: { name, arguments: written } }] } as never }]);
      });
      const frames = await stream([...pieces, chunk([{ delta: {}, finish_reason: 'tool_calls' }])]);
      const sent = frames.flatMap(({ choices }) => (choices as { delta: Fields }[])[0]?.delta.tool_calls ?? []);
      const written = (sent as { function: Fields }[]).map(({ function: body }) => body.arguments).join('');
      assert.deepEqual([new Set((sent as Fields[]).map(({ index }) => index)), written], [new Set([0]), '{"x":1}']);
    }
  });

  it('a tool call without an id gets one, and arguments that are no text become text', async () => {
    const call = { function: { name: 'f', arguments: { a: 1 } } };
    const [first] = (await stream([chunk([{ delta: { tool_calls: [call] } }]), stop])).flatMap(
      ({ choices }) => (choices as { delta: { tool_calls?: Fields[] } }[])[0]?.delta.tool_calls ?? [],
    );
    const [held] = await hold([{ message: { tool_calls: [call] }, finish_reason: 'tool_calls' }]);
    const [whole] = (held as { message: { tool_calls: Fields[] } }).message.tool_calls;
    for (const { id, type, function: body } of [first ?? {}, whole ?? {}]) {
      assert.match(String(id), /^call_\w{32}$/);
      assert.deepEqual([type, body], ['function', { name: 'f', arguments: '{"a":1}' }]);
    }
  });

  it('a tool call truncated before its arguments gets none', async () => {
    const begun = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } };
    const cut = chunk([{ delta: {}, finish_reason: 'length' }]);
    const frames = await stream([chunk([{ delta: { role: 'assistant', tool_calls: [begun] } }]), cut]);
    assert.ok(!JSON.stringify(frames).includes('{}"'));
    const [choice] = await hold([{ message: { tool_calls: [begun] }, finish_reason: 'length' }]);
    const [whole] = (choice as { message: { tool_calls: Fields[] } }).message.tool_calls;
    assert.deepEqual(whole?.function, begun.function);
  });

  it('held tool calls get an id, a type and arguments, and messages all that OpenAI requires of one', async () => {
    const choices = await hold([
      { message: { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f' } }] }, finish_reason: 'stop' },
      { message: { tool_calls: [{ id: 'b', type: 'function', function: { name: 'g', arguments: '' } }] } },
    ]);
    assert.deepEqual(choices[0], {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        refusal: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      logprobs: null,
      finish_reason: 'stop',
    });
    assert.deepEqual(choices[1]?.message, {
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [{ id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } }],
    });
  });

  it('a choice whose message was filtered gets one without content, held and streamed', async () => {
    const filtered = { index: 0, finish_reason: 'content_filter', content_filter_results: {} };
    const message = { role: 'assistant', content: null, refusal: null };
    assert.deepEqual(await hold([filtered]), [{ ...filtered, message, logprobs: null }]);
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify({ choices: [filtered] })));
    const sink = collect();
    await bench.vendor.chat(callOf(), sink);
    assert.deepEqual(sink.data(), [{ choices: [{ ...filtered, delta: message, logprobs: null }] }]);
    await assert.rejects(hold([{ finish_reason: 'stop' }]), { code: 'server_error' });
    await assert.rejects(hold([null]), { code: 'server_error' });
  });

  it('a message beside an empty delta is read in a whole answer, and is not repeated in a stream', async () => {
    const empty = { role: 'assistant', content: '' };
    const said = (content: string) => ({ message: { role: 'assistant', content, refusal: null } });
    const [held] = await hold([{ ...said('Ruby'), delta: empty, finish_reason: 'stop' }]);
    assert.deepEqual(held, { index: 0, ...said('Ruby'), logprobs: null, finish_reason: 'stop' });
    const once = await stream([chunk([{ ...said('Ruby'), delta: empty, finish_reason: 'stop' } as never])]);
    assert.equal((await accumulate(once)).message.content, 'Ruby');
    const frames = await stream([
      chunk([{ ...said('Ru'), delta: { role: 'assistant', content: 'Ru' } } as never]),
      chunk([{ ...said('Ruby'), delta: { content: 'by' } } as never]),
      chunk([{ ...said('Ruby'), delta: empty, finish_reason: 'stop' } as never]),
    ]);
    assert.equal((await accumulate(frames)).message.content, 'Ruby');
    assert.ok(!JSON.stringify(frames).includes('message'));
  });

  it('choices without finish reasons get one at the end of a stream and in a whole answer', async () => {
    const call = { index: 0, id: 'a', function: { name: 'f', arguments: '' } };
    const frames = await stream([
      chunk([{ index: 0, delta: { role: 'assistant', content: 'x' } }]),
      chunk([{ index: 1, delta: { role: 'assistant', tool_calls: [call] } }]),
      chunk([{ index: 2, delta: { content: 'x' }, finish_reason: 'length' }]),
    ]);
    assert.deepEqual(frames.at(-1)?.choices, [
      { index: 0, delta: {}, finish_reason: 'stop' },
      { index: 1, delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }] }, finish_reason: 'tool_calls' },
    ]);
    const choices = await hold([
      { message: { content: 'x' }, finish_reason: '' },
      { message: { content: '', tool_calls: [call] }, finish_reason: '' },
    ]);
    assert.deepEqual(
      choices.map(({ finish_reason: reason }) => reason),
      ['stop', 'tool_calls'],
    );
  });

  it('content in parts or as an object becomes one text, and an empty function_call is dropped', async () => {
    const empty = { function_call: { name: '', arguments: '' } };
    const cases: [unknown, string][] = [
      [{ title: 'Apples' }, '{"title":"Apples"}'],
      [[{ type: 'text', text: 'Ap' }, { type: 'text', text: 'ples' }, { type: 'image' }], 'Apples'],
    ];
    for (const [content, text] of cases) {
      const message = { role: 'assistant', content, ...empty };
      const [held] = await hold([{ message, finish_reason: 'stop' }]);
      assert.deepEqual(held?.message, { role: 'assistant', content: text, refusal: null });
      const frames = await stream([chunk([{ delta: message }]), stop]);
      assert.equal((await accumulate(frames)).message.content, text);
    }
  });

  it('reasoning among the content parts becomes reasoning_content', async () => {
    const thought = (text: string) => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] });
    const parts = [thought('Hm'), thought('.'), { type: 'text', text: 'Yes' }];
    const [held] = await hold([{ message: { role: 'assistant', content: parts }, finish_reason: 'stop' }]);
    const said = { role: 'assistant', content: 'Yes', refusal: null, reasoning_content: 'Hm.' };
    assert.deepEqual(held?.message, said);
    const frames = await stream([
      chunk([{ delta: { content: [thought('Hm.')] } }]),
      chunk([{ delta: { content: 'Yes' } }]),
      stop,
    ]);
    assert.deepEqual(
      frames.map(({ choices }) => (choices as { delta: Fields }[])[0]?.delta),
      [{ role: 'assistant', content: '', reasoning_content: 'Hm.' }, { content: 'Yes' }, {}],
    );
  });

  it("finish reasons of chats and legacy completions are mapped to OpenAI's", async () => {
    const reasons: [unknown, string][] = [
      ['stop', 'stop'],
      ['eos', 'stop'],
      ['model_length', 'length'],
      ['insufficient_system_resource', 'length'],
      ['tool_use', 'tool_calls'],
      ['sensitive', 'content_filter'],
      ['toString', 'stop'],
    ];
    for (const [theirs, own] of reasons) {
      const [held] = await hold([{ message: { content: 'x' }, finish_reason: theirs }]);
      assert.equal(held?.finish_reason, own);
      const frames = await stream([
        chunk([{ delta: { content: 'x' } }]),
        chunk([{ delta: {}, finish_reason: theirs as never }]),
      ]);
      assert.equal((await accumulate(frames)).finish_reason, own);
      bench.server.answer((response) =>
        sendJson(response, 200, JSON.stringify({ choices: [{ text: 'x', finish_reason: theirs }] })),
      );
      const { body } = await bench.vendor.complete(callOf({ stream: false }), collect());
      assert.equal(JSON.parse(body).choices[0].finish_reason, own);
    }
    const [running] = await stream([chunk([{ delta: { content: 'x' }, finish_reason: '' as never }]), stop]);
    assert.equal((running as { choices: Fields[] }).choices[0]?.finish_reason, null);
    await assert.rejects(hold([{ message: { content: 'x' }, finish_reason: 'error' }]), { code: 'server_error' });
  });

  it("cached tokens are reported in prompt_tokens_details, beside the vendor's own field", async () => {
    const counted = { prompt_tokens: 9, completion_tokens: 1 };
    const cases: [Fields, Fields | undefined][] = [
      [{ num_cached_tokens: 4 }, { cached_tokens: 4 }],
      [{ cached_tokens: 4, prompt_tokens_details: null }, { cached_tokens: 4 }],
      [
        { prompt_cache_hit_tokens: 4, prompt_tokens_details: { audio_tokens: 2 } },
        { audio_tokens: 2, cached_tokens: 4 },
      ],
      [{ num_cached_tokens: 4, prompt_tokens_details: { cached_tokens: 3 } }, { cached_tokens: 3 }],
      [{}, undefined],
    ];
    for (const [told, details] of cases) {
      const usage = { ...counted, ...told };
      const expected = { ...usage, ...(details && { prompt_tokens_details: details }) };
      const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }];
      bench.server.answer((response) => sendJson(response, 200, JSON.stringify({ choices, usage })));
      const held = await bench.vendor.chat(callOf({ stream: false }), collect());
      assert.deepEqual([held.usage, JSON.parse(held.body).usage], [expected, expected]);
      const chunks = [chunk([{ delta: { content: 'x' } }]), stop, chunk([], { usage })];
      bench.server.answer((response) => sendStream(response, [events(chunks)]));
      const streamed = await bench.vendor.chat(callOf(), collect());
      assert.deepEqual([streamed.usage, JSON.parse(streamed.body)], [expected, { usage: expected }]);
    }
  });

  it('output that a vendor counts in the total alone, as Gemini its thoughts, is part of the completion', async () => {
    const cases: [told: Fields, completion: number | undefined][] = [
      // Gemini's endpoint for OpenAI's clients; and all of an answer was thought.
      [{ prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 }, 74],
      [{ prompt_tokens: 35, completion_tokens: 0, total_tokens: 109 }, 74],
      [{ prompt_tokens: 35, total_tokens: 109 }, 74],
      [{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }, 2],
      // DeepSeek's total has been too small, and Mistral's includes audio.
      [{ prompt_tokens: 12, completion_tokens: 3, total_tokens: 13 }, 3],
      [{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 386, prompt_audio_seconds: 30 }, 2],
      // A total that counts something else, as all that an account has used.
      [{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 1_000_000_000 }, 2],
      // A proxy before Claude may not count the cache as part of the prompt.
      [{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 1011, cache_read_input_tokens: 1000 }, 2],
      [{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 386, prompt_tokens_details: { audio_tokens: 375 } }, 2],
    ];
    for (const [told, completion] of cases) {
      const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }];
      bench.server.answer((response) => sendJson(response, 200, JSON.stringify({ choices, usage: told })));
      const held = await bench.vendor.chat(callOf({ stream: false }), collect());
      bench.server.answer((response) =>
        sendStream(response, [events([chunk([{ delta: { content: 'x' } }]), stop, chunk([], { usage: told })])]),
      );
      const streamed = await bench.vendor.chat(callOf(), collect());
      for (const { usage, body } of [held, streamed]) {
        assert.equal(usage?.completion_tokens, completion, JSON.stringify(told));
        assert.deepEqual(JSON.parse(body).usage, usage);
      }
    }
  });
});
