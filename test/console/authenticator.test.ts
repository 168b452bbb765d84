import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { removeAuthenticator } from '../../shared/accounts/users.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { authenticatorCode } from '../support/authenticator-code.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { TestGateway } from '../support/gateway.ts';
import { quickPasswords } from '../support/quick-passwords.ts';

const operator = { email: 'operator@example.com', password: 'an operator phrase' };
const auth = '/console/api/auth/two-factor';

const codeOf = (totpUri: string, steps = 0): string =>
  authenticatorCode(new URL(totpUri).searchParams.get('secret') ?? '', steps);

describe('two-step sign-in', () => {
  let gateway: TestGateway;
  before(async () => {
    const admin = { SLUICE_ADMIN_EMAIL: operator.email, SLUICE_ADMIN_PASSWORD: operator.password };
    gateway = await TestGateway.start({
      workers: 0,
      settings: { ...admin, SLUICE_REQUIRE_TOTP: 'operators', ...quickPasswords },
    });
  });
  after(async () => gateway?.stop());

  const newClient = (): ConsoleClient => new ConsoleClient(gateway.url);
  const statusOf = async (client: ConsoleClient): Promise<number> =>
    (await client.call('GET', '/console/api/session')).status;
  /** Sets an authenticator up; returns its address and the backup codes. */
  const enrol = async (
    client: ConsoleClient,
    password = 'a long password',
  ): Promise<{ uri: string; codes: string[] }> => {
    const begun = await client.call('POST', `${auth}/enable`, { password });
    assert.equal(begun.status, 200, JSON.stringify(begun.body));
    const uri: string = begun.body.totpURI;
    assert.equal((await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri) })).status, 200);
    return { uri, codes: begun.body.backupCodes };
  };

  test('two-step sign-in asks for a code after the right password, and nothing is open before it', async () => {
    const [ada, other] = [newClient(), newClient()];
    await ada.signUp('ada@example.com');
    await other.signIn('ada@example.com');
    const wrong = await ada.call('POST', `${auth}/enable`, { password: 'a wrong password' });
    assert.deepEqual([wrong.status, wrong.body.error.param], [400, 'password']);
    const { uri } = await enrol(ada);
    assert.equal((await ada.call('GET', '/console/api/session')).body.user.authenticator, 'on');
    assert.equal(await statusOf(other), 401, 'who was signed in by the password alone is not any more');

    const client = newClient();
    const first = await client.signIn('ada@example.com');
    assert.deepEqual([first.status, first.body.twoFactorRedirect, first.body.user], [200, true, undefined]);
    assert.equal(await statusOf(client), 401);
    for (const path of ['/console/api/keys', '/console/api/v1/models']) {
      assert.equal((await client.call('GET', path)).status, 401, path);
    }
    const failed = await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri, 50) });
    assert.deepEqual([failed.status, failed.body.error.code], [401, 'invalid_code']);
    assert.equal(await statusOf(client), 401);
    const right = await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri).replace(/(...)/, '$1 ') });
    assert.equal(right.status, 200, JSON.stringify(right.body));
    assert.equal(right.body.token, undefined);
    assert.equal(await statusOf(client), 200);
    assert.match(client.cookie, /sluice\.device_/);
    // Without the first step a code is nothing.
    assert.equal((await newClient().call('POST', `${auth}/verify-totp`, { code: codeOf(uri) })).status, 401);
  });

  test('two-step sign-in takes each code for one sign-in, however many try it at once', async () => {
    const erin = newClient();
    await erin.signUp('erin@example.com');
    const { uri } = await enrol(erin);
    const code = codeOf(uri);
    const clients = [newClient(), newClient(), newClient()];
    for (const client of clients) await client.signIn('erin@example.com');
    const answers = await Promise.all(clients.map((client) => client.call('POST', `${auth}/verify-totp`, { code })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400]);
    const refused = answers.find(({ status }) => status === 400);
    assert.equal(refused?.body.error.code, 'code_used');
    assert.deepEqual((await Promise.all(clients.map(statusOf))).sort(), [200, 401, 401]);
    const late = newClient();
    await late.signIn('erin@example.com');
    assert.equal((await late.call('POST', `${auth}/verify-totp`, { code })).status, 400);
    await late.signIn('erin@example.com');
    assert.equal((await late.call('POST', `${auth}/verify-totp`, { code: codeOf(uri, 1) })).status, 200);
  });

  test('two-step sign-in ends a sign-in after five wrong codes, however right the next one is', async () => {
    const bob = newClient();
    await bob.signUp('bob@example.com');
    const { uri } = await enrol(bob);
    const client = newClient();
    await client.signIn('bob@example.com');
    for (let tries = 0; tries < 5; tries++) {
      assert.equal((await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri, 50 + tries) })).status, 401);
    }
    const late = await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri) });
    assert.deepEqual([late.status, late.body.error.code], [400, 'too_many_attempts_request_new_code']);
    assert.equal(await statusOf(client), 401);
    // Five more lock it, as the console tells by the code of that.
    await client.signIn('bob@example.com');
    for (let tries = 0; tries < 5; tries++) {
      assert.equal((await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri, 60 + tries) })).status, 401);
    }
    await client.signIn('bob@example.com');
    const locked = await client.call('POST', `${auth}/verify-totp`, { code: codeOf(uri) });
    assert.deepEqual([locked.status, locked.body.error.code], [429, 'account_temporarily_locked']);
  });

  test('two-step sign-in takes each backup code once, and keeps neither them nor the key in clear', async () => {
    const carol = newClient();
    await carol.signUp('carol@example.com');
    const { uri, codes } = await enrol(carol);
    assert.equal(codes.length, 10);
    const byCode = async (code: string): Promise<number> => {
      const client = newClient();
      await client.signIn('carol@example.com');
      await client.call('POST', `${auth}/verify-backup-code`, { code });
      return statusOf(client);
    };
    assert.equal(await byCode(codes[0] ?? ''), 200);
    assert.equal(await byCode(codes[0] ?? ''), 401);
    const db = await openDatabase(gateway);
    const rows = JSON.stringify(await db.selectFrom('two_factors').selectAll().execute());
    await db.destroy();
    const key = new URL(uri).searchParams.get('secret') ?? '';
    for (const secret of [...codes, key]) assert.ok(!rows.includes(secret));
    const fresh = await carol.call('POST', `${auth}/generate-backup-codes`, { password: 'a long password' });
    assert.equal(fresh.body.backupCodes.length, 10);
    assert.equal(await byCode(codes[1] ?? ''), 401);
    assert.equal((await carol.call('POST', `${auth}/generate-backup-codes`, { password: 'wrong' })).status, 400);
  });

  test('two-step sign-in is required of operators where the operator says so: without it they are users', async () => {
    const root = newClient();
    assert.equal((await root.signIn(operator.email, operator.password)).status, 200);
    const rights = async (): Promise<[number, number, string]> => {
      const { user } = (await root.call('GET', '/console/api/session')).body;
      const board = await root.call('GET', '/console/queues');
      return [(await root.call('GET', '/admin/v1/users')).status, board.status, `${user.role} ${user.authenticator}`];
    };
    assert.deepEqual(await rights(), [403, 403, 'user required']);
    await enrol(root, operator.password);
    assert.deepEqual(await rights(), [200, 200, 'operator on']);
    assert.equal((await root.call('POST', `${auth}/disable`, { password: operator.password })).status, 200);
    assert.deepEqual(await rights(), [403, 403, 'user required']);
  });

  test('two-step sign-in is turned off by the operator for a user who has lost the authenticator, and all sessions end', async () => {
    const dave = newClient();
    await dave.signUp('dave@example.com');
    const { user } = (await dave.call('GET', '/console/api/session')).body;
    await enrol(dave);
    const db = await openDatabase(gateway);
    await removeAuthenticator(db, user.id);
    await db.destroy();
    assert.equal(await statusOf(dave), 401);
    assert.equal((await dave.signIn('dave@example.com')).body.twoFactorRedirect, undefined);
    assert.equal(await statusOf(dave), 200);
  });
});
