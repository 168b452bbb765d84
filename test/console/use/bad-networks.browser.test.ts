import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { TestGateway } from '../../support/gateway.ts';
import { withResolvers } from '../../support/with-resolvers.ts';
import { onConsolePage, openPage, type Session, settled, TestBrowser, type WatchedPage } from '../browser.ts';
import { operatorSession, operatorSettings } from '../operator-session.ts';

/** What a test uses of a button inside the page. */
interface Pressable extends EventTarget {
  click(): void;
  readonly ownerDocument: {
    readonly defaultView: { KeyboardEvent: new (type: string, init: { key: string; bubbles: boolean }) => Event };
  };
}

let gateway: TestGateway;
let browser: TestBrowser;
let session: Session;
let context: BrowserContext;

before(async () => {
  [gateway, browser] = await Promise.all([TestGateway.start({ settings: operatorSettings }), TestBrowser.start()]);
  session = await operatorSession(browser, gateway);
  context = await browser.context(gateway.url, 'light', session);
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Stands before the gateway, and breaks the connection after the first piece of answers to one path. */
async function startBreaker(path: string): Promise<{ server: Server; url: string }> {
  const server = createServer((asked, answer) => {
    const { hostname, port } = new URL(gateway.url);
    const { method, headers, url = '/' } = asked;
    const onward = request({ hostname, port, method, path: url, headers }, (given) => {
      const isBroken = new URL(url, gateway.url).pathname === path;
      answer.writeHead(given.statusCode ?? 500, {
        ...given.headers,
        ...(isBroken && given.headers['content-length'] !== undefined && { 'content-length': '1000000' }),
      });
      if (!isBroken) given.pipe(answer);
      else given.once('data', (piece) => answer.write(piece, () => setTimeout(() => answer.destroy(), 300)));
    });
    asked.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Runs `work` on a page behind a breaker. */
async function behindBreaker(broken: string, path: string, work: (page: WatchedPage) => Promise<void>): Promise<void> {
  const { server, url } = await startBreaker(broken);
  const visitors = await browser.context(url, 'light', session);
  try {
    const page = await openPage(visitors);
    await page.goto(`/console${path}`);
    await work(page);
    assert.deepEqual(page.troubles, []);
  } finally {
    await visitors.close();
    server.closeAllConnections();
    server.close();
  }
}

test('a list whose connection breaks off in the middle is told in plain words', async () => {
  await behindBreaker('/console/api/keys', '/keys', async (page) => {
    const alert = page.getByRole('alert');
    await alert.getByText('The gateway cannot be reached. Check your connection and try again.').waitFor();
  });
});

test('an answer in the playground whose connection breaks off says so in plain words, and keeps what was received', async () => {
  await behindBreaker('/console/api/v1/chat/completions', '/playground', async (page) => {
    await page.getByLabel('Message').fill('WORDS:500@20');
    await page.getByRole('button', { name: 'Send', exact: true, disabled: false }).click();
    const answer = page.getByTestId('answer');
    await answer.getByText('The connection broke off before the answer was complete.').waitFor();
    assert.equal(await answer.getByText('network error').count(), 0);
  });
});

test('what is typed in the console stays while the gateway is away, and the page that was asked for comes when it is back', async () => {
  const traveller = await browser.context(gateway.url, 'light', session);
  const page = await openPage(traveller);
  await page.goto('/console/operator/users');
  await settled(page);
  await page.getByLabel('Search users').fill('operator');
  await traveller.setOffline(true);
  // A link that is pointed at has its page loaded.
  await page.getByRole('link', { name: 'Vendors' }).hover();
  await page.waitForTimeout(1500);
  assert.equal(await page.getByLabel('Search users').inputValue(), 'operator');
  await page.getByRole('link', { name: 'Vendors' }).click();
  await page.getByText('It goes on by itself once the gateway can be reached.').waitFor();
  await traveller.setOffline(false);
  await page.getByRole('heading', { level: 1, name: 'Vendors' }).waitFor();
  assert.deepEqual(page.troubles, []);
  await traveller.close();
});

test('nobody is told that nothing is running while the gateway is away', async () => {
  await onConsolePage(context, '/jobs', async (page) => {
    const none = page.getByText('Nothing is running');
    await none.waitFor();
    await page.route('**/jobs/live*', (route) => route.abort());
    await page.getByText('The gateway cannot be reached').waitFor();
    assert.equal(await none.count(), 0);
    await page.unroute('**/jobs/live*');
    await none.waitFor();
  });
});

test('a video in the playground is waited for while the gateway does not answer', async () => {
  await onConsolePage(context, '/playground?tab=video', async (page) => {
    await page.getByLabel('Prompt').fill('A paper boat');
    let failed = 0;
    await page.route('**/console/api/v1/videos/video_*', async (route) => {
      failed += 1;
      if (failed === 1) await route.abort();
      else if (failed === 2) await route.fulfill({ status: 502, body: 'Bad gateway' });
      else await route.continue();
    });
    await page.getByRole('button', { name: 'Make video', disabled: false }).click();
    await page.locator('[data-testid=task][data-state=done]').waitFor();
    assert.ok(failed > 2);
  });
});

test('numbers of one period or filter are not shown as those of another while these load', async () => {
  const page = await openPage(context);
  const held = withResolvers();
  await page.route('**/console/api/usage?*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { data: object[]; total: object };
    const days = new URL(route.request().url()).searchParams;
    const isLong = Number(days.get('to')) - Number(days.get('from')) > 8 * 86_400_000;
    const isAsked = isLong && days.get('group_by') === 'day';
    if (isAsked) await held.promise;
    await route.fulfill({
      response: answer,
      json: { ...body, total: { ...body.total, requests: isLong ? 4321 : 1234 } },
    });
  });
  await page.goto('/console/?period=7d');
  await page.getByText('1,234').waitFor();
  await page.getByText('30 days', { exact: true }).click();
  await page.waitForURL(/period=30d/);
  await page.getByText('1,234').waitFor({ state: 'detached' });
  held.resolve();
  await page.getByText('4,321').waitFor();
  // What the chart shows of it stays chosen.
  await page.goto('/console/usage?period=7d');
  await page.getByText('Requests', { exact: true }).first().click();
  await page.getByRole('img', { name: 'Chart: Requests' }).waitFor();
  await page.getByLabel('Group by').selectOption('model');
  await page.getByRole('img', { name: 'Chart: Requests by model' }).waitFor();
  assert.deepEqual(page.troubles, []);
  await page.close();
});

/** A page that asks whether a key is to be revoked. */
async function askToRevoke(): Promise<WatchedPage> {
  const page = await openPage(context);
  await page.goto('/console/keys');
  await openRevoke(page);
  return page;
}

async function openRevoke(page: WatchedPage): Promise<void> {
  await page
    .getByRole('button', { name: /^Actions for/ })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Revoke' }).click();
}

test('a dialog whose action has begun stays until that has ended, and tells that it failed', async () => {
  const page = await askToRevoke();
  const held = withResolvers();
  await page.route('**/console/api/keys/*', async (route) => {
    await held.promise;
    await route.abort();
  });
  const dialog = page.getByRole('dialog');
  const asked = page.waitForRequest('**/console/api/keys/*');
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await asked;
  await page.keyboard.press('Escape');
  assert.equal(await dialog.getByRole('button', { name: 'Keep' }).isEnabled(), false);
  held.resolve();
  await dialog.getByText('The gateway cannot be reached.').waitFor();
  await dialog.getByRole('button', { name: 'Keep' }).click();
  await dialog.waitFor({ state: 'detached' });
  // A browser that is offline: it fails as well, and is not done by itself once there is a network again.
  await page.unroute('**/console/api/keys/*');
  await openRevoke(page);
  await context.setOffline(true);
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await dialog.getByText('The gateway cannot be reached.').waitFor();
  await context.setOffline(false);
  await dialog.getByRole('button', { name: 'Keep' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Usage', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
  await page.getByRole('link', { name: 'Keys', exact: true }).click();
  await settled(page);
  assert.equal(await page.getByText('revoked').count(), 0);
  assert.deepEqual(page.troubles, []);
  await page.close();
});

test('a key pressed right after an action was confirmed neither closes its dialog nor begins the action again', async () => {
  const page = await askToRevoke();
  let calls = 0;
  const held = withResolvers();
  await page.route('**/console/api/keys/*', async (route) => {
    calls += 1;
    await held.promise;
    await route.abort();
  });
  const dialog = page.getByRole('dialog');
  const asked = page.waitForRequest('**/console/api/keys/*');
  // A busy browser handles what the user does before its timers, so only what has no need of one counts as shown.
  await dialog.getByRole('button', { name: 'Revoke' }).evaluate(async (button: Pressable) => {
    button.click();
    for (let turn = 0; turn < 20; turn += 1) await undefined;
    button.click();
    const { KeyboardEvent } = button.ownerDocument.defaultView;
    button.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  });
  await asked;
  assert.equal(await dialog.getByRole('button', { name: 'Keep' }).isEnabled(), false);
  held.resolve();
  await dialog.getByText('The gateway cannot be reached.').waitFor();
  assert.equal(calls, 1);
  await dialog.getByRole('button', { name: 'Keep' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.close();
});

test('a new key, and then that it is revoked, is shown before the list of keys is read again', async () => {
  await onConsolePage(context, '/keys?create=true', async (page) => {
    const form = page.getByRole('dialog', { name: 'Create an API key' });
    await form.getByLabel('Name').fill('Shown at once');
    let held = withResolvers();
    await page.route('**/console/api/keys?*', async (route) => {
      await held.promise;
      await route.continue();
    });
    await form.getByRole('button', { name: 'Create key' }).click();
    assert.match((await page.getByTestId('new-key').textContent()) ?? '', /^sk-sluice-/);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    held.resolve();
    await page.getByRole('button', { name: 'Actions for Shown at once' }).click();
    held = withResolvers();
    await page.getByRole('menuitem', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('row').filter({ hasText: 'Shown at once' }).getByText('revoked').waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    held.resolve();
  });
});

test('a dialog that makes a key, or invites somebody, stays until that has ended, as both are shown only once', async () => {
  const page = await openPage(context);
  const hold = async (path: string): Promise<() => void> => {
    const held = withResolvers();
    await page.route(path, async (route) => {
      if (route.request().method() === 'POST') await held.promise;
      await route.continue();
    });
    return held.resolve;
  };
  const sendAndEscape = async (button: string, path: string): Promise<void> => {
    const asked = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith(path));
    await page.getByRole('dialog').getByRole('button', { name: button }).click();
    await asked;
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  };
  const makeKey = await hold('**/console/api/keys');
  await page.goto('/console/keys?create=true');
  await page.getByLabel('Name').fill('Slowly made');
  await sendAndEscape('Create key', '/console/api/keys');
  assert.equal(await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).isEnabled(), false);
  makeKey();
  await page.getByTestId('new-key').waitFor();
  const invite = await hold('**/admin/v1/users');
  await page.goto('/console/operator/users');
  await page.getByRole('button', { name: 'Invite user' }).click();
  await page.getByLabel('Email').fill('slowly@example.com');
  await page.getByLabel('Role').selectOption('operator');
  // What is typed stays over a reload, or a session that ends.
  await page.reload();
  await page.getByRole('button', { name: 'Invite user' }).click();
  assert.equal(await page.getByLabel('Email').inputValue(), 'slowly@example.com');
  assert.equal(await page.getByLabel('Role').inputValue(), 'operator');
  await sendAndEscape('Invite', '/admin/v1/users');
  invite();
  const invitation = page.getByRole('dialog', { name: 'Invitation' });
  await invitation.getByText('/console/reset-password?token=').waitFor();
  await invitation.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Invite user' }).click();
  assert.equal(await page.getByLabel('Email').inputValue(), '', 'what was sent is no longer kept');
  assert.deepEqual(page.troubles, []);
  await page.close();
});

test('a new key stays to be copied though the session ends, or its reader goes back, meanwhile', async () => {
  await onConsolePage(context, '/usage', async (page) => {
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'Create key' }).first().click();
    await page.getByLabel('Name').fill('To be copied');
    const error = { error: { message: 'Not signed in.', code: 'invalid_api_key' } };
    await page.route('**/console/api/keys?*', (route) => route.fulfill({ status: 401, json: error }));
    const refused = page.waitForResponse((response) => response.status() === 401);
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await (await refused).finished();
    await page.waitForTimeout(300);
    const key = page.getByTestId('new-key');
    assert.match((await key.textContent()) ?? '', /^sk-sluice-/);
    await page.evaluate('history.back()');
    await page.waitForTimeout(300);
    assert.equal(await key.count(), 1);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('Your session has ended.').waitFor();
    assert.match(page.url(), /return=%2Fkeys/);
  });
});

test('whoever goes back while a key is made stays on the page before', async () => {
  await onConsolePage(context, '/usage', async (page) => {
    const held = withResolvers();
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'Create key' }).first().click();
    await page.getByLabel('Name').fill('Left behind');
    await page.route('**/console/api/keys', async (route) => {
      if (route.request().method() === 'POST') await held.promise;
      await route.continue();
    });
    const made = page.waitForResponse((response) => response.status() === 201);
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
    held.resolve();
    await (await made).finished();
    await page.waitForTimeout(300);
    assert.equal(new URL(page.url()).pathname, '/console/usage');
  });
});

test('a key that cannot be made while Redis is away is refused without a word of sign-ins', async () => {
  await gateway.redis?.stop();
  const answer = await context.request.post('/console/api/keys', {
    data: { name: 'Not now' },
    headers: { origin: gateway.url },
  });
  assert.equal(answer.status(), 503);
  assert.equal((await answer.json()).error.message, 'Limits cannot be checked for now. Try again later.');
});
