import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import OpenAI from 'openai';
import { type RunningSandbox, startSandbox } from '../../sandbox/server.ts';

type Parameters = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'model'> & { model?: string };
type Message = OpenAI.ChatCompletionMessage & { reasoning_content?: string };

let sandbox: RunningSandbox;
let client: OpenAI;

before(async () => {
  sandbox = await startSandbox();
  client = new OpenAI({ apiKey: 'any', baseURL: `${sandbox.url}/v1`, maxRetries: 0 });
});
after(() => sandbox.close());

function create(parameters: Parameters) {
  return client.chat.completions.create({ model: 'sandbox-chat', ...parameters });
}

async function say(text: string, parameters: Partial<Parameters> = {}) {
  const completion = await create({ messages: [{ role: 'user', content: text }], ...parameters });
  const [choice] = completion.choices;
  assert.ok(choice && completion.usage);
  return {
    completion,
    choice,
    message: choice.message as Message,
    text: choice.message.content,
    usage: completion.usage,
  };
}

async function streamed(text: string, parameters: Partial<Parameters> = {}) {
  const stream = await client.chat.completions.create({
    model: 'sandbox-chat',
    messages: [{ role: 'user', content: text }],
    ...parameters,
    stream: true,
  });
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta ?? []);
  const contents = deltas.flatMap((delta) => delta.content || []);
  return { chunks, deltas, contents, text: contents.join('') };
}

function tool(
  name: string,
  parameters: Record<string, unknown> = { type: 'object' },
): OpenAI.ChatCompletionFunctionTool {
  return { type: 'function', function: { name, parameters } };
}

function calledFunctions(message: Message) {
  return (message.tool_calls ?? []).map((call) => {
    assert.ok(call.type === 'function');
    return { name: call.function.name, arguments: JSON.parse(call.function.arguments) };
  });
}

const weather = tool('get_weather', {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 2 } },
  required: ['city', 'days'],
});
const clock = tool('get_time', { type: 'object', properties: { zone: { enum: ['UTC', 'CET'] } }, required: ['zone'] });

describe('sandbox GET /v1/models', () => {
  it('sandbox GET /v1/models lists the models and retrieves each of them, with and without /v1', async () => {
    const models = (await client.models.list()).data;
    assert.deepEqual(
      models.map(({ id, owned_by }) => [id, owned_by]),
      [
        'chat',
        'reasoning',
        'responses',
        'instruct',
        'embedding',
        'image',
        'transcribe',
        'speech',
        'video',
        'video-portrait',
      ].map((name) => [`sandbox-${name}`, 'sandbox']),
    );
    for (const model of models) assert.deepEqual({ ...(await client.models.retrieve(model.id)) }, { ...model });
    const bare = new OpenAI({ apiKey: 'any', baseURL: sandbox.url });
    assert.equal((await bare.models.list()).data.length, models.length);
  });

  it('the sandbox returns 404 model_not_found for an unknown model, slashes included', async () => {
    for (const id of ['none', 'vendor/none', '%', '__proto__']) {
      await assert.rejects(client.models.retrieve(id), { status: 404, code: 'model_not_found' });
    }
    await assert.rejects(say('hi', { model: 'none' }), { status: 404, code: 'model_not_found', param: 'model' });
  });
});

describe('sandbox POST /v1/chat/completions, text', () => {
  it('sandbox chat returns dictated text byte for byte, held and streamed', async () => {
    const texts = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'binary' }),
      fc.string({ maxLength: 400 }),
    );
    await fc.assert(
      fc.asyncProperty(
        texts,
        fc.constantFrom('Reply with exactly: ', 'Please repeat after me: ', 'Repeat: '),
        async (text, directive) => {
          assert.equal((await say(directive + text)).text, text);
          assert.equal((await streamed(directive + text)).text, text);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('sandbox chat counts upwards and downwards, one number per chunk', async () => {
    const { contents, text } = await streamed('Count from 8 to 12');
    assert.equal(text, '8 9 10 11 12');
    assert.equal(contents.length, 5);
    assert.equal((await say('count from 2 to -1, please')).text, '2 1 0 -1');
  });

  it('sandbox chat says N numbered words, one per chunk', async () => {
    const { contents, text } = await streamed('WORDS:120');
    assert.equal(contents.length, 120);
    assert.equal(text, Array.from({ length: 120 }, (_, index) => `word${index + 1}`).join(' '));
    await assert.rejects(say('WORDS:9999999'), { status: 400 });
  });

  it('sandbox chat quotes the start of any other text, deterministically by seed and choice', async () => {
    const first = await say('Tell me about otters');
    assert.match(String(first.text), /sandbox.*"Tell me about otters"/);
    assert.equal((await say('Tell me about otters')).text, first.text);
    assert.notEqual((await say('Tell me about otters', { seed: 1 })).text, first.text);
    const { choices } = (await say('Tell me about otters', { n: 3 })).completion;
    assert.equal(new Set(choices.map((choice) => choice.message.content)).size, 3);
    assert.deepEqual(
      choices.map((choice) => choice.index),
      [0, 1, 2],
    );
  });

  it('sandbox chat reads the last text part of the last user message', async () => {
    const { choices } = await create({
      messages: [
        { role: 'system', content: 'Reply with exactly: system' },
        { role: 'user', content: 'Reply with exactly: earlier' },
        { role: 'assistant', content: 'earlier' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'context' },
            { type: 'text', text: 'Reply with exactly: last' },
          ],
        },
      ],
    });
    assert.equal(choices[0]?.message.content, 'last');
  });
});

describe('sandbox POST /v1/chat/completions, limits and options', () => {
  it('sandbox chat ends with length at max_tokens and max_completion_tokens, and counts what it streamed', async () => {
    for (const limit of [{ max_tokens: 4 }, { max_completion_tokens: 4 }]) {
      const { choice, text, usage } = await say('WORDS:9', limit);
      assert.deepEqual([text, choice.finish_reason, usage.completion_tokens], ['word1 word2 word3 word4', 'length', 4]);
    }
    assert.equal((await say('WORDS:4', { max_tokens: 4 })).choice.finish_reason, 'stop');
  });

  it('sandbox chat stops before the first stop text, also inside a token and across tokens', async () => {
    for (const [stop, expected] of [
      ['word3', 'word1 word2 '],
      [['zzz', 'd3 wo'], 'word1 word2 wor'],
      [['3', ' word2'], 'word1'],
      ['word1', ''],
    ] as const) {
      const { choice, text, usage } = await say('WORDS:5', { stop: stop as string });
      assert.deepEqual([text, choice.finish_reason], [expected, 'stop']);
      const stream = await streamed('WORDS:5', { stop: stop as string });
      assert.deepEqual([stream.text, stream.contents.length], [expected, usage.completion_tokens]);
    }
    assert.equal((await say('WORDS:5', { stop: 'word4', max_tokens: 2 })).choice.finish_reason, 'length');
  });

  it('sandbox chat streams a role, deltas, a finish reason, and last the usage on request', async () => {
    const { chunks, deltas } = await streamed('WORDS:3', { stream_options: { include_usage: true } });
    assert.equal(deltas[0]?.role, 'assistant');
    assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, 'stop');
    assert.deepEqual(chunks.at(-1)?.choices, []);
    assert.equal(chunks.at(-1)?.usage?.completion_tokens, 3);
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
    assert.deepEqual(chunks.at(-1)?.usage, (await say('WORDS:3')).usage);
    assert.ok((await streamed('WORDS:3')).chunks.every((chunk) => !('usage' in chunk)));
  });

  it('sandbox chat streams several choices alternately', async () => {
    const { chunks } = await streamed('WORDS:2', { n: 2 });
    assert.deepEqual(
      chunks.map((chunk) => chunk.choices[0]?.index),
      [0, 1, 0, 1, 0, 1, 0, 1],
    );
  });

  it('sandbox chat returns log probabilities that match the text', async () => {
    const { choice, text } = await say('Reply with exactly: žluťoučký 😀 kůň!', { logprobs: true, top_logprobs: 4 });
    const tokens = choice.logprobs?.content ?? [];
    assert.equal(Buffer.from(tokens.flatMap((token) => token.bytes ?? [])).toString(), text);
    for (const token of tokens) {
      assert.equal(token.top_logprobs.length, 4);
      assert.deepEqual(token.top_logprobs[0]?.token, token.token);
      const total = token.top_logprobs.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
      assert.ok(token.logprob < 0 && total <= 1);
      assert.ok(token.top_logprobs.every(({ logprob }) => logprob <= token.logprob));
    }
    const { chunks } = await streamed('WORDS:3', { logprobs: true });
    assert.deepEqual(
      chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content?.map(({ token }) => token) ?? []),
      ['word1', ' word2', ' word3'],
    );
  });

  it('sandbox chat counts a repeated start of a prompt as cached, in blocks of 64 tokens', async () => {
    const beginning = Array.from({ length: 150 }, (_, index) => `fact${index}`).join(' ');
    const ask = async (question: string) => (await say(`${beginning} ${question}`)).usage;
    assert.equal((await ask('first?')).prompt_tokens_details?.cached_tokens, 0);
    const again = await ask('second?');
    assert.equal(again.prompt_tokens_details?.cached_tokens, 128);
    assert.ok(again.prompt_tokens >= 150);
    assert.equal(again.total_tokens, again.prompt_tokens + again.completion_tokens);
  });

  it('sandbox-reasoning reasons before it answers, unless reasoning_effort is none', async () => {
    const { message, usage } = await say('Reply with exactly: done', { model: 'sandbox-reasoning' });
    assert.equal(message.content, 'done');
    assert.ok(message.reasoning_content);
    const { deltas } = await streamed('Reply with exactly: done', { model: 'sandbox-reasoning' });
    const reasoning = deltas.flatMap((delta) => (delta as { reasoning_content?: string }).reasoning_content ?? []);
    assert.equal(reasoning.join(''), message.reasoning_content);
    assert.equal(usage.completion_tokens_details?.reasoning_tokens, reasoning.length);
    assert.equal(usage.completion_tokens, reasoning.length + 1);
    const order = deltas.map((delta) =>
      delta.content ? 'content' : 'reasoning_content' in delta ? 'reasoning' : 'none',
    );
    assert.ok(order.lastIndexOf('reasoning') < order.indexOf('content'));
    const none = await say('hi', { model: 'sandbox-reasoning', reasoning_effort: 'none' });
    assert.equal(none.usage.completion_tokens_details?.reasoning_tokens, 0);
  });
});

describe('sandbox POST /v1/chat/completions, tools', () => {
  it('sandbox chat calls the tool of tool_choice with arguments that its schema allows', async () => {
    const { message, choice } = await say('hello', {
      tools: [weather, clock],
      tool_choice: { type: 'function', function: { name: 'get_time' } },
    });
    assert.equal(choice.finish_reason, 'tool_calls');
    assert.equal(message.content, null);
    assert.deepEqual(calledFunctions(message), [{ name: 'get_time', arguments: { zone: 'UTC' } }]);
  });

  it('sandbox chat calls one tool when one is required, and none when none is allowed', async () => {
    const required = await say('hello', { tools: [weather, clock], tool_choice: 'required' });
    assert.deepEqual(
      calledFunctions(required.message).map(({ name }) => name),
      ['get_weather'],
    );
    assert.ok(calledFunctions(required.message)[0]?.arguments.days >= 2);
    const none = await say('the weather', { tools: [weather], tool_choice: 'none' });
    assert.equal(none.message.tool_calls, undefined);
    assert.equal(none.choice.finish_reason, 'stop');
  });

  it('sandbox chat calls the tools that the text names, two in parallel unless that is off', async () => {
    const tools = [weather, clock];
    const names = async (text: string, more: Partial<Parameters> = {}) =>
      calledFunctions((await say(text, { tools, ...more })).message).map(({ name }) => name);
    assert.deepEqual(await names('How is the Weather?'), ['get_weather']);
    assert.deepEqual(await names('Which weather at what time?'), ['get_weather', 'get_time']);
    assert.deepEqual(await names('Which weather at what time?', { parallel_tool_calls: false }), ['get_weather']);
    assert.deepEqual(await names('hello'), []);
    const allowed = (mode: 'auto' | 'required'): OpenAI.ChatCompletionAllowedToolChoice => {
      const chosen = [{ type: 'function', function: { name: 'get_time' } }];
      return { type: 'allowed_tools', allowed_tools: { mode, tools: chosen } };
    };
    assert.deepEqual(await names('Which weather at what time?', { tool_choice: allowed('auto') }), ['get_time']);
    assert.deepEqual(await names('hello', { tool_choice: allowed('required') }), ['get_time']);
  });

  it('sandbox chat obeys the directive TOOL:<name> {json} exactly', async () => {
    const json = '{"city": "São Paulo {}", "days":3, "more": {"quote": "\\"}"}}';
    const { message } = await say(`Do it. TOOL:get_weather ${json} and then TOOL:get_time`, {
      tools: [weather, clock],
    });
    const [first, second] = message.tool_calls ?? [];
    assert.ok(first?.type === 'function' && second?.type === 'function');
    assert.equal(first.function.arguments, json);
    assert.equal(second.function.name, 'get_time');
  });

  it('sandbox chat answers tool results with text that contains each, and makes no further call', async () => {
    const tools = [weather, clock];
    const user = { role: 'user', content: 'TOOL:get_weather {"city":"Oslo"} TOOL:get_time {"zone":"CET"}' } as const;
    const { choices } = await create({ messages: [user], tools });
    const called = choices[0]?.message;
    assert.ok(called?.tool_calls);
    const results = called.tool_calls.map(({ id }, index) => {
      return { role: 'tool', tool_call_id: id, content: `result ${index} {"°": ${index}}` } as const;
    });
    const answer = await create({ messages: [user, called, ...results], tools });
    for (const { content } of results) assert.ok(answer.choices[0]?.message.content?.includes(content));
    assert.match(String(answer.choices[0]?.message.content), /get_weather/);
  });

  it('sandbox chat streams tool calls in fragments that the official client joins', async () => {
    const { chunks, deltas } = await streamed('Which weather at what time?', { tools: [weather, clock] });
    const fragments = deltas.flatMap((delta) => delta.tool_calls ?? []);
    const firsts = fragments.filter((fragment) => fragment.id);
    assert.deepEqual(
      firsts.map(({ index, type, function: called }) => [index, type, called?.name, called?.arguments]),
      [
        [0, 'function', 'get_weather', ''],
        [1, 'function', 'get_time', ''],
      ],
    );
    assert.ok(fragments.length > 6);
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'tool_calls');
    const runner = client.chat.completions.stream({
      model: 'sandbox-chat',
      messages: [{ role: 'user', content: 'Which weather at what time?' }],
      tools: [weather, clock],
    });
    const message = (await runner.finalChatCompletion()).choices[0]?.message;
    assert.ok(message);
    assert.deepEqual(
      calledFunctions(message as Message).map(({ name }) => name),
      ['get_weather', 'get_time'],
    );
  });

  it('sandbox chat calls custom tools with text, matching their regular expression when they have one', async () => {
    const custom: OpenAI.ChatCompletionCustomTool = {
      type: 'custom',
      custom: {
        name: 'run_query',
        format: { type: 'grammar', grammar: { syntax: 'regex', definition: '^SELECT [a-z]+$' } },
      },
    };
    const { message } = await say('a query', { tools: [custom] });
    const [call] = message.tool_calls ?? [];
    assert.ok(call?.type === 'custom');
    assert.match(call.custom.input, /^SELECT [a-z]+$/);
    const directed = await say('TOOL:run_query SELECT 1', { tools: [custom] });
    const [exact] = directed.message.tool_calls ?? [];
    assert.ok(exact?.type === 'custom' && exact.custom.input === 'SELECT 1');
    const { deltas } = await streamed('a query', { tools: [custom] });
    const inputs = deltas.flatMap((delta) => delta.tool_calls ?? []) as { custom?: { input: string } }[];
    assert.equal(inputs.map((fragment) => fragment.custom?.input).join(''), call.custom.input);
  });

  it('sandbox chat answers legacy functions with function_call', async () => {
    const functions = [{ name: 'get_time', parameters: { type: 'object' } }];
    const { message, choice } = await say('the time', { functions });
    assert.equal(choice.finish_reason, 'function_call');
    assert.deepEqual(message.function_call, { name: 'get_time', arguments: '{}' });
    const { deltas } = await streamed('the time', { functions });
    assert.equal(deltas.map((delta) => delta.function_call?.arguments ?? '').join(''), '{}');
    assert.equal((await say('the time', { functions, function_call: 'none' })).message.function_call, undefined);
  });

  it('sandbox chat calls a function whose schema names no type, or that has none, with an object', async () => {
    for (const parameters of [
      {},
      { properties: { city: { const: 'Oslo' } } },
      { anyOf: [{ required: [] }] },
      undefined,
    ]) {
      const definition = { name: 'get_time', ...(parameters && { parameters }) };
      const { message } = await say('the time', { tools: [{ type: 'function', function: definition }] });
      const expected = parameters?.properties === undefined ? {} : { city: 'Oslo' };
      assert.deepEqual(calledFunctions(message), [{ name: 'get_time', arguments: expected }]);
      const { message: legacy } = await say('the time', { functions: [definition] });
      assert.deepEqual(JSON.parse(String(legacy.function_call?.arguments)), expected);
    }
  });

  it('sandbox chat truncates tool calls at max_tokens like text', async () => {
    const { message, choice, usage } = await say('the weather', { tools: [weather], max_tokens: 3 });
    assert.equal(choice.finish_reason, 'length');
    assert.equal(usage.completion_tokens, 3);
    assert.equal(message.tool_calls?.length, 1);
  });
});

describe('sandbox POST /v1/chat/completions, structured output', () => {
  it('sandbox chat answers json_schema with an instance, held and streamed', async () => {
    const schema = {
      type: 'object',
      properties: {
        steps: { type: 'array', items: { $ref: '#/$defs/step' }, minItems: 2 },
        mood: { enum: ['good', 'bad'] },
      },
      required: ['steps', 'mood'],
      additionalProperties: false,
      $defs: { step: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] } },
    };
    const response_format = { type: 'json_schema', json_schema: { name: 'plan', schema, strict: true } } as const;
    const expected = { steps: [{ title: 'title' }, { title: 'title' }], mood: 'good' };
    assert.deepEqual(JSON.parse(String((await say('plan it', { response_format })).text)), expected);
    assert.deepEqual(JSON.parse((await streamed('plan it', { response_format })).text), expected);
  });

  it('sandbox chat answers json_object with the keys that the prompt quotes', async () => {
    const response_format = { type: 'json_object' } as const;
    const { text } = await say(`Don't forget: JSON with the keys "name", 'age' and \`__proto__\`, that's all`, {
      response_format,
    });
    assert.deepEqual(Object.keys(JSON.parse(String(text))), ['name', 'age', '__proto__']);
    assert.deepEqual(Object.keys(JSON.parse(String((await say('some json', { response_format })).text))), ['answer']);
    assert.equal((await say('Reply with exactly: {"a": 1}', { response_format })).text, '{"a": 1}');
  });

  it('sandbox chat returns 400 for a schema without an instance', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema: { $ref: '#/none' } } } as const;
    await assert.rejects(say('x', { response_format }), { status: 400, param: 'response_format' });
    const broken = tool('broken', { type: 'object', properties: { a: false }, required: ['a'] });
    await assert.rejects(say('broken', { tools: [broken] }), { status: 400, code: 'invalid_function_parameters' });
  });
});

describe('sandbox POST /v1/chat/completions, attachments', () => {
  const show = async (url: string) => {
    const content = [
      { type: 'image_url', image_url: { url } } as const,
      { type: 'text', text: 'What is this?' } as const,
    ];
    return String((await create({ messages: [{ role: 'user', content }] })).choices[0]?.message.content);
  };
  const dataUrl = (type: string, bytes: Buffer) => `data:image/${type};base64,${bytes.toString('base64')}`;

  it('sandbox chat reports format and size of the images it is shown', async () => {
    const png = Buffer.alloc(33);
    png.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
    png.writeUInt32BE(640, 16);
    png.writeUInt32BE(480, 20);
    assert.match(await show(dataUrl('png', png)), /PNG image of 640×480.*What is this\?/s);

    const gif = Buffer.from('GIF89a\x20\x00\x10\x00', 'latin1');
    assert.match(await show(dataUrl('gif', gif)), /GIF image of 32×16/);

    const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc400040000ffc0001108012c01900301', 'hex');
    assert.match(await show(dataUrl('jpeg', jpeg)), /JPEG image of 400×300/);

    const webp = (chunk: string, hex: string) =>
      Buffer.concat([Buffer.from(`RIFF\0\0\0\0WEBP${chunk}\0\0\0\0`, 'latin1'), Buffer.from(hex, 'hex')]);
    assert.match(await show(dataUrl('webp', webp('VP8X', '000000003f01001f0000'))), /WebP image of 320×32/);
    assert.match(await show(dataUrl('webp', webp('VP8 ', '0000009d012a40011400'))), /WebP image of 320×20/);
    assert.match(await show(dataUrl('webp', webp('VP8L', '2f3fc1070000'))), /WebP image of 320×32/);
  });

  it('sandbox chat reports an image it cannot read, and never fetches one', async () => {
    assert.match(await show(dataUrl('png', Buffer.from('nonsense'))), /cannot read/);
    assert.match(await show(dataUrl('jpeg', Buffer.from('ffd8ffe0ffff', 'hex'))), /cannot read/);
    assert.match(await show(`${sandbox.url}/cat.png`), new RegExp(`${sandbox.url}/cat\\.png`));
  });

  it('sandbox chat names audio and file attachments', async () => {
    const content: OpenAI.ChatCompletionContentPart[] = [
      { type: 'input_audio', input_audio: { format: 'wav', data: 'AAAA' } },
      { type: 'file', file: { filename: 'report.pdf', file_data: 'AAAA' } },
    ];
    const { choices } = await create({ messages: [{ role: 'user', content }] });
    assert.match(String(choices[0]?.message.content), /wav, 3 bytes.*"report\.pdf"/);
  });
});
