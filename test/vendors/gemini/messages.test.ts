import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { geminiChatFields } from '../../../shared/vendors/gemini.ts';
import { createCallerDownloader } from '../../../workers/http/download.ts';
import { createHttpClient } from '../../../workers/http/http-client.ts';
import { GeminiAnswerReader } from '../../../workers/vendors/gemini/answer-reader.ts';
import { geminiChat } from '../../../workers/vendors/gemini/chat.ts';
import { createGemini } from '../../../workers/vendors/gemini/gemini.ts';
import type { VendorMethod } from '../../../workers/vendors/vendor.ts';
import { callOf, collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { answer, answerBody } from '../recorded/recorded-gemini.ts';

const apiKey = 'AIzaSyTest0123456789abcdefghijklmnopqrs';
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('chat messages as Gemini contents', () => {
  let server: FixtureVendor;
  /** A server of images, which the tests' downloader may reach although it is on this machine. */
  let web: FixtureVendor;
  let chat: VendorMethod;
  let close: () => Promise<void>;
  before(async () => {
    server = await startFixtureVendor();
    web = await startFixtureVendor();
    const http = createHttpClient({ vendor: 'gemini', baseUrl: server.baseUrl, headers: {}, secret: apiKey });
    const download = createCallerDownloader({ trustedOrigin: new URL(web.baseUrl).origin });
    chat = geminiChat(http, new GeminiAnswerReader('gemini', apiKey), download);
    close = () => http.close();
    server.answer((response) => sendJson(response, 200, JSON.stringify(answer)));
  });
  after(async () => {
    await close();
    await server.close();
    await web.close();
  });

  const send = async (messages: object[], model = 'gemini-2.5-flash') => {
    await chat(callOf({ model, stream: false, request: JSON.stringify({ messages }) }), collect());
    const { contents, systemInstruction } = JSON.parse(server.requests.at(-1)?.body ?? '');
    return { contents, systemInstruction };
  };
  const user = (...parts: object[]) => ({ role: 'user', parts });
  const model = (...parts: object[]) => ({ role: 'model', parts });
  const call = (id: string, name: string, args = '{}', more: object = {}) => ({
    ...{ id, type: 'function', function: { name, arguments: args }, ...more },
  });

  it("system messages become Gemini's system instruction, and later ones keep their position", async () => {
    const sent = await send([
      { role: 'system', content: 'Be brief.' },
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Speak' },
          { type: 'text', text: 'Polish.' },
        ],
      },
      { role: 'user', content: 'Hi', name: 'Anna' },
      { role: 'assistant', content: 'Hej' },
      { role: 'system', content: 'Now speak German.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Go' },
          { type: 'text', text: ' on' },
        ],
      },
    ]);
    assert.deepEqual(sent.systemInstruction, { parts: [{ text: 'Be brief.' }, { text: 'Speak\nPolish.' }] });
    assert.deepEqual(sent.contents, [
      user({ text: 'Hi' }),
      model({ text: 'Hej' }),
      user({ text: '<system>\nNow speak German.\n</system>' }),
      user({ text: 'Go' }, { text: ' on' }),
    ]);
  });

  it('a system message alone becomes the user content for Gemini', async () => {
    const sent = await send([{ role: 'system', content: 'Say hello.' }]);
    assert.deepEqual(sent, { contents: [user({ text: 'Say hello.' })], systemInstruction: undefined });
  });

  it('assistant messages reach Gemini with their parts and refusals, and empty ones are omitted', async () => {
    const sent = await send([
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'b' },
          { type: 'refusal', refusal: 'c' },
        ],
        refusal: 'd',
      },
      { role: 'user', content: 'e' },
      {
        role: 'assistant',
        content: '',
        reasoning_content: 'Hm.',
        thinking_blocks: [{ type: 'thinking', thinking: 'Hm.' }],
      },
      { role: 'user', content: 'f' },
    ]);
    assert.deepEqual(sent.contents, [
      user({ text: 'a' }),
      model({ text: 'b' }, { text: 'c' }, { text: 'd' }),
      user({ text: 'e' }),
      user({ text: 'f' }),
    ]);
  });

  it('consecutive messages of the assistant are one turn for Gemini, which refuses calls behind another turn of the model', async () => {
    const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'yes' });
    const { contents } = await send([
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: 'I look.' },
      { role: 'assistant', content: null, tool_calls: [call('a', 'f')] },
      { role: 'assistant', content: null, tool_calls: [call('b', 'g')] },
      result('a'),
      result('b'),
    ]);
    const called = (id: string, name: string) => ({ functionCall: { id, name, args: {} } });
    const answered = (id: string, name: string) => ({ functionResponse: { id, name, response: { output: 'yes' } } });
    assert.deepEqual(contents, [
      user({ text: 'Go' }),
      model({ text: 'I look.' }, called('a', 'f'), called('b', 'g')),
      user(answered('a', 'f'), answered('b', 'g')),
    ]);
  });

  it('empty texts of the system and of the user are omitted for Gemini, which refuses them', async () => {
    const sent = await send([
      { role: 'system', content: '' },
      {
        role: 'user',
        content: [
          { type: 'text', text: '' },
          { type: 'text', text: 'Hi' },
        ],
      },
      { role: 'assistant', content: 'Hej' },
      { role: 'system', content: '' },
      { role: 'user', content: '' },
    ]);
    assert.deepEqual(sent, { contents: [user({ text: 'Hi' }), model({ text: 'Hej' })], systemInstruction: undefined });
  });

  it('tool results name their function for Gemini by the id of the call, and consecutive results share one content', async () => {
    const big = '{"id":12345678901234567890}';
    const sent = await send([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [call('c1', 'get_weather', '{"city":"Łódź"}'), call('c2', 'get_time', '')],
      },
      { role: 'tool', tool_call_id: 'c2', content: '12:00' },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: big }] },
      { role: 'user', content: 'And now?' },
      { role: 'assistant', content: 'Again.', tool_calls: [call('c1', 'get_date')] },
      { role: 'tool', tool_call_id: 'c1', content: '' },
    ]);
    const result = (id: string, name: string, output: string) => ({
      functionResponse: { id, name, response: { output } },
    });
    assert.deepEqual(sent.contents, [
      user({ text: 'Weather?' }),
      model(
        { functionCall: { id: 'c1', name: 'get_weather', args: { city: 'Łódź' } } },
        { functionCall: { id: 'c2', name: 'get_time', args: {} } },
      ),
      user(result('c2', 'get_time', '12:00'), result('c1', 'get_weather', big)),
      user({ text: 'And now?' }),
      model({ text: 'Again.' }, { functionCall: { id: 'c1', name: 'get_date', args: {} } }),
      user(result('c1', 'get_date', '')),
    ]);
  });

  it('signatures return to Gemini on the parts they came from, so that an answer can be sent back', async () => {
    const message = answerBody.choices[0]?.message ?? {};
    const { contents } = await send([{ role: 'user', content: 'Hi' }, message], 'gemini-3.8-flash');
    const parts = answer.candidates[0]?.content.parts ?? [];
    // Summaries of thoughts are not sent back.
    assert.deepEqual(contents[1], model(...parts.filter(({ thought }) => thought !== true)));
    const signed = { extra_content: { google: { thought_signature: 'Ehs=' } } };
    const texts = await send([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello', ...signed },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: '', ...signed },
    ]);
    assert.deepEqual(texts.contents[1], model({ text: 'Hello', thoughtSignature: 'Ehs=' }));
    assert.deepEqual(texts.contents[3], model({ text: '', thoughtSignature: 'Ehs=' }));
  });

  it('unsigned calls are signed for the Gemini models that require it, the first of each message', async () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', tool_calls: [call('a', 'f'), call('b', 'f')] },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'tool', tool_call_id: 'b', content: '2' },
      {
        role: 'assistant',
        tool_calls: [call('c', 'f', '{}', { extra_content: { google: { thought_signature: 'own' } } }), call('d', 'f')],
      },
      { role: 'tool', tool_call_id: 'c', content: '3' },
      { role: 'tool', tool_call_id: 'd', content: '4' },
    ];
    const signaturesOf = async (name: string) => {
      const { contents } = await send(messages, name);
      const parts = contents.flatMap((content: { parts: object[] }) => content.parts);
      return parts
        .filter((part: object) => 'functionCall' in part)
        .map((part: { thoughtSignature?: string }) => part.thoughtSignature);
    };
    const foreign = 'skip_thought_signature_validator';
    assert.deepEqual(await signaturesOf('gemini-3.8-flash'), [foreign, undefined, 'own', undefined]);
    assert.deepEqual(await signaturesOf('gemini-2.5-flash'), [undefined, undefined, 'own', undefined]);
    assert.deepEqual(await signaturesOf('gemma-4-31b-it'), [undefined, undefined, 'own', undefined]);
  });

  it('images, audio and files in data URLs reach Gemini unchanged', async () => {
    const { contents } = await send([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/PNG;charset=x;base64,${pixel}`, detail: 'high' } },
          { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
        ],
      },
    ]);
    assert.deepEqual(contents[0].parts, [
      { text: 'What is this?' },
      { inlineData: { mimeType: 'image/png', data: pixel } },
      { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } },
      { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
    ]);
  });

  it("the message fields that Gemini's support table ignores are omitted", async () => {
    const said = { role: 'assistant', content: 'Hi' };
    const url = `data:image/png;base64,${pixel}`;
    const plain = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }, said];
    const hinted: Record<string, object[]> = {
      'messages.name': [{ ...plain[0], name: 'Anna' }, said],
      'messages.content.image_url.detail': [
        { role: 'user', content: [{ type: 'image_url', image_url: { url, detail: 'low' } }] },
        said,
      ],
      'messages.reasoning_content': [plain[0] as object, { ...said, reasoning_content: 'Hm.' }],
      'messages.thinking_blocks': [
        plain[0] as object,
        { ...said, thinking_blocks: [{ type: 'thinking', signature: 'x' }] },
      ],
    };
    const rows = Object.keys(geminiChatFields).filter((name) => name.startsWith('messages.'));
    assert.deepEqual(Object.keys(hinted), rows);
    for (const name of rows) {
      assert.equal(geminiChatFields[name], 'ignored');
      assert.deepEqual(await send(hinted[name] ?? []), await send(plain), name);
    }
  });

  const image = (url: string) => ({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] });

  it('Gemini chat fetches linked images itself', async () => {
    web.answer((response) =>
      response.writeHead(200, { 'content-type': 'Image/JPEG; x=y' }).end(Buffer.from('/9j/4AA=', 'base64')),
    );
    const { contents } = await send([image(`${web.baseUrl}/cat.jpg`)]);
    assert.deepEqual(contents, [user({ inlineData: { mimeType: 'image/jpeg', data: '/9j/4AA=' } })]);
    assert.equal(web.requests.at(-1)?.headers['x-goog-api-key'], undefined);
  });

  it('Gemini chat fetches linked PDFs itself, and nothing else by such a link', async () => {
    const file = { type: 'file', file: { file_data: `${web.baseUrl}/a.pdf` } };
    web.answer((response) => response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.7'));
    const { contents } = await send([{ role: 'user', content: [file] }]);
    const data = Buffer.from('%PDF-1.7').toString('base64');
    assert.deepEqual(contents, [user({ inlineData: { mimeType: 'application/pdf', data } })]);
    web.answer((response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'));
    const refused = { status: 400, param: 'messages[0].content[0].file.file_data' };
    await assert.rejects(send([{ role: 'user', content: [file] }]), refused);
  });

  it('a link that leads to no image is a 400 with the field and without the link', async () => {
    const param = 'messages[0].content[0].image_url.url';
    const asked = server.requests.length;
    const answers: [number, string, Buffer][] = [
      [404, 'image/png', Buffer.from('x')],
      [200, 'text/html', Buffer.from('x')],
      [200, 'image/png', Buffer.alloc(21 * 1024 * 1024)],
    ];
    for (const [status, type, body] of answers) {
      web.answer((response) => response.writeHead(status, { 'content-type': type }).end(body));
      await assert.rejects(send([image(`${web.baseUrl}/secret-token`)]), (error: Error & { param?: string }) => {
        assert.deepEqual({ ...error, message: '' }.param, param);
        assert.equal((error as { status?: number }).status, 400);
        assert.ok(!error.message.includes('secret-token'));
        return true;
      });
    }
    assert.equal(server.requests.length, asked);
  });

  it("Gemini chat fetches nothing from this machine or its network, not even from the vendor's own origin", async () => {
    const guarded = createGemini({ name: 'gemini', baseUrl: server.baseUrl, apiKey });
    const asked = server.requests.length;
    for (const url of [
      `${server.baseUrl}/cat.png`,
      'http://169.254.169.254/latest',
      'http://[::1]/',
      'file:///etc/passwd',
      'cat.png',
    ]) {
      const request = JSON.stringify({ messages: [image(url)] });
      const answered = guarded.chat(callOf({ stream: false, request }), collect());
      await assert.rejects(answered, { status: 400, param: 'messages[0].content[0].image_url.url' }, url);
    }
    assert.equal(server.requests.length, asked);
    await guarded.close();
  });

  it('Gemini chat limits what it fetches for one request', async () => {
    web.answer((response) =>
      response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(17 * 1024 * 1024)),
    );
    const links = [0, 1, 2, 3].map(() => image(`${web.baseUrl}/a.png`));
    await assert.rejects(send(links), { status: 400, param: 'messages[3].content[0].image_url.url' });
  });

  it('a conversation goes on at Gemini after a call whose arguments are no object, such as a truncated one', async () => {
    for (const text of ['{"a":', '[1]', '"a"']) {
      const { contents } = await send([
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: [call('c', 'f', text)] },
        { role: 'tool', tool_call_id: 'c', content: 'The arguments are no JSON.' },
      ]);
      assert.deepEqual(contents[1], model({ functionCall: { id: 'c', name: 'f', args: { INVALID_JSON: text } } }));
    }
  });

  it('content that Gemini cannot take is rejected with its path', async () => {
    const hi = { role: 'user', content: 'Hi' };
    const file = { type: 'file', file: { file_id: 'file-1' } };
    const custom = { id: 'c', type: 'custom', custom: { name: 'patch', input: 'x' } };
    const cases: [object[], string][] = [
      [[hi, { role: 'tool', tool_call_id: 'nobody', content: 'x' }], 'messages[1].tool_call_id'],
      [[hi, { role: 'assistant', tool_calls: [custom] }], 'messages[1].tool_calls[0].type'],
      [[hi, { role: 'assistant', audio: { id: 'audio_1' } }], 'messages[1].audio'],
      [[hi, { role: 'assistant', function_call: { name: 'f', arguments: '{}' } }], 'messages[1].function_call'],
      [[hi, { role: 'function', name: 'f', content: 'x' }], 'messages[1].role'],
      [[{ role: 'user', content: [file] }], 'messages[0].content[0].file.file_id'],
      [
        [{ role: 'user', content: [{ type: 'file', file: { file_data: 'JVBERi0=' } }] }],
        'messages[0].content[0].file.file_data',
      ],
      [[image('data:image/png,abc')], 'messages[0].content[0].image_url.url'],
    ];
    for (const [messages, param] of cases) {
      await assert.rejects(send(messages), { code: 'invalid_request_error', status: 400, param }, param);
    }
  });

  it('JPEG images reach Gemini under the type that it knows, also those with the common misspelling of it', async () => {
    const image = (type: string, data: string) => ({
      type: 'image_url',
      image_url: { url: `data:image/${type};base64,${data}` },
    });
    const jpeg = '/9j/4AA=';
    const content = [image('jpg', jpeg), image('JPEG', jpeg), image('jpg', 'AAAA'), image('jpeg', pixel)];
    const sent = await send([{ role: 'user', content }]);
    const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } });
    const jpegs = [jpeg, jpeg, 'AAAA'].map((data) => inline('image/jpeg', data));
    // The last is none, whatever its URL says.
    assert.deepEqual(sent.contents, [user(...jpegs, inline('image/png', pixel))]);
  });
});
