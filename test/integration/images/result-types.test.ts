import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const avif = Buffer.concat([Buffer.from([0, 0, 0, 32]), Buffer.from('ftypavif'), Buffer.alloc(200, 1)]);
const webm = Buffer.concat([Buffer.from('1a45dfa3', 'hex'), Buffer.alloc(200, 1)]);

describe('files of results in the newer formats', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    const { origin } = new URL(vendor.baseUrl);
    vendor.answer((response, { url = '' }) => {
      const send = (answer: object): void => sendJson(response, 200, JSON.stringify(answer));
      if (url.endsWith('/images/generations')) send({ created: 1, data: [{ b64_json: avif.toString('base64') }] });
      else if (url.endsWith('/film.webm')) response.writeHead(200, { 'content-type': 'video/webm' }).end(webm);
      else send({ id: 'made', status: 'succeeded', output: `${origin}/film.webm` });
    });
    gateway = await TestGateway.start({
      settings: { REPLICATE_API_KEY: 'a-key', REPLICATE_BASE_URL: vendor.baseUrl },
      configuration: {
        vendors: { brush: { like: 'openai', base_url: vendor.baseUrl, api_keys: ['any'] } },
        models: { painter: { capability: 'image', routes: [{ vendor: 'brush', model: 'painter' }] } },
      },
    });
  });
  after(async () => {
    await gateway.stop();
    await vendor.close();
  });

  it('a link to an image in AVIF says what it is, so that a page can show it', async () => {
    const { data } = await gateway.client().images.generate({ model: 'painter', prompt: 'A', response_format: 'url' });
    const file = await fetch(data?.[0]?.url ?? '');
    assert.deepEqual([file.status, file.headers.get('content-type')], [200, 'image/avif']);
    assert.deepEqual(Buffer.from(await file.arrayBuffer()), avif);
  });

  it('the content of a video in WebM says what it is, so that a page can play it', async () => {
    const client = gateway.client();
    const { id } = await client.videos.create({
      model: 'replicate/google/veo-3-fast' as OpenAI.VideoModel,
      prompt: 'A',
    });
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 30_000);
    const content = await client.videos.downloadContent(id);
    assert.equal(content.headers.get('content-type'), 'video/webm');
    assert.deepEqual(Buffer.from(await content.arrayBuffer()), webm);
  });
});
