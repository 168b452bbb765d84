import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readAccountMoney } from '../../../shared/accounts/account-money.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** In nano-dollars for a token. */
const price = 10_000;
const thought = 30_000;

describe('what reasoning costs that the limit of output does not count', () => {
  let records: JobRecords;
  let vendor: FixtureVendor;
  before(async () => {
    vendor = await startFixtureVendor();
    vendor.answer((response) => {
      const message = { role: 'assistant', content: 'x', reasoning_content: 'long thoughts' };
      const usage = {
        ...{ prompt_tokens: 20, completion_tokens: thought + 1, total_tokens: thought + 21 },
        completion_tokens_details: { reasoning_tokens: thought },
      };
      const choices = [{ index: 0, finish_reason: 'length', message }];
      sendJson(response, 200, JSON.stringify({ id: 'theirs', object: 'chat.completion', created: 1, choices, usage }));
    });
    records = await JobRecords.start({
      configuration: {
        vendors: { flow: { like: 'siliconflow', base_url: vendor.baseUrl, api_keys: ['any'] } },
        models: {
          thinker: {
            ...{ capability: 'chat', prices: { input: 10, output: 10 }, max_output_tokens: 8192 },
            routes: [{ vendor: 'flow', model: 'Qwen/Qwen3-14B' }],
          },
        },
      },
    });
  });
  after(async () => {
    await records.stop();
    await vendor.close();
  });

  const asked = { model: 'thinker', messages: [{ role: 'user', content: 'Think hard.' }], thinking_budget: 32_768 };

  for (const more of [{ max_tokens: 1 }, {}]) {
    const limited = 'max_tokens' in more ? 'with a limit of one token' : 'without a limit';
    it(`a limited account is charged all reasoning of a chat ${limited}`, async () => {
      const { id, key } = await makeLimitedAccount(records.gateway, { credit: 100_000 * price });
      const response = await records.post({ ...asked, ...more }, { authorization: `Bearer ${key}` });
      assert.equal(response.status, 200, await response.text());
      const expected = (thought + 21) * price;
      assert.equal((await records.ended(jobIdOf(response))).cost, expected);
      await eventually(async () => {
        const money = await readAccountMoney(records.redis, id);
        assert.deepEqual([money?.held, money?.charged], [0, expected]);
      });
    });

    it(`a chat ${limited} is refused to an account that cannot pay for its reasoning`, async () => {
      const calls = vendor.requests.length;
      const { key } = await makeLimitedAccount(records.gateway, { credit: 30_000 * price });
      const response = await records.post({ ...asked, ...more }, { authorization: `Bearer ${key}` });
      assert.equal(response.status, 429);
      const { error } = (await response.json()) as { error: { code: string } };
      assert.equal(error.code, 'insufficient_quota');
      assert.equal(vendor.requests.length, calls);
    });
  }

  it('a chat without a limit gets one that the balance pays for beside all of the reasoning', async () => {
    const { id, key } = await makeLimitedAccount(records.gateway, { credit: 34_000 * price });
    const response = await records.post(asked, { authorization: `Bearer ${key}` });
    assert.equal(response.status, 200, await response.text());
    const { max_tokens: limit, thinking_budget: budget } = JSON.parse(vendor.requests.at(-1)?.body ?? '');
    assert.equal(budget, 32_768);
    assert.ok(limit > 500 && limit <= 34_000 - 32_768, `${limit}`);
    await eventually(async () => {
      assert.equal((await readAccountMoney(records.redis, id))?.charged, (thought + 21) * price);
    });
  });
});
