import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { type Configuration, TestGateway } from '../support/gateway.ts';
import { LimitedVendor, type VendorAllowance } from '../support/limited-vendor.ts';

/** In full (`npm run soak -- vendor-capacity`) the vendors count by the minute, and three times their limit is offered for one. */
const isSoak = process.env.SLUICE_SOAK === '1';
const perMinute = isSoak ? 600 : 1200;
const windowMs = isSoak ? 60_000 : 5000;
/** In a shorter window there is more of what may come at once. */
const inWindow = isSoak ? perMinute : 125;
const offered = isSoak ? 3 * perMinute : 150;
const offerEveryMs = isSoak ? 60_000 / offered : 1;
const tokensOfCall = 100;

type Vendor = NonNullable<Configuration['vendors']>[string];

describe('the capacity of vendors', () => {
  const vendors = new Map<string, LimitedVendor>();
  let gateway: TestGateway;

  before(async () => {
    const limits: Record<string, [VendorAllowance, Vendor]> = {
      requests: [{ requests: inWindow, windowMs, callMs: 300 }, { rpm: perMinute }],
      tokens: [
        { tokens: inWindow * tokensOfCall, windowMs, tokensOfCall, callMs: 300 },
        { key_limits: { tpm: perMinute * tokensOfCall } },
      ],
      // Its own count goes on when a worker is killed; the gateway's is what is tested.
      killed: [{ windowMs: 1, callMs: 30_000 }, { max_parallel_requests: 2 }],
      limited: [
        { requests: 0, windowMs: 1, headers: () => ({ 'retry-after': '3600' }) },
        { api_keys: ['key-one', 'key-two', 'key-three'] },
      ],
    };
    const configuration: { vendors: Record<string, Vendor>; models: Record<string, object> } = {
      vendors: {},
      models: {},
    };
    for (const [name, [allowance, settings]] of Object.entries(limits)) {
      const vendor = await LimitedVendor.start(allowance);
      vendors.set(name, vendor);
      configuration.vendors[name] = {
        base_url: vendor.server.baseUrl,
        ...(settings.api_keys === undefined && { api_key: 'a-key' }),
        ...settings,
      };
      configuration.models[name] = { capability: 'chat', routes: [{ vendor: name, model: 'm' }] };
    }
    gateway = await TestGateway.start({ workers: 4, configuration });
  });

  after(async () => {
    await gateway?.stop();
    for (const vendor of vendors.values()) await vendor.close();
  });

  const ask = async (model: string, signal?: AbortSignal): Promise<number> => {
    // Unlike fetch, it waits for as long as it is told.
    const client = gateway.client({ timeout: 600_000 });
    const asked = client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] }, { signal });
    return await asked.asResponse().then(
      ({ status }) => status,
      (error) => error.status,
    );
  };

  /** Offers three times what a vendor allows; answers the share of its limit that was used while more waited. */
  async function offer(name: string, context: TestContext): Promise<LimitedVendor> {
    const vendor = vendors.get(name) as LimitedVendor;
    const answers: Promise<number>[] = [];
    for (let index = 0; index < offered; index++) {
      answers.push(ask(name));
      await delay(offerEveryMs);
    }
    const statuses = await Promise.all(answers);
    assert.deepEqual([...new Set(statuses)], [200]);
    const [first = 0, last = 0] = [vendor.accepted[0], vendor.accepted.at(-1)];
    const used = vendor.accepted.length / ((last - first) / 60_000) / perMinute;
    const refused = vendor.refused.length / vendor.models.length;
    context.diagnostic(
      `${name}: ${offered} answered in ${Math.round(last - first)} ms, ${(100 * used).toFixed(1)} % of the limit used, ` +
        `${vendor.refused.length} refused by the vendor (${(100 * refused).toFixed(2)} %)`,
    );
    assert.ok(refused <= 0.001, `${vendor.refused.length} calls were refused by the vendor`);
    if (isSoak) assert.ok(used >= 0.95, `${(100 * used).toFixed(1)} % of the limit used`);
    return vendor;
  }

  test('four workers use what a vendor allows of requests a minute, and no more', async (context) => {
    await offer('requests', context);
  });

  test('four workers use what a vendor allows of tokens a minute, and no more', async (context) => {
    await offer('tokens', context);
  });

  test('with all keys limited for an hour, callers are refused at once and the vendor is not called again', async (context) => {
    const vendor = vendors.get('limited') as LimitedVendor;
    assert.equal(await ask('limited'), 429);
    assert.equal(vendor.models.length, 3);
    // Every worker has heard of it.
    await delay(6000);
    const times: number[] = [];
    for (let index = 0; index < 100; index++) {
      const from = performance.now();
      assert.equal(await ask('limited'), 429);
      times.push(performance.now() - from);
    }
    assert.equal(vendor.models.length, 3);
    times.sort((one, other) => one - other);
    const [median = 0, last = 0] = [times[50], times[98]];
    context.diagnostic(`refused in ${median.toFixed(1)} ms (median), ${last.toFixed(1)} ms (99th percentile)`);
    if (isSoak) assert.ok(last < 50, `${last.toFixed(1)} ms`);
  });

  test('the calls of a killed worker are free again for the others', async (context) => {
    const vendor = vendors.get('killed') as LimitedVendor;
    const leaving = new AbortController();
    const answers = Array.from({ length: 2 }, () => ask('killed', leaving.signal).catch(() => undefined));
    await eventually(() => assert.equal(vendor.accepted.length, 2));
    const waiting = ask('killed', leaving.signal).catch(() => undefined);
    const [old, others] = [gateway.workers.slice(), Promise.all([gateway.startWorker(), gateway.startWorker()])];
    await others;
    assert.equal(vendor.accepted.length, 2);
    await Promise.all(old.map((worker) => worker.kill()));
    const from = performance.now();
    await eventually(() => assert.ok(vendor.accepted.length > 2, 'no further call was made'), 30_000);
    const ms = performance.now() - from;
    context.diagnostic(`a further call was made ${Math.round(ms)} ms after the kill`);
    if (isSoak) assert.ok(ms < 10_000, `${Math.round(ms)} ms`);
    leaving.abort();
    await Promise.all([...answers, waiting]);
  });
});
