import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { findApiKeyByHash } from '../../../shared/accounts/api-keys.ts';
import { rotateApiKey } from '../../../shared/accounts/change-api-key.ts';
import { hashApiKey } from '../../../shared/ids.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeApiKey } from '../../support/make-api-key.ts';

const overlapMs = 86_400_000;

describe('rotated keys with a budget', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records?.stop());

  /** Sends requests with a key until one is refused, and returns what they have cost. */
  async function spendWith(key: string): Promise<number> {
    const body = { model: 'sandbox-chat', max_tokens: 500, messages: [{ role: 'user', content: 'WORDS:400@100000' }] };
    for (let sum = 0; ; ) {
      const answer = await records.post(body, { authorization: `Bearer ${key}` });
      const text = await answer.text();
      if (answer.status === 429) return sum;
      assert.equal(answer.status, 200, text);
      sum += (await records.ended(jobIdOf(answer))).cost ?? 0;
    }
  }

  it('cost no more together than the budget, however often the key is rotated', async () => {
    const amount = 40_000;
    const first = await makeApiKey(records.gateway, { budget: { amount, period: 'never' } });
    const key = await findApiKeyByHash(records.db, hashApiKey(first));
    assert.ok(key);
    const keys = [first];
    for (let rotations = 1; rotations <= 3; rotations++) {
      keys.push((await rotateApiKey(records.db, records.redis, key, overlapMs))?.text as string);
    }
    let spent = 0;
    for (const text of keys) spent += await spendWith(text);
    assert.ok(spent > amount / 2 && spent <= amount, `${spent} of ${amount}`);
    for (const text of keys) {
      const headers = { authorization: `Bearer ${text}` };
      const own = (await (await records.gateway.fetch('/v1/key', { headers })).json()) as {
        limits: { budget: { spent: number } };
      };
      assert.equal(Math.round(own.limits.budget.spent * 1e9), spent);
    }
  });
});
