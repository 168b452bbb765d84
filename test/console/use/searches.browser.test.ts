import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { joinAs, onConsolePage, openPage, TestBrowser } from '../browser.ts';
import { operatorSession, operatorSettings } from '../operator-session.ts';

let gateway: TestGateway;
let browser: TestBrowser;
let context: BrowserContext;

before(async () => {
  [gateway, browser] = await Promise.all([TestGateway.start({ settings: operatorSettings }), TestBrowser.start()]);
  context = await browser.context(gateway.url, 'light', await operatorSession(browser, gateway));
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test('what is searched for in a list of the console is in its address, stays over a reload, and is gone with a link to the page', async () => {
  for (const [path, label, name, link] of [
    ['/operator/accounts', 'Search accounts', 'search', 'Accounts'],
    ['/operator/users', 'Search users', 'users', 'Users'],
    ['/operator/vendors', 'Search', 'search', 'Vendors'],
    ['/operator/accounts/default', 'Search users', 'users', undefined],
  ] as const) {
    await onConsolePage(context, path, async (page) => {
      const field = page.getByLabel(label, { exact: true });
      await field.pressSequentially('12 no');
      const address = (): string | null => new URL(page.url()).searchParams.get(name);
      await eventually(async () => assert.equal(address(), '12 no', path));
      await page.reload();
      await eventually(async () => assert.equal(await field.inputValue(), '12 no', path));
      if (link === undefined) return;
      await page.getByRole('link', { name: link, exact: true }).click();
      await eventually(async () => assert.deepEqual([address(), await field.inputValue()], [null, ''], path));
    });
  }
});

test('a key that is pasted into the search of keys with what stood around it is found, and no more of it is sent or shown than lists show', async () => {
  const key = await makeApiKey(gateway, { name: 'pasted' });
  await makeApiKey(gateway, { name: 'another' });
  const shown = key.slice(0, 'sk-sluice-'.length + 6);
  await onConsolePage(context, '/operator/accounts/default', async (page) => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    const field = page.getByLabel('Search keys');
    for (const text of [`Bearer ${key}`, `Authorization: Bearer ${key}`, `"${key}"`, ` ${key} `]) {
      await field.fill(text);
      await page.getByRole('table', { name: 'API keys' }).getByText('pasted').waitFor();
      await page.getByRole('table', { name: 'API keys' }).getByText('another').waitFor({ state: 'detached' });
      await eventually(async () => assert.equal(new URL(page.url()).searchParams.get('keys'), shown));
      await field.fill('');
      await page.getByRole('table', { name: 'API keys' }).getByText('another').waitFor();
    }
    assert.deepEqual(
      asked.filter((url) => decodeURIComponent(url).includes(key.slice(0, shown.length + 1))),
      [],
    );
  });
});

test('an operator whose rights are taken away sees no pages for operators from the first refusal on', async () => {
  const other = await browser.context(gateway.url);
  const email = 'demoted@example.com';
  await joinAs(other, gateway.url, email);
  const headers = { origin: gateway.url };
  const setRole = async (role: string): Promise<void> => {
    const found = await context.request.get(`/admin/v1/users?search=${email}`);
    const [{ id }] = ((await found.json()) as { data: [{ id: string }] }).data;
    const answer = await context.request.patch(`/admin/v1/users/${id}`, { data: { role }, headers });
    assert.equal(answer.status(), 200, await answer.text());
  };
  await setRole('operator');
  const page = await openPage(other);
  await page.goto('/console/operator/users');
  await page.getByRole('table', { name: 'Users' }).getByText(email).first().waitFor();
  await setRole('user');
  await page.getByRole('link', { name: 'Accounts', exact: true }).click();
  await page.getByText('This page is for operators').waitFor();
  assert.equal(await page.getByRole('link', { name: 'Vendors', exact: true }).count(), 0);
  await other.close();
});
