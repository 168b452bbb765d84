import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../../vendors/recorded/recorded-openai.ts';

test('a vendor and a route that a reload removes leave no refused key and no open breaker among the metrics', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
  const file = join(folder, 'sluice.yaml');
  const vendor = await startFixtureVendor();
  // The first vendor refuses its key, the others fail.
  vendor.answer((response, { headers }) => {
    const isRefused = headers.authorization === 'Bearer refused-key';
    sendJson(response, isRefused ? 401 : 500, errorBody('no', null));
  });
  const base_url = vendor.baseUrl;
  const vendors = {
    refusing: { base_url, api_key: 'refused-key' },
    failing: { base_url, api_key: 'a-key' },
    staying: { base_url, api_key: 'a-key' },
  };
  const chat = (name: string) => ({ capability: 'chat', routes: [{ vendor: name, model: 'm' }] });
  const routing = { attempts: 1, breaker: { calls: 2, pause_seconds: 600 } };
  const configuration = {
    ...{ vendors, routing },
    models: { one: chat('refusing'), two: chat('failing'), three: chat('staying'), four: chat('failing') },
  };
  await writeFile(file, JSON.stringify(configuration));
  const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_CONFIG: file } });
  try {
    const port = await freePort();
    const worker = await gateway.startWorker({ WORKER_PORT: String(port) });
    const page = () => MetricsPage.read(`http://127.0.0.1:${port}`);
    for (const model of ['one', 'two', 'two', 'three', 'three']) {
      await assert.rejects(gateway.client().chat.completions.create(held('Hi', { model })));
    }
    await eventually(async () => {
      const before = await page();
      assert.equal(before.sum('sluice_vendor_keys_refused', 'vendor="refusing"'), 1);
      assert.equal(before.sum('sluice_route_breaker_open', 'route="failing/m"'), 1);
      assert.equal(before.sum('sluice_route_breaker_open', 'route="staying/m"'), 1);
    });
    const { staying } = vendors;
    await writeFile(file, JSON.stringify({ vendors: { staying }, routing, models: { three: chat('staying') } }));
    worker.child.kill('SIGHUP');
    await eventually(() => assert.match(worker.output(), /configuration reloaded/));
    const after = await page();
    for (const name of ['sluice_vendor_keys_refused', 'sluice_vendor_keys_cooling']) {
      assert.deepEqual(
        after.values(name, 'vendor').filter((shown) => shown !== 'sandbox'),
        ['staying'],
        name,
      );
    }
    assert.deepEqual(after.values('sluice_route_breaker_open', 'route'), ['staying/m']);
    assert.equal(after.sum('sluice_route_breaker_open', 'route="staying/m"'), 1, 'what stays keeps its health');
  } finally {
    await gateway.stop();
    await vendor.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('a key that a reload brings is checked, and those that stay are not checked again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
  const file = join(folder, 'sluice.yaml');
  const vendor = await startFixtureVendor();
  vendor.answer((response, { headers }) => {
    const isRefused = headers.authorization === 'Bearer second-key';
    sendJson(response, isRefused ? 401 : 200, isRefused ? errorBody('no', null) : '{"object":"list","data":[]}');
  });
  const write = (...api_keys: string[]) =>
    writeFile(file, JSON.stringify({ vendors: { openai: { base_url: vendor.baseUrl, api_keys } } }));
  await write('first-key');
  const gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file, SLUICE_CHECK_KEYS: 'on' } });
  try {
    const [worker] = gateway.workers;
    const checked = () => vendor.requests.map(({ headers }) => headers.authorization);
    await eventually(() => assert.deepEqual(checked(), ['Bearer first-key']));
    await write('first-key', 'second-key');
    worker?.child.kill('SIGHUP');
    await eventually(() => assert.match(worker?.output() ?? '', /vendor rejected the API key: check its setting/));
    assert.deepEqual(checked(), ['Bearer first-key', 'Bearer second-key']);
  } finally {
    await gateway.stop();
    await vendor.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('a reload tells which limits have changed, as they stay until the next start, and nothing if none has', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
  const file = join(folder, 'sluice.yaml');
  const write = (limits: object, alias: string) =>
    writeFile(file, JSON.stringify({ limits, models: { [alias]: { alias_of: 'sandbox-chat' } } }));
  await write({ queue_limit: 100, vendor_silence_seconds: 20 }, 'one');
  const gateway = await TestGateway.start({ settings: { SLUICE_CONFIG: file } });
  try {
    const processes = [...gateway.apis, ...gateway.workers];
    const reload = async (times: number) => {
      for (const { child } of processes) child.kill('SIGHUP');
      for (const { output } of processes) {
        await eventually(() => assert.equal(output().match(/configuration reloaded/g)?.length, times));
      }
    };
    await write({ queue_limit: 100, vendor_silence_seconds: 20 }, 'two');
    await reload(1);
    await write({ queue_limit: 200, vendor_silence_seconds: 20, deadline_seconds: 50 }, 'three');
    await reload(2);
    for (const { output } of processes) {
      const told = output().match(/"limits":\[[^\]]*\],"msg":"changed limits take effect at the next start/g);
      assert.deepEqual(told, [
        '"limits":["queue_limit","deadline_seconds"],"msg":"changed limits take effect at the next start',
      ]);
    }
  } finally {
    await gateway.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
