import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { type FixtureVendor, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** Dollars for a million tokens, and a token's price in billionths of a dollar. */
const prices = { input: 3 };
const tokenPrice = 3000;

describe('a request whose caller leaves before any output', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;
  let workerUrl: string;

  before(async () => {
    vendor = await startFixtureVendor();
    const port = await freePort();
    workerUrl = `http://127.0.0.1:${port}`;
    records = await JobRecords.start({
      settings: { SLUICE_DEADLINE_SECONDS: '8' },
      workers: 0,
      configuration: {
        vendors: { own: { base_url: vendor.baseUrl, api_key: 'a-key' } },
        models: {
          silent: { capability: 'chat', prices, routes: [{ vendor: 'own', model: 'chat' }] },
          vectors: { capability: 'embedding', prices, routes: [{ vendor: 'own', model: 'vectors' }] },
        },
      },
    });
    await records.gateway.startWorker({ WORKER_PORT: String(port) });
  });

  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** The row of a request whose caller's timeout is over before its vendor answers, and after that was called, however slow the machine is. */
  async function timedOut(path: string, body: object) {
    for (let seconds = 1; ; seconds *= 2) {
      const before = vendor.requests.length;
      const response = await records.post(body, { 'x-stainless-timeout': String(seconds) }, { path });
      assert.match(await response.text(), /"timeout"/);
      if (vendor.requests.length > before) return await records.ended(jobIdOf(response));
      assert.ok(seconds < 8, 'the vendor was never called');
    }
  }

  const chat = { model: 'silent', messages: [{ role: 'user', content: 'Hello' }] };
  const requests = {
    'a held chat': { path: '/v1/chat/completions', body: chat },
    'a streamed chat': { path: '/v1/chat/completions', body: { ...chat, stream: true } },
    'an embedding': { path: '/v1/embeddings', body: { model: 'vectors', input: 'Hello' } },
  };

  for (const [name, { path, body }] of Object.entries(requests)) {
    test(`${name} that ends by its caller's own timeout while its vendor is at work costs its prompt, as if the caller had disconnected`, async () => {
      vendor.answer(() => undefined);
      const row = await timedOut(path, body);
      const { prompt_tokens: prompt, estimated } = JSON.parse(row.usage ?? '{}');
      assert.deepEqual([row.outcome, row.error_code, estimated], ['failed', 'timeout', true]);
      assert.ok(prompt > 0 && prompt < 100, String(row.usage));
      assert.equal(row.cost, prompt * tokenPrice);
    });
  }

  test("a chat that ends by the gateway's deadline costs nothing: its vendor was silent, and its caller waited", async () => {
    vendor.answer(() => undefined);
    const ending = [false, true].map(async (stream) => {
      const response = await records.post({ ...chat, stream });
      assert.match(await response.text(), /"timeout"/);
      const row = await records.ended(jobIdOf(response));
      assert.deepEqual([row.outcome, row.error_code, row.vendor], ['failed', 'timeout', 'own']);
      assert.deepEqual([row.usage, row.cost], [null, 0]);
    });
    await Promise.all(ending);
  });

  test('a chat whose caller disconnects after its vendor has refused it, while the next call waits, costs nothing', async () => {
    vendor.answer((response) => {
      response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '8' });
      response.end('{"error":{"message":"Overloaded."}}');
    });
    const retries = async () => (await MetricsPage.read(workerUrl)).sum('sluice_vendor_retries_total', 'vendor="own"');
    const before = await retries();
    const controller = new AbortController();
    const answer = records.post(chat, { 'x-stainless-timeout': '60' }, { signal: controller.signal });
    answer.catch(() => undefined);
    await eventually(async () => assert.equal(await retries(), before + 1));
    controller.abort();
    await eventually(async () => {
      const [row] = await records.db.selectFrom('jobs').selectAll().orderBy('created_at', 'desc').limit(1).execute();
      assert.deepEqual([row?.outcome, row?.usage, row?.cost ?? 0, row?.vendor], ['cancelled', null, 0, 'own']);
    });
  });
});
