import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../shared/errors.ts';
import { findVendorRow } from '../../../shared/vendors/vendors.ts';
import { createCallerDownloader } from '../../../workers/http/download.ts';
import { type MediaGate, mediaGate } from '../../../workers/routing/media-gate.ts';
import { requestText } from '../../../workers/vendors/request-body.ts';
import type { VendorCall } from '../../../workers/vendors/vendor.ts';
import { callOf } from '../contracts/fixture-vendor.ts';

const png = Buffer.from('\x89PNG\r\n\x1a\nthe rest', 'latin1');
const types: Readonly<Record<string, string>> = {
  png: 'image/png',
  mp4: 'video/mp4',
  mp3: 'audio/mpeg',
  pdf: 'application/pdf',
};

describe('MediaGate', () => {
  let server: Server;
  /** Stands for the web: the only place inside that the downloader follows links to. */
  let origin: string;
  let asked: string[];
  before(async () => {
    server = createServer((request, response: ServerResponse) => {
      asked.push(request.url ?? '');
      if (request.url === '/inside') return void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
      if (request.url === '/large.png') {
        return void response.writeHead(200, { 'content-type': 'image/png', 'content-length': '900000000' }).end();
      }
      const type = types[/\.(\w+)/.exec(request.url ?? '')?.[1] ?? ''];
      response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(png);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  beforeEach(() => {
    asked = [];
  });

  const row = (name: string) => findVendorRow(name) ?? assert.fail(name);
  function gate(name: string, baseUrl: string = row(name).baseUrl, addresses: readonly string[] = []): MediaGate {
    const download = createCallerDownloader({ trustedOrigin: origin });
    const settings = { row: row(name), baseUrl };
    return mediaGate(settings, { download, resolveVendor: async () => addresses }) ?? assert.fail(name);
  }
  const call = (request: object): VendorCall => callOf({ request: JSON.stringify(request) });
  const chat = (...parts: object[]): VendorCall => call({ messages: [{ role: 'user', content: parts }] });
  const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'low' } });
  const dataUrl = (type: string) => `data:${type};base64,${png.toString('base64')}`;

  it('MediaGate counts what it fetches, and passes on why there is no room for it', async () => {
    const counted: number[] = [];
    const asked = chat(image(`${origin}/a.png`));
    await gate('ollama').pass({ ...asked, memory: { addFile: (bytes) => counted.push(bytes) } });
    assert.equal(
      counted.reduce((sum, bytes) => sum + bytes, 0),
      png.length,
    );
    const addFile = (): void => {
      throw new ApiError('rate_limit_exceeded', 'No room.');
    };
    const refused = gate('ollama').pass({ ...asked, memory: { addFile } });
    await assert.rejects(Promise.resolve(refused), { code: 'rate_limit_exceeded', message: 'No room.' });
  });

  it('MediaGate fetches links for a vendor without a key or at a private address, and passes them on as data', async () => {
    for (const inside of [
      gate('vllm'),
      gate('ollama', 'https://ollama.example.com/v1', ['93.184.216.34']),
      gate('openai', 'http://10.0.0.7/v1'),
      gate('openai', 'http://[fd00::1]/v1'),
      gate('openai', 'https://models.example.com/v1', ['93.184.216.34', '10.1.2.3']),
      gate('openai', 'https://models.example.com/v1', []),
      gate('gemini', 'http://localhost:9/v1', ['127.0.0.1']),
    ]) {
      const passed = await inside.pass(chat({ type: 'text', text: origin }, image(`${origin}/a.png`)));
      assert.deepEqual(JSON.parse(requestText(passed.request)), {
        messages: [{ role: 'user', content: [{ type: 'text', text: origin }, image(dataUrl('image/png'))] }],
      });
    }
    assert.equal(asked.length, 7);
  });

  it('a public vendor at its own base URL and the sandbox have no MediaGate', () => {
    const own = (name: string) => mediaGate({ row: row(name), baseUrl: row(name).baseUrl });
    assert.deepEqual([own('openai'), own('anthropic')], [undefined, undefined]);
    assert.equal(mediaGate({ row: row('sandbox'), baseUrl: 'http://127.0.0.1:9/v1' }), undefined);
  });

  it('MediaGate passes requests without links unchanged, without a request or a wait', () => {
    const without = chat({ type: 'text', text: `see ${origin}/a.png` }, image(dataUrl('image/png')));
    assert.equal(gate('vllm').pass(without), without);
    assert.deepEqual(asked, []);
  });

  it('MediaGate passes links to a public vendor at a base URL of its own unchanged', async () => {
    const given = chat(image(`${origin}/a.png`));
    assert.equal(await gate('openai', 'https://eu.api.example.com/v1', ['93.184.216.34']).pass(given), given);
    assert.deepEqual(asked, []);
  });

  it('MediaGate turns links of every kind into data, in chats, responses, edits and other fields', async () => {
    const part = (kind: string, file: string) => ({
      type: `${kind}_url`,
      [`${kind}_url`]: { url: `${origin}/a.${file}` },
    });
    const request = {
      messages: [{ role: 'user', content: [part('video', 'mp4'), part('audio', 'mp3')] }],
      input: [
        { type: 'message', content: [{ type: 'input_image', image_url: `${origin}/a.png` }] },
        { type: 'function_call_output', output: [{ type: 'input_file', file_url: `${origin}/dir/report.pdf?x` }] },
      ],
      images: [{ image_url: `${origin}/a.png` }],
      mask: { image_url: `${origin}/b.png` },
      parameters: { image_urls: [`${origin}/c.png`] },
    };
    const passed = JSON.parse(requestText((await gate('vllm').pass(call(request))).request));
    assert.deepEqual(passed, {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video_url', video_url: { url: dataUrl('video/mp4') } },
            { type: 'audio_url', audio_url: { url: dataUrl('audio/mpeg') } },
          ],
        },
      ],
      input: [
        { type: 'message', content: [{ type: 'input_image', image_url: dataUrl('image/png') }] },
        {
          type: 'function_call_output',
          output: [{ type: 'input_file', filename: 'report.pdf', file_data: dataUrl('application/pdf') }],
        },
      ],
      images: [{ image_url: dataUrl('image/png') }],
      mask: { image_url: dataUrl('image/png') },
      parameters: { image_urls: [dataUrl('image/png')] },
    });
  });

  const refused: [name: string, url: () => string][] = [
    ['the metadata service', () => 'http://169.254.169.254/latest/meta-data/iam/security-credentials/'],
    ['this machine', () => 'http://127.0.0.1:6379/'],
    ['a private network', () => 'http://10.0.0.1/admin'],
    ['a redirect to this machine', () => `${origin}/inside`],
    ['a file of another kind', () => `${origin}/a.mp4`],
    ['a file of no kind', () => `${origin}/a`],
    ['a file that is too large', () => `${origin}/large.png`],
    ['a file on the disk', () => 'file:///etc/passwd'],
    ['a server that speaks something else', () => 'gopher://127.0.0.1:6379/_FLUSHALL'],
  ];
  for (const [name, url] of refused) {
    it(`MediaGate rejects a link to ${name} with a 400 that names the field, before the vendor sees it`, async () => {
      const given = chat({ type: 'text', text: 'x' }, image(url()));
      await assert.rejects(async () => await gate('vllm').pass(given), {
        ...{ code: 'invalid_request_error', param: 'messages[0].content[1].image_url.url' },
      });
    });
  }

  it('MediaGate fetches at most twenty links for a request', async () => {
    const parts = Array.from({ length: 21 }, () => image(`${origin}/a.png`));
    await assert.rejects(async () => await gate('vllm').pass(chat(...parts)), {
      param: 'messages[0].content[20].image_url.url',
    });
    assert.deepEqual(asked, []);
    await gate('vllm').pass(chat(...parts.slice(1)));
    assert.equal(asked.length, 20);
  });

  it('MediaGate fetches nothing once its caller has disconnected', async () => {
    const controller = new AbortController();
    controller.abort();
    const given = { ...chat(image(`${origin}/a.png`)), signal: controller.signal };
    await assert.rejects(async () => await gate('vllm').pass(given), { code: 'cancelled' });
    assert.deepEqual(asked, []);
  });
});
