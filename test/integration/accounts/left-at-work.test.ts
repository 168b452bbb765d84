import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

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
        vendors: {
          own: { base_url: vendor.baseUrl, api_key: 'a-key' },
          narrow: { base_url: vendor.baseUrl, api_key: 'a-key', max_parallel_requests: 1 },
        },
        models: {
          silent: { capability: 'chat', prices, routes: [{ vendor: 'own', model: 'chat' }] },
          vectors: { capability: 'embedding', prices, routes: [{ vendor: 'own', model: 'vectors' }] },
          // One input a call, and one call after the other.
          single: {
            capability: 'embedding',
            prices,
            embedding: { batch: 1 },
            routes: [{ vendor: 'narrow', model: 'single' }],
          },
        },
      },
    });
    // Whose deadline it was is the api's to say, which alone has this one.
    await records.gateway.startWorker({ WORKER_PORT: String(port), SLUICE_DEADLINE_SECONDS: '60' });
  });

  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** The row of a request whose caller's timeout is over before its vendor answers. */
  async function timedOutAfter(seconds: number, path: string, body: object) {
    const response = await records.post(body, { 'x-stainless-timeout': String(seconds) }, { path });
    assert.match(await response.text(), /"timeout"/);
    return await records.ended(jobIdOf(response));
  }

  /** The same, after its vendor was called, however slow the machine is. */
  async function timedOut(path: string, body: object) {
    for (let seconds = 1; ; seconds *= 2) {
      const before = vendor.requests.length;
      const row = await timedOutAfter(seconds, path, body);
      if (vendor.requests.length > before) return row;
      assert.ok(seconds < 8, 'the vendor was never called');
    }
  }

  /** That a request has paid for its prompt, and nothing else. */
  function assertPromptPaid({ outcome, error_code: code, usage, cost }: Awaited<ReturnType<typeof timedOut>>): void {
    const { prompt_tokens: prompt, estimated } = JSON.parse(usage ?? '{}');
    assert.deepEqual([outcome, code, estimated], ['failed', 'timeout', true]);
    assert.ok(prompt > 0 && prompt < 100, String(usage));
    assert.equal(cost, prompt * tokenPrice);
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
      assertPromptPaid(await timedOut(path, body));
    });
  }

  test("a caller's own timeout is one also where it is as long as the gateway's deadline, as the libraries' usual one is, or longer", async () => {
    vendor.answer(() => undefined);
    const ending = Object.values(requests).flatMap(({ path, body }) =>
      [8, 9].map(async (seconds) => assertPromptPaid(await timedOutAfter(seconds, path, body))),
    );
    await Promise.all(ending);
  });

  test('a chat that goes on without its caller costs nothing if its vendor is silent until its deadline, whatever its caller has said', async () => {
    vendor.answer(() => undefined);
    const ending = [8, 9].map(async (seconds) => {
      const id = await records.postLater(chat, { 'x-stainless-timeout': String(seconds) });
      const row = await eventually(() => records.ended(id), 60_000);
      assert.deepEqual([row.outcome, row.error_code, row.vendor], ['failed', 'timeout', 'own']);
      assert.deepEqual([row.usage, row.cost], [null, 0]);
    });
    await Promise.all(ending);
  });

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

  const retriesOf = async (name: string) =>
    (await MetricsPage.read(workerUrl)).sum('sluice_vendor_retries_total', `vendor="${name}"`);
  const refuseForNow = (response: ServerResponse): void =>
    sendJson(response, 503, '{"error":{"message":"Overloaded."}}', { 'retry-after': '8' });

  test('a chat whose caller disconnects after its vendor has refused it, while the next call waits, costs nothing', async () => {
    vendor.answer(refuseForNow);
    const before = await retriesOf('own');
    const controller = new AbortController();
    const answer = records.post(chat, { 'x-stainless-timeout': '60' }, { signal: controller.signal });
    answer.catch(() => undefined);
    await eventually(async () => assert.equal(await retriesOf('own'), before + 1));
    controller.abort();
    await eventually(async () => {
      const [row] = await records.db.selectFrom('jobs').selectAll().orderBy('created_at', 'desc').limit(1).execute();
      assert.deepEqual([row?.outcome, row?.usage, row?.cost ?? 0, row?.vendor], ['cancelled', null, 0, 'own']);
    });
  });

  test('embeddings of several calls whose caller leaves while one that was refused waits do not cost what is in that', async () => {
    vendor.answer((response, { body }) => {
      const { input } = JSON.parse(body) as { readonly input: readonly string[] };
      if (input[0] !== 'Hello') return refuseForNow(response);
      const data = [{ object: 'embedding', index: 0, embedding: [1] }];
      sendJson(response, 200, JSON.stringify({ object: 'list', model: 'single', data, usage: { prompt_tokens: 1 } }));
    });
    const input = ['Hello', 'word '.repeat(1000)];
    const id = await records.postLater({ model: 'single', input }, { 'x-stainless-timeout': '60' }, '/v1/embeddings');
    await eventually(async () => assert.equal(await retriesOf('narrow'), 1));
    await records.gateway.fetch(`/v1/jobs/job_${id}`, { method: 'DELETE' });
    const { outcome, cost } = await records.ended(id);
    assert.deepEqual([outcome, cost], ['cancelled', tokenPrice]);
  });
});
