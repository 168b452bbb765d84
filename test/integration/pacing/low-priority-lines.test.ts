import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { completion } from '../../vendors/recorded/recorded-openai.ts';

test('jobs of low priority that wait for their vendor move up after their time, and leave nothing once they are cancelled', async (t) => {
  const vendor = await startFixtureVendor();
  t.after(() => vendor.close());
  vendor.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
  const gateway = await TestGateway.start({
    settings: { SLUICE_FLEX_WAIT_SECONDS: '2' },
    configuration: {
      // One every six seconds.
      vendors: { slow: { base_url: vendor.baseUrl, api_key: 'a-key', rpm: 10 } },
      models: { slow: { capability: 'chat', routes: [{ vendor: 'slow', model: 'm' }] } },
    },
  });
  t.after(() => gateway.stop());
  const redis = new Redis(gateway.redisUrl);
  t.after(() => redis.disconnect());
  const body = JSON.stringify({ model: 'slow', messages: [{ role: 'user', content: 'hi' }] });
  const headers = { prefer: 'respond-async', 'x-sluice-priority': 'low' };
  const jobs: string[] = [];
  for (let count = 0; count < 6; count++) {
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body, headers });
    assert.equal(response.status, 202, await response.clone().text());
    jobs.push(((await response.json()) as { id: string }).id);
  }
  const line = 'sluice:{q-chat}:parked:slow/m:';
  await eventually(async () => assert.ok((await redis.zcard(`${line}low`)) >= 4, 'they are not parked'));
  await eventually(async () => assert.ok((await redis.zcard(`${line}line:default`)) >= 3, 'none has moved up'));
  assert.deepEqual(await redis.keys(`${line}l*low`), []);
  const [last = ''] = jobs.slice(-1);
  const shown = (await (await gateway.fetch(`/v1/jobs/${last}`)).json()) as Record<string, number>;
  assert.ok((shown.expected_wait_seconds ?? 0) > 5, JSON.stringify(shown));
  for (const id of jobs) await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
  await eventually(async () => assert.deepEqual(await redis.keys(`${line}*`), []));
});
