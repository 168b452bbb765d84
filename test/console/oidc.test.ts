import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { makeInvitation } from '../../shared/accounts/reset-link.ts';
import { changeUser, createUser } from '../../shared/accounts/users.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { type ConsoleAnswer, ConsoleClient } from '../support/console-client.ts';
import { TestGateway } from '../support/gateway.ts';
import { OidcServer, oidcClient } from '../support/oidc-server.ts';

describe('sign-in by an identity provider', () => {
  let provider: OidcServer;
  let gateway: TestGateway;
  before(async () => {
    provider = await OidcServer.start();
    gateway = await TestGateway.start({
      workers: 0,
      settings: {
        OIDC_ISSUER: provider.issuer,
        OIDC_CLIENT_ID: oidcClient.id,
        OIDC_CLIENT_SECRET: oidcClient.secret,
        OIDC_NAME: 'Corp',
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    provider.user = { sub: 'u-1', email: 'ada@corp.example', email_verified: true, name: 'Ada' };
    provider.isForged = false;
  });

  /** Goes the whole way as a browser does, and answers what the gateway's callback says. */
  const signIn = async (client: ConsoleClient, url = gateway.url): Promise<ConsoleAnswer> => {
    const path = '/console/api/auth/sign-in/oauth2';
    const pages = { providerId: 'oidc', callbackURL: '/console/jobs', errorCallbackURL: '/console/sign-in' };
    const begun = await client.call('POST', path, pages);
    assert.equal(begun.status, 200, JSON.stringify(begun.body));
    const asked = new URL(begun.body.url);
    assert.equal(asked.origin, provider.issuer);
    assert.equal(asked.searchParams.get('redirect_uri'), `${url}/console/api/auth/callback/oidc`);
    const there = await fetch(asked, { redirect: 'manual' });
    return client.call('GET', there.headers.get('location') ?? '', undefined, { origin: '' });
  };
  const sessionOf = async (client: ConsoleClient) => (await client.call('GET', '/console/api/session')).body;

  test('sign-in by an identity provider makes a user with an account, and finds the same user the next time', async () => {
    const [ada, again] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    assert.deepEqual((await ada.call('GET', '/console/api/settings')).body.oidc, { name: 'Corp' });
    const back = await signIn(ada);
    assert.equal(back.status, 302);
    assert.equal(back.headers.get('location'), '/console/jobs');
    const { user, account } = await sessionOf(ada);
    assert.deepEqual([user.email, user.name, user.role], ['ada@corp.example', 'Ada', 'user']);
    assert.match(account.id, /^acct_/);
    await signIn(again);
    assert.equal((await sessionOf(again)).user.id, user.id);
  });

  test('sign-in by an identity provider refuses a token that somebody else has signed', async () => {
    provider.isForged = true;
    const eve = new ConsoleClient(gateway.url);
    const back = await signIn(eve);
    assert.match(back.headers.get('location') ?? '', /^\/console\/sign-in\?error=/);
    assert.equal((await eve.call('GET', '/console/api/session')).status, 401);
  });

  test('sign-in by an identity provider refuses a callback of a sign-in that another browser has begun', async () => {
    const [begins, ends] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    const begun = await begins.call('POST', '/console/api/auth/sign-in/oauth2', {});
    const there = await fetch(begun.body.url, { redirect: 'manual' });
    const back = await ends.call('GET', there.headers.get('location') ?? '', undefined, { origin: '' });
    assert.match(back.headers.get('location') ?? '', /error=/);
    assert.equal((await ends.call('GET', '/console/api/session')).status, 401);
  });

  test('sign-in by an identity provider does not hand over a user with a password, whose address nobody has verified', async () => {
    const mallory = new ConsoleClient(gateway.url);
    await mallory.signUp('victim@corp.example');
    provider.user = { sub: 'u-2', email: 'victim@corp.example', email_verified: true, name: 'V' };
    const victim = new ConsoleClient(gateway.url);
    const back = await signIn(victim);
    assert.match(back.headers.get('location') ?? '', /error=account_not_linked/);
    assert.equal((await victim.call('GET', '/console/api/session')).status, 401);
  });

  test('sign-in by an identity provider tells a user who is disabled so, on the page of the sign-in', async () => {
    provider.user = { sub: 'u-4', email: 'away@corp.example', email_verified: true, name: 'A' };
    const away = new ConsoleClient(gateway.url);
    await signIn(away);
    const db = await openDatabase(gateway);
    await changeUser(db, (await sessionOf(away)).user.id, { isDisabled: true });
    await db.destroy();
    const back = await signIn(new ConsoleClient(gateway.url));
    assert.equal(back.status, 302);
    assert.match(back.headers.get('location') ?? '', /^\/console\/sign-in\?error=USER_DISABLED&/);
    assert.equal((await away.call('GET', '/console/api/session')).status, 401);
  });

  test('sign-in by an identity provider ends the invitation, by which others could still choose a password', async () => {
    const db = await openDatabase(gateway);
    const asked = { email: 'boss@corp.example', name: 'Boss', role: 'operator', credit: 0 } as const;
    const boss = await createUser(db, asked);
    assert.ok(boss !== undefined);
    const invitation = new URL(await makeInvitation(db, gateway.url, boss.id));
    await db.destroy();
    provider.user = { sub: 'u-5', email: asked.email, email_verified: true, name: 'B' };
    const client = new ConsoleClient(gateway.url);
    await signIn(client);
    assert.equal((await sessionOf(client)).user.role, 'operator');
    const finder = new ConsoleClient(gateway.url);
    const fields = { token: invitation.searchParams.get('token'), newPassword: 'a phrase of a finder' };
    const { status, body } = await finder.call('POST', '/console/api/auth/reset-password', fields);
    assert.deepEqual([status, body.error.code], [400, 'invalid_token']);
    assert.equal((await client.call('GET', '/console/api/session')).status, 200);
  });

  test('leads back to pages of the console only', async () => {
    for (const callbackURL of ['https://evil.example/console', '//evil.example', '/elsewhere', '/console\\@evil']) {
      const path = '/console/api/auth/sign-in/oauth2';
      const { status } = await new ConsoleClient(gateway.url).call('POST', path, { callbackURL });
      assert.ok(status === 400 || status === 403, `${callbackURL}: ${status}`);
    }
  });

  test('sign-in by an identity provider makes no user where sign-up is closed', async () => {
    const api = await gateway.startApi({ SLUICE_SIGN_UP: 'closed' });
    provider.user = { sub: 'u-3', email: 'new@corp.example', email_verified: true, name: 'N' };
    const back = await signIn(new ConsoleClient(api.url), api.url);
    assert.match(back.headers.get('location') ?? '', /error=signup_disabled/);
    await api.stop();
  });

  test('a provider that does not answer keeps nobody from signing in by password', async () => {
    const api = await gateway.startApi({ OIDC_ISSUER: 'http://127.0.0.1:9' });
    const client = new ConsoleClient(api.url);
    await client.signUp('password@corp.example');
    const begun = await client.call('POST', '/console/api/auth/sign-in/oauth2', {});
    assert.ok(begun.status >= 400);
    assert.equal((await client.signIn('password@corp.example')).status, 200);
    await api.stop();
  });
});
