import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { faultsInEveryView, openPage, TestBrowser } from './browser.ts';

describe('the start page and the reference in a browser', () => {
  let gateway: TestGateway;
  let browser: TestBrowser;

  before(async () => {
    [gateway, browser] = await Promise.all([TestGateway.start({ workers: 0 }), TestBrowser.start()]);
  });
  after(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  test('the start page copies its code, leads nobody to a refusal, and can be read in light, in dark and on a phone', async () => {
    const context = await browser.context(gateway.url);
    const page = await openPage(context);
    await page.goto('/');
    await page.getByRole('button', { name: 'Copy: curl' }).click();
    await page.getByRole('button', { name: 'Copied: curl' }).waitFor();
    const clipboard = 'navigator.clipboard.readText()';
    const curl = await page.evaluate<string>(clipboard);
    assert.equal(curl, await page.getByRole('region', { name: 'curl', exact: true }).textContent());
    assert.ok(curl.startsWith(`curl -N ${gateway.url}/v1/chat/completions`), curl);
    // As over plain HTTP: no clipboard for pages.
    await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.getByRole('button', { name: 'Copy: Python' }).click();
    await page.getByRole('button', { name: 'Copied: Python' }).waitFor();
    const links = await page
      .locator('a')
      .evaluateAll((all: { getAttribute(name: string): string }[]) => all.map((link) => link.getAttribute('href')));
    for (const link of new Set([...links, '/favicon.ico'])) {
      assert.equal((await page.request.get(link)).status(), 200, link);
    }
    assert.deepEqual(await faultsInEveryView(browser, page, 'start-page'), []);
    assert.deepEqual(page.troubles, []);
    // As the console is shown to the same reader.
    await page.evaluate("localStorage.setItem('mantine-color-scheme-value', 'dark')");
    await page.reload();
    assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), 'rgb(16, 21, 27)');
    await context.close();
  });

  test('the reference is found from the start page, opens an operation, and can be read in light, in dark and on a phone', async () => {
    const context = await browser.context(gateway.url);
    const page = await openPage(context);
    await page.goto('/');
    await page.getByRole('link', { name: 'API reference' }).click();
    await page.getByRole('heading', { name: 'API reference' }).waitFor();
    await page.getByText('POST /v1/chat/completions').click();
    const example = page.locator('#createchatcompletion pre code');
    await example.click();
    // A click takes the whole of it.
    const selected = await page.evaluate<string>('getSelection().toString()');
    assert.equal(selected.trim(), (await example.textContent())?.trim());
    assert.ok(selected.startsWith(`curl ${gateway.url}/v1/chat/completions`), selected);
    await page.locator('#createchatcompletion').getByRole('link', { name: 'ChatCompletionRequest' }).click();
    // What a link leads to is open.
    const object = page.locator('#object-chatcompletionrequest');
    await object.getByText('messages', { exact: true }).waitFor();
    await page.getByText('GET /v1/usage').click();
    assert.deepEqual(await faultsInEveryView(browser, page, 'reference'), []);
    assert.deepEqual(page.troubles, []);
    await context.close();
  });
});
