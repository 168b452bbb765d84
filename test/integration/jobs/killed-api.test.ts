import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import OpenAI from 'openai';
import { accountKeys } from '../../../shared/redis/keys.ts';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { LoadBalancer } from '../../support/faults/load-balancer.ts';
import { GatedVendor, gatedText } from '../../support/gated-vendor.ts';
import type { ApiProcess } from '../../support/gateway.ts';
import { JobRecords } from '../../support/job-records.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { makeApiKey } from '../../support/make-api-key.ts';

const count = process.env.SLUICE_SOAK ? 1000 : 50;
const patienceMs = 120_000;
const account = 'of-a-killed-api';

describe('calls of the official client, one of whose api processes is killed', () => {
  let vendor: GatedVendor;
  let records: JobRecords;
  let balancer: LoadBalancer;
  before(async () => {
    vendor = await GatedVendor.start();
    const settings = { WORKER_CONCURRENCY_CHAT: String(count) };
    records = await JobRecords.start({ apis: 2, configuration: vendor.configuration, settings });
    balancer = await LoadBalancer.start(50);
    for (const { url } of records.gateway.apis) balancer.add(url);
  });
  after(async () => {
    await balancer?.close();
    await records?.stop();
    await vendor?.close();
  });

  /** Jobs of earlier tries that retries have adopted. */
  async function adopted(): Promise<number> {
    const states = await records.redis.keys('sluice:{a*}:job:*');
    const fields = await Promise.all(states.map((state) => records.redis.hget(state, 'adopter')));
    return fields.filter(Boolean).length;
  }

  /** Waits until every job is in the database, and returns what they cost. */
  async function costs(): Promise<number[]> {
    return await eventually(async () => {
      const jobs = records.db.selectFrom('jobs').select(['cost', 'outcome']).where('account_id', '=', account);
      const rows = await jobs.execute();
      assert.deepEqual([rows.length, rows.filter(({ outcome }) => outcome === 'completed').length], [count, count]);
      return rows.map(({ cost }) => Number(cost));
    }, patienceMs);
  }

  it(`${count} held calls get ${count} answers of ${count} vendor calls, each charged once`, async (t) => {
    const { gateway, redis } = records;
    let [tries, replayed] = [0, 0];
    const counting: typeof fetch = async (address, init) => {
      tries++;
      const response = await fetch(address, init);
      if (response.headers.get('idempotent-replayed') === 'true') replayed++;
      return response;
    };
    const apiKey = await makeApiKey(gateway, { accountId: account });
    const client = new OpenAI({ baseURL: `${balancer.url}/v1`, apiKey, maxRetries: 5, fetch: counting });
    const asking = Promise.all(
      Array.from({ length: count }, (_, index) =>
        client.chat.completions.create(held('Hi', { model: 'gated', user: `call-${index}` })),
      ),
    );
    asking.catch(() => undefined);
    await eventually(() => assert.equal(vendor.calls.length, count), patienceMs);
    await (gateway.apis.pop() as ApiProcess).kill();

    // Some answers end before their retries come, others while those wait.
    for (const call of vendor.calls.slice(0, count / 2)) call.release();
    await eventually(async () => assert.ok((await adopted()) >= count / 4, 'retries'), patienceMs);
    for (const call of vendor.calls) call.release();

    const answers = (await asking).map(({ choices }) => choices[0]?.message.content);
    t.diagnostic(
      `${answers.length} answers of ${vendor.calls.length} vendor calls; ${tries} requests, of which ${replayed} got the answer of an earlier try`,
    );
    assert.deepEqual(
      answers.filter((text) => text !== gatedText),
      [],
    );
    assert.equal(vendor.calls.length, count);
    assert.equal(new Set(vendor.calls.map(({ user }) => user)).size, count);
    const charges = await costs();
    assert.ok(charges.every((cost) => cost > 0));
    const charged = Number(await redis.hget(accountKeys.account(account), 'charged'));
    assert.equal(
      charged,
      charges.reduce((sum, cost) => sum + cost, 0),
    );
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });
});
