import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BrowserContext, Locator } from 'playwright-core';
import { AdminKeys } from '../../support/admin-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { onConsolePage, settled, TestBrowser, usageRecorded, type WatchedPage } from '../browser.ts';
import { operatorSession, operatorSettings } from '../operator-session.ts';
import { addJobs } from './add-jobs.ts';

let gateway: TestGateway;
let browser: TestBrowser;
let context: BrowserContext;

before(async () => {
  [gateway, browser] = await Promise.all([TestGateway.start({ settings: operatorSettings }), TestBrowser.start()]);
  context = await browser.context(gateway.url, 'light', await operatorSession(browser, gateway));
  const message = { role: 'user', content: 'Hi' } as const;
  await gateway.client().chat.completions.create({ model: 'sandbox-chat', messages: [message] });
  await usageRecorded(context, 1);
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

function onPage(path: string, work: (page: WatchedPage) => Promise<void>): Promise<void> {
  return onConsolePage(context, path, work);
}

async function assertFocused(control: Locator): Promise<void> {
  await control.and(control.page().locator(':focus')).waitFor();
}

async function rightEdge(part: Locator): Promise<number> {
  const box = await part.boundingBox();
  assert.ok(box !== null, 'it is not shown');
  return box.x + box.width;
}

test('a keyboard goes on where it was after more rows are shown, after the last ones, and after a switch is set', async () => {
  await addJobs(gateway, 120);
  await onPage('/jobs?model=many', async (page) => {
    const table = page.getByRole('table', { name: 'Jobs', exact: true });
    const more = page.getByRole('button', { name: 'Show more' });
    await more.press('Enter');
    await eventually(async () => assert.equal(await table.getByRole('row').count(), 101));
    await assertFocused(more);
    await page.keyboard.press('Enter');
    await eventually(async () => assert.equal(await table.getByRole('row').count(), 121));
    await assertFocused(page.getByRole('region', { name: 'Jobs', exact: true }));
  });
  await onPage('/operator/accounts/default', async (page) => {
    const priority = page.getByRole('switch', { name: 'High priority' });
    await priority.press('Space');
    await page.getByRole('switch', { name: 'High priority', checked: true }).waitFor();
    await assertFocused(priority);
  });
});

test('a printed report of usage has all its columns, as a table, and nothing but the page', async () => {
  await onPage('/usage?group=model', async (page) => {
    const scheme = (name: string) => page.locator(`html[data-mantine-color-scheme=${name}]`);
    await page.getByRole('table', { name: 'Usage by model' }).waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    await scheme('dark').waitFor({ state: 'attached' });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    // A4 without margins, and with Chromium's.
    for (const width of [794, 717]) {
      await page.setViewportSize({ width, height: 1123 });
      const spend = page.getByRole('table', { name: 'Usage by model' }).getByRole('columnheader', { name: 'Spend' });
      await eventually(async () => assert.ok((await rightEdge(spend)) > width / 2, 'a column'));
      assert.ok((await rightEdge(spend)) <= width, `${await rightEdge(spend)} of ${width}`);
      const chart = page.locator('.recharts-surface').first();
      assert.ok((await rightEdge(chart)) <= width && (await rightEdge(chart)) > width / 2);
      for (const role of ['banner', 'navigation'] as const) assert.equal(await page.getByRole(role).count(), 0);
    }
    // Dark on white from a dark screen, which is as before then.
    await scheme('light').waitFor({ state: 'attached' });
    await page.emulateMedia({ media: 'screen', colorScheme: 'dark' });
    await scheme('dark').waitFor({ state: 'attached' });
    await page.evaluate("dispatchEvent(new Event('beforeprint'))");
    await scheme('light').waitFor({ state: 'attached' });
    await page.evaluate("dispatchEvent(new Event('afterprint'))");
    await scheme('dark').waitFor({ state: 'attached' });
    await page.emulateMedia({ media: 'screen', colorScheme: 'light' });
  });
});

test('everything that a chart of usage can show is in sight in the narrowest window', async () => {
  await onPage('/usage', async (page) => {
    for (const width of [360, 320]) {
      await page.setViewportSize({ width, height: 780 });
      await page.reload();
      await settled(page);
      const choices = page.getByRole('radiogroup', { name: 'What the chart shows' });
      const edge = await rightEdge(choices);
      assert.ok(edge <= width);
      const labels = choices.locator('label');
      for (let index = 0; index < (await labels.count()); index += 1) {
        assert.ok((await rightEdge(labels.nth(index))) <= edge, `${await labels.nth(index).textContent()} at ${width}`);
      }
    }
  });
});

test('a key is found by its name, or pasted, and no more of it is sent than lists show', async () => {
  const keys = await AdminKeys.open(gateway);
  const { key } = await keys.create({ name: 'Nightly report' });
  await keys.create({ name: 'Daily report' });
  await onPage('/keys', async (page) => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    const table = page.getByRole('table', { name: 'API keys' });
    const search = page.getByLabel('Search keys');
    for (const text of ['nightly', ` ${key} `]) {
      await search.fill(text);
      await table.getByText('Daily report').waitFor({ state: 'detached' });
      await table.getByText('Nightly report').waitFor();
      await search.fill('');
      await table.getByText('Daily report').waitFor();
    }
    assert.deepEqual(
      asked.filter((url) => url.includes(key)),
      [],
    );
    await search.fill('none is called so');
    await page.getByText('No key matches').waitFor();
  });
});
