import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { TestGateway } from '../support/gateway.ts';
import { faultsInEveryView, openPage, TestBrowser } from './browser.ts';

describe('the reference page in a browser', () => {
  let gateway: TestGateway;
  let browser: TestBrowser;

  before(async () => {
    [gateway, browser] = await Promise.all([TestGateway.start({ workers: 0 }), TestBrowser.start()]);
  });
  after(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  test('is found from the start page, opens an operation, and can be read in light, in dark and on a phone', async () => {
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
    await page.locator('#object-chatcompletionrequest summary').click();
    await page.getByText('Object', { exact: false }).first().waitFor();
    await page.getByText('GET /v1/usage').click();
    assert.deepEqual(await faultsInEveryView(browser, page, 'reference'), []);
    assert.deepEqual(page.troubles, []);
    await context.close();
  });
});
