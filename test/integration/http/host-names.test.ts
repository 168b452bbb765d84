import assert from 'node:assert/strict';
import { type IncomingHttpHeaders, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { ConsoleClient } from '../../support/console-client.ts';
import { TestGateway } from '../../support/gateway.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Asks under a name of the caller's choice, which `fetch` does not allow. */
function ask(url: string, path: string, headers: Record<string, string>, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, url), { method, headers, setHost: headers.host === undefined });
    asked.once('error', reject);
    asked.once('response', (response) => {
      response.resume();
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
    });
    asked.end();
  });
}

describe('host names of the gateway', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(async () => gateway?.stop());

  const port = (url: string): string => new URL(url).port;

  test('a gateway without PUBLIC_URL returns 403 for host names that are not local, except on health checks', async () => {
    const { url } = gateway;
    const own = ['localhost', '127.0.0.1', '[::1]'].flatMap((name) => [name, `${name}:${port(url)}`, `${name}:99`]);
    for (const host of [...own, 'LocalHost']) assert.equal((await ask(url, '/', { host })).status, 200, host);
    const foreign = [
      ...['rebind.evil.example', `rebind.evil.example:${port(url)}`, 'localhost.evil.example', '127.0.0.1.nip.example'],
      ...['evil.example:80', '10.0.0.1', 'localhost.', ''].filter((name) => name !== ''),
    ];
    for (const host of foreign) {
      for (const path of ['/', '/metrics', '/console', '/console/api/settings', '/v1/models', '/nowhere']) {
        assert.equal((await ask(url, path, { host, origin: `http://${host}` })).status, 403, `${host} ${path}`);
      }
      for (const path of ['/v1/chat/completions', '/console/api/auth/sign-up/email']) {
        assert.equal((await ask(url, path, { host, origin: `http://${host}` }, 'POST')).status, 403, `${host} ${path}`);
      }
      // A name that was right once is not right for the next one.
      assert.equal((await ask(url, '/', { host: 'localhost' })).status, 200);
      for (const path of ['/healthz', '/readyz']) assert.equal((await ask(url, path, { host })).status, 200, path);
    }
    const socket = { host: 'evil.example', connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const key = { 'sec-websocket-key': Buffer.alloc(16).toString('base64'), authorization: `Bearer ${gateway.apiKey}` };
    assert.equal((await ask(url, '/v1/responses', { ...socket, ...key })).status, 403);
  });

  test('a gateway with PUBLIC_URL serves those names, local names and IP addresses only', async () => {
    const api = await gateway.startApi({
      PUBLIC_URL: 'https://a.example,https://b.example:8443',
      TRUST_PROXY: '10.0.0.9',
    });
    for (const host of [
      'a.example',
      'A.example:443',
      'b.example',
      'localhost:8080',
      '10.1.2.3:8080',
      '[fd00::7]:8080',
    ]) {
      assert.equal((await ask(api.url, '/console/api/settings', { host })).status, 200, host);
    }
    for (const host of ['c.example', 'a.example.evil.example', 'xa.example']) {
      assert.equal((await ask(api.url, '/console/api/settings', { host })).status, 403, host);
      const forwarded = { host, 'x-forwarded-host': 'a.example' };
      assert.equal((await ask(api.url, '/', forwarded)).status, 403, 'by somebody who is no trusted proxy');
    }
    await api.stop();
    const behind = await gateway.startApi({ PUBLIC_URL: 'https://a.example', TRUST_PROXY: '127.0.0.0/8' });
    const forwarded = { host: 'upstream', 'x-forwarded-host': 'a.example' };
    assert.equal((await ask(behind.url, '/console/api/settings', forwarded)).status, 200);
    assert.equal((await ask(behind.url, '/console/api/settings', { host: 'upstream' })).status, 403);
    await behind.stop();
  });

  test('a gateway sets Secure cookies and HSTS only when it is reached by https', async () => {
    const proxied = await gateway.startApi({ TRUST_PROXY: '1', SLUICE_SIGN_UP: 'open' });
    const open = await gateway.startApi({ PUBLIC_URL: 'https://a.example', SLUICE_SIGN_UP: 'open' });
    const email = 'secure@example.com';
    await new ConsoleClient(gateway.url).signUp(email);
    const cases = [
      { url: proxied.url, headers: { 'x-forwarded-proto': 'https' }, secure: true },
      { url: proxied.url, headers: {}, secure: false },
      { url: open.url, headers: { origin: 'https://a.example' }, secure: true },
      // Nobody vouches for what this one says.
      { url: gateway.url, headers: { 'x-forwarded-proto': 'https' }, secure: false },
    ];
    for (const { url, headers, secure } of cases) {
      const fields = { email, password: 'a long password' };
      const sign = await new ConsoleClient(url).call('POST', '/console/api/auth/sign-in/email', fields, headers);
      assert.equal(sign.status, 200, JSON.stringify(sign.body));
      const cookies = sign.headers.getSetCookie();
      assert.ok(cookies.length >= 2);
      for (const cookie of cookies) assert.equal(/; Secure/i.test(cookie), secure, cookie);
      for (const path of ['/', '/console', '/console/api/settings']) {
        const page = await ask(url, path, headers);
        assert.equal(page.headers['strict-transport-security'], secure ? 'max-age=31536000' : undefined, path);
      }
    }
    await Promise.all([proxied.stop(), open.stop()]);
  });
});
