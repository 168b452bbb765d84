import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createCallerDownloader } from '../../../workers/http/download.ts';
import { createBedrock } from '../../../workers/vendors/bedrock/bedrock.ts';
import { toConverseRequest } from '../../../workers/vendors/bedrock/request.ts';
import { InlineMedia } from '../../../workers/vendors/support/inline-media.ts';
import { callOf, collect, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { VendorBench } from '../contracts/vendor-bench.ts';
import { answerOf, redactedData, signature, text, toJson } from '../recorded/recorded-bedrock.ts';

type Fields = Record<string, unknown>;

const apiKey = 'ABSKQmVkcm9ja0FQSUtleS10ZXN0LTAxMjM0NTY3ODk=';
const claude = 'us.anthropic.claude-opus-4-6-v1';
const nova = 'us.amazon.nova-lite-v1:0';
const llama = 'us.meta.llama3-3-70b-instruct-v1:0';
const png = 'iVBORw0KGgo=';
const tools = [{ type: 'function', function: { name: 'get_weather' } }];
const mark = { cache_control: { type: 'ephemeral' } };
const point = { cachePoint: { type: 'default' } };

const system = (content: unknown): Fields => ({ role: 'system', content });
const user = (content: unknown): Fields => ({ role: 'user', content });
const assistant = (content: unknown, more: Fields = {}): Fields => ({ role: 'assistant', content, ...more });
const result = (id: string, content: unknown): Fields => ({ role: 'tool', tool_call_id: id, content });
const call = (id: string, json: string): Fields => ({
  ...{ id, type: 'function', function: { name: 'get_weather', arguments: json } },
});
const image = (url: string): Fields => ({ type: 'image_url', image_url: { url } });
const file = (data: string, filename?: string): Fields => ({
  type: 'file',
  file: { file_data: data, ...(filename !== undefined && { filename }) },
});

describe('chat messages as Bedrock messages', () => {
  const bench = new VendorBench((baseUrl) => createBedrock({ name: 'bedrock', baseUrl, apiKey }));
  before(() => bench.server.answer((response) => sendJson(response, 200, toJson(answerOf([text('Hi')])))));

  async function sentFor(messages: Fields[], { model = claude, ...more }: Fields & { model?: string } = {}) {
    const request = JSON.stringify({ messages, ...more });
    await bench.vendor.chat(callOf({ model, stream: false, request }), collect());
    return bench.posted as { system?: unknown; messages: unknown };
  }
  const refuses = async (messages: Fields[], param: string): Promise<void> => {
    const asked = bench.server.requests.length;
    await assert.rejects(sentFor(messages), { code: 'invalid_request_error', status: 400, param });
    assert.equal(bench.server.requests.length, asked);
  };

  it("system and developer messages become Bedrock's system prompt, wherever they are", async () => {
    const sent = await sentFor([
      system('Be brief.'),
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.', ...mark }] },
      user('Hello!'),
      assistant('Hi.'),
      system('Be loud.'),
      user('Again!'),
    ]);
    assert.deepEqual(sent, {
      system: [{ text: 'Be brief.' }, { text: 'Be kind.' }, point, { text: 'Be loud.' }],
      messages: [
        { role: 'user', content: [{ text: 'Hello!' }] },
        { role: 'assistant', content: [{ text: 'Hi.' }] },
        { role: 'user', content: [{ text: 'Again!' }] },
      ],
    });
    assert.deepEqual(await sentFor([system('Say hello.')]), {
      messages: [{ role: 'user', content: [{ text: 'Say hello.' }] }],
    });
  });

  it('consecutive messages of one role become one Bedrock message, also across empty messages', async () => {
    const { messages } = await sentFor([
      user('One.'),
      user('Two.'),
      assistant(' '),
      user([
        { type: 'text', text: '' },
        { type: 'text', text: 'Three.' },
      ]),
      assistant('Four.'),
      assistant(null, { refusal: 'No.' }),
    ]);
    assert.deepEqual(messages, [
      { role: 'user', content: [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }] },
      { role: 'assistant', content: [{ text: 'Four.' }, { text: 'No.' }] },
    ]);
  });

  it('a chat that the assistant begins gets a turn of the user in front, without which Bedrock refuses it', async () => {
    const silence = { role: 'user', content: [{ text: '(The user has not said anything yet.)' }] };
    for (const model of [claude, nova]) {
      const { messages } = await sentFor([system('Be kind.'), assistant('Hello!'), user('Hi')], { model });
      assert.deepEqual(messages, [
        silence,
        { role: 'assistant', content: [{ text: 'Hello!' }] },
        { role: 'user', content: [{ text: 'Hi' }] },
      ]);
    }
  });

  it("parallel tool calls and their results go to Bedrock together, after Claude's signed thinking", async () => {
    const { messages } = await sentFor(
      [
        user('And the weather?'),
        assistant('I look.', {
          reasoning_content: 'Hm.',
          thinking_blocks: [
            { type: 'thinking', thinking: 'Hm.', signature },
            { type: 'redacted_thinking', data: redactedData },
            { type: 'thinking', thinking: 'Of another vendor.', signature: '' },
          ],
          tool_calls: [call('call_1', '{"city":"Łódź"}'), call('call:2', '')],
        }),
        result('call_1', '{"celsius":21.50}'),
        result('call:2', [{ type: 'text', text: 'Sunny.', ...mark }]),
        user('So?'),
      ],
      { tools },
    );
    assert.deepEqual(messages, [
      { role: 'user', content: [{ text: 'And the weather?' }] },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'Hm.', signature } } },
          { reasoningContent: { redactedContent: redactedData } },
          { text: 'I look.' },
          { toolUse: { toolUseId: 'call_1', name: 'get_weather', input: { city: 'Łódź' } } },
          { toolUse: { toolUseId: 'call_2', name: 'get_weather', input: {} } },
        ],
      },
      {
        role: 'user',
        content: [
          { toolResult: { toolUseId: 'call_1', content: [{ text: '{"celsius":21.50}' }] } },
          { toolResult: { toolUseId: 'call_2', content: [{ text: 'Sunny.' }] } },
          point,
          { text: 'So?' },
        ],
      },
    ]);
  });

  it('an id of a call that is longer than Bedrock takes is another one there, in the call as in its result', async () => {
    const long = `call_1__thought__${'A'.repeat(2000)}`;
    const longest = 'c'.repeat(64);
    const sent = await sentFor(
      [user('So?'), assistant(null, { tool_calls: [call(long, '{}'), call(longest, '{}')] }), result(long, 'Sunny.')],
      { tools },
    );
    const [, { content: calls }, { content: results }] = sent.messages as [
      unknown,
      { content: { toolUse: Fields }[] },
      { content: { toolResult: Fields }[] },
    ];
    const [id, other] = calls.map(({ toolUse }) => String(toolUse.toolUseId));
    assert.match(String(id), /^[a-zA-Z0-9_-]{1,64}$/);
    assert.equal(other, longest);
    assert.equal(results[0]?.toolResult.toolUseId, id);
  });

  it("a name of a call that is longer than Bedrock takes, as Claude's own may be, is a shorter one there", async () => {
    const longest = 'n'.repeat(64);
    const named = (id: string, name: string): Fields => ({ id, type: 'function', function: { name, arguments: '{}' } });
    const calls = [named('c1', `mcp__${'n'.repeat(100)}`), named('c2', longest)];
    const { messages } = await sentFor([user('So?'), assistant(null, { tool_calls: calls }), result('c1', 'Sunny.')], {
      tools,
    });
    const [, { content }] = messages as [unknown, { content: { toolUse: Fields }[] }];
    const [name, other] = content.map(({ toolUse }) => String(toolUse.name));
    assert.match(String(name), /^mcp__n[a-zA-Z0-9_-]{1,58}$/);
    assert.equal(other, longest);
  });

  it('thinking goes to no Bedrock model that did not sign it, and cache marks to none without a cache', async () => {
    const turns = [
      user([{ type: 'text', text: 'Hello!', ...mark }]),
      assistant('Hi.', { thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature }] }),
      user('Again!'),
    ];
    for (const model of [nova, llama]) {
      const { messages } = await sentFor(turns, { model });
      assert.deepEqual(messages, [
        { role: 'user', content: [{ text: 'Hello!' }, ...(model === nova ? [point] : [])] },
        { role: 'assistant', content: [{ text: 'Hi.' }] },
        { role: 'user', content: [{ text: 'Again!' }] },
      ]);
    }
  });

  it('Nova gets cache points behind texts alone, which it refuses behind calls, their results and files', async () => {
    const pdf = { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } };
    const turns = [
      { role: 'system', content: [{ type: 'text', text: 'Be brief.', ...mark }] },
      user([
        { type: 'text', text: 'Hello!', ...mark },
        { ...pdf, ...mark },
      ]),
      assistant(null, { tool_calls: [{ ...call('call_1', '{}'), ...mark }] }),
      { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'Sunny.', ...mark }] },
    ];
    const pointsOf = async (model: string): Promise<unknown[]> => {
      const { system, messages } = await sentFor(turns, { model, tools: [{ ...tools[0], ...mark }] });
      const contents = (messages as { content: Fields[] }[]).map(({ content }) => content);
      return [system as Fields[], ...contents].map((blocks) => blocks.filter(({ cachePoint }) => cachePoint).length);
    };
    assert.deepEqual(await pointsOf(claude), [1, 2, 1, 1]);
    for (const model of [nova, 'us.amazon.nova-2-lite-v1:0']) assert.deepEqual(await pointsOf(model), [1, 1, 0, 0]);
  });

  it('earlier tool calls and results become text for Bedrock when the request offers no tools', async () => {
    const turns = [
      user('And the weather?'),
      assistant('I look.', {
        thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature }],
        tool_calls: [call('call_1', '{"city":"Łódź"}')],
      }),
      result('call_1', 'Sunny.'),
      user('So?'),
    ];
    for (const given of [{}, { tools, tool_choice: 'none' }]) {
      assert.deepEqual(await sentFor(turns, given), {
        messages: [
          { role: 'user', content: [{ text: 'And the weather?' }] },
          {
            role: 'assistant',
            content: [
              { text: 'I look.' },
              { text: '<tool_call id="call_1" name="get_weather">\n{"city":"Łódź"}\n</tool_call>' },
            ],
          },
          {
            role: 'user',
            content: [{ text: '<tool_result id="call_1">\nSunny.\n</tool_result>' }, { text: 'So?' }],
          },
        ],
      });
    }
  });

  it('images and documents reach Bedrock as bytes, documents under valid unique names', async () => {
    const pdf = `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}`;
    const { messages } = await sentFor([
      user([
        { type: 'text', text: 'What is this?' },
        image(`data:image/png;base64,${png}`),
        image('data:image/jpg;base64,AAAA'),
        image(`data:image/jpeg;base64,${png}`),
        file(pdf, 'Q3_report (final).pdf'),
        file(pdf, 'Q3.report (final).pdf'),
        file('data:text/plain;base64,w7M=', 'a.txt'),
        { ...file(pdf), ...mark },
      ]),
    ]);
    const document = (name: string, format = 'pdf', bytes = 'JVBERg==') => ({
      document: { format, name, source: { bytes } },
    });
    assert.deepEqual(messages, [
      {
        role: 'user',
        content: [
          { text: 'What is this?' },
          { image: { format: 'png', source: { bytes: png } } },
          { image: { format: 'jpeg', source: { bytes: 'AAAA' } } },
          { image: { format: 'png', source: { bytes: png } } },
          document('Q3 report (final)'),
          document('Q3 report (final) 2'),
          document('a txt', 'txt', 'w7M='),
          document('document'),
          point,
        ],
      },
    ]);
  });

  it('content that Bedrock cannot take is rejected with its path', async () => {
    const at = (part: Fields) => [user('Hi'), user([{ type: 'text', text: 'Look!' }, part])];
    await refuses(at(image('data:image/bmp;base64,Qk0=')), 'messages[1].content[1].image_url.url');
    await refuses(at(image('data:image/png,raw')), 'messages[1].content[1].image_url.url');
    await refuses(at(image('ftp://example.com/a.png')), 'messages[1].content[1].image_url.url');
    await refuses(at({ type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }), 'messages[1].content[1]');
    await refuses(at(file('data:application/zip;base64,AA==')), 'messages[1].content[1].file.file_data');
    await refuses(at({ type: 'file', file: { file_id: 'file-1' } }), 'messages[1].content[1].file.file_id');
    await refuses([user('Hi'), { role: 'function', name: 'f', content: '1' }], 'messages[1]');
  });

  it("Bedrock chat fetches a linked image, unless the link leads into the gateway's own network", async () => {
    const web = await startFixtureVendor();
    const link = `${web.baseUrl}/a.png`;
    const turns = [user([image(link), { type: 'text', text: 'What is this?' }])];
    await refuses(turns, 'messages[0].content[0].image_url.url');
    assert.equal(web.requests.length, 0);
    const download = createCallerDownloader({ trustedOrigin: new URL(link).origin });
    const call = callOf({ model: claude, request: JSON.stringify({ messages: turns }) });
    web.answer((response) => response.writeHead(200, { 'content-type': 'image/webp' }).end('webp'));
    const { messages } = JSON.parse(await toConverseRequest(call, new InlineMedia(call, download)));
    const bytes = Buffer.from('webp').toString('base64');
    assert.deepEqual(messages, [
      { role: 'user', content: [{ image: { format: 'webp', source: { bytes } } }, { text: 'What is this?' }] },
    ]);
    const refused = [
      ['text/html', /does not say that it is an image/],
      ['image/svg+xml', /use a PNG, JPEG, GIF or WebP image/],
    ] as const;
    for (const [type, message] of refused) {
      web.answer((response) => response.writeHead(200, { 'content-type': type }).end('<svg/>'));
      await assert.rejects(toConverseRequest(call, new InlineMedia(call, download)), {
        ...{ code: 'invalid_request_error', param: 'messages[0].content[0].image_url.url', message },
      });
    }
    await web.close();
  });

  it("Bedrock chat fetches a linked PDF, unless the link leads into the gateway's own network", async () => {
    const web = await startFixtureVendor();
    const link = `${web.baseUrl}/a.pdf`;
    const turns = [user([file(link, 'a.pdf'), { type: 'text', text: 'What is this?' }])];
    await refuses(turns, 'messages[0].content[0].file.file_data');
    assert.equal(web.requests.length, 0);
    const download = createCallerDownloader({ trustedOrigin: new URL(link).origin });
    const call = callOf({ model: claude, request: JSON.stringify({ messages: turns }) });
    web.answer((response) => response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.7'));
    const { messages } = JSON.parse(await toConverseRequest(call, new InlineMedia(call, download)));
    const bytes = Buffer.from('%PDF-1.7').toString('base64');
    assert.deepEqual(messages, [
      {
        role: 'user',
        content: [{ document: { format: 'pdf', name: 'a', source: { bytes } } }, { text: 'What is this?' }],
      },
    ]);
    await web.close();
  });

  it('Bedrock chat omits the thinking budget after results of calls made without signed thinking', async () => {
    const after = async (more: Fields) => {
      const turns = [
        user('Weather?'),
        assistant(null, { tool_calls: [call('c1', '{}')], ...more }),
        result('c1', 'Sun'),
      ];
      const model = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
      const sent = await sentFor(turns, { model, tools, reasoning_effort: 'low' });
      return (sent as Fields).additionalModelRequestFields;
    };
    assert.equal(await after({}), undefined);
    const signed = { thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature }] };
    assert.deepEqual(await after(signed), { thinking: { type: 'enabled', budget_tokens: 2048 } });
  });
});
