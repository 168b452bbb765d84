import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { type GatewayProcess, TestGateway } from '../../support/gateway.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion, errorBody } from '../../vendors/recorded/recorded-openai.ts';

const chat = (vendor: string) => ({ capability: 'chat' as const, routes: [{ vendor, model: 'm' }] });

describe('a reload of vendors and their limits', () => {
  let vendor: FixtureVendor;
  let gateway: TestGateway;
  let worker: GatewayProcess;
  let redis: Redis;
  let folder = '';
  let file = '';
  let metricsUrl = '';
  let reloads = 0;

  const write = (vendors: object, models: object) => writeFile(file, JSON.stringify({ vendors, models }));

  async function reload(vendors: object, models: object): Promise<void> {
    await write(vendors, models);
    for (const { child } of [...gateway.apis, worker]) child.kill('SIGHUP');
    reloads++;
    for (const { output } of [...gateway.apis, worker]) {
      await eventually(() => assert.equal(output().match(/configuration reloaded/g)?.length, reloads));
    }
  }

  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-reloaded-'));
    file = join(folder, 'sluice.yaml');
    await write({}, {});
    gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_CONFIG: file } });
    const port = await freePort();
    metricsUrl = `http://127.0.0.1:${port}`;
    worker = await gateway.startWorker({ WORKER_PORT: String(port) });
    redis = new Redis(gateway.redisUrl);
  });

  after(async () => {
    redis?.disconnect();
    await gateway?.stop();
    await vendor?.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Asks so many times at once for a model of a vendor with a limit, of once a minute say, and waits until the jobs are parked. */
  async function park(name: string, jobs: number, rpm = 1, parked = jobs - 1): Promise<Promise<unknown>[]> {
    const models = { [name]: chat(name) };
    await reload({ [name]: { base_url: vendor.baseUrl, api_key: 'a-key', rpm } }, models);
    // Within so long all of them would start at the old pace.
    const headers = { 'x-stainless-timeout': '86400' };
    const body = JSON.stringify(held('hi', { model: name }));
    const answers = Array.from({ length: jobs }, async (_, index) => {
      // All at once are too many for a busy machine.
      await delay(20 * index);
      const answer = await gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body });
      assert.equal(answer.status, 200, await answer.text());
    });
    const refusals: unknown[] = [];
    for (const answer of answers) answer.catch((error) => refusals.push(error));
    await eventually(async () => {
      const waiting = await redis.zcard(`sluice:{q-chat}:parked:${name}/m:prioritized`);
      assert.equal(waiting, parked, `${refusals.length} refused: ${refusals[0]}`);
    });
    return answers;
  }

  async function allAnswered(answers: readonly Promise<unknown>[]): Promise<void> {
    const late = delay(20_000, false, { ref: false });
    assert.ok(await Promise.race([Promise.all(answers), late]), 'they wait as long as the former limit wants');
  }

  test('jobs that wait for a limit of a vendor go on at once when a reload removes the limit', async () => {
    const answers = await park('unlimited', 110);
    await reload({ unlimited: { base_url: vendor.baseUrl, api_key: 'a-key' } }, { unlimited: chat('unlimited') });
    await allAnswered(answers);
  });

  test('jobs that wait for a key whose vendor limits it go on with a second key that a reload adds', async () => {
    vendor.answer((response, { headers }) => {
      if (headers.authorization === 'Bearer second-key') sendJson(response, 200, JSON.stringify(completion));
      else sendJson(response, 429, errorBody('limit', 'rate_limit_exceeded'), { 'retry-after': '600' });
    });
    const answers = await park('limited', 6, 6000, 6);
    const api_keys = ['a-key', 'second-key'];
    await reload({ limited: { base_url: vendor.baseUrl, api_keys, rpm: 6000 } }, { limited: chat('limited') });
    await allAnswered(answers);
    vendor.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
  });

  test('jobs that wait for a vendor go on with the one that a reload puts in its place', async () => {
    const answers = await park('former', 6);
    await reload({ latter: { base_url: vendor.baseUrl, api_key: 'a-key' } }, { former: chat('latter') });
    await allAnswered(answers);
  });

  const others: [what: string, model: (name: string) => object][] = [
    ['in its place', () => chat('free')],
    ['beside it', (name) => ({ ...chat(name), routes: [name, 'free'].map((each) => ({ vendor: each, model: 'm' })) })],
  ];
  for (const [index, [where, model]] of others.entries()) {
    test(`jobs that wait for a vendor with a limit go on with a route that a reload gives their model ${where}`, async () => {
      const name = `rerouted-${index}`;
      const answers = await park(name, 6);
      const { baseUrl: base_url } = vendor;
      await reload({ [name]: { base_url, api_key: 'a-key', rpm: 1 }, free: { base_url } }, { [name]: model(name) });
      await allAnswered(answers);
    });
  }

  test('jobs that wait for a vendor with a limit fail at once when a reload removes their model', async () => {
    const answers = await park('removed', 6);
    await reload({ removed: { base_url: vendor.baseUrl, api_key: 'a-key', rpm: 1 } }, { another: chat('removed') });
    const outcomes = Promise.allSettled(answers);
    await allAnswered([outcomes]);
    const failed = (await outcomes).filter(({ status }) => status === 'rejected');
    assert.equal(failed.length, 5);
  });

  test("what was found of a vendor's key holds after a reload that changes other settings of the vendor", async () => {
    const models = { refusing: chat('refusing'), limiting: chat('limiting') };
    const vendors = (more: object) => ({
      refusing: { base_url: vendor.baseUrl, api_key: 'refused-key', ...more },
      limiting: { base_url: vendor.baseUrl, api_key: 'limited-key', ...more },
    });
    vendor.answer((response, { headers }) => {
      if (headers.authorization === 'Bearer refused-key') sendJson(response, 401, errorBody('no', null));
      else sendJson(response, 429, errorBody('limit', 'rate_limit_exceeded'), { 'retry-after': '600' });
    });
    await reload(vendors({}), models);
    const ask = (model: string) => gateway.client().chat.completions.create(held('hi', { model }));
    await assert.rejects(ask('refusing'));
    await assert.rejects(ask('limiting'), { status: 429 });
    const calls = vendor.requests.length;
    const refused = async () =>
      (await MetricsPage.read(metricsUrl)).sum('sluice_vendor_keys_refused', 'vendor="refusing"');
    assert.equal(await refused(), 1);
    await reload(vendors({ unbilled: ['web_search'] }), models);
    assert.equal(await refused(), 1, 'the alert of a key that is still refused would end');
    await assert.rejects(ask('limiting'), { status: 429 });
    assert.equal(vendor.requests.length, calls, 'the vendor has asked for ten minutes');
  });
});
