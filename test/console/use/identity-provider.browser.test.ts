import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { OidcServer, oidcClient } from '../../support/oidc-server.ts';
import { openPage, signUp, TestBrowser } from '../browser.ts';

let provider: OidcServer;
let gateway: TestGateway;
let browser: TestBrowser;

before(async () => {
  [provider, browser] = await Promise.all([OidcServer.start(), TestBrowser.start()]);
  const client = { OIDC_CLIENT_ID: oidcClient.id, OIDC_CLIENT_SECRET: oidcClient.secret, OIDC_NAME: 'Corp' };
  gateway = await TestGateway.start({ workers: 0, settings: { OIDC_ISSUER: provider.issuer, ...client } });
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
  await provider?.stop();
});

test('who signs in by an identity provider is shown in the other tabs, too, where a key would be made in the account of this user', async () => {
  const context = await browser.context(gateway.url);
  const [one, other] = [await openPage(context), await openPage(context)];
  await signUp(one, 'ada@example.com');
  await other.goto('/console/keys');
  await other.getByText('ada@example.com').first().waitFor();
  provider.user = { sub: 'b', email: 'bob@corp.example', email_verified: true, name: 'Bob' };
  await one.goto('/console/sign-in');
  await one.getByRole('button', { name: 'Sign in with Corp' }).click();
  await one.getByText('bob@corp.example').first().waitFor();
  await other.getByText('bob@corp.example').first().waitFor();
  assert.equal(await other.getByText('ada@example.com').count(), 0);
  assert.deepEqual([one.troubles, other.troubles], [[], []]);
  await context.close();
});
