import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { png } from '../../vendors/contracts/image-vendor-contract.ts';

type Fields = Readonly<Record<string, string | number>>;

/** A request of an endpoint, as JSON or, where it has a file, as a form. */
interface Case {
  readonly path: string;
  readonly request: Fields;
  readonly file?: true;
  /** Fields that the model's vendor does nothing with. */
  readonly hints: Fields;
  /** A field of which an answer without it would be another one. */
  readonly refused: Fields;
}

const cases: readonly Case[] = [
  {
    path: '/v1/images/generations',
    request: { model: 'flux-2-max', prompt: 'A lighthouse', response_format: 'b64_json', n: 1, quality: 'auto' },
    hints: { user: 'u-1' },
    refused: { quality: 'high' },
  },
  {
    path: '/v1/embeddings',
    request: { model: 'gemini-embedding-001', input: 'Hello', encoding_format: 'float' },
    hints: { user: 'u-1' },
    refused: { task_type: 'RETRIEVAL_QUERY' },
  },
  {
    path: '/v1/audio/transcriptions',
    request: { model: 'deepgram/nova-3', language: 'de', temperature: 0 },
    file: true,
    hints: { prompt: 'A talk about water.', chunking_strategy: 'server_vad' },
    refused: { 'include[]': 'logprobs' },
  },
  {
    path: '/v1/audio/speech',
    request: { model: 'deepgram/aura-2-thalia-en', input: 'Hello', speed: 1 },
    hints: { voice: 'alloy' },
    refused: { instructions: 'Whisper.' },
  },
  {
    path: '/v1/videos',
    request: { model: 'replicate/google/veo-3-fast', prompt: 'A cat' },
    hints: { user: 'u-1' },
    refused: { aspect_ratio: '1:1' },
  },
];

/** What a caller calls a field: a form's lists have `[]` behind their names. */
const named = (fields: Fields): string[] => Object.keys(fields).map((name) => name.replace('[]', ''));

describe('media parameters that a vendor does not support', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    const settings = ['BLACK_FOREST_LABS', 'GEMINI', 'DEEPGRAM', 'REPLICATE', 'MISTRAL'].flatMap((name) => [
      [`${name}_API_KEY`, 'a-key'],
      [`${name}_BASE_URL`, vendor.baseUrl],
    ]);
    gateway = await TestGateway.start({ settings: Object.fromEntries(settings) });
    const { origin } = new URL(vendor.baseUrl);
    vendor.answer((response, { url = '' }) => {
      const send = (answer: object): void => sendJson(response, 200, JSON.stringify(answer));
      if (url.endsWith('/flux-2-max')) send({ id: 'task', polling_url: `${origin}/v1/get_result?id=task` });
      else if (url.includes('/get_result'))
        send({ id: 'task', status: 'Ready', result: { sample: `${origin}/file.png` } });
      else if (url.endsWith('/file.png')) response.writeHead(200, { 'content-type': 'image/png' }).end(png);
      else if (url.includes(':batchEmbedContents')) send({ embeddings: [{ values: [0.5] }] });
      else if (url.endsWith('/embeddings')) send({ data: [{ index: 0, embedding: [0.5] }] });
      else if (url.includes('/listen'))
        send({ results: { channels: [{ alternatives: [{ transcript: 'Hi', words: [] }] }] } });
      else if (url.includes('/speak')) response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('ID3');
      else send({ id: 'prediction', status: 'processing' });
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  const post = async ({ path, request, file }: Case, more: Fields, key = gateway.apiKey): Promise<Response> => {
    const fields = { ...request, ...more };
    const headers = { authorization: `Bearer ${key}` };
    if (path.endsWith('/speech') && !('voice' in fields)) Object.assign(fields, { voice: 'thalia' });
    if (!file) return await gateway.fetch(path, { method: 'POST', headers, body: JSON.stringify(fields) });
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
    form.append('file', new File(['RIFF'], 'say.wav', { type: 'audio/wav' }));
    return await fetch(gateway.url + path, { method: 'POST', headers, body: form });
  };
  /** Waits for the vendor to be asked: a video's task is begun behind its answer. */
  const isAsked = (since: number): Promise<void> =>
    eventually(() =>
      assert.equal(
        vendor.requests.slice(since).some(({ method }) => method === 'POST'),
        true,
      ),
    );
  /** Everything that the vendor was sent since a number of requests, as text. */
  const sentSince = (asked: number): string =>
    vendor.requests
      .slice(asked)
      .map(({ url, body }) => `${url} ${body}`)
      .join('\n');

  for (const each of cases) {
    const { path, hints, refused } = each;
    const [param] = named(refused);

    test(`POST ${path} names no parameter as ignored when all are supported`, async () => {
      const asked = vendor.requests.length;
      const response = await post(each, {});
      assert.equal(response.status, 200, await response.clone().text());
      assert.equal(response.headers.get('x-sluice-ignored'), null);
      await response.arrayBuffer();
      await isAsked(asked);
    });

    test(`POST ${path} drops the hint ${named(hints)} and names it as ignored`, async () => {
      const asked = vendor.requests.length;
      const response = await post(each, hints);
      assert.equal(response.status, 200, await response.clone().text());
      assert.deepEqual(response.headers.get('x-sluice-ignored')?.split(', '), named(hints));
      await response.arrayBuffer();
      await isAsked(asked);
      for (const value of Object.values(hints)) assert.equal(sentSince(asked).includes(String(value)), false);
    });

    test(`POST ${path} with ${param} returns 400 naming it before the vendor is called`, async () => {
      const asked = vendor.requests.length;
      const response = await post(each, { ...hints, ...refused });
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as { error: { message: string; param?: string } };
      assert.equal(error.param, param);
      assert.match(error.message, /is not supported by the vendor of the model/);
      for (const value of Object.values(refused)) assert.equal(sentSince(asked).includes(String(value)), false);
    });

    test(`POST ${path} with ${param} names it as ignored for a key with unsupported_parameters: drop`, async () => {
      const key = await makeApiKey(gateway, { unsupportedParameters: 'drop' });
      const asked = vendor.requests.length;
      const response = await post(each, { ...hints, ...refused }, key);
      assert.equal(response.status, 200, await response.clone().text());
      const ignored = response.headers.get('x-sluice-ignored')?.split(', ') ?? [];
      assert.deepEqual(ignored.sort(), [...named(hints), param].sort());
      await response.arrayBuffer();
      await isAsked(asked);
      for (const value of Object.values(refused)) assert.equal(sentSince(asked).includes(String(value)), false);
    });
  }

  test('POST /v1/embeddings drops the hint user for Mistral, which refuses unknown fields, and names it as ignored', async () => {
    const asked = vendor.requests.length;
    const request = { model: 'mistral-embed', input: 'Say "user": u-1', user: 'u-1', encoding_format: 'float' };
    const response = await gateway.fetch('/v1/embeddings', { method: 'POST', body: JSON.stringify(request) });
    assert.equal(response.status, 200, await response.clone().text());
    assert.equal(response.headers.get('x-sluice-ignored'), 'user');
    const { user: _, ...sent } = request;
    const received = vendor.requests.slice(asked).find(({ url }) => url?.endsWith('/embeddings'));
    assert.deepEqual(JSON.parse(received?.body ?? ''), sent);
  });

  test('POST /v1/images/generations names nothing as ignored for a vendor that supports all parameters', async () => {
    const response = await gateway.fetch('/v1/images/generations', {
      method: 'POST',
      body: JSON.stringify({
        model: 'sandbox-image',
        prompt: 'A cat',
        user: 'u-1',
        quality: 'high',
        moderation: 'low',
      }),
    });
    assert.equal(response.status, 200, await response.clone().text());
    assert.equal(response.headers.get('x-sluice-ignored'), null);
  });
});
