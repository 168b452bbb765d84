import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import type { GatewayProcess } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import {
  beginStream,
  type FixtureVendor,
  sendJson,
  startFixtureVendor,
} from '../../vendors/contracts/fixture-vendor.ts';

/** A dollar for a million tokens, in billionths of a dollar. */
const tokenPrice = 1000;

describe('the prices of a stream whose worker is killed', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;

  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response, { body }) => {
      if ((JSON.parse(body) as { model: string }).model === 'dear') {
        sendJson(response, 404, '{"error":{"message":"There is no such model."}}');
        return;
      }
      beginStream(response);
      const choice = { index: 0, delta: { content: 'some words' }, finish_reason: null };
      const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    });
    const routes = [
      { vendor: 'own', model: 'dear', prices: { input: 100, output: 100 } },
      { vendor: 'own', model: 'cheap', order: 1, prices: { input: 1, output: 1 } },
    ];
    records = await JobRecords.start({
      configuration: {
        vendors: { own: { base_url: vendor.baseUrl, api_key: 'a-key' } },
        models: { twofold: { capability: 'chat', routes } },
      },
    });
  });

  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  test('a stream of a killed worker is charged at the prices of the route that served it, not of another one at the same vendor', async () => {
    const { gateway } = records;
    const messages = [{ role: 'user', content: 'Hello' }];
    const response = await records.post({ model: 'twofold', stream: true, messages });
    const reader = response.body?.getReader();
    assert.equal((await reader?.read())?.done, false);
    await (gateway.workers[0] as GatewayProcess).kill();
    await gateway.startWorker();
    const row = await eventually(() => records.ended(jobIdOf(response)), 60_000);
    assert.equal(row.error_code, 'stream_interrupted');
    const tokens = Number(row.input_tokens) + Number(row.output_tokens);
    assert.ok(tokens > 2, String(row.usage));
    assert.equal(row.cost, tokens * tokenPrice);
    await reader?.cancel();
  });
});
