import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { openDatabase } from '../../shared/database/database.ts';
import { type ConsoleAnswer, ConsoleClient } from '../support/console-client.ts';
import { builtProduct, TestGateway } from '../support/gateway.ts';
import { quickPasswords } from '../support/quick-passwords.ts';

const admin = { SLUICE_ADMIN_EMAIL: 'root@example.com', SLUICE_ADMIN_PASSWORD: 'the first password' };
const password = 'chosen by themselves';

let gateway: TestGateway;
let operator: ConsoleClient;
/** The operator's own id. */
let own: string;

before(async () => {
  const settings = { ...admin, SLUICE_SIGN_UP: 'closed', SLUICE_SIGN_UP_CREDIT: '2', ...quickPasswords };
  gateway = await TestGateway.start({ workers: 0, settings });
  operator = new ConsoleClient(gateway.url);
  assert.equal((await operator.signIn(admin.SLUICE_ADMIN_EMAIL, admin.SLUICE_ADMIN_PASSWORD)).status, 200);
  own = (await operator.call('GET', '/console/api/session')).body.user.id;
});

after(async () => gateway?.stop());

const invite = (fields: object): Promise<ConsoleAnswer> => operator.call('POST', '/admin/v1/users', fields);
const change = (id: string, fields: object): Promise<ConsoleAnswer> =>
  operator.call('PATCH', `/admin/v1/users/${id}`, fields);
const remove = (id: string): Promise<ConsoleAnswer> => operator.call('DELETE', `/admin/v1/users/${id}`);

const choosePassword = (link: string, newPassword = password): Promise<ConsoleAnswer> => {
  const token = new URL(link).searchParams.get('token');
  return new ConsoleClient(gateway.url).call('POST', '/console/api/auth/reset-password', { token, newPassword });
};

/** Somebody who was invited and is signed in. */
async function guest(email: string, fields: object = {}): Promise<{ id: string; client: ConsoleClient }> {
  const { status, body } = await invite({ email, ...fields });
  assert.equal(status, 201, JSON.stringify(body));
  assert.equal((await choosePassword(body.invitation_url)).status, 200);
  const client = new ConsoleClient(gateway.url);
  assert.equal((await client.signIn(email, password)).status, 200);
  return { id: body.id, client };
}

const isSignedIn = async (client: ConsoleClient): Promise<boolean> =>
  (await client.call('GET', '/console/api/session')).status === 200;

describe('POST /admin/v1/users with sign-up closed', () => {
  test('POST /admin/v1/users with sign-up closed makes a user whose link leads once to a password, and to an account of their own', async () => {
    const { status, body } = await invite({ email: 'Ada@Example.com' });
    assert.equal(status, 201);
    assert.deepEqual([body.email, body.name, body.role, body.disabled], ['ada@example.com', 'ada', 'user', false]);
    const link = new URL(body.invitation_url);
    assert.deepEqual([link.origin, link.pathname], [new URL(gateway.url).origin, '/console/reset-password']);
    assert.equal(link.searchParams.get('invited'), 'true');
    assert.equal(body.account_name, 'ada@example.com');
    const path = `/admin/v1/accounts/${body.account_id}`;
    const given = await operator.call('POST', `${path}/credits`, { amount: 3 });
    assert.equal(given.status, 201, 'it can be given credit before the user comes');
    assert.equal((await operator.call('POST', `${path}/keys`, { name: 'for Ada' })).status, 201);
    const ada = new ConsoleClient(gateway.url);
    assert.equal((await ada.signIn('ada@example.com', password)).status, 401);
    assert.equal((await choosePassword(body.invitation_url, 'short')).status, 400);
    assert.equal((await choosePassword(body.invitation_url)).status, 200);
    assert.equal((await choosePassword(body.invitation_url, 'chosen by somebody else')).status, 400);
    assert.equal((await ada.signIn('ada@example.com', password)).status, 200);
    // This makes a session within a transaction.
    const change = { currentPassword: password, newPassword: 'another one of theirs' };
    assert.equal((await ada.call('POST', '/console/api/auth/change-password', change)).status, 200);
    const { account } = (await ada.call('GET', '/console/api/session')).body;
    assert.deepEqual([account.id, account.name, account.balance], [body.account_id, 'ada@example.com', 5]);
    assert.ok(!gateway.apis.some((api) => api.output().includes(link.searchParams.get('token') ?? '')));
  });

  test('POST /admin/v1/users with sign-up closed makes operators, and users of an account that is there', async () => {
    const { client } = await guest('grace@example.com', { role: 'operator', account_id: 'default', name: 'Grace' });
    const { user, account } = (await client.call('GET', '/console/api/session')).body;
    assert.deepEqual([user.name, user.role, account.id], ['Grace', 'operator', 'default']);
    const { status, body: page } = await client.call('GET', '/admin/v1/users?account=default&search=grace');
    assert.equal(status, 200);
    assert.deepEqual(
      page.data.map((listed: { id: string; account_name: string }) => [listed.id, listed.account_name]),
      [[user.id, account.name]],
    );
    await remove(user.id);
  });

  test('POST /admin/v1/users with sign-up closed refuses an address that is taken, one that is none, and an account that is not there', async () => {
    for (const [fields, status, param] of [
      [{ email: 'ROOT@example.com' }, 400, 'email'],
      [{ email: 'nobody' }, 400, 'email'],
      [{}, 400, 'email'],
      [{ email: 'x@example.com', role: 'root' }, 400, 'role'],
      [{ email: 'x@example.com', account_id: 'acct_nobody' }, 404, 'account_id'],
    ] as const) {
      const answer = await invite(fields);
      assert.deepEqual([answer.status, answer.body.error.param], [status, param], JSON.stringify(fields));
    }
  });

  test('POST /admin/v1/users with sign-up closed is for operators', async () => {
    const { client, id } = await guest('mallory@example.com');
    assert.equal((await client.call('POST', '/admin/v1/users', { email: 'm2@example.com' })).status, 403);
    assert.equal((await client.call('DELETE', `/admin/v1/users/${own}`)).status, 403);
    assert.equal((await client.call('PATCH', `/admin/v1/users/${id}`, { disabled: false })).status, 403);
  });
});

describe('a user who is disabled', () => {
  test('a user who is disabled is signed out at once, cannot sign in, and can again when that is lifted', async () => {
    const { client, id } = await guest('dan@example.com');
    const before = (await operator.call('POST', `/admin/v1/users/${id}/password-reset`)).body.url;
    assert.equal((await change(id, { disabled: true })).body.disabled, true);
    assert.equal(await isSignedIn(client), false);
    const { status, body } = await client.signIn('dan@example.com', password);
    assert.deepEqual([status, body.error.code], [403, 'user_disabled']);
    const wrong = await client.signIn('dan@example.com', 'a wrong password');
    assert.equal(wrong.status, 401, 'only who knows the password learns of it');
    assert.equal((await choosePassword(before)).status, 400, 'a link of before is no way back');
    const { url } = (await operator.call('POST', `/admin/v1/users/${id}/password-reset`)).body;
    assert.equal((await choosePassword(url)).status, 200);
    assert.equal((await client.signIn('dan@example.com', password)).status, 403);
    await change(id, { disabled: false });
    assert.equal((await client.signIn('dan@example.com', password)).status, 200);
    assert.equal(await isSignedIn(client), true);
  });

  test('a user who is disabled has no use of a session that was made in the same moment', async () => {
    const { client, id } = await guest('eve@example.com');
    const db = await openDatabase(gateway);
    await db.updateTable('users').set({ disabled: 1 }).where('id', '=', id).execute();
    await db.destroy();
    assert.equal(await isSignedIn(client), false);
  });
});

describe('DELETE /admin/v1/users/{id}', () => {
  test('DELETE /admin/v1/users/{id} ends the sessions and every way to sign in; the account and its keys stay', async () => {
    const { client, id } = await guest('frank@example.com');
    const key = (await client.call('POST', '/console/api/keys', { name: 'stays' })).body;
    const link = (await operator.call('POST', `/admin/v1/users/${id}/password-reset`)).body.url;
    assert.deepEqual((await remove(id)).body, { id, object: 'user', deleted: true });
    assert.equal(await isSignedIn(client), false);
    assert.equal((await client.signIn('frank@example.com', password)).status, 401);
    assert.equal((await choosePassword(link)).status, 400);
    const headers = { authorization: `Bearer ${key.key}` };
    assert.equal((await fetch(`${gateway.url}/v1/models`, { headers })).status, 200);
    assert.equal((await remove(id)).status, 404);
  });
});

test('the last operator who can sign in stays: neither disabled, nor deleted, nor made a user', async () => {
  const { id } = await guest('second@example.com', { role: 'operator' });
  assert.equal((await change(id, { disabled: true })).status, 200);
  for (const [answer, param] of [
    [await change(own, { disabled: true }), 'disabled'],
    [await change(own, { role: 'user' }), 'role'],
    [await remove(own), null],
  ] as const) {
    assert.deepEqual([answer.status, answer.body.error.param], [400, param]);
    assert.match(answer.body.error.message, /last operator/);
  }
  assert.equal((await change(id, { disabled: false })).status, 200);
  assert.equal((await remove(id)).status, 200);
});

test('an invited operator who has never signed in does not let the last one go', async () => {
  const { body } = await invite({ email: 'never@example.com', role: 'operator' });
  for (const answer of [
    await change(own, { disabled: true }),
    await change(own, { role: 'user' }),
    await remove(own),
  ]) {
    assert.deepEqual([answer.status, answer.body.error?.code], [400, 'invalid_request_error']);
  }
  assert.equal((await remove(body.id)).status, 200);
});

test('a page of users, accounts or credits after one that is gone is refused, and does not look like the last one', async () => {
  const [first, second] = [
    await invite({ email: 'page-1@example.com' }),
    await invite({ email: 'page-2@example.com' }),
  ];
  const { body: page } = await operator.call('GET', '/admin/v1/users?limit=1');
  assert.deepEqual([page.data[0].id, page.next], [second.body.id, second.body.id]);
  assert.equal((await remove(second.body.id)).status, 200);
  for (const path of ['users', 'accounts', 'accounts/default/credits']) {
    const { status, body } = await operator.call('GET', `/admin/v1/${path}?limit=1&after=${page.next}`);
    assert.deepEqual([status, body.error?.param], [400, 'after'], path);
  }
  assert.equal((await remove(first.body.id)).status, 200);
});

test('GET /admin/v1/users?search= finds parts of addresses and names, and nothing by signs of patterns', async () => {
  await invite({ email: 'search_one@example.com', name: 'Weird % Name' });
  await invite({ email: 'searchxtwo@example.com', name: 'Zoë' });
  const found = async (search: string): Promise<string[]> => {
    const { body } = await operator.call('GET', `/admin/v1/users?search=${encodeURIComponent(search)}`);
    return body.data.map(({ email }: { email: string }) => email).sort();
  };
  assert.deepEqual(await found('SEARCH'), ['search_one@example.com', 'searchxtwo@example.com']);
  assert.deepEqual(await found('h_o'), ['search_one@example.com']);
  assert.deepEqual(await found('weird % n'), ['search_one@example.com']);
  assert.deepEqual(await found("'; drop table users"), []);
});

describe('npm run users', () => {
  const users = fileURLToPath(new URL('launcher/users.js', pathToFileURL(`${builtProduct}/`)));
  const run = (...words: string[]) =>
    promisify(execFile)(process.execPath, [users, ...words], { env: gateway.settings() });

  test('invites, lists, disables, enables, changes the role and deletes', async () => {
    const email = 'shell@example.com';
    const { stdout: link } = await run('invite', 'Shell@Example.com', '--operator', '--account', 'default');
    assert.equal((await choosePassword(link.trim())).status, 200);
    const client = new ConsoleClient(gateway.url);
    assert.equal((await client.signIn(email, password)).status, 200);
    assert.match((await run('list')).stdout, /^shell@example\.com\toperator\tdefault$/m);
    await run('disable', email);
    assert.equal(await isSignedIn(client), false);
    assert.match((await run('list')).stdout, /^shell@example\.com\toperator\tdefault\tdisabled$/m);
    await run('enable', email);
    await run('set-role', email, 'user');
    assert.equal((await client.signIn(email, password)).status, 200);
    assert.equal((await client.call('GET', '/admin/v1/users')).status, 403);
    await run('delete', email);
    assert.equal(await isSignedIn(client), false);
    await assert.rejects(run('delete', admin.SLUICE_ADMIN_EMAIL), /last operator/);
    await assert.rejects(run('invite', admin.SLUICE_ADMIN_EMAIL), /There is a user with the address/);
    for (const email of ['nobody', 'root@localhost', 'ü@example.com', 'a..b@example.com']) {
      await assert.rejects(run('invite', email), /no email address/, 'nor could it sign in');
    }
    await assert.rejects(run('set-role', email, 'root'), /a role is user or operator/);
    await assert.rejects(run('list', '--operator'), /belong to invite/);
  });
});
