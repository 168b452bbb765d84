import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { callOf, collect, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { event, events, lastEvent, usage } from '../recorded/recorded-gemini.ts';

type Fields = Record<string, unknown>;

describe('tool calls of Gemini', () => {
  const bench = new VendorBench((baseUrl) => createGemini({ name: 'gemini', baseUrl, apiKey: 'AIzaSyTest0123456789' }));

  const stream = async (...sent: Fields[]) => {
    bench.server.answer((response) => sendStream(response, [events(sent)]));
    const sink = collect();
    const end = await bench.vendor.chat(callOf(), sink);
    const choices = sink.data().flatMap((frame) => (frame as { choices: Fields[] }).choices);
    const calls = choices.flatMap(({ delta }) => (delta as { tool_calls?: Fields[] }).tool_calls ?? []);
    return { calls, finish: choices.at(-1)?.finish_reason, usage: end.usage };
  };
  const part = (functionCall: Fields, more: Fields = {}) => event([{ functionCall, ...more }]);
  const piece = (jsonPath: string, value: Fields) => ({ jsonPath, ...value });

  it('a Gemini call of an undeclared tool reaches the client with its usage, held and streamed', async () => {
    const last = lastEvent([{ functionCall: { id: 'c', name: 'other', args: { a: 1 } } }], 'UNEXPECTED_TOOL_CALL');
    const streamed = await stream(last);
    assert.deepEqual([streamed.finish, streamed.usage], ['tool_calls', usage]);
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(last)));
    const held = await bench.vendor.chat(callOf({ stream: false }), collect());
    const [choice] = JSON.parse(held.body).choices;
    assert.deepEqual([choice.finish_reason, held.usage], ['tool_calls', usage]);
    const expected = { id: 'c', type: 'function', function: { name: 'other', arguments: '{"a":1}' } };
    assert.deepEqual(choice.message.tool_calls, [expected]);
    assert.deepEqual(streamed.calls, [{ index: 0, ...expected }]);
  });

  it('partial arguments of Gemini become one call, after which the next call starts', async () => {
    const { calls, finish } = await stream(
      part({ id: 'c1', name: 'book', willContinue: true }, { thoughtSignature: 'c2ln' }),
      part({ partialArgs: [piece('$.city', { stringValue: 'Bos', willContinue: true })], willContinue: true }),
      part({ partialArgs: [piece('$.city', { stringValue: 'ton' })], willContinue: true }),
      part({
        partialArgs: [
          piece('$.guests[0].name', { stringValue: 'Ann' }),
          piece("$.guests[0]['a.b']", { numberValue: 2 }),
          piece('$.guests[1].name', { nullValue: 'NULL_VALUE' }),
          piece('$.late', { boolValue: false }),
        ],
        willContinue: true,
      }),
      part({}),
      part({ id: 'c2', name: 'pay', partialArgs: [piece('$.sum', { numberValue: 3 })] }),
      part({ id: 'c3', name: 'end', args: { x: 1 } }),
      lastEvent([]),
    );
    const guests = [{ name: 'Ann', 'a.b': 2 }, { name: null }];
    assert.deepEqual(
      calls.map(({ index, id, function: body }) => {
        const { name, arguments: written } = body as { name: string; arguments: string };
        return { index, id, name, args: JSON.parse(written) };
      }),
      [
        { index: 0, id: 'c1', name: 'book', args: { city: 'Boston', guests, late: false } },
        { index: 1, id: 'c2', name: 'pay', args: { sum: 3 } },
        { index: 2, id: 'c3', name: 'end', args: { x: 1 } },
      ],
    );
    assert.deepEqual(calls[0]?.extra_content, { google: { thought_signature: 'c2ln' } });
    assert.equal(finish, 'tool_calls');
  });

  it('senseless partial arguments of Gemini are a clear error, and reach no prototype', async () => {
    const open = part({ id: 'c1', name: 'book', willContinue: true });
    const bad: Fields[] = [
      { partialArgs: [piece('$.list[0]', { numberValue: 1 }), piece('$.list.__proto__.bad', { boolValue: true })] },
      { partialArgs: [piece('$.__proto__.bad', { boolValue: true })] },
      { partialArgs: [piece('$.list[999999]', { numberValue: 1 })] },
      { partialArgs: [piece('$', { numberValue: 1 })] },
      { partialArgs: [piece('city', { numberValue: 1 })] },
      { partialArgs: [5] },
    ];
    for (const functionCall of bad) {
      await assert.rejects(stream(open, part(functionCall), lastEvent([])), { message: /^The model's vendor/ });
    }
    await assert.rejects(stream(part({ args: {} }), lastEvent([])), { code: 'server_error' });
    await assert.rejects(stream(open, lastEvent([])), { code: 'server_error' }, 'the call has no end');
    assert.equal(([] as unknown as Fields).bad, undefined);
    assert.equal(({} as Fields).bad, undefined);
  });
});
