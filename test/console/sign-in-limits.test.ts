import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ConsoleAnswer, ConsoleClient } from '../support/console-client.ts';
import { type ApiProcess, TestGateway } from '../support/gateway.ts';
import { quickPasswords } from '../support/quick-passwords.ts';

describe('wrong passwords', () => {
  let gateway: TestGateway;
  let proxied: readonly ApiProcess[];
  before(async () => {
    gateway = await TestGateway.start({ workers: 0, settings: quickPasswords });
    proxied = [await gateway.startApi({ TRUST_PROXY: '1' }), await gateway.startApi({ TRUST_PROXY: '1' })];
  });
  after(async () => gateway?.stop());

  const path = '/console/api/auth/sign-in/email';
  /** One try from a network address, at one of the processes in turn. */
  let turn = 0;
  const attempt = (
    client: ConsoleClient | undefined,
    network: string,
    email: string,
    password = 'a wrong password',
  ) => {
    const url = proxied[turn++ % proxied.length]?.url ?? '';
    const headers = { 'x-forwarded-for': network, ...(client === undefined ? {} : { cookie: client.cookie }) };
    return new ConsoleClient(url).call('POST', path, { email, password }, { origin: url, ...headers });
  };
  const statuses = async (tries: readonly Promise<ConsoleAnswer>[]): Promise<Record<number, number>> => {
    const counts: Record<number, number> = {};
    for (const { status } of await Promise.all(tries)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };
  const times = <T>(count: number, run: (index: number) => T): T[] => Array.from({ length: count }, (_, n) => run(n));

  test('wrong passwords of one address from one network are refused by all processes together, before the password counts', async () => {
    const email = 'target@example.com';
    await new ConsoleClient(gateway.url).signUp(email);
    // At the same time: who asks often at once must not be told apart more often.
    const guesses = times(12, () => attempt(undefined, '203.0.113.1', email));
    const counts = await statuses(guesses);
    // A busy machine may leave one uncounted in time, which is refused as well.
    assert.ok((counts[401] ?? 0) <= 10 && counts[200] === undefined, JSON.stringify(counts));
    assert.equal((counts[401] ?? 0) + (counts[429] ?? 0) + (counts[503] ?? 0), 12, JSON.stringify(counts));
    const right = await attempt(undefined, '203.0.113.1', email, 'a long password');
    assert.deepEqual([right.status, right.body.error.code], [429, 'rate_limit_exceeded']);
    assert.ok(Number(right.headers.get('retry-after')) >= 1);
    assert.equal((await attempt(undefined, '203.0.113.2', email, 'a long password')).status, 200, 'from elsewhere');
    await new ConsoleClient(gateway.url).signUp('other@example.com');
    const other = await attempt(undefined, '203.0.113.1', 'other@example.com', 'a long password');
    assert.equal(other.status, 200, 'another user of that network');
  });

  test('wrong passwords of strangers never keep a browser out that its user has signed in with before', async () => {
    const email = 'owner@example.com';
    const owner = new ConsoleClient(gateway.url);
    await owner.signUp(email);
    await owner.call('POST', '/console/api/auth/sign-out');
    const [own, elsewhere] = ['203.0.113.10', '203.0.113.11'];
    // From many networks, and from the owner's own, for that address and for all others.
    await Promise.all(times(25, (n) => attempt(undefined, `198.51.100.${n}`, email)));
    await Promise.all(times(12, () => attempt(undefined, own, email)));
    await Promise.all(times(25, (n) => attempt(undefined, own, `nobody-${n}@example.com`)));
    assert.equal((await attempt(undefined, elsewhere, email, 'a long password')).status, 429, 'a browser nobody knows');
    assert.equal((await attempt(undefined, own, 'more@example.com')).status, 429, 'the network has had its share');
    for (const network of [own, elsewhere]) {
      const { status, body } = await attempt(owner, network, email, 'a long password');
      assert.equal(status, 200, JSON.stringify(body));
    }
  });

  test('wrong passwords count against a known browser itself, too, until one password is right', async () => {
    const email = 'forgetful@example.com';
    const owner = new ConsoleClient(gateway.url);
    await owner.signUp(email);
    const network = '203.0.113.20';
    assert.deepEqual(await statuses(times(9, () => attempt(owner, network, email))), { 401: 9 });
    assert.equal((await attempt(owner, network, email, 'a long password')).status, 200);
    assert.deepEqual(await statuses(times(12, () => attempt(owner, network, email))), { 401: 10, 429: 2 });
    assert.equal((await attempt(owner, network, email, 'a long password')).status, 429);
  });

  test("wrong passwords of one user are not let through by another user's browser, nor by a cookie that somebody made up", async () => {
    const [victim, eve] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    await victim.signUp('victim@example.com');
    await eve.signUp('eve@example.com');
    const network = '203.0.113.30';
    await Promise.all(times(10, () => attempt(undefined, network, 'victim@example.com')));
    const [, name = '', value = ''] = /(sluice\.device_[^=]+)=([^;]+)/.exec(victim.cookie) ?? [];
    const [id = '', signature = ''] = value.split('.');
    assert.ok(signature.length > 20);
    const [, foreign = ''] = /sluice\.device_[^=]+=([^;]+)/.exec(eve.cookie) ?? [];
    const altered = `${signature.startsWith('x') ? 'y' : 'x'}${signature.slice(1)}`;
    for (const made of [`x${id}.${signature}`, `${id}.${altered}`, `${id}.`, id, '.', foreign]) {
      const headers = { 'x-forwarded-for': network, cookie: `${name}=${made}` };
      const fields = { email: 'victim@example.com', password: 'a long password' };
      const { status } = await new ConsoleClient(proxied[0]?.url ?? '').call('POST', path, fields, headers);
      assert.equal(status, 429, made);
    }
    assert.equal((await attempt(eve, network, 'victim@example.com')).status, 429);
    assert.equal((await attempt(victim, network, 'victim@example.com', 'a long password')).status, 200);
  });

  test('wrong passwords of a signed-in user, whose session may be stolen, are refused from all networks together', async () => {
    const [thief, other] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    await thief.signUp('robbed@example.com');
    await other.signUp('unharmed@example.com');
    const auth = '/console/api/auth';
    const newPassword = 'another long password';
    const guess = (n: number, client: ConsoleClient, given: string) => {
      const [way = '', fields = {}] = [
        ['/change-password', { currentPassword: given, newPassword }],
        ['/two-factor/enable', { password: given }],
        ['/two-factor/disable', { password: given }],
        ['/two-factor/generate-backup-codes', { password: given }],
      ][n % 4] as [string, object];
      const url = proxied[n % proxied.length]?.url ?? '';
      const headers = { origin: url, cookie: client.cookie, 'x-forwarded-for': `203.0.113.${100 + n}` };
      return new ConsoleClient(url).call('POST', `${auth}${way}`, fields, headers);
    };
    for (let n = 0; n < 10; n++) assert.equal((await guess(n, thief, 'a wrong password')).status, 400, String(n));
    for (let n = 10; n < 14; n++) {
      const { status, headers } = await guess(n, thief, 'a long password');
      assert.equal(status, 429, 'however right it is');
      assert.ok(Number(headers.get('retry-after')) >= 1);
    }
    for (let n = 0; n < 9; n++) await guess(n, other, 'a wrong password');
    assert.equal((await guess(1, other, 'a long password')).status, 200, 'another user, by the right password');
    for (let n = 0; n < 9; n++) assert.equal((await guess(n, other, 'a wrong password')).status, 400, 'counted anew');
    const nobody = await new ConsoleClient(gateway.url).call('POST', `${auth}/two-factor/enable`, { password: 'any' });
    assert.equal(nobody.status, 401);
  });

  test('wrong passwords leave a browser known after signing out, by a cookie that no script reads and no other path gets', async () => {
    const client = new ConsoleClient(gateway.url);
    const fields = { name: 'D', email: 'device@example.com', password: 'a long password' };
    await client.call('POST', '/console/api/auth/sign-up/email', fields);
    const answer = await client.signIn(fields.email);
    const cookie = answer.headers.getSetCookie().find((each) => each.startsWith('sluice.device_')) ?? '';
    assert.match(cookie, /; Path=\/console\/api\/auth; HttpOnly; SameSite=Lax$/);
    assert.ok(!cookie.includes('device@example.com'));
    await client.call('POST', '/console/api/auth/sign-out');
    assert.match(client.cookie, /sluice\.device_/);
    const again = await client.signIn('device@example.com');
    assert.ok(!again.headers.getSetCookie().some((each) => each.startsWith('sluice.device_')), 'it is known already');
    const failed = await new ConsoleClient(gateway.url).signIn('device@example.com', 'a wrong password');
    assert.deepEqual(failed.headers.getSetCookie(), []);
  });
});
