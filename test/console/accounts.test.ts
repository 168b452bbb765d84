import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { openDatabase } from '../../shared/database/database.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { quickPasswords } from '../support/quick-passwords.ts';

const admin = {
  ...quickPasswords,
  ...{ SLUICE_ADMIN_EMAIL: 'Root@example.com', SLUICE_ADMIN_PASSWORD: 'the first password' },
};

describe('accounts', () => {
  let gateway: TestGateway;
  let operator: ConsoleClient;
  before(async () => {
    gateway = await TestGateway.start({ settings: { ...admin, SLUICE_SIGN_UP_CREDIT: '1.25' } });
    operator = new ConsoleClient(gateway.url);
    assert.equal((await operator.signIn('root@example.com', admin.SLUICE_ADMIN_PASSWORD)).status, 200);
  });
  after(async () => gateway?.stop());

  const newAccount = async (fields: object = {}): Promise<string> => {
    const { status, body } = await operator.call('POST', '/admin/v1/accounts', { name: 'Tenant', ...fields });
    assert.equal(status, 201);
    return body.id;
  };
  const credit = (id: string, amount: unknown, note = 'test') =>
    operator.call('POST', `/admin/v1/accounts/${id}/credits`, { amount, note });
  const balance = async (id: string): Promise<number | null> =>
    (await operator.call('GET', `/admin/v1/accounts/${id}`)).body.balance;
  const chat = (key: string) =>
    gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }),
    });

  test('the operator of the settings is of the first account, which is not limited', async () => {
    const { body } = await operator.call('GET', '/console/api/session');
    assert.deepEqual([body.user.role, body.user.email], ['operator', 'root@example.com']);
    assert.deepEqual(body.account, { id: 'default', name: 'default', balance: null, suspended: false });
  });

  test('a search finds accounts by letters beyond ASCII, in small and in capital ones', async () => {
    const [first, second] = [await newAccount({ name: 'Österreich GmbH' }), await newAccount({ name: 'ärzte e.V.' })];
    const found = async (search: string): Promise<string[]> => {
      const { body } = await operator.call('GET', `/admin/v1/accounts?search=${encodeURIComponent(search)}`);
      return body.data.map(({ id }: { id: string }) => id);
    };
    for (const search of ['Österreich', 'österreich g', 'ÖSTERREICH']) assert.deepEqual(await found(search), [first]);
    for (const search of ['ärzte', 'Ärzte', 'ÄRZTE E.V']) assert.deepEqual(await found(search), [second], search);
    assert.deepEqual(await found('ästerreich'), []);
  });

  test('NUL in a name or a note is stored as U+FFFD, and does not end it', async () => {
    const [odd, stored] = ['Red\0Team', 'Red\ufffdTeam'];
    const id = await newAccount({ name: odd });
    const created = async (path: string, fields: object): Promise<Record<string, unknown>> => {
      const { status, body } = await operator.call('POST', `/admin/v1${path}`, fields);
      assert.equal(status, 201, JSON.stringify(body));
      return body;
    };
    assert.equal((await operator.call('GET', `/admin/v1/accounts/${id}`)).body.name, stored);
    assert.equal((await created(`/accounts/${id}/keys`, { name: odd })).name, stored);
    await created(`/accounts/${id}/credits`, { amount: 1, note: odd });
    assert.equal((await operator.call('GET', `/admin/v1/accounts/${id}/credits`)).body.data[0].note, stored);
    assert.equal((await created('/users', { email: 'odd@example.com', name: odd })).name, stored);
    assert.equal((await operator.call('POST', '/console/api/auth/update-user', { name: odd })).status, 200);
    assert.equal((await operator.call('GET', '/console/api/session')).body.user.name, stored);
    for (const path of ['accounts?search=', 'users?search=', 'jobs?model=', 'usage?model=']) {
      assert.equal((await operator.call('GET', `/admin/v1/${path}%00`)).status, 200, path);
    }
  });

  test('a later start keeps the operator and a password that was changed', async () => {
    const path = '/console/api/auth/change-password';
    const change = { currentPassword: admin.SLUICE_ADMIN_PASSWORD, newPassword: 'the changed password' };
    assert.equal((await operator.call('POST', path, change)).status, 200);
    const api = await gateway.startApi();
    const again = new ConsoleClient(api.url);
    assert.equal((await again.signIn('root@example.com', admin.SLUICE_ADMIN_PASSWORD)).status, 401);
    assert.equal((await again.signIn('root@example.com', 'the changed password')).status, 200);
    const users = (await operator.call('GET', '/admin/v1/users')).body.data;
    assert.equal(users.filter(({ role }: { role: string }) => role === 'operator').length, 1);
    await api.stop();
  });

  test('somebody who signed up with the address of a later operator is not made one, unless the password is the same', async () => {
    await new ConsoleClient(gateway.url).signUp('later@example.com', 'a password of theirs');
    for (const [password, role] of [
      ['another password', 'user'],
      ['a password of theirs', 'operator'],
    ] as const) {
      const api = await gateway.startApi({ SLUICE_ADMIN_EMAIL: 'later@example.com', SLUICE_ADMIN_PASSWORD: password });
      const client = new ConsoleClient(api.url);
      assert.equal((await client.signIn('later@example.com', 'a password of theirs')).status, 200);
      assert.equal((await client.call('GET', '/console/api/session')).body.user.role, role);
      await api.stop();
    }
  });

  test('an operator of the settings who was demoted or deleted by another stays so at later starts', async () => {
    const named = { SLUICE_ADMIN_EMAIL: 'leaving@example.com', SLUICE_ADMIN_PASSWORD: 'the password of the settings' };
    const starts = async (): Promise<{ status: number; role: string | undefined }> => {
      const api = await gateway.startApi(named);
      const client = new ConsoleClient(api.url);
      const { status } = await client.signIn(named.SLUICE_ADMIN_EMAIL, named.SLUICE_ADMIN_PASSWORD);
      const { body } = await client.call('GET', '/console/api/session');
      await api.stop();
      return { status, role: body.user?.role };
    };
    assert.deepEqual(await starts(), { status: 200, role: 'operator' });
    const { data } = (await operator.call('GET', '/admin/v1/users?search=leaving')).body;
    const user = `/admin/v1/users/${data[0].id}`;
    assert.equal((await operator.call('PATCH', user, { role: 'user' })).status, 200);
    assert.deepEqual(await starts(), { status: 200, role: 'user' });
    assert.equal((await operator.call('DELETE', user)).status, 200);
    assert.deepEqual(await starts(), { status: 401, role: undefined });
    // The name alone is nothing special from now on.
    await new ConsoleClient(gateway.url).signUp(named.SLUICE_ADMIN_EMAIL, named.SLUICE_ADMIN_PASSWORD);
    assert.deepEqual(await starts(), { status: 200, role: 'user' });
    // Unless nobody else is left: no gateway is without an operator.
    const db = await openDatabase(gateway);
    const others = db.updateTable('users').set({ role: 'user' }).where('role', '=', 'operator');
    await others.execute();
    assert.deepEqual(await starts(), { status: 200, role: 'operator' });
    await others.execute();
    await db.updateTable('users').set({ role: 'operator' }).where('email', '=', 'root@example.com').execute();
    await db.destroy();
  });

  test('an account that a sign-up makes has the credit for it, once', async () => {
    const ada = new ConsoleClient(gateway.url);
    await ada.signUp('ada@example.com');
    await ada.signIn('ada@example.com');
    const { account, user } = (await ada.call('GET', '/console/api/session')).body;
    assert.equal(account.balance, 1.25);
    const { data } = (await operator.call('GET', `/admin/v1/accounts/${account.id}/credits`)).body;
    assert.equal(data.length, 1);
    assert.deepEqual([data[0].amount, data[0].created_by], [1.25, user.id]);
  });

  test('a sign-up that was cut before the account was made is completed by the next sign-in', async () => {
    const bob = new ConsoleClient(gateway.url);
    await bob.signUp('bob@example.com');
    const { id } = (await bob.call('GET', '/console/api/session')).body.account;
    const db = await openDatabase(gateway);
    await db.deleteFrom('credits').where('account_id', '=', id).execute();
    await db.deleteFrom('accounts').where('id', '=', id).execute();
    await db.destroy();
    assert.equal((await bob.signIn('bob@example.com')).status, 200);
    assert.equal((await bob.call('GET', '/console/api/session')).body.account.balance, 1.25);
  });

  test('a new account has no credit, and what is put on it and taken off it adds up', async () => {
    const id = await newAccount();
    assert.equal(await balance(id), 0);
    assert.equal((await credit(id, 10.000000001)).status, 201);
    assert.equal((await credit(id, -4)).status, 201);
    assert.equal(await balance(id), 6.000000001);
    const short = await credit(id, -6.1);
    assert.deepEqual([short.status, short.body.error.param], [400, 'amount']);
    for (const amount of [0, '5', null, 1e-10, 9_000_001, 1e300]) {
      const { status, body } = await credit(id, amount);
      assert.deepEqual([status, body.error.param], [400, 'amount'], String(amount));
    }
    assert.equal(await balance(id), 6.000000001);
    assert.equal((await credit('acct_nobody', 5)).status, 404);
    const page = (await operator.call('GET', `/admin/v1/accounts/${id}/credits?limit=1`)).body;
    assert.deepEqual([page.data[0].amount, page.has_more], [-4, true]);
    const rest = (await operator.call('GET', `/admin/v1/accounts/${id}/credits?limit=1&after=${page.next}`)).body;
    assert.deepEqual([rest.data[0].amount, rest.has_more, rest.next], [10.000000001, false, null]);
  });

  test('credit that Redis could not be told of is answered as added, so that nobody adds it twice, and admission gets it later', async () => {
    const id = await newAccount();
    const key = await makeApiKey(gateway, { accountId: id });
    // Admission knows the account, and that it has nothing.
    assert.equal((await chat(key)).status, 429);
    const redis = new Redis(gateway.redisUrl);
    try {
      await redis.config('SET', 'min-replicas-to-write', '3');
      const { status, body } = await credit(id, 5);
      await redis.config('SET', 'min-replicas-to-write', '0');
      assert.deepEqual([status, body.amount], [201, 5]);
      const { data } = (await operator.call('GET', `/admin/v1/accounts/${id}/credits`)).body;
      assert.deepEqual([data.length, data[0].id], [1, body.id]);
      await eventually(async () => assert.equal((await chat(key)).status, 200));
    } finally {
      await redis.config('SET', 'min-replicas-to-write', '0');
      redis.disconnect();
    }
  });

  test('a repeat of a credit with the same idempotency key adds nothing, and gets the first one', async () => {
    const [id, other] = [await newAccount(), await newAccount()];
    const give = (account: string, amount: number, key = 'invoice 17', note = '') =>
      operator.call('POST', `/admin/v1/accounts/${account}/credits`, { amount, note }, { 'idempotency-key': key });
    const given = await Promise.all([give(id, 5), give(id, 5), give(id, 5)]);
    assert.deepEqual(
      given.map(({ status }) => status),
      [201, 201, 201],
    );
    assert.equal(new Set(given.map(({ body }) => body.id)).size, 1);
    assert.equal(await balance(id), 5);
    for (const changed of [await give(id, 6), await give(id, 5, 'invoice 17', 'a note')]) {
      assert.deepEqual([changed.status, changed.body.error.code], [422, 'idempotency_key_reused']);
    }
    assert.equal((await give(id, 5, 'invoice 18')).status, 201);
    assert.equal((await give(other, 5)).status, 201);
    assert.deepEqual([await balance(id), await balance(other)], [10, 5]);
    assert.equal((await give(id, 5, '\u00fc')).status, 400);
  });

  test('a credit beyond what an account can have, or has left, is told so, however large it is', async () => {
    const id = await newAccount();
    for (const amount of [9_000_001, 100_000_000, 1e21]) {
      const { status, body } = await credit(id, amount);
      assert.deepEqual([status, body.error.param], [400, 'amount']);
      assert.match(body.error.message, /9000000 dollars in all at most/);
    }
    for (const amount of [-1, -100_000_000]) {
      assert.match((await credit(id, amount)).body.error.message, /less than that left/);
    }
  });

  test('two that take the last credit at the same time do not both get it', async () => {
    const id = await newAccount();
    await credit(id, 5);
    const taken = await Promise.all(Array.from({ length: 6 }, () => credit(id, -2)));
    assert.equal(taken.filter(({ status }) => status === 201).length, 2);
    assert.equal(await balance(id), 1);
  });

  test('accounts are found by parts of their names and by their ids, and nothing by signs of patterns', async () => {
    const [one, other] = [await newAccount({ name: 'Find_Me % here' }), await newAccount({ name: 'FindxMe' })];
    const found = async (search: string): Promise<string[]> => {
      const { body } = await operator.call('GET', `/admin/v1/accounts?search=${encodeURIComponent(search)}`);
      return body.data.map(({ id }: { id: string }) => id);
    };
    assert.deepEqual(await found('FIND'), [other, one]);
    assert.deepEqual(await found('find_'), [one]);
    assert.deepEqual(await found('me %'), [one]);
    assert.deepEqual(await found(other), [other]);
    assert.deepEqual(await found("'; drop table accounts"), []);
  });

  test('admission knows of credit, of its end and of a suspension at once', async () => {
    const id = await newAccount();
    const key = await makeApiKey(gateway, { accountId: id });
    const broke = await chat(key);
    assert.deepEqual(
      [broke.status, ((await broke.json()) as { error: { code: string } }).error.code],
      [429, 'insufficient_quota'],
    );
    await credit(id, 5);
    assert.equal((await chat(key)).status, 200);
    const change = (fields: object) => operator.call('PATCH', `/admin/v1/accounts/${id}`, fields);
    const suspended = await change({ suspended: true });
    assert.equal(suspended.body.suspended, true);
    assert.ok(suspended.body.suspended_at > 0);
    assert.equal((await chat(key)).status, 403);
    assert.equal((await change({ suspended: false })).body.suspended_at, null);
    assert.equal((await chat(key)).status, 200);
    // What a job held and did not need comes back when it is settled, which follows its answer.
    await eventually(async () => {
      await credit(id, -((await balance(id)) ?? 0));
      assert.equal((await chat(key)).status, 429);
    });
    assert.equal((await change({ is_unlimited: true })).body.balance, null);
    assert.equal((await chat(key)).status, 200);
  });

  test('accounts are listed by pages, renamed, and asked for by fields that are checked', async () => {
    const ids = [await newAccount({ name: 'One' }), await newAccount({ name: 'Two' })];
    const seen: string[] = [];
    let next: string | null = '';
    while (next !== null) {
      const { body } = await operator.call('GET', `/admin/v1/accounts?limit=2&after=${next}`);
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      next = body.next;
    }
    assert.equal(new Set(seen).size, seen.length);
    for (const id of [...ids, 'default']) assert.ok(seen.includes(id));
    const path = `/admin/v1/accounts/${ids[0]}`;
    assert.equal((await operator.call('PATCH', path, { name: 'Renamed' })).body.name, 'Renamed');
    assert.equal((await operator.call('PATCH', path, { queue_weight: 7 })).body.queue_weight, 7);
    assert.equal((await operator.call('GET', path)).body.queue_by_key, false);
    assert.equal((await operator.call('PATCH', path, { queue_by_key: true })).body.queue_by_key, true);
    assert.equal((await operator.call('GET', path)).body.queue_by_key, true);
    for (const weight of [0, 101, 1.5, '3', null]) {
      const { status, body } = await operator.call('PATCH', path, { queue_weight: weight });
      assert.deepEqual([status, body.error.param], [400, 'queue_weight'], String(weight));
    }
    assert.equal((await operator.call('PATCH', path, { name: 7 })).body.error.param, 'name');
    assert.equal((await operator.call('PATCH', path, { color: 'red' })).status, 400);
    assert.equal((await operator.call('PATCH', '/admin/v1/accounts/acct_nobody', { name: 'N' })).status, 404);
    assert.equal((await operator.call('GET', '/admin/v1/accounts?limit=0')).body.error.param, 'limit');
  });

  test('a user is refused on the routes of operators until made one, and after it is taken away', async () => {
    const eve = new ConsoleClient(gateway.url);
    await eve.signUp('eve@example.com');
    const { user } = (await eve.call('GET', '/console/api/session')).body;
    const status = async (): Promise<number> => (await eve.call('GET', '/admin/v1/accounts')).status;
    assert.equal(await status(), 403);
    assert.equal((await eve.call('PATCH', `/admin/v1/users/${user.id}`, { role: 'operator' })).status, 403);
    const give = (role: string) => operator.call('PATCH', `/admin/v1/users/${user.id}`, { role });
    assert.equal((await give('operator')).body.role, 'operator');
    assert.equal(await status(), 200);
    await give('user');
    assert.equal(await status(), 403);
    const moved = await operator.call('PATCH', `/admin/v1/users/${user.id}`, { account_id: 'default' });
    assert.equal(moved.body.account_id, 'default');
    assert.equal((await eve.call('GET', '/console/api/session')).body.account.id, 'default');
    const wrong = await operator.call('PATCH', `/admin/v1/users/${user.id}`, { account_id: 'acct_nobody' });
    assert.deepEqual([wrong.status, wrong.body.error.param], [404, 'account_id']);
    assert.equal((await operator.call('PATCH', '/admin/v1/users/nobody', { role: 'user' })).status, 404);
  });

  test('operator keys are let through, standard keys and nobody are not', async () => {
    const ask = (authorization: string) =>
      fetch(`${gateway.url}/admin/v1/accounts`, authorization === '' ? {} : { headers: { authorization } });
    const operatorKey = await makeApiKey(gateway, { kind: 'operator' });
    assert.equal((await ask(`Bearer ${operatorKey}`)).status, 200);
    assert.equal((await ask(`Bearer ${gateway.apiKey}`)).status, 403);
    assert.equal((await ask('Bearer sk-sluice-unknown')).status, 401);
    assert.equal((await ask('')).status, 401);
  });

  test("a page of another site cannot use an operator's session", async () => {
    const headers = { origin: 'https://evil.example' };
    const { status } = await operator.call('POST', '/admin/v1/accounts', { name: 'Evil' }, headers);
    assert.equal(status, 403);
  });

  test('a suspended account neither makes, changes nor rotates API keys in the console; it can look and revoke', async () => {
    const dan = new ConsoleClient(gateway.url);
    await dan.signUp('dan@example.com');
    const { account } = (await dan.call('GET', '/console/api/session')).body;
    const made = await dan.call('POST', '/console/api/keys', { name: 'before' });
    assert.equal(made.status, 201);
    const suspend = (suspended: boolean) => operator.call('PATCH', `/admin/v1/accounts/${account.id}`, { suspended });
    assert.equal((await suspend(true)).status, 200);
    const path = `/console/api/keys/${made.body.id}`;
    for (const [method, of, fields] of [
      ['POST', '/console/api/keys', { name: 'after' }],
      ['PATCH', path, { name: 'changed', budget: null }],
      ['POST', `${path}/rotate`, { overlap_seconds: 0 }],
      ['POST', '/console/api/v1/embeddings', { model: 'sandbox-embedding', input: 'Hi' }],
    ] as const) {
      const { status, body } = await dan.call(method, of, fields);
      assert.deepEqual([status, body.error.code], [403, 'permission_denied'], `${method} ${of}`);
      assert.match(body.error.message, /suspended/);
    }
    const { data } = (await dan.call('GET', '/console/api/keys')).body;
    assert.deepEqual([data.length, data[0].name], [1, 'before']);
    assert.equal((await dan.call('DELETE', path)).body.status, 'revoked');
    await suspend(false);
    assert.equal((await dan.call('POST', '/console/api/keys', { name: 'after' })).status, 201);
  });

  test('an operator can hand out a link to a new password', async () => {
    const carol = new ConsoleClient(gateway.url);
    await carol.signUp('carol@example.com');
    const { user } = (await carol.call('GET', '/console/api/session')).body;
    const made = await operator.call('POST', `/admin/v1/users/${user.id}/password-reset`);
    assert.equal(made.status, 201);
    const url = new URL(made.body.url);
    assert.equal(url.pathname, '/console/reset-password');
    const token = url.searchParams.get('token');
    const reset = { token, newPassword: 'another password' };
    assert.equal((await carol.call('POST', '/console/api/auth/reset-password', reset)).status, 200);
    assert.equal((await carol.signIn('carol@example.com', 'another password')).status, 200);
    assert.equal((await operator.call('POST', '/admin/v1/users/nobody/password-reset')).status, 404);
    assert.ok(!gateway.apis.some((api) => api.output().includes(token ?? '')));
  });
});

describe('a gateway whose sign-up is closed', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0, settings: { ...admin, SLUICE_SIGN_UP: 'closed' } });
  });
  after(async () => gateway?.stop());

  test('a gateway whose sign-up is closed lets nobody make a user, and says so', async () => {
    const client = new ConsoleClient(gateway.url);
    const settings = (await client.call('GET', '/console/api/settings')).body;
    assert.deepEqual(settings, { sign_up: false, oidc: null, mail: false, sandbox: true, base_url: gateway.url });
    const fields = { name: 'A', email: 'a@example.com', password: 'a long password' };
    const { status, body } = await client.call('POST', '/console/api/auth/sign-up/email', fields);
    assert.deepEqual([status, body.error.code], [400, 'email_password_sign_up_disabled']);
    assert.equal((await client.signIn('root@example.com', admin.SLUICE_ADMIN_PASSWORD)).status, 200);
  });

  test('a gateway whose sign-up is closed keeps its last operator', async () => {
    const operator = new ConsoleClient(gateway.url);
    await operator.signIn('root@example.com', admin.SLUICE_ADMIN_PASSWORD);
    const { user } = (await operator.call('GET', '/console/api/session')).body;
    const { status, body } = await operator.call('PATCH', `/admin/v1/users/${user.id}`, { role: 'user' });
    assert.deepEqual([status, body.error.param], [400, 'role']);
    assert.equal((await operator.call('GET', '/admin/v1/users')).status, 200);
  });
});
