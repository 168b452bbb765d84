import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { pngFile } from '../../support/image-files.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { apiKey, speechBytes } from '../../vendors/recorded/recorded-azure.ts';
import { completion } from '../../vendors/recorded/recorded-openai.ts';

/** Wave, as Groq answers it. */
const wave = 'RIFF....WAVEfmt the very bytes';

describe('requests with another model only', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    const settings = ['AZURE', 'DEEPSEEK', 'GROQ', 'LUMA', 'MISTRAL', 'RUNWAY'].flatMap((name) => [
      [`${name}_API_KEY`, apiKey],
      [`${name}_BASE_URL`, `${new URL(vendor.baseUrl).origin}/${name.toLowerCase()}`],
    ]);
    gateway = await TestGateway.start({ settings: Object.fromEntries(settings) });
    vendor.answer((response, { url = '', body }) => {
      const send = (type: string, answer: string | Buffer): void => {
        response.writeHead(200, { 'content-type': type }).end(answer);
      };
      // The older voices at Azure know no events: https://platform.openai.com/docs/api-reference/audio/createSpeech, stream_format.
      if (url.endsWith('/chat/completions')) sendJson(response, 200, JSON.stringify(completion));
      else if (url.startsWith('/azure') && body.includes('stream_format')) {
        sendJson(response, 400, '{"error":{"code":"unsupported_value","message":"No.","param":"stream_format"}}');
      } else if (url.startsWith('/azure')) send('audio/mpeg', speechBytes);
      else if (url.startsWith('/groq')) send('audio/wav', wave);
      else sendJson(response, 200, '{"id":"a-task","status":"PENDING","state":"queued"}');
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const lastAsked = (): Record<string, unknown> => JSON.parse(vendor.requests.at(-1)?.body ?? assert.fail());

  test('POST /v1/audio/speech with an unlisted model requests events only when its client does', async () => {
    const request = { model: 'azure/my-voice', voice: 'alloy', input: 'Hello' };
    const spoken = await gateway.client().audio.speech.create(request);
    assert.ok(Buffer.from(await spoken.arrayBuffer()).equals(speechBytes));
    assert.equal(lastAsked().stream_format, undefined);
    const asEvents = gateway.client().audio.speech.create({ ...request, stream_format: 'sse' });
    await assert.rejects(asEvents, { status: 400, param: 'stream_format' });
    assert.equal(lastAsked().stream_format, 'sse');
  });

  test('POST /v1/audio/speech without a format returns one that the model supports', async () => {
    const request = { model: 'groq/canopylabs/orpheus-v1-english', voice: 'hannah', input: 'Hello' };
    const spoken = await gateway.client().audio.speech.create(request);
    assert.equal(spoken.headers.get('content-type'), 'audio/wav');
    assert.equal(await spoken.text(), wave);
    assert.equal(lastAsked().response_format, 'wav');
    const inMp3 = gateway.client().audio.speech.create({ ...request, response_format: 'mp3' });
    await assert.rejects(inMp3, { status: 400, param: 'response_format' });
  });

  // What Azure, Groq and Mistral answer 400 to, e.g. https://github.com/SimonSchubert/Kai/issues/265 (Groq),
  // https://github.com/charmbracelet/crush/issues/1590 (Mistral); DeepSeek passes over it, or wants it.
  const signature = 'google:8:U0lHTkFUcall_1';
  const asMessage = {
    path: '/v1/messages',
    body: {
      max_tokens: 100,
      system: [{ type: 'text', text: 'Be terse.', cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'look', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature },
            { type: 'tool_use', id: 'call_1', name: 'look', input: {} },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'Rain.' }] },
      ],
    },
  };
  const asResponse = {
    path: '/v1/responses',
    body: {
      store: false,
      input: [
        { role: 'user', content: 'Weather?' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: signature },
        { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'Rain.' },
      ],
      tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
    },
  };
  for (const { path, body } of [asMessage, asResponse]) {
    test(`POST ${path} hides the messages of another vendor from vendors that refuse unknown fields`, async () => {
      const ask = async (model: string): Promise<string> => {
        const response = await gateway.fetch(path, { method: 'POST', body: JSON.stringify({ ...body, model }) });
        assert.equal(response.status, 200, await response.text());
        return JSON.stringify(lastAsked());
      };
      for (const model of ['azure/my-deployment', 'groq/llama-3.1-8b-instant', 'mistral-large-latest']) {
        assert.doesNotMatch(
          await ask(model),
          /extra_content|cache_control|reasoning_content|google|SIGNAT|U0lH/,
          model,
        );
      }
      assert.match(await ask('deepseek-flash'), /extra_content/);
    });
  }

  test('POST /v1/videos returns 400 for an upload when the vendor accepts image links only', async () => {
    const asked = vendor.requests.length;
    const request = { model: 'luma/ray-2', prompt: 'A lighthouse' };
    const uploaded = gateway.client().videos.create({ ...request, input_reference: pngFile('a.png') } as never);
    await assert.rejects(uploaded, { status: 400, param: 'input_reference' });
    const post = (image_url: string): Promise<Response> =>
      gateway.fetch('/v1/videos', {
        method: 'POST',
        body: JSON.stringify({ ...request, input_reference: { image_url } }),
      });
    assert.equal((await post('data:image/png;base64,iVBORw0KGgo=')).status, 400);
    assert.equal(vendor.requests.length, asked);
    const linked = await post('https://example.com/a.png');
    assert.equal(linked.status, 200, await linked.text());
  });

  test('POST /v1/videos returns 400 without an image when the model requires one', async () => {
    const asked = () => vendor.requests.filter(({ url }) => url?.startsWith('/runway')).length;
    const request = { model: 'runway/gen4_turbo', prompt: 'A lighthouse' };
    await assert.rejects(gateway.client().videos.create(request as never), { status: 400, param: 'input_reference' });
    assert.equal(asked(), 0);
    const begun = await gateway.client().videos.create({ ...request, input_reference: pngFile('a.png') } as never);
    assert.equal(begun.object, 'video');
  });
});
