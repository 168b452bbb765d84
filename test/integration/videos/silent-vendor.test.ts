import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

const films = 24;

/** A gateway with a vendor of films of its own, of which it has so many slots. */
async function startGateway(baseUrl: string, slots: number, silenceSeconds: number): Promise<TestGateway> {
  return await TestGateway.start({
    settings: { WORKER_CONCURRENCY_VIDEO: String(slots), SLUICE_VENDOR_SILENCE_SECONDS: String(silenceSeconds) },
    configuration: {
      vendors: { silent: { base_url: baseUrl, api_keys: ['any'] } },
      models: {
        film: {
          capability: 'video',
          routes: [{ vendor: 'silent', model: 'film' }],
          video: { sizes: ['1280x720'], seconds: [4] },
        },
      },
    },
  });
}

test('videos of a vendor whose polls get no answer leave slots to those of others, and are completed once it answers', async (t) => {
  const vendor = await startFixtureVendor();
  let isSilent = true;
  let [created, polled] = [0, 0];
  vendor.answer((response, { method, url = '' }) => {
    if (url.includes('/content')) {
      response.writeHead(200, { 'content-type': 'video/mp4' }).end('a film');
      return;
    }
    if (method === 'POST') created++;
    else if (isSilent) {
      polled++;
      return;
    }
    const status = method === 'POST' ? 'in_progress' : 'completed';
    const id = method === 'POST' ? `film-${created}` : url.slice(url.lastIndexOf('/') + 1);
    sendJson(response, 200, JSON.stringify({ id, object: 'video', status, progress: 50, seconds: '4' }));
  });
  // A poll without an answer takes three seconds: so many films need far more slots than there are.
  const gateway = await startGateway(vendor.baseUrl, 2, 3);
  t.after(async () => {
    await gateway.stop();
    await vendor.close();
  });
  const client = gateway.client();
  const ids = await Promise.all(
    Array.from({ length: films }, async () => (await createVideo(client, { model: 'film' as never })).id),
  );
  // Two polls at a time, so the first ones have ended.
  await eventually(() => assert.ok(polled > 2, `${polled} polls`), 30_000);
  const endOf = (id: string): Promise<void> =>
    eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 90_000);
  const { id } = await createVideo(client);
  await endOf(id);
  assert.ok(isSilent && polled > 2, 'the other vendor is silent still');
  isSilent = false;
  for (const film of ids) await endOf(film);
});

test('videos of a vendor that answers polls at once, but whose films do not come, leave slots to those of others', async (t) => {
  const vendor = await startFixtureVendor();
  let created = 0;
  let isSilent = true;
  const asked: ServerResponse[] = [];
  vendor.answer((response, { method, url = '' }) => {
    if (url.includes('/content')) {
      if (isSilent) asked.push(response);
      else response.writeHead(200, { 'content-type': 'video/mp4' }).end('a film');
      return;
    }
    if (method === 'POST') created++;
    const id = method === 'POST' ? `film-${created}` : url.slice(url.lastIndexOf('/') + 1);
    // The others are polled beside those that are fetched.
    const isOver = method !== 'POST' && (!isSilent || Number(id.slice('film-'.length)) % 2 === 1);
    const status = isOver ? 'completed' : 'in_progress';
    sendJson(response, 200, JSON.stringify({ id, object: 'video', status, progress: 50, seconds: '4' }));
  });
  const slots = 4;
  const gateway = await startGateway(vendor.baseUrl, slots, 600);
  t.after(async () => {
    await gateway.stop();
    await vendor.close();
  });
  const client = gateway.client();
  const ids = await Promise.all(
    Array.from({ length: films }, async () => (await createVideo(client, { model: 'film' as never })).id),
  );
  await eventually(() => assert.ok(asked.length >= slots - 1, `${asked.length} films are fetched`), 60_000);
  const endOf = (id: string): Promise<void> =>
    eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 90_000);
  const { id } = await createVideo(client);
  await endOf(id);
  assert.equal(asked.length, slots - 1);
  isSilent = false;
  for (const response of asked) response.writeHead(200, { 'content-type': 'video/mp4' }).end('a film');
  for (const film of ids) await endOf(film);
});
