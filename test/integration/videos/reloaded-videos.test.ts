import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { createVideo } from '../../support/sandbox-videos.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

for (const change of ['turns the vendor off', 'reprices the model']) {
  test(`a video that its vendor is making is completed after a reload that ${change}, at the price that it began with`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
    const file = join(folder, 'sluice.yaml');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own notation.
    const base_url = '${SANDBOX_BASE_URL}';
    const film = {
      capability: 'video',
      routes: [{ vendor: 'filming', model: 'sandbox-video' }],
      video: { sizes: ['1280x720'], seconds: [4] },
      prices: { second: 0.25 },
    };
    await writeFile(file, JSON.stringify({ vendors: { filming: { base_url } }, models: { film } }));
    const gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file } });
    try {
      const client = gateway.client();
      const { id } = await createVideo(client, { model: 'film' as never });
      await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'in_progress'));
      const isOff = change === 'turns the vendor off';
      const changed = isOff ? film : { ...film, prices: { second: 0.5 } };
      await writeFile(
        file,
        JSON.stringify({ vendors: { filming: { base_url, enabled: !isOff } }, models: { film: changed } }),
      );
      const processes = [...gateway.apis, ...gateway.workers];
      for (const { child } of processes) child.kill('SIGHUP');
      for (const { output } of processes) await eventually(() => assert.match(output(), /configuration reloaded/));
      await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 20_000);
      const job = await gateway.fetch(`/v1/jobs/${id.replace('video_', 'job_')}`);
      assert.equal(((await job.json()) as { cost: number }).cost, 1);
      if (isOff) await assert.rejects(createVideo(client, { model: 'film' as never }), { status: 404 });
    } finally {
      await gateway.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
}

for (const isRefused of [false, true]) {
  const then = isRefused ? 'which then refuses the removed one' : 'whose other key does not know it';
  test(`a video is completed after a reload that removes the key that began it, of a vendor ${then}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
    const file = join(folder, 'sluice.yaml');
    const vendor = await startFixtureVendor();
    let isReloaded = false;
    const polled = new Set<string>();
    vendor.answer((response, { method, url = '', headers }) => {
      const key = String(headers.authorization).slice('Bearer '.length);
      if (isReloaded && method === 'GET' && url.endsWith('/film')) polled.add(key);
      const isGone = isRefused && isReloaded && key === 'old-key';
      if (isGone) return sendJson(response, 401, '{"error":{"message":"no","code":"invalid_api_key"}}');
      if (!isRefused && key !== 'old-key') return sendJson(response, 404, '{"error":{"message":"no such video"}}');
      if (url.includes('/content')) return response.writeHead(200, { 'content-type': 'video/mp4' }).end('a film');
      const status = isReloaded ? 'completed' : 'in_progress';
      sendJson(response, 200, JSON.stringify({ id: 'film', object: 'video', status, progress: 50, seconds: '4' }));
    });
    const film = {
      capability: 'video',
      routes: [{ vendor: 'filming', model: 'film' }],
      video: { sizes: ['1280x720'], seconds: [4] },
    };
    const configured = (...api_keys: string[]) =>
      writeFile(
        file,
        JSON.stringify({ vendors: { filming: { base_url: vendor.baseUrl, api_keys } }, models: { film } }),
      );
    await configured('old-key');
    const gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file } });
    t.after(async () => {
      await gateway.stop();
      await vendor.close();
      await rm(folder, { recursive: true, force: true });
    });
    const client = gateway.client();
    const { id } = await createVideo(client, { model: 'film' as never });
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'in_progress'));
    await configured('new-key');
    for (const { child } of gateway.workers) child.kill('SIGHUP');
    for (const { output } of gateway.workers) await eventually(() => assert.match(output(), /configuration reloaded/));
    isReloaded = true;
    await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 20_000);
    assert.deepEqual([...polled], isRefused ? ['old-key', 'new-key'] : ['old-key']);
  });
}

test('a video whose key is set up at no worker, where the other key does not know it, waits for a worker that has it', async (t) => {
  const vendor = await startFixtureVendor();
  let isRestarted = false;
  const unknowing: string[] = [];
  vendor.answer((response, { url = '', headers }) => {
    const key = String(headers.authorization).slice('Bearer '.length);
    if (key !== 'old-key') {
      unknowing.push(url);
      return sendJson(response, 404, '{"error":{"message":"no such video"}}');
    }
    if (url.includes('/content')) return response.writeHead(200, { 'content-type': 'video/mp4' }).end('a film');
    const status = isRestarted ? 'completed' : 'in_progress';
    sendJson(response, 200, JSON.stringify({ id: 'film', object: 'video', status, progress: 50, seconds: '4' }));
  });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
  const file = join(folder, 'sluice.yaml');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own notation.
  const filming = { base_url: vendor.baseUrl, api_key: '${FILM_KEY}' };
  const film = {
    capability: 'video',
    routes: [{ vendor: 'filming', model: 'film' }],
    video: { sizes: ['1280x720'], seconds: [4] },
  };
  await writeFile(file, JSON.stringify({ vendors: { filming }, models: { film } }));
  const gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file, FILM_KEY: 'old-key' } });
  t.after(async () => {
    await gateway.stop();
    await vendor.close();
    await rm(folder, { recursive: true, force: true });
  });
  const client = gateway.client();
  const { id } = await createVideo(client, { model: 'film' as never });
  await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'in_progress'));
  const [before] = gateway.workers;
  await before?.stop();
  isRestarted = true;
  const other = await gateway.startWorker({ FILM_KEY: 'new-key' });
  await eventually(() => assert.match(other.output(), /the key that began this job's task is not set up here/), 20_000);
  assert.equal((await client.videos.retrieve(id)).status, 'in_progress');
  assert.ok(unknowing.some((url) => url.endsWith('/film')));
  await other.stop();
  await gateway.startWorker();
  await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'completed'), 20_000);
});
