import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { faultsInEveryView, joinAs, openPage, settled, TestBrowser, usageRecorded } from './browser.ts';

let gateway: TestGateway;
let browser: TestBrowser;

before(async () => {
  const settings = { SLUICE_SIGN_UP_CREDIT: '5' };
  [gateway, browser] = await Promise.all([TestGateway.start({ settings }), TestBrowser.start()]);
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

test('the overview and the usage page of the console show what caches have saved', async () => {
  const context = await browser.context(gateway.url);
  const page = await openPage(context);
  await joinAs(context, gateway.url, 'ada@example.com');
  const made = await page.request.post('/console/api/keys', {
    data: { name: 'Cached' },
    headers: { origin: gateway.url },
  });
  const { key: apiKey } = (await made.json()) as { key: string };
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
  const system = { role: 'system' as const, content: 'Be brief. '.repeat(2000) };
  let [input, cached] = [0, 0];
  for (const content of ['Hello', 'And again']) {
    const { usage } = await client.chat.completions.create({
      model: 'sandbox-chat',
      messages: [system, { role: 'user', content }],
    });
    input += usage?.prompt_tokens ?? 0;
    cached += usage?.prompt_tokens_details?.cached_tokens ?? 0;
  }
  assert.ok(cached > 1000);
  const exact = { model: 'sandbox-chat', messages: [{ role: 'user' as const, content: 'Once' }] };
  for (let index = 0; index < 4; index++) {
    const { data, response } = await client.chat.completions
      .create(exact, { headers: { 'x-sluice-cache': '60' } })
      .withResponse();
    assert.equal(response.headers.get('x-sluice-cache'), index === 0 ? 'miss' : 'hit');
    // A hit's usage is that of the first one, and counts once.
    if (index === 0) input += data.usage?.prompt_tokens ?? 0;
  }
  await usageRecorded(context, 3);
  const share = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 }).format(cached / input);
  await eventually(async () => {
    await page.goto('/console/usage?group=model');
    await settled(page);
    const main = (await page.locator('main').textContent()) ?? '';
    assert.match(main, new RegExp(`Cached input${share}[\\d.,K]+ of [\\d.,K]+ input tokens`));
    assert.match(main, /Saved by prompt caches\$0\.0*[1-9]/);
    assert.match(main, /Cached answers3/);
  }, 30_000);
  await page.getByRole('radiogroup', { name: 'What the chart shows' }).getByText('Saved').click();
  await page.getByRole('img', { name: 'Chart: Saved by model' }).waitFor();
  const faults = await faultsInEveryView(browser, page, 'usage-with-caches');
  await page.goto('/console/');
  await settled(page);
  const main = (await page.locator('main').textContent()) ?? '';
  assert.match(main, new RegExp(`Cached input${share}\\$0\\.0*[1-9]\\d* saved`));
  assert.match(main, /Requests3and 3 cached answers/);
  faults.push(...(await faultsInEveryView(browser, page, 'overview-with-caches')));
  assert.deepEqual([...faults, ...page.troubles], []);
});
