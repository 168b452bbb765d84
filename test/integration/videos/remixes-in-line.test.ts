import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

test('videos that any key can make do not wait with a remix for the only key that can make that one', {
  timeout: 240_000,
}, async (t) => {
  const vendor = await startFixtureVendor();
  t.after(() => vendor.close());
  let remixes = 0;
  let films = 0;
  vendor.answer((response, { method, url = '' }) => {
    if (url.includes('/content')) return response.writeHead(200, { 'content-type': 'video/mp4' }).end('a film');
    if (url.endsWith('/remix')) {
      remixes += 1;
      return sendJson(response, 429, '{"error":{"message":"later","code":"rate_limit"}}', { 'retry-after': '600' });
    }
    const id = method === 'POST' ? `film-${++films}` : /film-\d+/.exec(url)?.[0];
    sendJson(response, 200, JSON.stringify({ id, object: 'video', status: 'completed', progress: 100, seconds: '4' }));
  });
  const gateway = await TestGateway.start({
    configuration: {
      vendors: {
        // Each one in five seconds.
        filming: { base_url: vendor.baseUrl, api_keys: ['one', 'other'], key_limits: { rpm: 12 } },
      },
      models: {
        film: {
          capability: 'video',
          routes: [{ vendor: 'filming', model: 'film' }],
          video: { sizes: ['1280x720'], seconds: [4], remix: true },
        },
      },
    },
  });
  t.after(() => gateway.stop());
  const client = gateway.client();
  const statusOf = async (id: string): Promise<string> => (await client.videos.retrieve(id)).status;
  const create = (): Promise<{ readonly id: string }> => createVideo(client, { model: 'film' as never });
  const original = await create();
  await eventually(async () => assert.equal(await statusOf(original.id), 'completed'), 60_000);
  const before = await Promise.all([create(), create(), create(), create()]);
  const remix = await client.videos.remix(original.id, { prompt: 'At night' });
  const after = await Promise.all([create(), create(), create()]);
  for (const { id } of [...before, ...after]) {
    await eventually(async () => assert.equal(await statusOf(id), 'completed'), 90_000);
  }
  assert.ok(remixes <= 1 && (await statusOf(remix.id)) !== 'completed');
  await client.videos.delete(remix.id);
});
