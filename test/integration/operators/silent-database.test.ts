import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AdminKeys, type KeyAnswer } from '../../support/admin-keys.ts';
import { ConsoleClient } from '../../support/console-client.ts';
import { stopDatabase } from '../../support/database-faults.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { MetricsPage } from '../../support/metrics-page.ts';

const admin = { SLUICE_ADMIN_EMAIL: 'operator@example.com', SLUICE_ADMIN_PASSWORD: 'an operator password' };
/** Less than SQLite's own timeout, after which it gives up by itself. */
const boundMs = 18_000;

let gateway: TestGateway;
let keys: AdminKeys;
let account: string;
let user: string;
before(async () => {
  gateway = await TestGateway.start({ settings: admin, workers: 0 });
  keys = await AdminKeys.open(gateway);
  account = (await keys.answer(201, 'POST', '/accounts', { name: 'Tenant' })).id;
  user = (await keys.answer(201, 'POST', '/users', { email: 'user@example.com' })).id;
});
after(async () => gateway?.stop());

/** Asks while the database says nothing. */
async function whileAway(calls: readonly (() => Promise<Response>)[]): Promise<Response[]> {
  const restore = await stopDatabase(gateway);
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error('no answer in bounded time')), boundMs).unref();
  });
  try {
    return await Promise.race([Promise.all(calls.map((call) => call())), late]);
  } finally {
    await restore();
  }
}

async function assertUnavailable(answers: readonly Response[]): Promise<void> {
  for (const answer of answers) {
    const text = await answer.text();
    assert.equal(answer.status, 503, `${answer.url} ${text}`);
    assert.match(text, /for now. Try again later/, answer.url);
    assert.ok(Number(answer.headers.get('retry-after')) > 0, answer.url);
  }
}

const list = async (path: string): Promise<KeyAnswer[]> =>
  await eventually(async () => (await keys.answer(200, 'GET', path)).data as KeyAnswer[]);

test('operators get a 503 in bounded time for accounts, credits and users while the database is silent', async () => {
  const asked: readonly (readonly [string, string, object?])[] = [
    ['GET', '/accounts'],
    ['GET', `/accounts/${account}`],
    ['PATCH', `/accounts/${account}`, { name: 'Tenant' }],
    ['GET', `/accounts/${account}/credits`],
    ['GET', '/users'],
    ['PATCH', `/users/${user}`, { role: 'user' }],
    ['POST', `/users/${user}/password-reset`, {}],
  ];
  await assertUnavailable(
    await whileAway(
      asked.map(
        ([method, path, body]) =>
          () =>
            keys.ask(method, path, body),
      ),
    ),
  );
  assert.equal(
    (await list('/users')).some(({ id }) => id === user),
    true,
  );
});

test('what an operator creates while the database is silent is refused, and is not there later', async () => {
  const headers = { authorization: `Bearer ${keys.operatorKey}`, 'idempotency-key': 'once' };
  const credits = `/accounts/${account}/credits`;
  const keyed = (): Promise<Response> =>
    gateway.fetch(`/admin/v1${credits}`, { method: 'POST', headers, body: JSON.stringify({ amount: 7 }) });
  const answers = await whileAway([
    () => keys.ask('POST', '/accounts', { name: 'Late' }),
    () => keys.ask('POST', '/users', { email: 'late@example.com' }),
    () => keys.ask('POST', credits, { amount: 5 }),
    keyed,
  ]);
  await assertUnavailable(answers);
  // Behind what is still in line.
  assert.equal((await eventually(keyed)).status, 201);
  assert.deepEqual(
    (await list(credits)).map(({ amount }) => amount),
    [7],
  );
  assert.deepEqual(await list('/accounts?search=Late'), []);
  assert.deepEqual(await list('/users?search=late'), []);
});

test('users get a 503 in bounded time for their account, for ending sessions and for signing in while the database is silent', async () => {
  const operator = new ConsoleClient(gateway.url);
  assert.equal((await operator.signIn(admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD)).status, 200);
  const statuses: number[] = [];
  await whileAway([
    async () => {
      const answers = await Promise.all([
        operator.call('GET', '/console/api/session'),
        operator.call('POST', '/console/api/auth/revoke-other-sessions', {}),
        new ConsoleClient(gateway.url).signIn(admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD),
      ]);
      statuses.push(...answers.map(({ status }) => status));
      return new Response();
    },
  ]);
  assert.deepEqual(statuses, [503, 503, 503]);
  const refused = (await MetricsPage.read(gateway.url)).sum(
    'sluice_refusals_total',
    'endpoint="console.auth"',
    'reason="database"',
  );
  assert.equal(refused, 2, 'refusals by their reason');
});
