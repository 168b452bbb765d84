import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { readAccountMoney } from '../../shared/accounts/account-money.ts';
import { newApiKeyText } from '../../shared/accounts/api-keys.ts';
import { hashApiKey } from '../../shared/ids.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import { AdminKeys } from '../support/admin-keys.ts';
import { held, streamed } from '../support/chat-requests.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import type { ApiProcess } from '../support/gateway.ts';
import { JobRecords, jobIdOf, later } from '../support/job-records.ts';
import { makeLimitedAccount } from '../support/limited-account.ts';
import { makeApiKey, revokeKey } from '../support/make-api-key.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const path = '/v1/chat/completions';
/** What a chat asks for: its price is the same every time. */
const question = held('Hi', { max_tokens: 60 });
const operator = { email: 'late@operator.example', password: 'a password of the operator' };

interface Readiness {
  readonly status: string;
  readonly checks: { readonly redis: string; readonly database: string };
}

async function readiness(api: ApiProcess): Promise<Readiness & { code: number }> {
  const response = await fetch(`${api.url}/readyz`);
  return { ...((await response.json()) as Readiness), code: response.status };
}

async function assertReady(api: ApiProcess, status: 'ok' | 'degraded'): Promise<void> {
  const ready = await readiness(api);
  assert.deepEqual([ready.code, ready.status, ready.checks.redis], [200, status, 'ok']);
  assert.equal(ready.checks.database, status === 'ok' ? 'ok' : 'unavailable');
  assert.equal((await fetch(`${api.url}/healthz`)).status, 200);
}

describe('an api process that starts while Postgres is away', () => {
  let postgres: TestPostgres;
  let records: JobRecords;
  before(async () => {
    postgres = await startPostgres();
    records = await JobRecords.start({ aof: true, databaseUrl: await postgres.createDatabase() });
  });
  beforeEach(() => postgres.start());
  after(async () => {
    await records?.stop();
    await postgres.stop();
  });

  function chat(api: ApiProcess, key = records.gateway.apiKey, body: object = question): Promise<Response> {
    const headers = { authorization: `Bearer ${key}` };
    return records.gateway.fetch(path, { method: 'POST', url: api.url, headers, body: JSON.stringify(body) });
  }

  async function assertUnavailable(answer: Promise<Response>): Promise<void> {
    const response = await answer;
    assert.ok(Number(response.headers.get('retry-after')) >= 1, `${response.status} does not say when to come back`);
    await assertErrorAnswer(response, 503, 'service_unavailable');
  }

  test('it serves known keys with their money, refuses what needs the database, and does all that a start does once it is back', async () => {
    const { gateway } = records;
    const [first] = gateway.apis as [ApiProcess];
    const { operatorKey } = await AdminKeys.open(gateway);
    assert.equal((await admin(first, operatorKey)).status, 200);
    const poor = await makeLimitedAccount(gateway, { credit: 1e9 });
    const [revoked, unused, untold] = [await makeApiKey(gateway), await makeApiKey(gateway), await makeApiKey(gateway)];
    for (const key of [gateway.apiKey, poor.key, revoked, untold]) assert.equal((await chat(first, key)).status, 200);
    await revokeKey(gateway, revoked);
    // A revocation whose second step failed: the next start is to repeat it.
    const rows = records.db.updateTable('api_keys').set({ revoked_at: Date.now() });
    await rows.where('hash', '=', hashApiKey(untold)).execute();
    // It has nothing left when the second process comes to know it.
    await eventually(async () => assert.equal((await readAccountMoney(records.redis, poor.id))?.held, 0));
    const spent = (await readAccountMoney(records.redis, poor.id))?.charged ?? 0;
    assert.ok(spent > 0);
    await records.redis.hset(accountKeys.account(poor.id), 'charged', 1e9 - 1);
    await postgres.shutDown();

    const bootstrap = newApiKeyText();
    const api = await gateway.startApi({
      SLUICE_BOOTSTRAP_KEY: bootstrap,
      SLUICE_API_KEY: '',
      SLUICE_ADMIN_EMAIL: operator.email,
      SLUICE_ADMIN_PASSWORD: operator.password,
    });
    await assertReady(api, 'degraded');
    await assertReady(first, 'degraded');
    assert.equal((await chat(api, untold)).status, 200);
    const chats = [await chat(api), await chat(api, undefined, streamed('Hi'))];
    for (const response of chats) assert.deepEqual([response.status, (await response.text()) !== ''], [200, true]);
    assert.equal((await gateway.fetch('/v1/models', { url: api.url })).status, 200);
    await assertErrorAnswer(await chat(api, poor.key), 429, 'insufficient_quota');
    await assertErrorAnswer(await chat(api, revoked), 401, 'invalid_api_key');
    const browser = new ConsoleClient(api.url);
    const headers = { ...later, authorization: `Bearer ${gateway.apiKey}` };
    for (const answer of [
      ...[unused, bootstrap, newApiKeyText()].map((key) => chat(api, key)),
      gateway.fetch(path, { method: 'POST', url: api.url, headers, body: JSON.stringify(question) }),
      gateway.fetch(`/v1/jobs/job_${'0'.repeat(32)}`, { url: api.url }),
      gateway.fetch('/v1/usage', { url: api.url }),
      admin(api, operatorKey),
      fetch(`${api.url}/console/api/usage`, { headers: { cookie: 'sluice.session_token=a.b' } }),
    ]) {
      await assertUnavailable(answer);
    }
    for (const each of [browser, new ConsoleClient(first.url)]) {
      const { status, body } = await each.signIn(operator.email, operator.password);
      assert.deepEqual([status, body?.error?.code], [503, 'service_unavailable']);
    }

    await postgres.start();
    await eventually(() => assertReady(api, 'ok'), 20_000);
    await eventually(async () => assert.equal((await chat(api, bootstrap)).status, 200), 20_000);
    await eventually(async () => assertErrorAnswer(await chat(api, untold), 401, 'invalid_api_key'));
    assert.equal((await chat(api, unused)).status, 200);
    await eventually(async () => {
      const answer = await browser.signIn(operator.email, operator.password);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
    }, 20_000);
    assert.equal((await browser.call('GET', '/console/api/usage')).status, 200);
    assert.equal((await admin(api, operatorKey)).status, 200);
    await records.ended(await records.postLater(question));
    for (const response of chats) assert.equal((await records.ended(jobIdOf(response))).outcome, 'completed');
  });

  test('it does not start when Redis has been restarted meanwhile, and a running one refuses requests until Redis is raised to the ledger', async () => {
    const { gateway } = records;
    const [first] = gateway.apis as [ApiProcess];
    const poor = await makeLimitedAccount(gateway, { credit: 1e9 });
    assert.equal((await chat(first, poor.key)).status, 200);
    const charged = async (): Promise<number> => (await readAccountMoney(records.redis, poor.id))?.charged ?? 0;
    await eventually(async () => assert.ok((await charged()) > 0, 'nothing is charged yet'));
    await eventually(async () => assert.equal(await records.outboxes(), 0));
    const spent = await charged();
    await postgres.shutDown();
    // A Redis that has lost its last writes: all that the account has spent.
    await records.redis.hset(accountKeys.account(poor.id), 'charged', 0);
    await gateway.redis?.restart();
    await assert.rejects(gateway.startApi(), /The database of DATABASE_URL cannot be used/);
    await eventually(async () => {
      const { code, status, checks } = await readiness(first);
      assert.deepEqual([code, status, checks.redis], [503, 'unavailable', 'behind']);
    }, 20_000);
    for (const key of [gateway.apiKey, poor.key]) await assertUnavailable(chat(first, key));
    await assertUnavailable(gateway.fetch('/v1/models', { url: first.url }));
    assert.equal((await fetch(`${first.url}/healthz`)).status, 200);
    await postgres.start();
    await eventually(() => assertReady(first, 'ok'), 20_000);
    assert.equal(await charged(), spent);
    assert.equal((await chat(first, poor.key)).status, 200);
  });

  function admin(api: ApiProcess, key: string): Promise<Response> {
    return records.gateway.fetch('/admin/v1/accounts', { url: api.url, headers: { authorization: `Bearer ${key}` } });
  }
});
