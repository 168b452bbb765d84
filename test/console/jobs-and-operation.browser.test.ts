import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { BrowserContext } from 'playwright-core';
import { createUser } from '../../shared/accounts/users.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import {
  faultsInEveryView,
  follow,
  joinAs,
  onConsolePage,
  openPage,
  settled,
  TestBrowser,
  type WatchedPage,
} from './browser.ts';
import { operator, operatorSession, operatorSettings } from './operator-session.ts';

let gateway: TestGateway;
let browser: TestBrowser;
/** Of an operator. All tests share it, and what the browser has loaded. */
let context: BrowserContext;

before(async () => {
  [gateway, browser] = await Promise.all([TestGateway.start({ settings: operatorSettings }), TestBrowser.start()]);
  context = await browser.context(gateway.url, 'light', await operatorSession(browser, gateway));
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Runs `work` on a page that an operator opens, which must end without an error of its scripts or its policy. */
function onPage(path: string, work: (page: WatchedPage) => Promise<void>): Promise<void> {
  return onConsolePage(context, path, work);
}

/** What everybody must be able to read, in light, in dark and on a phone. */
async function assertReadable(page: WatchedPage, name: string): Promise<void> {
  assert.deepEqual(await faultsInEveryView(browser, page, name), []);
}

/** A stream that goes on for minutes, unless it is cancelled. */
function startLongJob(): Promise<Response> {
  return gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    body: JSON.stringify({
      model: 'sandbox-chat',
      messages: [{ role: 'user', content: 'WORDS:5000@40' }],
      stream: true,
    }),
  });
}

describe('jobs', () => {
  test('one that runs is watched from its beginning, then cancelled, and is listed with what became of it', async () => {
    const answer = await startLongJob();
    await onPage('/jobs', async (page) => {
      const live = page.getByRole('table', { name: 'Jobs under way' });
      await live.getByRole('button', { name: /^Watch/ }).click();
      await page
        .getByTestId('watched')
        .getByText(/word1 word2/)
        .waitFor();
      await assertReadable(page, 'job-watched');
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await live.getByRole('link', { name: 'sandbox-chat' }).click();
      // Its page tells of the answer what is known before its end.
      await page.getByText(/^Took so far\d/).waitFor();
      const firstOutput = page.locator('.mantine-Timeline-item').filter({ hasText: 'First output' });
      await firstOutput.getByText(/later$/).waitFor();
      await page.getByRole('button', { name: 'Watch' }).click();
      await page
        .getByTestId('watched')
        .getByText(/word1 word2/)
        .waitFor();
      await page.keyboard.press('Escape');
      await assertReadable(page, 'job-running');
      await page.goBack();
      await live.getByRole('button', { name: /^Cancel/ }).click();
      await page.getByRole('button', { name: 'Cancel the job' }).click();
      await page.getByText('Nothing is running').waitFor();
      await page.getByRole('table', { name: 'Jobs', exact: true }).getByText('cancelled').first().waitFor();
    });
    assert.match(await answer.text(), /cancelled/);
  });

  test('filters are in the address, a row leads to its job, and so does any id of it in the search', async () => {
    const answer = await gateway
      .client()
      .chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }] });
    const body = JSON.stringify({ model: 'no-such-model', messages: [{ role: 'user', content: 'Hi' }] });
    const refused = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    const refusedId = refused.headers.get('x-request-id') ?? '';
    await onPage('/jobs?model=no-such-model', async (page) => {
      await page.getByText('No matching jobs').waitFor();
      await page.getByRole('button', { name: 'Clear filters' }).click();
      await page.getByRole('link', { name: 'sandbox-chat' }).first().click();
      await page.waitForURL(/\/console\/jobs\/job_/);
      const search = async (id: string): Promise<void> => {
        await page.keyboard.press('Control+k');
        const dialog = page.getByRole('dialog', { name: 'Find a request' });
        await dialog.getByLabel('Id').fill(` "${id}", `);
        if (id === refusedId) await assertReadable(page, 'search');
        await page.keyboard.press('Enter');
        await dialog.waitFor({ state: 'detached' });
      };
      await eventually(async () => {
        assert.equal((await page.request.get(`/console/api/requests/${refusedId}`)).status(), 200);
      });
      await search(refusedId);
      await page.getByRole('heading', { name: 'It was refused' }).waitFor();
      await page.getByText('`no-such-model`').waitFor();
      await assertReadable(page, 'request-refused');
      await search(answer.id);
      await page.waitForURL(new RegExp(`/console/jobs/job_${answer.id.split('-')[1]}`));
      await page.getByRole('heading', { name: 'Timeline' }).waitFor();
      await search(`req_${'0'.repeat(32)}`);
      await page.getByText('Nothing is kept under this id').waitFor();
      await assertReadable(page, 'request-missing');
    });
  });
});

describe('models', () => {
  test('models that can be used are listed; the others are one click away, say why, and are found by words and filters', async () => {
    await onPage('/models', async (page) => {
      const rows = page.getByRole('table', { name: 'Models' }).getByRole('row');
      await rows
        .nth(1)
        .getByText(/^sandbox-/)
        .waitFor();
      await page.getByText(/^\d{1,2} available models$/).waitFor();
      assert.equal(await page.getByText(/Not available:/).count(), 0);
      await page.getByLabel('Search').fill('gpt-5');
      await page.getByText('No available model matches').waitFor();
      await page.getByRole('button', { name: 'Show models that are not available' }).click();
      await page.getByText(/^\d{1,3} of \d{3} models$/).waitFor();
      await page
        .getByText(/Not available: .*openai/)
        .first()
        .waitFor();
      await page.getByRole('button', { name: 'Input $/M' }).click();
      await page.getByRole('columnheader', { name: 'Input $/M' }).and(page.locator('[aria-sort=ascending]')).waitFor();
      await page.getByLabel('Available only').check();
      await page.getByText('No available model matches').waitFor();
    });
  });

  test('each have a page, by ids with slashes, too, that leads to the playground where that can use them', async () => {
    await onPage('/models?available=false&search=groq%2Fqwen', async (page) => {
      await page.getByRole('link', { name: 'groq/qwen/qwen3.8-27b' }).click();
      await page.getByRole('heading', { level: 1, name: 'groq/qwen/qwen3.8-27b' }).waitFor();
      assert.equal(new URL(page.url()).pathname, '/console/models/groq/qwen/qwen3.8-27b');
      await page.reload();
      await page.getByText('Not available on this gateway').waitFor();
      await page.getByText('groq: set GROQ_API_KEY').waitFor();
      assert.equal(await page.getByRole('link', { name: 'Try it' }).count(), 0);
      await assertReadable(page, 'model-off');
    });
    await onPage('/models/sandbox-image', async (page) => {
      await page.getByRole('table', { name: 'Vendor routes' }).getByText('sandbox/sandbox-image').waitFor();
      await page.getByText('/v1/images/edits').waitFor();
      await page.getByText('Python', { exact: true }).click();
      const code = page.getByRole('region', { name: 'A request in Python' });
      const text = (await code.textContent()) ?? '';
      assert.ok(text.includes(`base_url="${gateway.url}/v1"`) && text.includes('model="sandbox-image"'), text);
      await assertReadable(page, 'model');
      const lists = new Set<string>();
      page.on('request', (request) => {
        const { pathname, search } = new URL(request.url());
        if (pathname === '/console/api/models') lists.add(search);
      });
      await page.getByRole('link', { name: 'Try it' }).click();
      await page.getByRole('tab', { name: 'Image', selected: true }).waitFor();
      await page.waitForFunction(`document.querySelector('input[value="sandbox-image"]') !== null`);
      assert.deepEqual([...lists], ['?available=true'], 'of hundreds of models those that can be used are read');
    });
    await onPage('/models/sandbox-embedding', async (page) => {
      await page.getByText('Python', { exact: true }).click();
      await page.getByText(/client\.embeddings\.create/).waitFor();
      assert.equal(await page.getByRole('link', { name: 'Try it' }).count(), 0, 'the playground has no embeddings');
    });
  });
});

test('a page whose address has values that make no sense is shown without them', async () => {
  const page = await openPage(context);
  for (const [path, heading] of [
    ['/usage?period=__proto__&group=constructor&from=abc', 'Usage'],
    ['/usage?from=-5&to=99999999999999999', 'Usage'],
    ['/operator/usage?from=8640000000000000', 'Usage'],
    ['/jobs?period=toString&status=5', 'Jobs'],
    ['/playground?tab=constructor&model=sandbox-chat', 'Playground'],
    ['/models?context=many&order=__proto__&available=perhaps', 'Models'],
    ['/sign-in?error=5&return=5', 'Sign in'],
  ] as const) {
    await page.goto(`/console${path}`);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await page.waitForLoadState('networkidle');
    assert.deepEqual([path, await page.getByRole('alert').allInnerTexts(), page.troubles], [path, [], []]);
  }
  await page.close();
});

describe('operation', () => {
  test('an account is made, gets credit, is made prepaid and suspended', async () => {
    await onPage('/operator/accounts', async (page) => {
      await page.getByRole('button', { name: 'New account' }).click();
      await page.getByLabel('Name').fill('Research');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { level: 1, name: 'Research' }).waitFor();
      await page.getByText('No users').waitFor();
      await page.getByRole('heading', { name: 'Usage of the last 30 days' }).waitFor();
      await page.getByRole('button', { name: 'Invite user' }).click();
      // It is for this account.
      assert.equal(await page.getByRole('dialog').getByRole('combobox', { name: 'Account' }).inputValue(), 'Research');
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByLabel('Dollars').fill('12.5');
      await page.getByLabel('Note').fill('Invoice 17');
      await page.getByRole('button', { name: 'Add credit' }).click();
      await page.getByRole('table', { name: 'Credits' }).getByText('$12.50').waitFor();
      await page.getByText('$12.50').first().waitFor();
      await page.getByRole('switch', { name: 'Suspended' }).click();
      await page.getByRole('button', { name: 'Suspend', exact: true }).click();
      await page.getByRole('switch', { name: 'Suspended', checked: true }).waitFor();
      await assertReadable(page, 'operator-account');
    });
  });

  test('credit is added as it is typed, digit by digit', async () => {
    await onPage('/operator/accounts', async (page) => {
      await page.getByRole('button', { name: 'New account' }).click();
      await page.getByLabel('Name').fill('Typed');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { level: 1, name: 'Typed' }).waitFor();
      const dollars = page.getByLabel('Dollars');
      const add = page.getByRole('button', { name: 'Add credit' });
      for (const [typed, booked] of [
        ['1.50', '$1.50'],
        ['0.05', '$0.05'],
        ['1000.01', '$1,000.01'],
        ['-0.5', '-$0.50'],
      ] as const) {
        await dollars.pressSequentially(typed);
        await add.click();
        await page.getByRole('table', { name: 'Credits' }).getByText(booked, { exact: true }).waitFor();
        // The list may be drawn before the form hears of its credit.
        await eventually(async () => assert.equal(await dollars.inputValue(), ''));
      }
      await dollars.pressSequentially('-');
      assert.equal(await add.isEnabled(), false);
      // Booked, and its answer lost: the repeat is not booked again.
      await page.route('**/credits', async (route) => {
        await route.fetch();
        await route.abort();
      });
      await dollars.fill('7');
      await add.click();
      await page.getByText('The gateway cannot be reached').waitFor();
      await page.unroute('**/credits');
      // Nor after a reload.
      await page.reload();
      assert.equal(await dollars.inputValue(), '$7');
      await add.click();
      await eventually(async () => assert.equal(await dollars.inputValue(), ''));
      const credits = page.getByRole('table', { name: 'Credits' });
      await credits.getByText('$7.00', { exact: true }).waitFor();
      assert.equal(await credits.getByText('$7.00', { exact: true }).count(), 1);
    });
  });

  test('any of many accounts is found by its name, also to move a user there', async () => {
    const db = await openDatabase(gateway);
    const rows = Array.from({ length: 300 }, (_, n) => ({ id: `acct_many_${n}`, name: `Team ${n}.`, created_at: n }));
    await db.insertInto('accounts').values(rows).execute();
    await createUser(db, { email: 'mover@example.com', name: 'M', role: 'user', accountId: 'acct_many_7', credit: 0 });
    await db.destroy();
    await onPage('/operator/accounts', async (page) => {
      await page.getByLabel('Search accounts').fill('team 3.');
      await page.getByRole('table', { name: 'Accounts' }).getByRole('link', { name: 'Team 3.', exact: true }).waitFor();
      await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
      await page.getByLabel('Search accounts').fill('acct_many_5');
      await page.getByRole('link', { name: 'Team 5.', exact: true }).click();
      await page.getByRole('heading', { level: 1, name: 'Team 5.' }).waitFor();
      await page.getByRole('button', { name: 'Invite user' }).click();
      const account = page.getByRole('dialog').getByRole('combobox', { name: 'Account' });
      await eventually(async () => assert.equal(await account.inputValue(), 'Team 5.'));
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.goto('/console/operator/users');
      // The rows of before are gone once the search has begun, and a menu that was opened on one of them with it.
      const found = page.waitForResponse((response) => response.url().includes('search=mover'));
      await page.getByLabel('Search users').fill('mover');
      await found;
      await page.getByRole('button', { name: 'Actions for mover@example.com' }).click();
      await page.getByRole('menuitem', { name: 'Move to another account' }).click();
      await eventually(async () => assert.equal(await account.inputValue(), 'Team 7.'));
      await account.fill('Team 9.');
      await page.getByRole('option', { name: 'Team 9.', exact: true }).click();
      await assertReadable(page, 'operator-move');
      await page.getByRole('button', { name: 'Move', exact: true }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'Team 9.' }).waitFor();
    });
  });

  test('an account gets a weight in queues, high priority and turns by key, which stay until they are taken back', async () => {
    await onPage('/operator/accounts', async (page) => {
      await page.getByRole('button', { name: 'New account' }).click();
      await page.getByLabel('Name').fill('Queues');
      await page.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor();
      const weight = page.getByRole('textbox', { name: 'Weight in queues' });
      await weight.fill('4');
      await page.getByRole('button', { name: 'Set', exact: true }).click();
      const fields = ['High priority', 'Turns by key'];
      for (const checked of [true, false]) {
        for (const name of fields) {
          await page.getByRole('switch', { name, checked: !checked, disabled: false }).click();
          await page.getByRole('switch', { name, checked }).waitFor();
        }
        await page.reload();
        await settled(page);
        for (const name of fields) await page.getByRole('switch', { name, checked }).waitFor();
        assert.equal(await weight.inputValue(), '4');
      }
    });
  });

  test("an account's key is made, and rotated at once", async () => {
    const status = async (key: string): Promise<number> =>
      (await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
    const shownKey = async (page: WatchedPage): Promise<string> => {
      const key = (await page.getByTestId('new-key').textContent()) ?? '';
      await page.getByRole('button', { name: 'I have copied it' }).click();
      return key;
    };
    await onPage('/operator/accounts/default', async (page) => {
      await page.getByRole('table', { name: 'Users' }).getByText(operator.email).waitFor();
      const usage = page.locator('section').filter({ hasText: 'Usage of the last 30 days' });
      await usage.getByRole('link', { name: 'All its usage' }).waitFor();
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('For the team');
      await assertReadable(page, 'operator-key-form');
      await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
      const first = await shownKey(page);
      assert.equal(await status(first), 200);
      await page.getByRole('button', { name: 'Actions for For the team' }).click();
      await page.getByRole('menuitem', { name: 'Rotate' }).click();
      await page.getByLabel('The old key goes on working for').selectOption('0');
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
      const second = await shownKey(page);
      assert.deepEqual([await status(first), await status(second)], [401, 200]);
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('For a program');
      await page.getByRole('dialog').getByLabel('Kind').selectOption('operator');
      await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
      const manager = await shownKey(page);
      assert.equal(await status(manager), 403, 'it calls no model');
      const row = page.getByRole('row').filter({ hasText: 'For a program' });
      await row.getByRole('cell', { name: 'Operator API only' }).waitFor();
    });
  });

  test('usage is that of all accounts, and every line leads to its requests', async () => {
    const metadata = { team: 'blue' };
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    await gateway.client().chat.completions.create({ model: 'sandbox-chat', messages, metadata });
    await eventually(async () => {
      const tagged = await context.request.get('/admin/v1/usage?tag=team:blue');
      assert.equal((await tagged.json()).total.requests, 1);
    }, 30_000);
    await onPage('/operator/usage?group=account', async (page) => {
      await page.getByRole('img', { name: 'Chart: Spend by account' }).waitFor();
      const accounts = page.getByRole('table', { name: 'Usage by account' });
      await accounts.getByRole('link').first().waitFor();
      const table = await page.getByRole('link', { name: 'Export the table' }).getAttribute('href');
      assert.match(await (await page.request.get(table ?? '')).text(), /^account,account_id,requests,.*\r\n.*default,/);
      const all = await page.getByRole('link', { name: 'Export the jobs' }).getAttribute('href');
      assert.match(await (await page.request.get(all ?? '')).text(), /^id,status,/);
      await assertReadable(page, 'operator-usage-by-account');
      await page.getByLabel('Tag').fill('team:blue');
      await page.waitForURL(/tag=/);
      await page.getByLabel('Group by').selectOption('vendor');
      const vendors = page.getByRole('table', { name: 'Usage by vendor' });
      await vendors.getByRole('link', { name: 'sandbox' }).click();
      const requests = page.getByRole('table', { name: 'Jobs', exact: true });
      await requests.waitFor();
      assert.equal(await requests.getByRole('link').count(), 1, 'of all requests the one with the tag');
      await assertReadable(page, 'operator-requests');
      const file = await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href');
      const csv = await (await page.request.get(file ?? '')).text();
      assert.equal(csv.trim().split('\r\n').length, 2, csv);
      await requests.getByRole('link').click();
      await page.getByRole('link', { name: 'team: blue' }).waitFor();
      await assertReadable(page, 'operator-job');
    });
  });

  test('models are shown with their routes, on or off, and what each costs', async () => {
    await onPage('/operator/models', async (page) => {
      await page.getByLabel('Search').fill('kimi-k2.6');
      await page
        .getByRole('button', { name: /^Routes of kimi-k2\.6: .*0 of 3 on/ })
        .first()
        .click();
      const routes = page.getByRole('table', { name: 'Routes' });
      await routes.getByText('moonshot/kimi-k2.6').waitFor();
      await routes.getByText('$0.77').waitFor();
      await assertReadable(page, 'operator-model-routes');
    });
  });

  test('a user gets a reset link that is made for the page of this gateway', async () => {
    await onPage('/operator/users', async (page) => {
      await page.getByRole('button', { name: `Actions for ${operator.email}` }).click();
      await page.getByRole('menuitem', { name: 'Password reset link' }).click();
      const link = (await page.getByRole('region', { name: 'The link' }).textContent()) ?? '';
      assert.match(link, /\/console\/reset-password\?token=/);
    });
  });

  test('somebody is invited, chooses a password and signs in; is made operator, disabled and deleted after a question', async () => {
    const email = 'invited@example.com';
    let link = '';
    await onPage('/operator/users', async (page) => {
      await page.getByRole('button', { name: 'Invite user' }).click();
      await page.getByLabel('Email').fill(email);
      await assertReadable(page, 'operator-invite');
      await page.getByRole('button', { name: 'Invite', exact: true }).click();
      link = (await page.getByRole('region', { name: 'The link' }).textContent()) ?? '';
    });
    const guest = await openPage(await browser.context(gateway.url));
    await guest.goto(link);
    await guest.getByRole('heading', { name: 'Choose your password' }).waitFor();
    await guest.getByRole('textbox', { name: 'Password' }).fill('chosen by themselves');
    await guest.getByRole('button', { name: 'Set the password' }).click();
    await guest.getByRole('link', { name: 'Sign in', exact: true }).click();
    await guest.getByLabel('Email').fill(email);
    await guest.getByRole('textbox', { name: 'Password' }).fill('chosen by themselves');
    await guest.getByRole('button', { name: 'Sign in' }).click();
    await guest.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.deepEqual(guest.troubles, []);
    await guest.context().close();
    await onPage('/operator/users', async (page) => {
      const row = page.getByRole('table', { name: 'Users' }).getByRole('row').filter({ hasText: email });
      const act = async (item: string, confirm: string): Promise<void> => {
        await page.getByRole('button', { name: `Actions for ${email}` }).click();
        await page.getByRole('menuitem', { name: item }).click();
        await page.getByRole('dialog').getByRole('button', { name: confirm }).click();
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      };
      await act('Make operator', 'Make operator');
      await row.getByText('operator', { exact: true }).waitFor();
      await act('Disable', 'Disable');
      await row.getByText('disabled').waitFor();
      await page.getByRole('textbox', { name: 'Search users' }).fill('invited@');
      await page.getByText(operator.email).waitFor({ state: 'detached' });
      await act('Delete', 'Delete');
      await page.getByText('No user matches').waitFor();
      await page.getByRole('textbox', { name: 'Search users' }).fill('');
      // The list as it was before comes first; the row of the deleted user moves the others when it goes.
      await page.getByRole('button', { name: `Actions for ${operator.email}` }).waitFor();
      await row.waitFor({ state: 'detached' });
      // Nobody takes their own rights by mistake.
      await page.getByRole('button', { name: `Actions for ${operator.email}` }).click();
      await page.getByRole('menuitem', { name: 'Password reset link' }).waitFor();
      assert.equal(await page.getByRole('menuitem', { name: 'Delete' }).count(), 0);
    });
  });

  test('vendors show the health of their routes, workers their load, and queues their figures', async () => {
    await onPage('/operator/vendors', async (page) => {
      await page.getByRole('button', { name: 'Details of sandbox' }).click();
      await page.getByRole('dialog').getByText('All its routes are healthy.').waitFor();
      await assertReadable(page, 'operator-vendor');
      await page.keyboard.press('Escape');
      for (const [name, settings] of [
        ['azure', 'AZURE_API_KEY and AZURE_BASE_URL'],
        ['lm-studio', 'LM_STUDIO_BASE_URL'],
      ]) {
        await page.getByRole('button', { name: `Details of ${name}` }).click();
        await page.getByRole('dialog').getByText(`It is off: set ${settings} to turn it on.`).waitFor();
        await page.keyboard.press('Escape');
      }
    });
    await onPage('/operator/workers', async (page) => {
      await page.getByRole('table', { name: 'Queues' }).getByText('transcription').waitFor();
      await page.getByRole('table', { name: 'Workers' }).getByText('0 / 500').waitFor();
      const chat = page.getByRole('table', { name: 'Queues' }).getByRole('row').filter({ hasText: 'chat' });
      await chat.getByRole('cell').last().getByText('1').waitFor();
    });
  });

  test('an error is read whole on a narrow phone, with the id of its request', async () => {
    const requestId = `req_${'0123456789abcdef'.repeat(2)}`;
    await onPage('/operator/workers', async (page) => {
      await page.setViewportSize({ width: 340, height: 700 });
      const headers = { 'x-request-id': requestId };
      await page.route('**/admin/v1/users*', (route) => route.fulfill({ status: 400, headers, json: {} }));
      await page.goto('/console/operator/users');
      const alert = page.getByRole('alert').filter({ hasText: requestId });
      const rightOf = async (part: typeof alert): Promise<number> => {
        const box = await part.boundingBox();
        assert.ok(box !== null);
        return box.x + box.width;
      };
      assert.ok((await rightOf(alert.getByText(requestId))) < (await rightOf(alert)));
    });
  });

  test('a table that is wider than its page is scrolled by keyboard', async () => {
    await onPage('/operator/workers', async (page) => {
      await page.setViewportSize({ width: 800, height: 900 });
      for (const name of ['Queues', 'Workers']) {
        const scroller = page.getByRole('region', { name, exact: true });
        await scroller.focus();
        await page.keyboard.press('ArrowRight');
        const scrolled = (): Promise<number> =>
          scroller.evaluate((one: unknown) => (one as { scrollLeft: number }).scrollLeft);
        await eventually(async () => assert.ok((await scrolled()) > 0, name));
      }
    });
  });

  test('the queue browser is a part of the console: its name, its way back, nothing from elsewhere, every button named', async () => {
    const page = await openPage(context);
    const elsewhere: string[] = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(gateway.url)) elsewhere.push(request.url());
    });
    await page.goto('/console/queues/queue/chat');
    await page.getByRole('link', { name: 'Sluice queues' }).waitFor();
    await page.getByRole('button', { name: 'Settings' }).waitFor();
    // On a phone the page of one queue has nothing else to name.
    const faults = await faultsInEveryView(browser, page, 'queue-of-chat');
    await page.getByRole('link', { name: 'Sluice queues' }).click();
    await page.getByRole('button', { name: 'Sort and view' }).waitFor();
    faults.push(...(await faultsInEveryView(browser, page, 'queues')));
    assert.deepEqual([...faults, ...elsewhere, ...page.troubles], []);
    await page.getByRole('link', { name: 'Back to the Sluice console' }).click();
    await page.getByRole('link', { name: 'Open queue browser' }).waitFor();
    await page.close();
  });

  test('users are told that these pages are not for them', async () => {
    const other = await browser.context(gateway.url);
    const page = await openPage(other);
    await joinAs(other, gateway.url, 'user@example.com');
    await page.goto('/console/operator/accounts');
    await page.getByText('This page is for operators').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Vendors' }).count(), 0);
    assert.equal((await other.request.get('/admin/v1/accounts')).status(), 403);
    await other.close();
  });
});

test('everybody can read every page, in light, in dark and on a phone', async () => {
  const names = ['accounts', 'users', 'vendors', 'models', 'workers', 'jobs', 'usage'];
  await onPage('/jobs', async (page) => {
    const faults: string[] = [];
    for (const path of ['jobs', 'models', ...names.map((name) => `operator/${name}`)]) {
      if (path !== 'jobs') await follow(page, `/${path}`);
      await page.getByRole('table').first().waitFor();
      faults.push(...(await faultsInEveryView(browser, page, path.replaceAll('/', '-'))));
    }
    assert.deepEqual(faults, []);
  });
});
