import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { loadProduct } from '../../support/gateway.ts';
import { JobRecords } from '../../support/job-records.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { makeApiKey } from '../../support/make-api-key.ts';

const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { readAccountMoney, setAccountCredit } = await loadProduct<
  typeof import('../../../shared/accounts/account-money.ts')
>('shared/accounts/account-money');

const isSoak = process.env.SLUICE_SOAK !== undefined;
const rounds = isSoak ? 1000 : 15;
const clients = 100;
/** In every so many rounds all connections to Redis are cut while the clients race. */
const cutEvery = 5;
const account = 'racing';

describe('clients that race for the last cent', () => {
  let records: JobRecords;
  let key: string;
  let credit = 0;

  before(async () => {
    records = await JobRecords.start({ apis: 2, workers: 2 });
    key = await makeApiKey(records.gateway, { accountId: account });
    await records.db.updateTable('accounts').set({ is_unlimited: 0 }).where('id', '=', account).execute();
  });
  after(() => records?.stop());

  async function give(amount: number): Promise<void> {
    const id = `credit_${String(credit).padStart(16, '0')}`;
    const row = { id, account_id: account, amount, note: 'a round', created_at: Date.now(), created_by: 'test' };
    await records.db.insertInto('credits').values(row).execute();
    credit += amount;
    await eventually(() => setAccountCredit(records.redis, account, credit));
  }

  async function ask(client: number): Promise<number> {
    const { url } = records.gateway.apis[client % 2] as { url: string };
    const body = {
      model: 'sandbox-chat',
      messages: [{ role: 'user', content: 'Reply with exactly: one' }],
      max_tokens: 20,
      stream: client % 3 === 0,
    };
    const headers = { authorization: `Bearer ${key}` };
    const response = await records.post(body, headers, { url, signal: AbortSignal.timeout(60_000) });
    await response.text();
    return response.status;
  }

  test('clients that race for the last cent spend no more than the balance, and every cent is charged and recorded', async () => {
    // What one request may cost; by the time of the last round what is left over pays for some more.
    await give(1);
    const refused = await records.post(
      { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Reply with exactly: one' }], max_tokens: 20 },
      { authorization: `Bearer ${key}` },
    );
    const { error } = (await refused.json()) as { error: { code: string; message: string } };
    assert.deepEqual([refused.status, error.code], [429, 'insufficient_quota']);
    const dollars = /may cost up to \$([\d.]+)/.exec(error.message)?.[1];
    const most = Math.round(Number(dollars) * 1e9);
    assert.ok(most > 0, error.message);
    const statuses = new Map<number, number>();
    for (let round = 1; round <= rounds; round++) {
      await give(most);
      const racing = Array.from({ length: clients }, (_, client) => ask(client));
      if (round % cutEvery === 0) await records.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      for (const status of await Promise.all(racing)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      const { charged = 0, held = 0 } = (await readAccountMoney(records.redis, account)) ?? {};
      assert.ok(charged + held <= credit, `round ${round}: ${charged} + ${held} of ${credit}`);
    }
    assert.deepEqual(await leftovers(records.gateway.redisUrl, { withinMs: withLostReadersMs }), []);
    const money = await readAccountMoney(records.redis, account);
    const ledger = await eventually(async () => {
      assert.equal(await records.outboxes(), 0);
      const rows = await records.db.selectFrom('jobs').select('cost').where('account_id', '=', account).execute();
      return rows.reduce((sum, { cost }) => sum + (cost ?? 0), 0);
    });
    assert.deepEqual(money, { credit, charged: ledger, held: 0 });
    const sums = await records.db.selectFrom('usage_hours').select('cost').where('account_id', '=', account).execute();
    assert.equal(
      sums.reduce((sum, { cost }) => sum + cost, 0),
      ledger,
    );
    assert.ok(ledger > 0 && ledger <= credit);
    assert.ok((statuses.get(200) ?? 0) >= rounds - rounds / cutEvery, 'in each round without a cut somebody got it');
    assert.equal(await records.redis.zcard(accountKeys.holds(account)), 0);
    process.stderr.write(`${rounds} rounds, statuses ${JSON.stringify([...statuses])}, ${ledger} of ${credit} spent\n`);
  });
});
