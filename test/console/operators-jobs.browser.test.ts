import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { createUser } from '../../shared/accounts/users.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { faultsInEveryView, onConsolePage, TestBrowser, type WatchedPage } from './browser.ts';
import { operatorSession, operatorSettings } from './operator-session.ts';

/** What the request says, and an operator is not to read. */
const prompt = 'WORDS:5000@40 The treasure lies under the old oak';

let gateway: TestGateway;
let browser: TestBrowser;
let context: BrowserContext;
let research: string;

before(async () => {
  [gateway, browser] = await Promise.all([TestGateway.start({ settings: operatorSettings }), TestBrowser.start()]);
  context = await browser.context(gateway.url, 'light', await operatorSession(browser, gateway));
  research = await makeApiKey(gateway, { accountId: 'research', name: 'Lab' });
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

function onPage(path: string, work: (page: WatchedPage) => Promise<void>): Promise<void> {
  return onConsolePage(context, path, work);
}

/** A stream of another account that goes on for minutes, unless it is cancelled. */
function startLongJob(): Promise<Response> {
  return gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { authorization: `Bearer ${research}` },
    body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: prompt }], stream: true }),
  });
}

test("another account's running job is found live, and cancelled from the list", async () => {
  const answer = await startLongJob();
  await onPage('/operator/jobs', async (page) => {
    const live = page.getByRole('table', { name: 'Jobs under way' });
    await live.getByText('Lab').waitFor();
    await live.getByText('research').waitFor();
    assert.equal(await page.getByRole('button', { name: /^Watch/ }).count(), 0, 'its answer is not for operators');
    assert.deepEqual(await faultsInEveryView(browser, page, 'operator-live-jobs'), []);
    assert.ok(!(await page.content()).includes('treasure'));
    await live.getByRole('button', { name: /^Cancel/ }).click();
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByText('Nothing is running').waitFor();
    await page.getByRole('table', { name: 'Jobs', exact: true }).getByText('cancelled').first().waitFor();
  });
  assert.match(await answer.text(), /cancelled by an operator/);
});

test('it is opened with its timeline, which goes on by itself, and cancelled there', async () => {
  const answer = await startLongJob();
  const id = answer.headers.get('x-request-id') as string;
  await onPage('/operator/jobs?account=research', async (page) => {
    const live = page.getByRole('table', { name: 'Jobs under way' });
    await live.getByRole('link', { name: 'sandbox-chat' }).click();
    await page.waitForURL(new RegExp(`/console/operator/jobs/${id}`));
    await page.getByText('in progress').first().waitFor();
    assert.deepEqual(await faultsInEveryView(browser, page, 'operator-live-job'), []);
    assert.ok(!(await page.content()).includes('treasure'));
    await page.getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click();
    await page.getByText('Cancelled', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Cancel the job' }).waitFor({ state: 'detached' });
  });
  assert.match(await answer.text(), /cancelled by an operator/);
});

test('jobs under way are those of the account that is chosen', async () => {
  const answer = await startLongJob();
  await onPage('/operator/jobs?account=default', async (page) => {
    await page.getByText('Nothing is running').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.getByRole('table', { name: 'Jobs under way' }).getByText('Lab').waitFor();
  });
  const id = answer.headers.get('x-request-id') as string;
  await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${research}` } });
  await answer.text();
});

/** A finished job of another account. */
async function finishJob(key: string, metadata: Readonly<Record<string, string>> = {}): Promise<string> {
  const body = { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }], metadata };
  const headers = { authorization: `Bearer ${key}` };
  const answer = await gateway.fetch('/v1/chat/completions', { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.text());
  return answer.headers.get('x-request-id') as string;
}

test('a list of the last 24 hours that was opened in another hour still shows new jobs', async () => {
  const key = await makeApiKey(gateway, { accountId: 'watched' });
  await onPage('/operator/jobs?account=watched&period=24h', async (page) => {
    await page.clock.setFixedTime(Date.now() - 2 * 3_600_000);
    await page.reload();
    await page.getByText('No matching jobs').waitFor();
    await finishJob(key);
    await page.getByRole('table', { name: 'Jobs', exact: true }).getByText('completed').waitFor();
  });
});

test('long words of users, in names, addresses and tags, widen neither a page nor push columns out of it', async () => {
  const key = await makeApiKey(gateway, { accountId: 'long', name: 'K'.repeat(100) });
  const id = await finishJob(key, { ['t'.repeat(64)]: 'v'.repeat(512) });
  const db = await openDatabase(gateway);
  const email = `${'e'.repeat(60)}@${'d'.repeat(60)}.example`;
  await createUser(db, { email, name: 'W'.repeat(100), role: 'user', accountId: 'long', credit: 0 });
  await db.destroy();
  await onPage('/operator/users', async (page) => {
    assert.deepEqual(await faultsInEveryView(browser, page, 'long-names'), []);
    const actions = await page.getByRole('button', { name: `Actions for ${email}` }).boundingBox();
    assert.ok(actions !== null && actions.x + actions.width <= 1280, `the actions are at ${actions?.x}`);
  });
  await onPage(`/operator/jobs/${id}`, async (page) => {
    await page.getByRole('group', { name: 'Tags' }).waitFor();
    assert.deepEqual(await faultsInEveryView(browser, page, 'long-tag'), []);
  });
});
