import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ConsoleClient } from '../support/console-client.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';

describe('passwords', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2, workers: 0, settings: { LOG_LEVEL: 'trace' } });
  });
  after(async () => gateway?.stop());

  const output = (): string => gateway.apis.map((api) => api.output()).join('');

  test('a reset link is logged for the operator, works once, and ends all sessions', async () => {
    const ada = new ConsoleClient(gateway.url);
    await ada.signUp('ada@example.com', 'the first password');
    const ask = (email: string) => ada.call('POST', '/console/api/auth/request-password-reset', { email });
    const answer = await ask('ada@example.com');
    assert.equal(answer.status, 200);
    assert.deepEqual((await ask('nobody@example.com')).body, answer.body);

    const link = await eventually(() => {
      const [, found] = /"link":"([^"]+)"/.exec(output()) ?? [];
      assert.ok(found, 'no link is logged');
      return found;
    });
    const url = new URL(link);
    assert.equal(url.origin + url.pathname, `${gateway.url}/console/reset-password`);
    const token = url.searchParams.get('token');
    const reset = (newPassword: string) =>
      new ConsoleClient(gateway.url).call('POST', '/console/api/auth/reset-password', { token, newPassword });
    const short = await reset('short');
    assert.deepEqual([short.status, short.body.error.param], [400, 'newPassword']);
    assert.equal((await reset('the second password')).status, 200);
    assert.equal((await ada.call('GET', '/console/api/session')).status, 401);
    assert.equal((await ada.signIn('ada@example.com', 'the first password')).status, 401);
    assert.equal((await ada.signIn('ada@example.com', 'the second password')).status, 200);
    const again = await reset('the third password');
    assert.deepEqual([again.status, again.body.error.code, again.body.error.param], [400, 'invalid_token', 'token']);
  });

  test('a new password ends every link to choose one, whichever way it was set', async () => {
    const email = 'erin@example.com';
    const erin = new ConsoleClient(gateway.url);
    await erin.signUp(email);
    const links = (): string[] =>
      [...output().matchAll(/"email":"erin@example.com","link":"[^"]+token=([^"]+)"/g)].map(([, token]) => token ?? '');
    const ask = async (count: number): Promise<string[]> => {
      await erin.call('POST', '/console/api/auth/request-password-reset', { email });
      return eventually(() => {
        assert.equal(links().length, count);
        return links();
      });
    };
    const reset = (token = '', newPassword = '') =>
      new ConsoleClient(gateway.url).call('POST', '/console/api/auth/reset-password', { token, newPassword });
    const [first] = await ask(1);
    const path = '/console/api/auth/change-password';
    const change = { currentPassword: 'a wrong password', newPassword: 'the second password' };
    assert.equal((await erin.call('POST', path, change)).status, 400);
    assert.equal((await erin.call('POST', path, { ...change, currentPassword: 'a long password' })).status, 200);
    const late = await reset(first, 'a password of another');
    assert.deepEqual([late.status, late.body.error.code], [400, 'invalid_token']);
    await ask(2);
    const [, second, third] = await ask(3);
    assert.equal((await reset(third, 'the third password')).status, 200);
    assert.equal((await reset(second, 'a password of another')).status, 400);
    assert.equal((await erin.signIn(email, 'the third password')).status, 200);
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
    await bob.signUp('bob@example.com', secrets[0]);
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
