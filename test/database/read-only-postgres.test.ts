import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import { DatabaseHealth } from '../../api/ledger/database-health.ts';
import { newApiKeyText } from '../../shared/accounts/api-keys.ts';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import { DatabaseActivity } from '../../shared/database/database-activity.ts';
import { held } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import type { ApiProcess } from '../support/gateway.ts';
import { JobRecords, jobIdOf, later } from '../support/job-records.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const open = (databaseUrl: string): Promise<Database> => openDatabase({ databaseUrl, dataDir: '/nowhere' });

describe('a Postgres that takes no writes', () => {
  let server: TestPostgres;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server?.stop());

  /** Makes a database read-only, or writable again, as new connections find it: as the server that an address leads to. */
  async function administer(t: TestContext, url: string): Promise<(isReadOnly: boolean) => Promise<void>> {
    const administrator = await open(url);
    t.after(() => administrator.destroy());
    const name = new URL(url).pathname.slice(1);
    return async (isReadOnly) => {
      await sql`alter database ${sql.id(name)} set default_transaction_read_only = ${sql.lit(isReadOnly)}`.execute(
        administrator,
      );
      if (!isReadOnly) return;
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name} and pid <> pg_backend_pid()`.execute(
        administrator,
      );
    };
  }

  test('its state is read-only, is ok again by itself, and is unavailable when nobody answers', async (t) => {
    const url = await server.createDatabase();
    const makeReadOnly = await administer(t, url);
    const db = await open(url);
    const health = new DatabaseHealth(db, new DatabaseActivity());
    assert.equal(await health.state(5000), 'ok');
    await makeReadOnly(true);
    await eventually(async () => assert.equal(await health.state(5000), 'read-only'));
    await makeReadOnly(false);
    // Its connection was made while it was read-only, and would stay so; nobody else uses one.
    assert.equal(await health.state(5000), 'ok');
    await db.destroy();
    assert.equal(await health.state(5000), 'unavailable');
  });

  test('readiness and metrics say so, chats go on, stored work gets 503, records wait until it takes them, and another api starts', async (t) => {
    const databaseUrl = await server.createDatabase();
    const records = await JobRecords.start({ databaseUrl });
    t.after(() => records.stop());
    const makeReadOnly = await administer(t, databaseUrl);
    const readiness = async (url = records.gateway.url) => {
      const response = await fetch(`${url}/readyz`);
      const { status, checks } = (await response.json()) as { status: string; checks: { database: string } };
      return [response.status, status, checks.database];
    };
    assert.deepEqual(await readiness(), [200, 'ok', 'ok']);
    assert.equal(await records.metric('sluice_database_up'), 1);
    // From here on the key is known.
    await records.ended(jobIdOf(await records.post(held('Hi'))));

    await makeReadOnly(true);
    await eventually(async () => assert.deepEqual(await readiness(), [200, 'degraded', 'read-only']));
    assert.equal(await records.metric('sluice_database_up'), 0);
    const response = await records.post(held('Hi'));
    assert.equal(response.status, 200);
    const id = jobIdOf(response);
    await assertErrorAnswer(await records.post(held('Hi'), later), 503, 'service_unavailable');
    const [api] = records.gateway.apis;
    await eventually(
      () => assert.match(api?.output() ?? '', /cannot execute INSERT in a read-only transaction/),
      60_000,
    );
    assert.ok((await records.outboxes()) > 0, 'the record does not wait');
    assert.doesNotMatch(api?.output() ?? '', /is quarantined/);
    // All that a start makes is there, the key of the settings among it.
    const second = await records.gateway.startApi();
    assert.deepEqual(await readiness(second.url), [200, 'degraded', 'read-only']);
    const chat = (api: ApiProcess, key = records.gateway.apiKey): Promise<Response> => {
      const headers = { authorization: `Bearer ${key}` };
      const request = { url: api.url, method: 'POST', headers, body: JSON.stringify(held('Hi')) };
      return records.gateway.fetch('/v1/chat/completions', request);
    };
    assert.equal((await chat(second)).status, 200);
    // One whose key is missing makes it later.
    const missing = newApiKeyText();
    const third = await records.gateway.startApi({ SLUICE_BOOTSTRAP_KEY: missing, SLUICE_API_KEY: '' });
    assert.deepEqual(await readiness(third.url), [200, 'degraded', 'read-only']);
    assert.equal((await chat(third)).status, 200);

    await makeReadOnly(false);
    await eventually(async () => assert.deepEqual(await readiness(), [200, 'ok', 'ok']));
    await eventually(async () => assert.equal((await chat(third, missing)).status, 200), 60_000);
    assert.equal((await records.ended(id)).outcome, 'completed');
    await eventually(async () => assert.equal(await records.outboxes(), 0), 60_000);
  });
});
