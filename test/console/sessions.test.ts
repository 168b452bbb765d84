import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ConsoleClient } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { quickPasswords } from '../support/quick-passwords.ts';
import { skewedClock } from '../support/skewed-clock.ts';

describe('sessions of the console', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2, workers: 0, settings: quickPasswords });
  });
  after(async () => gateway?.stop());

  const client = (api = 0): ConsoleClient => new ConsoleClient(gateway.apis[api]?.url ?? '');

  test('who signs up is signed in, on every api process', async () => {
    const ada = client();
    await ada.signUp('Ada@Example.com');
    const { status, body } = await ada.call('GET', '/console/api/session');
    assert.equal(status, 200);
    assert.equal(body.user.email, 'ada@example.com');
    assert.equal(body.user.role, 'user');
    assert.match(body.account.id, /^acct_[0-9a-f]{24}$/);
    assert.deepEqual({ ...body.account, id: '' }, { id: '', name: 'ada@example.com', balance: 0, suspended: false });
    const other = await client(1).call('GET', '/console/api/session', undefined, { cookie: ada.cookie });
    assert.equal(other.body.user.id, body.user.id);
  });

  test('one session with hundreds of requests at a time does not keep another one from its own', async () => {
    const [mallory, ada] = [client(), client()];
    await mallory.signUp('mallory@example.com');
    await ada.signUp('ada-beside-mallory@example.com');
    for (const path of ['/console/api/session', '/console/api/auth/get-session']) {
      const refused = async (): Promise<string[]> => {
        const many = Array.from({ length: 400 }, () => mallory.call('GET', path));
        assert.equal((await ada.call('GET', '/console/api/session')).status, 200, path);
        return (await Promise.all(many)).map(({ status, body }) => (status === 429 ? body.error.message : ''));
      };
      await eventually(async () => {
        assert.ok(
          (await refused()).some((message) => message.startsWith('This session asks for too much')),
          path,
        );
      }, 30_000);
    }
  });

  test('without a session, with an invented one and with a changed one it is a 401 in the shape of the API', async () => {
    const eve = client();
    await eve.signUp('eve@example.com');
    const changed = eve.cookie.replace(/=(.)/, (_, first) => `=${first === 'x' ? 'y' : 'x'}`);
    for (const cookie of ['', 'sluice.session_token=abc.def', changed]) {
      const { status, body } = await client().call('GET', '/console/api/session', undefined, { cookie });
      assert.equal(status, 401);
      assert.equal(body.error.code, 'invalid_api_key');
    }
  });

  test('the cookie is HttpOnly and SameSite=Lax, and Secure only under https', async () => {
    const secure = await gateway.startApi({ PUBLIC_URL: 'https://gateway.example', SLUICE_SIGN_UP: 'open' });
    try {
      for (const [url, origin, name] of [
        [gateway.url, gateway.url, 'sluice.session_token'],
        [secure.url, 'https://gateway.example', '__Secure-sluice.session_token'],
      ] as const) {
        const email = `cookie-${name.length}@example.com`;
        const fields = { name: 'C', email, password: 'a long password' };
        const browser = new ConsoleClient(url);
        await browser.call('POST', '/console/api/auth/sign-up/email', fields, { origin });
        const answer = await browser.call('POST', '/console/api/auth/sign-in/email', fields, { origin });
        const cookie = answer.headers.getSetCookie().find((each) => each.startsWith(`${name}=`)) ?? '';
        assert.match(cookie, /; HttpOnly/i);
        assert.match(cookie, /; SameSite=Lax/i);
        assert.match(cookie, /; Path=\//i);
        assert.equal(/; Secure/i.test(cookie), origin.startsWith('https'));
      }
      // Where it is said under which URL the gateway is reached, no other is a page of its own.
      const elsewhere = await new ConsoleClient(secure.url).call('POST', '/console/api/auth/sign-out');
      assert.equal(elsewhere.status, 403);
    } finally {
      await secure.stop();
    }
  });

  test('a wrong password and an unknown address are told in the same words', async () => {
    const bob = client();
    await bob.signUp('bob@example.com');
    const wrong = await client().signIn('bob@example.com', 'another password');
    const unknown = await client().signIn('nobody@example.com', 'another password');
    assert.equal(wrong.status, 401);
    assert.equal(wrong.body.error.code, 'invalid_email_or_password');
    assert.deepEqual(unknown.body, wrong.body);
    assert.equal((await client().signIn('BOB@example.com')).status, 200);
  });

  test('fields are checked, and those that are not asked for have no effect', async () => {
    const path = '/console/api/auth/sign-up/email';
    const good = { name: 'M', email: 'mallory@example.com', password: 'a long password' };
    for (const [fields, param] of [
      [{ ...good, email: 'nowhere' }, 'email'],
      [{ ...good, password: 'short' }, 'password'],
      [{ ...good, name: '' }, 'name'],
      [{ email: good.email, password: good.password }, 'name'],
    ] as const) {
      const { status, body } = await client().call('POST', path, fields);
      assert.deepEqual([status, body.error.type, body.error.param], [400, 'invalid_request_error', param]);
    }
    const mallory = client();
    const more = { ...good, role: 'operator', accountId: 'default', account_id: 'default', emailVerified: true };
    assert.equal((await mallory.call('POST', path, more)).status, 200);
    assert.equal((await mallory.signIn(good.email)).status, 200);
    const { body } = await mallory.call('GET', '/console/api/session');
    assert.equal(body.user.role, 'user');
    assert.notEqual(body.account.id, 'default');
    // Nor has what stands in the query.
    const query = '?callbackURL=https://evil.example&rememberMe=false&role=operator';
    const signedIn = await client().call('POST', `/console/api/auth/sign-in/email${query}`, good);
    assert.deepEqual([signedIn.status, signedIn.body.url, signedIn.body.redirect], [200, undefined, false]);
  });

  test('what better-auth has and the console does not need is not there', async () => {
    const grace = client();
    await grace.signUp('grace@example.com');
    for (const path of ['/delete-user', '/change-email', '/ok', '/error', '/sign-in/social', '/constructor']) {
      assert.equal((await grace.call('POST', `/console/api/auth${path}`, {})).status, 404, path);
    }
    assert.equal((await grace.call('GET', '/console/api/auth/sign-out')).status, 405);
  });

  test('sessions are listed and ended, and an ended one is refused at once on every process', async () => {
    const here = client();
    await here.signUp('carol@example.com');
    const there = client(1);
    await there.signIn('carol@example.com');
    assert.equal((await there.call('GET', '/console/api/session')).status, 200);

    const sessions = (await here.call('GET', '/console/api/auth/list-sessions')).body;
    assert.equal(sessions.length, 2);
    const own = (await here.call('GET', '/console/api/auth/get-session')).body.session.id;
    const other = sessions.find(({ id }: { id: string }) => id !== own);
    assert.equal(other.ipAddress, '127.0.0.1');
    assert.equal((await here.call('POST', '/console/api/auth/revoke-session', { id: other.id })).status, 200);
    assert.equal((await there.call('GET', '/console/api/session')).status, 401);
    assert.equal((await here.call('GET', '/console/api/session')).status, 200);

    await there.signIn('carol@example.com');
    assert.equal((await here.call('POST', '/console/api/auth/revoke-other-sessions')).status, 200);
    assert.equal((await there.call('GET', '/console/api/session')).status, 401);

    const { cookie } = here;
    assert.equal((await here.call('POST', '/console/api/auth/sign-out')).status, 200);
    assert.equal((await here.call('GET', '/console/api/session', undefined, { cookie })).status, 401);
  });

  test('a sign-up answers alike whether the address is known or not, and changes nothing about a user who is there', async () => {
    const path = '/console/api/auth/sign-up/email';
    const fields = { name: 'Known', email: 'known@example.com', password: 'a long password' };
    const [first, again] = [client(), client()];
    const made = await first.call('POST', path, fields);
    const known = await again.call('POST', path, { ...fields, name: 'Another', password: 'some other phrase' });
    assert.deepEqual([known.status, known.body], [made.status, made.body]);
    assert.deepEqual([made.status, made.body], [200, { status: true }]);
    const names = (answer: typeof made): string[] => [...answer.headers.keys()].sort();
    assert.deepEqual(names(known), names(made));
    assert.equal((await again.signIn(fields.email, 'some other phrase')).status, 401);
    assert.equal((await first.signIn(fields.email)).status, 200);
    assert.equal((await first.call('GET', '/console/api/session')).body.user.name, 'Known');
  });

  test('a host whose clock is far ahead refuses a session, and does not end it for the others', async () => {
    const ada = new ConsoleClient(gateway.url);
    await ada.signUp('time@example.com');
    const ahead = await gateway.startApi(skewedClock(31 * 86_400_000));
    const { status, headers } = await ada.call('GET', `${ahead.url}/console/api/session`);
    assert.deepEqual([status, headers.getSetCookie()], [401, []]);
    assert.equal((await ada.call('GET', '/console/api/session')).status, 200);
    await ahead.stop();
  });

  test('nobody ends the session of somebody else', async () => {
    const [victim, eve] = [client(), client()];
    await victim.signUp('victim@example.com');
    await eve.signUp('eve2@example.com');
    const { id } = (await victim.call('GET', '/console/api/auth/get-session')).body.session;
    await eve.call('POST', '/console/api/auth/revoke-session', { id });
    assert.equal((await victim.call('GET', '/console/api/session')).status, 200);
  });

  test('a changed password ends the other sessions, whatever is asked for', async () => {
    const [here, there] = [client(), client()];
    await here.signUp('dave@example.com');
    await there.signIn('dave@example.com');
    const path = '/console/api/auth/change-password';
    const change = { currentPassword: 'a wrong password', newPassword: 'a new password', revokeOtherSessions: false };
    const wrong = await here.call('POST', path, change);
    assert.deepEqual([wrong.status, wrong.body.error.param], [400, 'currentPassword']);
    assert.equal((await here.call('POST', path, { ...change, currentPassword: 'a long password' })).status, 200);
    assert.equal((await here.call('GET', '/console/api/session')).status, 200);
    assert.equal((await there.call('GET', '/console/api/session')).status, 401);
    assert.equal((await there.signIn('dave@example.com')).status, 401);
    assert.equal((await there.signIn('dave@example.com', 'a new password')).status, 200);
  });

  test('what a page of another site sends is refused, with a cookie and without', async () => {
    const frank = client();
    await frank.signUp('frank@example.com');
    const change = { name: 'Changed' };
    const path = '/console/api/auth/update-user';
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: '' },
      { origin: '', 'sec-fetch-site': 'cross-site' },
      { origin: '', 'sec-fetch-site': 'same-site' },
      { origin: `${gateway.url}.evil.example` },
    ]) {
      const { status, body } = await frank.call('POST', path, change, headers);
      assert.deepEqual([status, body.error.code], [403, 'permission_denied'], JSON.stringify(headers));
    }
    // A sign-in to an account of the other site's own is no better.
    const signIn = { email: 'frank@example.com', password: 'a long password' };
    const login = await client().call('POST', '/console/api/auth/sign-in/email', signIn, {
      origin: 'https://evil.example',
    });
    assert.equal(login.status, 403);
    assert.equal((await frank.call('GET', '/console/api/session')).body.user.name, 'Somebody');
    assert.equal((await frank.call('POST', path, change, { origin: '', 'sec-fetch-site': 'same-origin' })).status, 200);
    assert.equal((await frank.call('GET', '/console/api/session')).body.user.name, 'Changed');
    const form = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { cookie: frank.cookie, origin: gateway.url, 'content-type': 'text/plain' },
      body: JSON.stringify(change),
    });
    assert.equal(form.status, 415);
  });

  test('the console tells browsers what its pages may do', async () => {
    const { headers } = await client().call('GET', '/console/api/settings');
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.equal(headers.get('cache-control'), 'no-store');
  });
});
