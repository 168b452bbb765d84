import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConverseCommand, ConverseStreamCommand, type ConverseStreamOutput } from '@aws-sdk/client-bedrock-runtime';
import fc from 'fast-check';
import type OpenAI from 'openai';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import { bedrockAccess } from '../../../workers/vendors/bedrock/signature.ts';
import { saidInChunks, saidWhole } from '../../support/fold-chunks.ts';
import { piecesOf } from '../../support/pieces.ts';
import { callOf, collect, sendJson } from '../contracts/fixture-vendor.ts';
import { checkSignature } from '../contracts/signature-version-4.ts';
import { describeTranslatedChat, type HeldBody } from '../contracts/translated-chat-contract.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import {
  type Answer,
  answerOf,
  bedrockClient,
  chatUsage,
  eventMessage,
  eventStream,
  eventsOf,
  recorded,
  redacted,
  redactedData,
  sendEvents,
  signature,
  text,
  thought,
  toJson,
  toolUse,
  toWire,
} from '../recorded/recorded-bedrock.ts';

const apiKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';
const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const sessionToken = 'IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJHMEUCIQ==';
const model = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';

type Fields = Record<string, unknown>;

const says = (whole: string): Fields[] => piecesOf(whole, 5).map((content) => ({ content }));
const thinks = (whole: string): Fields[] => piecesOf(whole, 5).map((reasoning_content) => ({ reasoning_content }));
const signs = (thinking: string): Fields => ({ thinking_blocks: [{ type: 'thinking', thinking, signature }] });
const hides = (data: string): Fields => ({ thinking_blocks: [{ type: 'redacted_thinking', data }] });
function calls(index: number, id: string, name: string, input: string[]): Fields[] {
  const begun = { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] };
  return [begun, ...input.map((json) => ({ tool_calls: [{ index, function: { arguments: json } }] }))];
}

/** The deltas that the recordings have to become, and their ends. */
const deltas: Readonly<Record<string, Fields[]>> = {
  'plain text': ['Hello', '! How', ' are ', 'you t', 'oday?'].map((content) => ({ content })),
  'multi-byte text with quotes and line breaks': [
    ...['Zażół', 'ć "gę', 'ślą" ', '🦥\n日本語', ' \\ 👩\u200d', '👩\u200d👧\u2028'].map((content) => ({ content })),
  ],
  'tool calls in fragments': [
    ...says("Okay, let's check:"),
    ...calls(0, 'tooluse_kZJMlvQmRJ6eAyJE5GIl7Q', 'get_weather', [
      ...['{"loc', 'ation', '":"Sa', 'n Fra', 'ncisc', 'o, CA', '"}'],
    ]),
    ...calls(1, 'tooluse_1JMlvQmRJ6eAyJE5GIl7Qa', 'get_time', ['{}']),
  ],
  'thinking with its signature': [
    ...thinks('The GCD of 1071 and 462: 21.'),
    signs('The GCD of 1071 and 462: 21.'),
    ...says('**21**.'),
  ],
  'thinking without a signature': [...thinks('Hmm, 21.'), ...says('21')],
  'redacted thinking, and thinking between calls': [
    hides(redactedData),
    ...thinks('First.'),
    signs('First.'),
    ...calls(0, 'tooluse_1', 'get_weather', ['{"loc', 'ation', '":"Łó', 'dź"}']),
  ],
  'an end at the token limit': says('Once upon'),
  'an end at the context window': says('Once upon'),
  'an end at a stop sequence': says('One, two, '),
  'an end by a guardrail': says('Sorry, no.'),
  'an end by the content filter': says('Once'),
  'an empty answer': [],
};
const ends: Readonly<Record<string, Fields>> = {
  'tool calls in fragments': { finish_reason: 'tool_calls' },
  'redacted thinking, and thinking between calls': { finish_reason: 'tool_calls' },
  'an end at the token limit': { finish_reason: 'length' },
  'an end at the context window': { finish_reason: 'length', stop_reason: 'model_context_window_exceeded' },
  'an end at a stop sequence': { finish_reason: 'stop', stop_reason: 'three' },
  'an end by a guardrail': { finish_reason: 'content_filter' },
  'an end by the content filter': { finish_reason: 'content_filter' },
};

function framesOf(name: string): Fields[] {
  const all: [Fields, Fields, Fields][] = [
    ...(deltas[name] ?? []).map((delta): [Fields, Fields, Fields] => [delta, { finish_reason: null }, {}]),
    // A message that neither says nor calls anything is an empty text: no history may hold one without content.
    [deltas[name]?.length ? {} : { content: '' }, ends[name] ?? { finish_reason: 'stop' }, { service_tier: 'default' }],
  ];
  return all.map(([delta, end, tier], at) => ({
    choices: [{ index: 0, delta: at === 0 ? { role: 'assistant', ...delta } : delta, ...end }],
    ...tier,
  }));
}

const heldAnswer = answerOf(
  [
    redacted('Emw='),
    thought('First the weather.', signature),
    text('It is '),
    text('cold.'),
    toolUse('tooluse_1', 'get_weather', { location: 'Łódź' }),
    toolUse('tooluse_2', 'get_time', {}),
  ],
  'tool_use',
);
const heldBody: HeldBody = {
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'It is cold.',
        refusal: null,
        reasoning_content: 'First the weather.',
        thinking_blocks: [
          { type: 'redacted_thinking', data: 'Emw=' },
          { type: 'thinking', thinking: 'First the weather.', signature },
        ],
        tool_calls: [
          { id: 'tooluse_1', type: 'function', function: { name: 'get_weather', arguments: '{"location":"Łódź"}' } },
          { id: 'tooluse_2', type: 'function', function: { name: 'get_time', arguments: '{}' } },
        ],
      },
      finish_reason: 'tool_calls',
      logprobs: null,
    },
  ],
  usage: chatUsage,
  service_tier: 'default',
};

const create = (baseUrl: string) => createBedrock({ name: 'bedrock', baseUrl, apiKey });

const said = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('"', '\\', '\n', '', '{"a":1}'));
const anyBlock = fc.oneof(
  said.map(text),
  fc.tuple(said, fc.option(fc.string({ minLength: 1 }), { nil: undefined })).map(([a, b]) => thought(a, b)),
  fc.base64String({ minLength: 4 }).map(redacted),
  fc
    .dictionary(fc.string(), fc.oneof(said, fc.nat(), fc.constant(null)), { noNullPrototype: true })
    .map((input) => toolUse('tooluse_1', 'get_weather', input)),
);
const anyReason = fc.constantFrom('end_turn' as const, 'max_tokens' as const, 'tool_use' as const);

describeTranslatedChat('Bedrock', {
  create,
  model,
  recorded,
  framesOf,
  held: heldAnswer,
  heldBody,
  toJson,
  toEvents: (answer, size) => eventsOf(answer, size).map((event) => toWire([event])),
  contentType: eventStream,
  answers: fc
    .tuple(fc.array(anyBlock, { maxLength: 6 }), anyReason)
    .map(([content, reason]) => answerOf(content, reason)),
});

describe('the Bedrock vendor', () => {
  const bench = new VendorBench(create);

  const stream = async (...parts: Uint8Array[]) => {
    bench.server.answer((response) => sendEvents(response, parts));
    const sink = collect();
    return { end: await bench.vendor.chat(callOf({ model }), sink), sink };
  };
  const lastRequest = () => bench.server.requests.at(-1) ?? assert.fail();

  it("Bedrock chat posts to the model's path with the API key as a bearer token", async () => {
    bench.server.answer((response) => sendJson(response, 200, toJson(heldAnswer)));
    await bench.vendor.chat(callOf({ stream: false, model }), collect());
    const { method, url, headers, body } = lastRequest();
    const path = '/v1/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0';
    assert.deepEqual([method, url], ['POST', `${path}/converse`]);
    assert.equal(headers.authorization, `Bearer ${apiKey}`);
    assert.equal(headers['content-type'], 'application/json');
    assert.deepEqual(JSON.parse(body), { messages: [{ role: 'user', content: [{ text: 'Hello!' }] }] });
    await stream(toWire(eventsOf(heldAnswer)));
    assert.equal(lastRequest().url, `${path}/converse-stream`);
    assert.deepEqual(lastRequest().body, body);
    const arn = 'arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2c3';
    bench.server.answer((response) => sendJson(response, 200, toJson(heldAnswer)));
    await bench.vendor.chat(callOf({ stream: false, model: arn }), collect());
    assert.equal(lastRequest().url, `/v1/model/${encodeURIComponent(arn)}/converse`);
  });

  for (const token of [undefined, sessionToken]) {
    const tried = token === undefined ? 'a key of two parts' : 'a key of three parts, the last a session token';
    it(`Bedrock signs every request with ${tried}, like Amazon's own client`, async () => {
      const { accessKeyId, secretAccessKey } = credentials;
      const key = [accessKeyId, secretAccessKey, ...(token === undefined ? [] : [token])].join(':');
      const signing = createBedrock({ name: 'bedrock', baseUrl: bench.server.baseUrl, apiKey: key });
      bench.server.answer((response) => sendJson(response, 200, toJson(heldAnswer)));
      for (const content of ['Hello!', 'Zażółć 🦥']) {
        const request = JSON.stringify({ messages: [{ role: 'user', content }] });
        await signing.chat(callOf({ stream: false, model, request }), collect());
        const signed = checkSignature(lastRequest(), secretAccessKey);
        assert.deepEqual([signed.accessKeyId, signed.region, signed.service], [accessKeyId, 'us-east-1', 'bedrock']);
        assert.ok(signed.headers.includes('host') && signed.headers.includes('x-amz-date'));
        assert.equal(lastRequest().headers['x-amz-security-token'], token);
        assert.equal(signed.headers.includes('x-amz-security-token'), token !== undefined);
      }
      await signing.close();
      const client = clientOf({ ...credentials, ...(token !== undefined && { sessionToken: token }) });
      await client.send(new ConverseCommand({ modelId: model, messages: [{ role: 'user', content: [text('Hi')] }] }));
      const { accessKeyId: same, service } = checkSignature(lastRequest(), secretAccessKey);
      assert.deepEqual([same, service], [accessKeyId, 'bedrock']);
      assert.equal(lastRequest().headers['x-amz-security-token'], token);
      assert.throws(() => checkSignature({ ...lastRequest(), body: '{}' }, secretAccessKey));
      client.destroy();
    });
  }

  const clientOf = (own: { accessKeyId: string; secretAccessKey: string; sessionToken?: string }) =>
    bedrockClient(bench.server.baseUrl, { credentials: own });

  it("Bedrock sends an API key in the header that Amazon's own client uses", async () => {
    bench.server.answer((response) => sendJson(response, 200, toJson(heldAnswer)));
    await bench.vendor.chat(callOf({ stream: false, model }), collect());
    const { authorization } = lastRequest().headers;
    const client = bedrockClient(bench.server.baseUrl, {
      token: { token: apiKey },
      authSchemePreference: ['httpBearerAuth'],
    });
    await client.send(new ConverseCommand({ modelId: model, messages: [{ role: 'user', content: [text('Hi')] }] }));
    assert.equal(lastRequest().headers.authorization, authorization);
    client.destroy();
  });

  it('Bedrock signs for the region in the host of the base URL', async () => {
    const key = Object.values(credentials).join(':');
    for (const [host, region] of [
      ['bedrock-runtime.eu-west-1.amazonaws.com', 'eu-west-1'],
      ['bedrock-runtime-fips.us-gov-west-1.amazonaws.com', 'us-gov-west-1'],
      ['vpce-0123-abcd.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com', 'ap-southeast-2'],
      ['bedrock-runtime.cn-north-1.amazonaws.com.cn', 'cn-north-1'],
      ['bedrock.example', 'us-east-1'],
    ]) {
      const { authorization } = await bedrockAccess(key, `https://${host}`).sign('/model/m/converse', '{}');
      assert.ok(authorization?.includes(`/${region}/bedrock/aws4_request`), `${host}: ${authorization}`);
    }
  });

  it("Amazon's own client reads the Bedrock recordings as intended, held and streamed", async () => {
    const client = clientOf(credentials);
    const request = { modelId: model, messages: [{ role: 'user' as const, content: [text('Hello!')] }] };
    for (const answer of [...Object.values(recorded), heldAnswer]) {
      bench.server.answer((response) => sendJson(response, 200, toJson(answer)));
      const { $metadata: _, ...held } = await client.send(new ConverseCommand(request));
      assert.deepEqual(held, answer);
      bench.server.answer((response) => sendEvents(response, [toWire(eventsOf(answer))]));
      const heard: ConverseStreamOutput[] = [];
      const { stream: events } = await client.send(new ConverseStreamCommand(request));
      for await (const event of events ?? assert.fail()) heard.push(event);
      assert.deepEqual(heard, eventsOf(answer));
    }
    client.destroy();
  });

  it("Bedrock requests equal those of Amazon's own client", async () => {
    const request = JSON.stringify({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
          ],
        },
        {
          role: 'assistant',
          content: 'Let me see.',
          thinking_blocks: [
            { type: 'thinking', thinking: 'Hm.', signature },
            { type: 'redacted_thinking', data: redactedData },
          ],
          tool_calls: [{ id: 'tooluse_1', type: 'function', function: { name: 'look', arguments: '{"at":"it"}' } }],
        },
        { role: 'tool', tool_call_id: 'tooluse_1', content: '{"seen":1}' },
      ],
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks.', parameters: { type: 'object' } } }],
      tool_choice: 'required',
      max_tokens: 9,
      top_k: 5,
      stop: 'END',
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } },
      service_tier: 'flex',
    });
    bench.server.answer((response) => sendJson(response, 200, toJson(heldAnswer)));
    await bench.vendor.chat(callOf({ stream: false, model, request }), collect());
    const ours = JSON.parse(lastRequest().body);
    const client = clientOf(credentials);
    await client.send(
      new ConverseCommand({
        modelId: model,
        system: [text('Be brief.') as { text: string }],
        messages: [
          {
            role: 'user',
            content: [
              text('What is this?'),
              { image: { format: 'png', source: { bytes: new Uint8Array(Buffer.from('iVBORw0KGgo=', 'base64')) } } },
            ],
          },
          {
            role: 'assistant',
            content: [
              thought('Hm.', signature),
              redacted(redactedData),
              text('Let me see.'),
              toolUse('tooluse_1', 'look', { at: 'it' }),
            ],
          },
          {
            role: 'user',
            content: [{ toolResult: { toolUseId: 'tooluse_1', content: [{ text: '{"seen":1}' }] } }],
          },
        ],
        inferenceConfig: { maxTokens: 9, stopSequences: ['END'] },
        toolConfig: {
          tools: [{ toolSpec: { name: 'look', description: 'Looks.', inputSchema: { json: { type: 'object' } } } }],
          toolChoice: { any: {} },
        },
        outputConfig: {
          textFormat: {
            type: 'json_schema',
            structure: { jsonSchema: { schema: '{"type":"object","additionalProperties":false}', name: 'answer' } },
          },
        },
        additionalModelRequestFields: { top_k: 5 },
        additionalModelResponseFieldPaths: ['/stop_sequence'],
        serviceTier: { type: 'flex' },
      }),
    );
    assert.deepEqual(JSON.parse(lastRequest().body), ours);
    client.destroy();
  });

  it('of parallel calls of a model at Bedrock the caller who wants one at a time gets the first, whole and streamed', async () => {
    const calls = ['a', 'b', 'c'].map((name) => toolUse(name, name, { x: 1 }));
    const answer = answerOf([text('I look.'), ...calls], 'tool_use');
    const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], parallel_tool_calls: false });
    bench.server.answer((response) => sendJson(response, 200, toJson(answer)));
    const held = await bench.vendor.chat(callOf({ stream: false, model, request }), collect());
    bench.server.answer((response) => sendEvents(response, [toWire(eventsOf(answer))]));
    const sink = collect();
    const { usage } = await bench.vendor.chat(callOf({ model, request }), sink);
    const streamed = saidInChunks(sink.data() as OpenAI.Chat.ChatCompletionChunk[]);
    for (const [said = assert.fail()] of [saidWhole(JSON.parse(held.body)), streamed]) {
      assert.deepEqual([said.content, said.finish], ['I look.', 'tool_calls']);
      assert.deepEqual(said.tools, [{ id: 'a', name: 'a', arguments: '{"x":1}' }]);
    }
    assert.deepEqual(usage, held.usage);
  });

  it('Bedrock chat treats a stream without metadata as complete once it has its stop reason', async () => {
    const answer = recorded['plain text'] as Answer;
    const { sink, end } = await stream(toWire(eventsOf(answer).slice(0, -1)));
    const untold = framesOf('plain text').map(({ choices }) => ({ choices }));
    assert.deepEqual(sink.data(), untold);
    assert.equal(end.usage, null);
    const countsNothing = { ...answer, usage: {} } as Answer;
    assert.equal((await stream(toWire(eventsOf(countsNothing)))).end.usage, null);
    await assert.rejects(stream(toWire(eventsOf(answer).slice(0, -2))), { code: 'stream_interrupted' });
    await assert.rejects(stream(toWire(eventsOf(answer).slice(0, 1))), { code: 'server_error' });
  });

  it('Bedrock chat skips unknown events, blocks and deltas', async () => {
    const [start, ...rest] = eventsOf(recorded['plain text'] as Answer);
    const odd = [
      eventMessage('weatherReport', '{"sky":"blue"}'),
      eventMessage('contentBlockStart', '{"contentBlockIndex":9,"start":{"image":{"format":"png"}}}'),
      eventMessage('contentBlockDelta', '{"contentBlockIndex":9,"delta":{"smell":"of roses"}}'),
      eventMessage('contentBlockStop', '{"contentBlockIndex":9}'),
    ];
    const { sink } = await stream(toWire([start as ConverseStreamOutput]), ...odd, toWire(rest));
    assert.deepEqual(sink.data(), framesOf('plain text'));
  });
});
