import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { openDatabase } from '../../../shared/database/database.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { joinAs, onConsolePage, openPage, TestBrowser, usageRecorded, type WatchedPage } from '../browser.ts';
import { operatorSession, operatorSettings } from '../operator-session.ts';
import { addJobs } from './add-jobs.ts';

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

function onPage(path: string, work: (page: WatchedPage) => Promise<void>): Promise<void> {
  return onConsolePage(context, path, work);
}

async function paste(page: WatchedPage, label: string, text: string): Promise<void> {
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.getByLabel(label).focus();
  await page.keyboard.press('Control+v');
}

test('an amount with commas is that amount of dollars, typed or pasted, and one that can be meant in two ways is not booked', async () => {
  await onPage('/operator/accounts/default', async (page) => {
    const dollars = page.getByLabel('Dollars');
    const type = (text: string): Promise<void> => dollars.pressSequentially(text);
    for (const put of [type, (text: string) => paste(page, 'Dollars', text)]) {
      for (const [written, shown] of [
        ['1,000', '$1,000'],
        ['$2,500.50', '$2,500.50'],
        ['12,50', '$12.50'],
      ] as const) {
        await dollars.fill('');
        await put(written);
        await dollars.blur();
        assert.equal(await dollars.inputValue(), shown);
      }
    }
    for (const [written, told] of [
      ['1.000', 'Write 1000 or 1.0000'],
      ['1e3', 'Write an amount'],
    ] as const) {
      await dollars.fill('');
      await type(written);
      await dollars.blur();
      await page.getByText(told).waitFor();
      assert.equal(await dollars.inputValue(), written);
      assert.equal(await page.getByRole('button', { name: 'Add credit' }).isEnabled(), false);
    }
    await dollars.fill('1,000');
    await dollars.press('Enter');
    await page.getByRole('table', { name: 'Credits' }).getByText('$1,000.00', { exact: true }).waitFor();
    // The next one can be typed at once.
    await page.locator('input:focus').and(dollars).waitFor();
  });
});

test('a key whose limits cannot be read is not made, and others are made as they are typed', async () => {
  await onPage('/keys?create=true', async (page) => {
    const form = page.getByRole('dialog', { name: 'Create an API key' });
    await form.getByLabel('Name').fill('Typed limits');
    await form.getByLabel('Requests per minute').pressSequentially('1.5');
    await form.getByRole('textbox', { name: 'Budget', exact: true }).pressSequentially('1.000');
    const create = form.getByRole('button', { name: 'Create key' });
    await create.click();
    await form.getByText('Write a whole number.').waitFor();
    await form.getByText('Write 1000 or 1.0000').waitFor();
    await form.getByLabel('Requests per minute').fill('1.000');
    await form.getByRole('textbox', { name: 'Budget', exact: true }).fill('1,000');
    await create.click();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    const { data } = await (await page.request.get('/console/api/keys')).json();
    const made = data.find(({ name }: { name: string }) => name === 'Typed limits');
    assert.deepEqual([made.rpm, made.budget.amount], [1000, 1000]);
  });
});

test('a double click makes one picture, not two', async () => {
  await onPage('/playground?tab=image', async (page) => {
    await page.getByLabel('Prompt').fill('A lighthouse');
    const make = page.getByRole('button', { name: 'Make pictures', disabled: false });
    await make.dblclick();
    await page.locator('[data-testid=task][data-state=done]').waitFor();
    assert.equal(await page.getByTestId('task').count(), 1);
    await make.click();
    await eventually(async () => assert.equal(await page.getByTestId('task').count(), 2));
  });
});

test('a picture that was taken away can be chosen again', async () => {
  await onPage('/playground', async (page) => {
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
    const field = page.locator('input[type=file]');
    await field.setInputFiles({ name: 'red.png', mimeType: 'image/png', buffer: Buffer.from(pixel, 'base64') });
    await page.getByRole('img', { name: 'Picture to send' }).waitFor();
    // The same one again is no change to a browser while the field still has it.
    assert.equal(await field.inputValue(), '');
  });
});

test('an account is found by its id where a user is invited', async () => {
  const db = await openDatabase(gateway);
  await db.insertInto('accounts').values({ id: 'acct_by_id', name: 'Named otherwise', created_at: 1 }).execute();
  await db.destroy();
  await onPage('/operator/users', async (page) => {
    await page.getByRole('button', { name: 'Invite user' }).click();
    await page.getByRole('dialog').getByRole('combobox', { name: 'Account' }).fill('acct_by_id');
    await page.getByRole('option', { name: 'Named otherwise' }).waitFor();
  });
});

test('one of several answers of a job is watched, not their mixture', async () => {
  const answer = await gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({
      ...{ model: 'sandbox-chat', n: 2, stream: true },
      messages: [{ role: 'user', content: 'WORDS:2000@40' }],
    }),
  });
  await onPage('/jobs', async (page) => {
    await page.getByRole('button', { name: /^Watch/ }).click();
    const watched = page.getByTestId('watched');
    await watched.getByText(/word2/).waitFor();
    assert.match((await watched.textContent()) ?? '', /^word1 word2/);
  });
  await answer.body?.cancel();
});

test('hours of several days are told apart in the chart of usage, by its table and by its axis', async () => {
  await gateway
    .client()
    .chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }] });
  await usageRecorded(context, 1);
  await onPage('/usage?group=hour&period=7d', async (page) => {
    await eventually(async () => {
      await page.reload();
      await page.getByRole('button', { name: 'Table: Spend' }).click({ timeout: 2000 });
    }, 30_000);
    const cells = page.getByRole('table', { name: 'Spend' }).getByRole('row').locator('td:first-child > div');
    const names = await cells.allTextContents();
    assert.ok(names.length >= 168, String(names.length));
    assert.equal(new Set(names).size, names.length);
    await page.getByRole('button', { name: 'Chart: Spend' }).click();
    const ticks = page.locator('.recharts-xAxis-tick-labels text');
    await ticks.first().waitFor();
    assert.match((await ticks.first().textContent()) ?? '', /^[A-Z][a-z]{2} \d+, \d\d:00$/);
  });
});

test('a list of models is searched as fast as somebody types', async () => {
  await onPage('/models', async (page) => {
    const search = page.getByLabel('Search');
    await search.pressSequentially('sandbox-chat');
    await page.waitForURL(/search=sandbox-chat/);
    assert.equal(await search.inputValue(), 'sandbox-chat');
    // In the middle of it, too.
    for (let step = 0; step < 5; step += 1) await search.press('ArrowLeft');
    await search.pressSequentially('xyz');
    await page.waitForURL(/search=sandboxxyz-chat/);
    assert.equal(await search.inputValue(), 'sandboxxyz-chat');
  });
});

test('the times of a span are typed digit by digit', async () => {
  await onPage('/jobs?from=1795312800000&to=1795320000000', async (page) => {
    const from = page.getByLabel('From', { exact: true });
    const before = await from.inputValue();
    await from.focus();
    await page.keyboard.type('03082025');
    assert.equal((await from.inputValue()).slice(0, 10), '2025-03-08', before);
  });
});

test('a list of hundreds of jobs is not read whole every five seconds', async () => {
  await addJobs(gateway, 290);
  await onPage('/jobs?model=many', async (page) => {
    const jobs = page.getByRole('table', { name: 'Jobs', exact: true }).getByRole('row');
    for (const rows of [101, 151, 201, 251, 291]) {
      await page.getByRole('button', { name: 'Show more' }).click();
      await eventually(async () => assert.equal(await jobs.count(), rows));
    }
    let asked = 0;
    page.on('request', (request) => {
      if (request.url().includes('/console/api/jobs?')) asked += 1;
    });
    await page.waitForTimeout(12_000);
    assert.ok(asked <= 6, `${asked} pages in 12 s`);
  });
});

test('a cost that is not known yet is not called no charge by a browser whose clock is ahead', async () => {
  await onPage('/playground', async (page) => {
    await page.clock.setSystemTime(Date.now() + 300_000);
    let reads = 0;
    await page.route('**/console/api/jobs/job_*', async (route) => {
      const answer = await route.fetch();
      reads += 1;
      await route.fulfill({ response: answer, json: { ...(await answer.json()), ...(reads < 3 && { cost: null }) } });
    });
    await page.getByLabel('Message').fill('Hi');
    await page.getByRole('button', { name: 'Send', exact: true, disabled: false }).click();
    const cost = page.getByTestId('job-cost');
    await cost.filter({ hasText: /in, \d+ out/ }).waitFor();
    assert.doesNotMatch((await cost.textContent()) ?? '', /no charge/);
    await cost.filter({ hasText: /\$0\.0*[1-9]/ }).waitFor();
  });
});

test('the queue browser leads who may not see it to a page that says so, and programs to an error', async () => {
  const stranger = await browser.context(gateway.url);
  const page = await openPage(stranger);
  await page.goto('/console/queues');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await joinAs(stranger, gateway.url, 'no-operator@example.com');
  await page.goto('/console/queues/queue/chat');
  await page.getByText('This page is for operators').waitFor();
  const answer = await stranger.request.get('/console/queues/api/queues', { headers: { accept: 'application/json' } });
  assert.equal(answer.status(), 403);
  assert.deepEqual(page.troubles, []);
  await stranger.close();
});
