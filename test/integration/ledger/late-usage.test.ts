import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** A dollar for a million tokens, in billionths of a dollar. */
const tokenPrice = 1000;

describe('the usage of an answer that comes when its job was cancelled', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;
  let release: (usage: object) => void;
  let key: string;

  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response) => {
      release = (usage) => {
        const message = { role: 'assistant', content: 'An answer.' };
        const choices = [{ index: 0, message, finish_reason: 'stop' }];
        const body = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage };
        sendJson(response, 200, JSON.stringify(body));
      };
    });
    const routes = [{ vendor: 'own', model: 'late', prices: { input: 1, output: 1 } }];
    records = await JobRecords.start({
      configuration: {
        vendors: { own: { base_url: vendor.baseUrl, api_key: 'a-key' } },
        models: { late: { capability: 'chat', routes } },
      },
    });
    key = (await makeLimitedAccount(records.gateway, { credit: 1e9 })).key;
  });

  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** The row of a job that was cancelled unknown to its worker, to which the vendor then answers with this usage. */
  async function cancelledThenAnswered(usage: object, headers: Record<string, string>) {
    const before = vendor.requests.length;
    const body = { model: 'late', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1000 };
    const id = await records.postLater(body, headers);
    await eventually(() => assert.equal(vendor.requests.length, before + 1));
    // The message that aborts the call is lost.
    await records.redis.hset(jobKeys.state(id), 'worker', 'nobody');
    const cancelled = await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE', headers });
    assert.equal(cancelled.status, 200);
    release(usage);
    return await records.ended(id);
  }

  const counts = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  const texts = { prompt_tokens: '7', completion_tokens: '5', total_tokens: '12' };
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

  test('an answer that comes after its job was cancelled is charged for the usage that its vendor counted', async () => {
    const row = await cancelledThenAnswered(counts, {});
    assert.deepEqual([row.outcome, row.cost], ['cancelled', 12 * tokenPrice]);
  });

  for (const [name, usage] of Object.entries({ texts, zeros })) {
    test(`an answer that comes after its job was cancelled is charged for its prompt, as counted here, where its usage is ${name}`, async () => {
      for (const headers of [{}, { authorization: `Bearer ${key}` }]) {
        const row = await cancelledThenAnswered(usage, headers);
        assert.equal(row.outcome, 'cancelled');
        const { estimated, prompt_tokens: tokens } = JSON.parse(row.usage ?? '{}');
        assert.ok(estimated === true && tokens > 0 && tokens < 100, String(row.usage));
        assert.equal(row.cost, tokens * tokenPrice);
      }
    });
  }
});
