import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { ConsoleClient } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { builtProduct, TestGateway } from '../support/gateway.ts';
import { linkOf, MailServer } from '../support/mail-server.ts';
import { quickPasswords } from '../support/quick-passwords.ts';

describe('passwords', () => {
  let gateway: TestGateway;
  let server: MailServer;
  const operator = { email: 'operator@example.com', password: 'an operator phrase' };
  before(async () => {
    server = await MailServer.start();
    const mail = { SMTP_URL: server.url, MAIL_FROM: 'Gateway <gateway@example.com>' };
    const admin = { SLUICE_ADMIN_EMAIL: operator.email, SLUICE_ADMIN_PASSWORD: operator.password };
    gateway = await TestGateway.start({
      apis: 2,
      workers: 0,
      settings: { LOG_LEVEL: 'trace', ...mail, ...admin, ...quickPasswords },
    });
  });
  after(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  /** Signs up, confirms the address by the mail, and signs in. */
  const join = async (client: ConsoleClient, email: string, password = 'a long password'): Promise<void> => {
    await client.call('POST', '/console/api/auth/sign-up/email', { name: 'Somebody', email, password });
    const token = linkOf(await server.mailTo(email)).searchParams.get('token');
    assert.equal((await client.call('POST', '/console/api/auth/confirm-email', { token })).status, 200);
    assert.equal((await client.signIn(email, password)).status, 200);
  };

  const output = (): string => gateway.apis.map((api) => api.output()).join('');

  const ask = (email: string) =>
    new ConsoleClient(gateway.url).call('POST', '/console/api/auth/request-password-reset', { email });
  const reset = (token: string | null, newPassword: string) =>
    new ConsoleClient(gateway.url).call('POST', '/console/api/auth/reset-password', { token, newPassword });
  const tokenOf = (link: URL): string => link.searchParams.get('token') ?? '';

  test('a reset link is mailed, works once, and ends all sessions', async () => {
    const ada = new ConsoleClient(gateway.url);
    await join(ada, 'ada@example.com', 'the first phrase');
    const answer = await ask('ada@example.com');
    assert.equal(answer.status, 200);
    assert.deepEqual((await ask('nobody@example.com')).body, answer.body);
    const mail = await server.mailTo('ada@example.com', 1);
    assert.equal(mail.from, 'gateway@example.com');
    const url = linkOf(mail);
    assert.equal(url.origin + url.pathname, `${gateway.url}/console/reset-password`);
    const short = await reset(tokenOf(url), 'short');
    assert.deepEqual([short.status, short.body.error.param], [400, 'newPassword']);
    assert.equal((await reset(tokenOf(url), 'the second phrase')).status, 200);
    assert.equal((await ada.call('GET', '/console/api/session')).status, 401);
    assert.equal((await ada.signIn('ada@example.com', 'the first phrase')).status, 401);
    assert.equal((await ada.signIn('ada@example.com', 'the second phrase')).status, 200);
    const again = await reset(tokenOf(url), 'the third phrase');
    assert.deepEqual([again.status, again.body.error.code, again.body.error.param], [400, 'invalid_token', 'token']);
    assert.equal(server.mails.filter(({ to }) => to === 'nobody@example.com').length, 0);
  });

  test('a new password ends every link to choose one, whichever way it was set', async () => {
    const email = 'erin@example.com';
    const erin = new ConsoleClient(gateway.url);
    await join(erin, email);
    const nextLink = async (count: number): Promise<string> => {
      await ask(email);
      return tokenOf(linkOf(await server.mailTo(email, count)));
    };
    const first = await nextLink(1);
    const path = '/console/api/auth/change-password';
    const change = { currentPassword: 'a wrong password', newPassword: 'the second phrase' };
    assert.equal((await erin.call('POST', path, change)).status, 400);
    assert.equal((await erin.call('POST', path, { ...change, currentPassword: 'a long password' })).status, 200);
    const late = await reset(first, 'a phrase of another');
    assert.deepEqual([late.status, late.body.error.code], [400, 'invalid_token']);
    const [second, third] = [await nextLink(2), await nextLink(3)];
    assert.equal((await reset(third, 'the third phrase')).status, 200);
    assert.equal((await reset(second, 'a phrase of another')).status, 400);
    assert.equal((await erin.signIn(email, 'the third phrase')).status, 200);
  });

  test("an operator's link is never made on a stranger's demand, and no link is ever in a log", async () => {
    assert.deepEqual((await ask(operator.email)).body, (await ask('nobody2@example.com')).body);
    // By then a mail would have come, had it been sent before this one.
    await join(new ConsoleClient(gateway.url), 'after@example.com');
    assert.deepEqual(
      server.mails.filter(({ to }) => to === operator.email),
      [],
    );
    await eventually(() => assert.match(output(), /request-password-reset/));
    for (const { content } of server.mails) {
      const token = tokenOf(linkOf({ from: '', to: '', content }));
      if (token !== '') assert.ok(!output().includes(token));
    }
    assert.doesNotMatch(output(), /reset-password\?token/);
  });

  test('a user who is disabled gets no link by mail', async () => {
    const [root, gone] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    await join(gone, 'gone@example.com');
    const { id } = (await gone.call('GET', '/console/api/session')).body.user;
    await root.signIn(operator.email, operator.password);
    assert.equal((await root.call('PATCH', `/admin/v1/users/${id}`, { disabled: true })).status, 200);
    assert.deepEqual((await ask('gone@example.com')).body, (await ask('nobody3@example.com')).body);
    // By then a mail would have come, had it been sent before this one.
    await join(new ConsoleClient(gateway.url), 'after-gone@example.com');
    assert.equal(server.mails.filter(({ to }) => to === 'gone@example.com').length, 1, 'that of the confirmation');
  });

  test('an operator gets a link for anybody at the command line, once', async () => {
    const users = fileURLToPath(new URL('launcher/users.js', pathToFileURL(`${builtProduct}/`)));
    const run = (...args: string[]) =>
      promisify(execFile)(process.execPath, [users, ...args], { env: gateway.settings() });
    const { stdout } = await run('reset-link', operator.email.toUpperCase());
    assert.equal((await reset(tokenOf(new URL(stdout.trim())), 'another fine phrase')).status, 200);
    assert.equal((await new ConsoleClient(gateway.url).signIn(operator.email, 'another fine phrase')).status, 200);
    await assert.rejects(run('reset-link', 'nobody@example.com'), /There is no user with the address/);
    await assert.rejects(run('reset-link'), /takes one email address/);
  });

  test('one that is guessed first is refused wherever a password is chosen: at sign-up, by a change, by a link', async () => {
    const [email, common, own] = ['frances@example.com', 'Password123!', 'frances@example.com1'];
    const frances = new ConsoleClient(gateway.url);
    const signUp = (password: string) =>
      frances.call('POST', '/console/api/auth/sign-up/email', { name: 'Frances', email, password });
    const change = (newPassword: string) =>
      frances.call('POST', '/console/api/auth/change-password', { currentPassword: 'a long password', newPassword });
    const refused = async (answer: ReturnType<typeof change>, param: string): Promise<void> => {
      const { status, body } = await answer;
      assert.deepEqual([status, body.error?.type, body.error?.param], [400, 'invalid_request_error', param]);
    };
    for (const weak of [common, own]) await refused(signUp(weak), 'password');
    await join(frances, email);
    for (const weak of [common, own]) await refused(change(weak), 'newPassword');
    assert.equal((await ask(email)).status, 200);
    // The first mail was to confirm the address.
    const token = tokenOf(linkOf(await server.mailTo(email, 1)));
    for (const weak of [common, own]) await refused(reset(token, weak), 'newPassword');
    assert.equal(
      (await reset(token, 'a password of her own')).status,
      200,
      'the link is not used up by what is refused',
    );
  });

  test('without a mail server a link is asked for in vain, and answered alike', async () => {
    const api = await gateway.startApi({ SMTP_URL: '', MAIL_FROM: '' });
    const path = '/console/api/auth/request-password-reset';
    const client = new ConsoleClient(api.url);
    const known = await client.call('POST', path, { email: 'ada@example.com' });
    const unknown = await client.call('POST', path, { email: 'nobody3@example.com' });
    assert.deepEqual([known.status, known.body], [200, unknown.body]);
    assert.equal(await api.stop(), 0);
    assert.doesNotMatch(api.output(), /token=|ada@example\.com/);
  });

  test('where mails are sent, a new user signs in once the address is confirmed; a known one is told by mail', async () => {
    const fields = { name: 'N', email: 'newcomer@example.com', password: 'a long password' };
    const [mallory, client] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    const made = await client.call('POST', '/console/api/auth/sign-up/email', fields);
    assert.deepEqual([made.status, made.body], [200, { status: true }]);
    const early = await client.signIn(fields.email);
    assert.deepEqual([early.status, early.body.error.code], [403, 'email_not_verified']);
    assert.equal((await mallory.signIn(fields.email, 'a wrong password')).status, 401, 'only a right password tells');
    const link = linkOf(await server.mailTo(fields.email));
    assert.equal(link.pathname, '/console/confirm-email');
    const confirm = (token: string) => client.call('POST', '/console/api/auth/confirm-email', { token });
    assert.equal((await confirm(`${tokenOf(link)}x`)).status, 401);
    assert.equal((await confirm(tokenOf(link))).status, 200);
    assert.equal((await client.call('GET', '/console/api/session')).status, 401, 'a link signs nobody in');
    assert.equal((await client.signIn(fields.email)).status, 200);
    const before = server.mails.length;
    const again = await mallory.call('POST', '/console/api/auth/sign-up/email', {
      ...fields,
      password: 'my own phrase',
    });
    assert.deepEqual([again.status, again.body], [200, { status: true }]);
    const told = await eventually(() => {
      assert.ok(server.mails.length > before, 'no mail came');
      return server.mails.at(-1);
    });
    assert.match(told?.content ?? '', /^Subject: You have an account already\r$/m);
  });

  test('somebody whose address a stranger signs up with, and signs in with time and again, gets few mails', async () => {
    const api = await gateway.startApi({ TRUST_PROXY: '1', SLUICE_SIGN_UP: 'open' });
    const stranger = new ConsoleClient(api.url);
    const fields = { name: 'S', email: 'bystander@example.com', password: 'a long password' };
    await stranger.call('POST', '/console/api/auth/sign-up/email', fields);
    const from = async (address: string): Promise<string> => {
      const headers = { 'x-forwarded-for': address };
      return (await stranger.call('POST', '/console/api/auth/sign-in/email', fields, headers)).body.error.code;
    };
    for (let tries = 0; tries < 8; tries++) assert.equal(await from(`198.51.100.${tries}`), 'email_not_verified');
    // The process sends what it has promised before it ends.
    assert.equal(await api.stop(), 0);
    assert.equal(server.mails.filter(({ to }) => to === fields.email).length, 5);
  });

  test('too many sign-ins from one network address are refused', async () => {
    const api = await gateway.startApi({ TRUST_PROXY: '1' });
    const from = async (address: string, email: string) => {
      const fields = { email, password: 'a wrong password' };
      const headers = { 'x-forwarded-for': address };
      const answer = await new ConsoleClient(api.url).call('POST', '/console/api/auth/sign-in/email', fields, headers);
      return answer.status;
    };
    for (let tries = 0; tries < 30; tries++) assert.equal(await from('203.0.113.5', `u${tries}@example.com`), 401);
    assert.equal(await from('203.0.113.5', 'more@example.com'), 429);
    assert.equal(await from('203.0.113.6', 'more@example.com'), 401);
    // Whoever has one address of IPv6 has all that begin so.
    for (let tries = 0; tries < 30; tries++) {
      assert.equal(await from(`2001:db8:0:7::${(tries + 1).toString(16)}`, `v${tries}@example.com`), 401);
    }
    for (const address of ['2001:DB8:0:7:ffff::1', '2001:0db8:0000:0007:1:2:3:4', '[2001:db8::7:0:0:0:9]:5081']) {
      assert.equal(await from(address, 'more@example.com'), 429, address);
    }
    assert.equal(await from('2001:db8:0:8::1', 'more@example.com'), 401);
    await api.stop();
  });

  test('no password, token or cookie is in any log', async () => {
    const bob = new ConsoleClient(gateway.url);
    const secrets = ['kB-first-secret', 'kB-second-secret', 'kB-wrong-secret'] as const;
    await join(bob, 'bob@example.com', secrets[0]);
    await bob.signIn('bob@example.com', secrets[2]);
    await bob.call('POST', '/console/api/auth/change-password', {
      currentPassword: secrets[0],
      newPassword: secrets[1],
    });
    await bob.call('POST', '/console/api/auth/reset-password', { token: 'kB-token', newPassword: secrets[1] });
    await bob.call('POST', '/console/api/auth/sign-up/email', {
      name: 'B',
      email: 'bob@example.com',
      password: secrets[1],
    });
    const [, token = ''] = /session_token=([^.;]+)/.exec(bob.cookie) ?? [];
    assert.ok(token.length > 20);
    await bob.call('POST', '/console/api/auth/sign-out');
    await eventually(() => assert.match(output(), /\/console\/api\/auth\/sign-out/));
    for (const secret of [...secrets, token, 'kB-token']) assert.ok(!output().includes(secret), secret);
  });

  test('who claims other addresses is not believed where no proxy is named', async () => {
    const from = async (address: string, email: string) => {
      const headers = { 'x-forwarded-for': address, 'x-real-ip': address, 'x-sluice-client-address': address };
      const fields = { email, password: 'a wrong password' };
      const path = '/console/api/auth/sign-in/email';
      return (await new ConsoleClient(gateway.url).call('POST', path, fields, headers)).status;
    };
    let status = 401;
    // Enough for a limit whose minute ends meanwhile.
    for (let tries = 0; tries < 70 && status === 401; tries++) {
      status = await from(`203.0.113.${tries}`, `w${tries}@example.com`);
    }
    assert.equal(status, 429);
  });
});
