import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type OpenAI from 'openai';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import { type Said, saidInChunks, saidWhole } from '../../support/fold-chunks.ts';
import { describeChatVendor, tierIn } from '../contracts/chat-vendor-contract.ts';
import { type Answer, callOf, collect, cut, sendJson, sendStream } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import {
  answer,
  answerBody,
  event,
  events,
  lastEvent,
  streams,
  usage,
  usageMetadata,
} from '../recorded/recorded-gemini.ts';

const apiKey = 'AIzaSyTest0123456789abcdefghijklmnopqrs';

const create = (baseUrl: string) => createGemini({ name: 'gemini', baseUrl, apiKey });
const sendEvents =
  (sent: Parameters<typeof events>[0]): Answer =>
  (response) =>
    sendStream(response, [events(sent)]);

describeChatVendor('Gemini', {
  create,
  streams: Object.fromEntries(
    Object.entries(streams).map(([name, { sent, frames }]) => [name, { send: sendEvents(sent), data: frames, usage }]),
  ),
  held: { send: (response) => sendJson(response, 200, JSON.stringify(answer)), body: answerBody, usage },
  sendBroken: sendEvents((streams['plain text']?.sent ?? []).slice(0, 3)),
});

describe('chats with Gemini', () => {
  const bench = new VendorBench(create);

  const stream = async (...parts: (string | Uint8Array)[]) => {
    bench.server.answer((response) => sendStream(response, parts));
    const sink = collect();
    return { end: await bench.vendor.chat(callOf({ model: 'gemini-3.8-flash' }), sink), sink };
  };
  const held = async (body: object) => {
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(body)));
    const end = await bench.vendor.chat(callOf({ model: 'gemini-3.8-flash', stream: false }), collect());
    return { body: JSON.parse(end.body), usage: end.usage, tier: end.tier };
  };
  const saidInStream = (data: unknown[]): Said[] => normal(saidInChunks(data as OpenAI.Chat.ChatCompletionChunk[]));
  /** Nothing and an empty text are the same to who reads. */
  const normal = (said: Said[]): Said[] => said.map((each) => ({ ...each, content: each.content || null }));

  it('Gemini chat sends its key in a header, and neither in the URL nor in the body', async () => {
    await stream(events([lastEvent([{ text: 'Hi' }])]));
    const streamed = bench.server.requests.at(-1);
    assert.equal(streamed?.url, '/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse');
    await held(answer);
    const whole = bench.server.requests.at(-1);
    assert.equal(whole?.url, '/v1/models/gemini-3.8-flash:generateContent');
    for (const request of [streamed, whole]) {
      assert.equal(request?.method, 'POST');
      assert.equal(request?.headers['x-goog-api-key'], apiKey);
      assert.equal(request?.headers['content-type'], 'application/json');
      assert.ok(!`${request?.url}${request?.body}`.includes(apiKey));
    }
  });

  it("Gemini chat escapes the model's name in the path", async () => {
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    await bench.vendor.chat(callOf({ model: '../files?x#y', stream: false }), collect());
    assert.equal(bench.server.requests.at(-1)?.url, '/v1/models/..%2Ffiles%3Fx%23y:generateContent');
  });

  it('Gemini chat yields the same frames however the bytes of an answer are split', async () => {
    const recordings = fc.constantFrom(...Object.keys(streams));
    const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
    const at = fc.array(fc.nat(), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(recordings, lineEnd, at, async (name, end, places) => {
        const { sent = [], frames = [] } = streams[name] ?? {};
        const bytes = Buffer.from(`: hello\n\n${events(sent)}`.replaceAll('\r\n', '\n').replaceAll('\n', end));
        const { sink, end: answered } = await stream(...cut(bytes, places));
        assert.deepEqual(sink.data(), frames);
        assert.deepEqual(answered, { body: JSON.stringify({ usage }), usage, tier: tierIn(frames) });
      }),
      { numRuns: 150 },
    );
  });

  it('Gemini chat says the same streamed and held, whatever the parts are and wherever the events end', async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 8 });
    const part = fc.oneof(
      text.map((said): Record<string, unknown> => ({ text: said })),
      text.map((said) => ({ text: said, thought: true })),
      fc.record({
        functionCall: fc.record({ name: fc.constantFrom('f', 'g'), args: fc.dictionary(text, fc.jsonValue()) }),
        thoughtSignature: fc.constantFrom('c2lnbmVk', undefined),
      }),
    );
    const finish = fc.constantFrom('STOP', 'MAX_TOKENS', 'RECITATION', 'OTHER', 'IMAGE_SAFETY');
    const partsOfEvents = fc.array(fc.array(part, { maxLength: 3 }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(partsOfEvents, finish, async (lists, reason) => {
        const { sink, end } = await stream(events([...lists.map((parts) => event(parts)), lastEvent([], reason)]));
        const { body, usage: counted } = await held(lastEvent(lists.flat(), reason));
        assert.deepEqual(saidInStream(sink.data()), normal(saidWhole(body)));
        assert.deepEqual(end.usage, counted);
        const signed = (said: unknown) => JSON.stringify(said).split('"thought_signature":"c2lnbmVk"').length;
        assert.equal(signed(sink.data()), signed(body));
      }),
      { numRuns: 150 },
    );
  });

  it('Gemini chat begins with the counts of its input where they are asked for, as for a message, whose clients read them there', async () => {
    const countsOf = async (sent: Parameters<typeof events>[0], begins?: true) => {
      bench.server.answer((response) => sendStream(response, [events(sent)]));
      const sink = collect();
      await bench.vendor.chat(callOf({ model: 'gemini-3.8-flash', beginsWithCounts: begins }), sink);
      return sink.data().map((frame) => (frame as { usage?: { prompt_tokens: number } }).usage);
    };
    const hello = event([{ text: 'Hello' }]);
    const { usageMetadata: _, ...uncounted } = hello;
    const rest = [event([{ text: ' there' }]), lastEvent([{ text: '!' }])];
    const [begin, ...later] = await countsOf([hello, ...rest], true);
    assert.deepEqual([begin?.prompt_tokens, later], [usage.prompt_tokens, [undefined, undefined]]);
    assert.deepEqual(await countsOf([uncounted, ...rest], true), [undefined, undefined, undefined]);
    assert.deepEqual(await countsOf([hello, ...rest]), [undefined, undefined, undefined]);
  });

  it('Gemini chat accepts a whole answer instead of a stream', async () => {
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
    const sink = collect();
    const end = await bench.vendor.chat(callOf(), sink);
    assert.deepEqual(saidInStream(sink.data()), saidWhole(answerBody as unknown as OpenAI.Chat.ChatCompletion));
    assert.deepEqual(end.usage, usage);
  });

  it('of parallel calls of Gemini the caller who wants one at a time gets the first, whole and streamed', async () => {
    const part = (name: string) => ({ functionCall: { id: name, name, args: {} } });
    const open = { functionCall: { name: 'd', willContinue: true } };
    const sent = [event([{ text: 'I look.' }, part('a'), part('b')]), event([part('c')]), event([open])];
    const closing = { functionCall: { partialArgs: [{ jsonPath: '$.x', numberValue: 1 }] } };
    const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], parallel_tool_calls: false });
    bench.server.answer((response) => sendStream(response, [events([...sent, lastEvent([closing])])]));
    const sink = collect();
    const end = await bench.vendor.chat(callOf({ request }), sink);
    const whole = lastEvent([{ text: 'I look.' }, part('a'), part('b'), part('c')]);
    bench.server.answer((response) => sendJson(response, 200, JSON.stringify(whole)));
    const { body, usage: counted } = await bench.vendor.chat(callOf({ request, stream: false }), collect());
    for (const [said = assert.fail()] of [saidInStream(sink.data()), saidWhole(JSON.parse(body))]) {
      assert.deepEqual([said.content, said.tools.map(({ name }) => name)], ['I look.', ['a']]);
      assert.equal(said.finish, 'tool_calls');
    }
    assert.deepEqual([end.usage, counted], [usage, usage]);
  });

  it('Gemini chat ends a blocked prompt with content_filter and its usage', async () => {
    const { body } = await held({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata });
    const message = { role: 'assistant', content: '', refusal: null };
    assert.deepEqual(body, {
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'content_filter' }],
      usage,
    });
  });

  it('Gemini chat counts tools that Gemini ran as input, and reports null when nothing was counted', async () => {
    const metadata = { promptTokenCount: 5, toolUsePromptTokenCount: 7, candidatesTokenCount: 2 };
    const { usage: counted } = await held({ ...lastEvent([{ text: 'Hi' }]), usageMetadata: metadata });
    assert.deepEqual(counted, {
      prompt_tokens: 12,
      completion_tokens: 2,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    });
    const { body, usage: none } = await held({ ...lastEvent([{ text: 'Hi' }]), usageMetadata: undefined });
    assert.equal(none, null);
    assert.ok(!('usage' in body));
    const { end } = await stream(events([{ ...lastEvent([{ text: 'Hi' }]), usageMetadata: undefined }]));
    assert.deepEqual(end, { body: '{"usage":null}', usage: null, tier: undefined });
    const trafficAlone = { ...lastEvent([{ text: 'Hi' }]), usageMetadata: { trafficType: 'ON_DEMAND' } };
    assert.equal((await held(trafficAlone)).usage, null);
    assert.equal((await stream(events([trafficAlone]))).end.usage, null);
  });

  it('Gemini chat names the service tier that stands among the counts, in a stream once', async () => {
    const tiers: readonly (readonly [metadata: object, tier: string | undefined])[] = [
      [{ serviceTier: 'standard' }, 'default'],
      [{ serviceTier: 'flex' }, 'flex'],
      [{ serviceTier: 'PRIORITY' }, 'priority'],
      [{ serviceTier: 'SERVICE_TIER_UNSPECIFIED' }, undefined],
      [{ trafficType: 'ON_DEMAND' }, 'default'],
      [{ trafficType: 'ON_DEMAND_PRIORITY' }, 'priority'],
      [{ trafficType: 'PROVISIONED_THROUGHPUT' }, undefined],
      ...[7, null, { a: 1 }, ['flex'], 'x'.repeat(100)].map((serviceTier) => [{ serviceTier }, undefined] as const),
      [{}, undefined],
    ];
    for (const [more, tier] of tiers) {
      const counted = (parts: Record<string, unknown>[]) => ({
        ...event(parts),
        usageMetadata: { ...usageMetadata, ...more },
      });
      const last = { ...lastEvent([{ text: 'c' }]), usageMetadata: { ...usageMetadata, ...more } };
      const whole = await held(last);
      assert.deepEqual([whole.tier, whole.body.service_tier], [tier, tier]);
      const { sink, end } = await stream(events([counted([{ text: 'a' }]), counted([{ text: 'b' }]), last]));
      const named = (sink.data() as { service_tier?: string }[]).map((frame) => frame.service_tier);
      assert.deepEqual([end.tier, named], [tier, [tier, undefined, undefined]], JSON.stringify(more));
    }
    // The first events have none.
    const { sink, end } = await stream(
      events([event([{ text: 'a' }]), { ...lastEvent([]), usageMetadata: { ...usageMetadata, serviceTier: 'flex' } }]),
    );
    assert.deepEqual([end.tier, tierIn(sink.data())], ['flex', 'flex']);
  });

  it("Gemini countTokens counts all input with the model's own tokenizer", async () => {
    bench.server.answer((response) => sendJson(response, 200, '{"totalTokens":31,"promptTokensDetails":[]}'));
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ];
    const request = JSON.stringify({ messages, tools });
    const end = await bench.vendor.countTokens(
      callOf({ model: 'gemini-3.8-flash', stream: false, request }),
      collect(),
    );
    assert.deepEqual(end, { body: '{"input_tokens":31}', usage: null });
    const received = bench.server.requests.at(-1);
    assert.equal(received?.url, '/v1/models/gemini-3.8-flash:countTokens');
    assert.deepEqual(JSON.parse(received?.body ?? ''), {
      generateContentRequest: {
        model: 'models/gemini-3.8-flash',
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
        tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: { type: 'object' } }] }],
      },
    });
    bench.server.answer((response) => sendJson(response, 200, '{}'));
    await assert.rejects(bench.vendor.countTokens(callOf({ stream: false }), collect()), { code: 'server_error' });
  });

  it('Gemini tokens of audio input and of images in the answer are counted apart, as they have prices of their own', async () => {
    const counted = {
      ...usageMetadata,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 6 },
        { modality: 'AUDIO', tokenCount: 2000 },
      ],
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 3 }],
    };
    const expected = {
      ...usage,
      prompt_tokens_details: { ...usage.prompt_tokens_details, audio_tokens: 2000 },
      completion_tokens_details: { ...usage.completion_tokens_details, image_tokens: 3 },
    };
    assert.deepEqual((await held({ ...answer, usageMetadata: counted })).usage, expected);
    const { end } = await stream(events([{ ...lastEvent([{ text: 'Hi' }]), usageMetadata: counted }]));
    assert.deepEqual(end.usage, expected);
  });
});
