import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import type { BrowserContext } from 'playwright-core';
import { authenticatorCode } from '../support/authenticator-code.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import {
  faultsInEveryView,
  follow,
  joinAs,
  openPage,
  type Session,
  settled,
  signUp,
  TestBrowser,
  usageRecorded,
  type WatchedPage,
} from './browser.ts';

let gateway: TestGateway;
let browser: TestBrowser;
/** Somebody who has a key and has made requests. */
let session: Session;
/** Of the same. The tests share it, and what the browser has loaded. */
let context: BrowserContext;
/** Of the tests' visitors, one after another. */
let visitors: BrowserContext;
let jobId: string;

/** A page that nobody is signed in to. */
async function visitorPage(): Promise<WatchedPage> {
  await visitors.clearCookies();
  return await openPage(visitors);
}

/** Makes a key in the console's page of keys; answers its text, as it is shown once. */
async function createKey(page: WatchedPage, name: string): Promise<string> {
  await page.goto('/console/keys');
  await page.getByRole('button', { name: 'Create key' }).first().click();
  const form = page.getByRole('dialog', { name: 'Create an API key' });
  await form.getByLabel('Name').fill(name);
  await form.getByRole('button', { name: 'Create key' }).click();
  const key = await page.getByTestId('new-key').textContent();
  await page.getByRole('button', { name: 'I have copied it' }).click();
  assert.ok(key);
  return key;
}

/** Types changes of the only key: they are there after a reload, and not after somebody else has changed the key. */
async function keepEdits(page: WatchedPage): Promise<void> {
  const form = page.getByRole('dialog', { name: 'Edit' });
  const limit = form.getByLabel('Requests per minute');
  const edit = async (): Promise<void> => {
    await page.getByRole('button', { name: /^Actions for/ }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
  };
  await edit();
  await limit.fill('66');
  await page.reload();
  await edit();
  await form.getByText('not saved').waitFor();
  assert.equal(await limit.inputValue(), '66');
  const { data } = await (await page.request.get('/console/api/keys')).json();
  const headers = { origin: gateway.url };
  const changed = await page.request.patch(`/console/api/keys/${data[0].id}`, { data: { rpm: 77 }, headers });
  assert.equal(changed.status(), 200);
  await page.reload();
  await edit();
  assert.equal(await limit.inputValue(), '77');
  await form.getByRole('button', { name: 'Cancel' }).click();
  await form.waitFor({ state: 'detached' });
}

before(async () => {
  const settings = { SLUICE_SIGN_UP_CREDIT: '5' };
  [gateway, browser] = await Promise.all([TestGateway.start({ settings }), TestBrowser.start()]);
  context = await browser.context(gateway.url);
  visitors = await browser.context(gateway.url);
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

describe('the console', () => {
  test('leads from signing up over a key and its first request to its cost, and the revoked key is refused', async () => {
    const page = await openPage(context);
    await signUp(page, 'ada@example.com');
    await page.getByText('No requests in this period').waitFor();

    const apiKey = await createKey(page, 'First key');
    assert.ok(!(await page.content()).includes(apiKey), 'the key is not shown again');
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
    const ask = () =>
      client.chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello!' }] });
    await ask();

    await usageRecorded(context, 1);
    await eventually(async () => {
      await page.goto('/console/usage?group=model');
      await settled(page);
      const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'sandbox-chat' }) });
      assert.match((await row.textContent({ timeout: 1000 })) ?? '', /\$0\.0*[1-9]/);
    });
    await page.getByRole('link', { name: 'sandbox-chat' }).click();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    await page.getByRole('table', { name: 'Jobs', exact: true }).getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Timeline' }).waitFor();
    const details = (await page.locator('main').textContent()) ?? '';
    assert.match(details, /Cost\$0\.0*[1-9].*Modelsandbox-chat.*Vendorsandbox.*KeyFirst key/);
    jobId = new URL(page.url()).pathname.split('/').at(-1) ?? '';

    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Actions for First key' }).click();
    await page.getByRole('menuitem', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('revoked').waitFor();
    await assert.rejects(ask(), { status: 401 });
    assert.deepEqual(page.troubles, []);
    session = await context.storageState();
    await page.close();
  });

  test('draws no values that never were, in charts with one form of numbers and one axis of time, and reads them anew', async () => {
    const context = await browser.context(gateway.url, 'light', session);
    const page = await openPage(context);
    await page.clock.install();
    let isLater = false;
    await page.route('**/console/api/usage?*', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as { data: object[]; total: object };
      const isByHour = route.request().url().includes('group_by=hour');
      const to = Number(new URL(route.request().url()).searchParams.get('to'));
      const row = (index: number) => ({
        ...{ ...body.total, group: to - (index + 1) * 3_600_000, label: String(index), requests: 900 * index },
        ...{ cost: 0.0175 * index, input_tokens: 1300 * index, output_tokens: index % 2 === 0 ? 16_000 : 20 },
        ...{ average_ms: 150 * index, average_first_ms: 20 },
      });
      const data = isByHour ? Array.from({ length: 12 }, (_, index) => row(index)) : body.data;
      const total = { ...body.total, requests: isLater ? 4321 : 1234 };
      await route.fulfill({ response: answer, json: { ...body, data, total } });
    });
    await page.goto('/console');
    await page.getByText('1,234').waitFor();
    const charts = page.locator('.recharts-wrapper');
    await page.locator('.recharts-line-curve').first().waitFor();
    const ticks = async (name: string): Promise<string[]> =>
      await page
        .getByRole('img', { name: `Chart: ${name}` })
        .locator('.recharts-yAxis-tick-labels text')
        .allTextContents();
    assert.deepEqual(await ticks('Tokens'), ['0', '5K', '10K', '15K', '20K']);
    assert.deepEqual(await ticks('Spend'), ['$0.00', '$0.05', '$0.10', '$0.15', '$0.20']);
    assert.deepEqual(await ticks('Latency (average)'), ['0', '0.5\u00a0s', '1.0\u00a0s', '1.5\u00a0s', '2.0\u00a0s']);
    const curves = page.locator('.recharts-line-curve, .recharts-area-curve');
    for (const curve of await curves.all()) assert.match((await curve.getAttribute('d')) ?? '', /^[ML\d.,eZ-]+$/);
    assert.equal(await curves.count(), 4);
    const starts = await page.evaluate<string[]>(
      `Array.from(document.querySelectorAll('.recharts-cartesian-grid-horizontal'), (grid) => grid.firstElementChild.getAttribute('x1'))`,
    );
    assert.equal(starts.length, 4);
    const times = await page.evaluate<string[]>(
      `Array.from(document.querySelectorAll('.recharts-xAxis-tick-labels'), (axis) =>
        Array.from(axis.querySelectorAll('text'), (tick) => tick.textContent + Math.round(tick.getAttribute('x'))).join())`,
    );
    assert.equal(new Set(times).size, 1, 'times stand below one another');
    assert.equal(new Set(starts).size, 1);
    const box = await charts.first().boundingBox();
    await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) - 60, (box?.y ?? 0) + 100);
    const told = page.locator('.recharts-tooltip-label');
    await told.nth(3).waitFor();
    assert.equal(new Set(await told.allTextContents()).size, 1, 'the same time is told in each');
    isLater = true;
    await page.clock.fastForward(31_000);
    await page.getByText('4,321').waitFor();
    assert.deepEqual(page.troubles, []);
    await context.close();
  });

  test('the console copies a new key where the browser has no clipboard for pages (plain HTTP), or shows it to be copied by hand', async () => {
    for (const isAllowed of [true, false]) {
      const page = await openPage(context);
      await page.addInitScript(`
        Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined });
        ${isAllowed ? '' : 'document.execCommand = () => false;'}
      `);
      await page.goto('/console/keys');
      await page.getByRole('button', { name: 'Create key' }).first().click();
      await page.getByLabel('Name').fill('Copied');
      await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
      const key = (await page.getByTestId('new-key').textContent()) ?? '';
      await page.getByRole('button', { name: 'Copy the key' }).click();
      if (isAllowed) {
        await page.getByRole('button', { name: 'Copied', exact: true }).waitFor();
        const reader = await openPage(context);
        await reader.goto('/');
        assert.equal(await reader.evaluate('navigator.clipboard.readText()'), key);
        await reader.close();
      } else {
        const field = page.getByLabel('Your browser does not allow copying here');
        await field.waitFor();
        assert.equal(await field.inputValue(), key);
        assert.equal(await page.evaluate('String(getSelection())'), key);
      }
      assert.deepEqual(page.troubles, []);
      await page.close();
    }
  });

  test('the console is loaded anew when the gateway was upgraded while it was open', async () => {
    const page = await openPage(context);
    await page.goto('/console/keys');
    await settled(page);
    let missing = 0;
    await page.route(/usage-page[^/]*\.js$/, async (route) => {
      // The file's name was that of the version before.
      if (missing++ === 0) await route.fulfill({ status: 404 });
      else await route.continue();
    });
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('heading', { name: 'Usage', exact: true }).waitFor();
    assert.equal(missing, 2);
    await page.close();
  });

  test('the console asks to sign in, and then shows the page that was asked for', async () => {
    const page = await visitorPage();
    await page.goto('/console/usage?group=key');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Email').fill('ada@example.com');
    await page.locator('input[name=password]').fill('not the password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('The email address or the password is wrong.').waitFor();
    await page.locator('input[name=password]').fill('correct horse battery');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    assert.equal(new URL(page.url()).search, '?group=key');
    await page.getByRole('button', { name: /Account menu/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.goto('/console/keys');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.close();
  });

  test('the console says that a session has ended while a page was open, and returns to the page', async () => {
    const page = await visitorPage();
    const ended = page.getByText('Your session has ended.');
    const signIn = async () => {
      await page.getByLabel('Email').fill('ada@example.com');
      await page.locator('input[name=password]').fill('correct horse battery');
      await page.keyboard.press('Enter');
    };
    await page.goto('/console/keys');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.equal(await ended.count(), 0);
    await signIn();
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await visitors.clearCookies();
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await ended.waitFor();
    await signIn();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    assert.equal(new URL(page.url()).search, '');
    // What was asked in the playground is still there, and can be asked again.
    await page.getByRole('link', { name: 'Playground', exact: true }).click();
    await page.getByLabel('Message').fill('Asked too late');
    await visitors.clearCookies();
    await page.getByRole('button', { name: 'Send', exact: true, disabled: false }).click();
    await ended.waitFor();
    await signIn();
    await page.getByText('Asked too late').waitFor();
    await page.getByRole('button', { name: 'Answer again' }).click();
    await page.getByTestId('job-cost').waitFor();
    await page.close();
  });

  test('the console keeps what is typed of a new key over a reload and the end of a session, for its user alone', async () => {
    const page = await visitorPage();
    await joinAs(visitors, gateway.url, 'eve@example.com');
    await page.goto('/console/keys?create=true');
    const form = page.getByRole('dialog', { name: 'Create an API key' });
    await form.getByLabel('Name').fill('Typed for long');
    await form.getByLabel('Requests per minute').fill('55');
    await page.reload();
    assert.equal(await form.getByLabel('Name').inputValue(), 'Typed for long');
    const signInAs = async (email: string): Promise<void> => {
      await page.getByLabel('Email').fill(email);
      await page.locator('input[name=password]').fill('correct horse battery');
      await page.keyboard.press('Enter');
      await form.waitFor();
    };
    const send = form.getByRole('button', { name: 'Create key' });
    await visitors.clearCookies();
    await send.click();
    await page.getByText('Your session has ended.').waitFor();
    await signInAs('eve@example.com');
    assert.equal(await form.getByLabel('Requests per minute').inputValue(), '55');
    await send.click();
    await page.getByTestId('new-key').waitFor();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await keepEdits(page);
    await page.getByRole('button', { name: 'Create key' }).click();
    assert.equal(await form.getByLabel('Name').inputValue(), '', 'what was sent is no longer kept');
    await form.getByLabel('Name').fill('Of Eve');
    await visitors.clearCookies();
    await send.click();
    await page.getByText('Your session has ended.').waitFor();
    await signInAs('ada@example.com');
    assert.equal(await form.getByLabel('Name').inputValue(), '', 'another user does not see it');
    assert.deepEqual(page.troubles, []);
    await page.close();
  });

  test('the console shows in every tab of a browser who is signed in now, and nothing to nobody', async () => {
    const [one, other] = [await visitorPage(), await openPage(visitors)];
    await joinAs(visitors, gateway.url, 'first-tab@example.com');
    await one.goto('/console/');
    await other.goto('/console/keys');
    await other.getByText('first-tab@example.com').first().waitFor();
    await one.getByRole('button', { name: 'Account menu' }).click();
    await one.getByRole('menuitem', { name: 'Sign out' }).click();
    await other.getByText('Your session has ended').waitFor();
    await signUp(one, 'second-tab@example.com');
    await other.goto('/console/keys');
    await other.getByText('second-tab@example.com').first().waitFor();
    await one.goto('/console/sign-in?return=%2Fkeys');
    await one.getByText('You are signed in as second-tab@example.com').waitFor();
    await one.getByRole('button', { name: 'Go on to the console' }).click();
    await one.getByRole('heading', { name: 'Keys' }).waitFor();
    await one.goto('/console/sign-in');
    await one.getByLabel('Email').fill('first-tab@example.com');
    await one.locator('input[name=password]').fill('correct horse battery');
    await one.getByRole('button', { name: 'Sign in', exact: true }).click();
    await other.getByText('first-tab@example.com').first().waitFor();
    assert.equal(await other.getByText('second-tab@example.com').count(), 0);
    assert.deepEqual([one.troubles, other.troubles], [[], []]);
    for (const page of [one, other]) await page.close();
  });

  test('the console changes and rotates a key', async () => {
    const context = await browser.context(gateway.url, 'phone', session);
    const page = await openPage(context);
    const old = await createKey(page, 'Notebook');
    await page.getByRole('button', { name: 'Actions for Notebook' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    await page.getByLabel('Requests per minute').fill('120');
    await page.getByRole('textbox', { name: 'Budget', exact: true }).fill('2.5');
    await page.getByLabel('Prompt cache of Claude').selectOption('automatic');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('120 requests/min').waitFor();
    await page.getByText('$0.00 of $2.50 this month').waitFor();
    await page.getByRole('button', { name: 'Actions for Notebook' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    assert.equal(await page.getByLabel('Prompt cache of Claude').inputValue(), 'automatic');
    const budget = page.getByRole('textbox', { name: 'Budget', exact: true });
    await budget.fill('0.0000005');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('of $0.0000005 this month').waitFor();
    await page.getByRole('button', { name: 'Actions for Notebook' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    assert.equal(await budget.inputValue(), '$0.0000005');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Actions for Notebook' }).click();
    await page.getByRole('menuitem', { name: 'Rotate' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    const fresh = (await page.getByTestId('new-key').textContent()) ?? '';
    assert.notEqual(fresh, old);
    for (const key of [old, fresh]) {
      const answer = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal(answer.status, 200, 'both work while they overlap');
    }
    assert.deepEqual(page.troubles, []);
    await context.close();
  });

  test('the console keeps the priority of a key, whether it shares identical requests and how long it caches answers, and takes them back', async () => {
    const page = await openPage(context);
    const names = ['Priority', 'Highest priority', 'Identical requests at once'];
    const field = (name: string) => page.getByRole('dialog').getByRole('combobox', { name, exact: true });
    const cache = page.getByRole('dialog').getByRole('textbox', { name: 'Answers from the cache, seconds' });
    const values = async (): Promise<string[]> =>
      await Promise.all([...names.map((name) => field(name).inputValue()), cache.inputValue()]);
    const edit = async (): Promise<void> => {
      await page.getByRole('button', { name: 'Actions for Nightly' }).click();
      await page.getByRole('menuitem', { name: 'Edit' }).click();
      await field('Priority').waitFor();
    };
    const save = async (): Promise<void> => {
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    await createKey(page, 'Nightly');
    for (const chosen of [
      ['low', 'high', 'on', '3,600'],
      ['high', 'high', 'on', '60'],
      ['', '', '', ''],
    ]) {
      await edit();
      for (const [index, name] of names.entries()) await field(name).selectOption(chosen[index] as string);
      await cache.fill(chosen.at(-1) as string);
      await save();
      await page.reload();
      await settled(page);
      await edit();
      assert.deepEqual(await values(), chosen);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    assert.deepEqual(page.troubles, []);
    await page.close();
  });
});

describe('two-step sign-in', () => {
  test('two-step sign-in is set up in the settings, asked for at the next sign-in, and takes a backup code', async () => {
    const page = await visitorPage();
    const faults: string[] = [];
    await joinAs(visitors, gateway.url, 'grace@example.com');
    await page.goto('/console/settings');
    const card = page.locator('form').filter({ hasText: 'authenticator app' });
    await card.locator('input[name=password]').fill('not the password');
    await card.getByRole('button', { name: 'Set up' }).click();
    await card.getByText('The current password is wrong.').waitFor();
    await card.locator('input[name=password]').fill('correct horse battery');
    await card.getByRole('button', { name: 'Set up' }).click();
    const key = (await page.getByRole('region', { name: 'Key' }).textContent()) ?? '';
    const [backupCode = ''] = ((await page.getByRole('region', { name: 'Backup codes' }).textContent()) ?? '').split(
      '\n',
    );
    faults.push(...(await faultsInEveryView(browser, page, 'authenticator-set-up')));
    await page.locator('input[name=code]').fill('000000');
    await page.getByRole('button', { name: 'Turn on' }).click();
    await card.getByText('The code is wrong.').waitFor();
    await page.locator('input[name=code]').fill(authenticatorCode(key.replace(/\s/g, '')));
    await page.getByRole('button', { name: 'Turn on' }).click();
    await page.getByText('On. A sign-in takes a code').waitFor();
    faults.push(...(await faultsInEveryView(browser, page, 'authenticator-on')));

    await visitors.clearCookies();
    await page.goto('/console/sign-in');
    const enter = async (): Promise<void> => {
      await page.getByLabel('Email').fill('grace@example.com');
      await page.locator('input[name=password]').fill('correct horse battery');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Enter a code' }).waitFor();
    };
    await enter();
    await page.locator('input[name=code]').fill('000 000');
    await page.keyboard.press('Enter');
    await page.getByText('The code is wrong.').waitFor();
    faults.push(...(await faultsInEveryView(browser, page, 'sign-in-code')));
    await page.getByRole('button', { name: 'Back to sign in' }).click();
    await enter();
    await page.locator('input[name=code]').fill(backupCode);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.deepEqual([...faults, ...page.troubles], []);
    await page.close();
  });
});

describe('everybody can read, in light, in dark and on a phone,', () => {
  const outside = {
    'sign-in': 'sign-in',
    'sign-up': 'sign-up',
    forgot: 'forgot-password',
    reset: 'reset-password?token=x',
    confirm: 'confirm-email?token=x',
  };
  // None is followed by the same page with other filters: see `follow`.
  const inside = {
    overview: '',
    keys: 'keys',
    'overview-month': '?period=30d',
    usage: 'usage',
    jobs: 'jobs?period=7d',
    'usage-by-model': 'usage?group=model',
    'jobs-of-a-span': 'jobs?from=1795312800000&to=1795320000000',
    settings: 'settings',
    missing: 'no/such/page',
  };

  async function look(page: WatchedPage, paths: Readonly<Record<string, string>>): Promise<void> {
    const faults: string[] = [];
    for (const [name, path] of Object.entries(paths)) {
      if (page.url() === 'about:blank') {
        await page.goto(`/console/${path}`);
        await settled(page);
      } else await follow(page, `/${path}`);
      faults.push(...(await faultsInEveryView(browser, page, name)));
    }
    assert.deepEqual([...faults, ...page.troubles], []);
    await page.close();
  }

  test('what is there before signing in', async () => look(await visitorPage(), outside));

  test('why they cannot sign up, or set a password', async () => {
    const page = await visitorPage();
    const faults: string[] = [];
    const tells = async (text: string, name: string): Promise<void> => {
      await page.getByText(text).waitFor();
      faults.push(...(await faultsInEveryView(browser, page, name)));
    };
    await page.goto('/console/sign-up');
    await page.getByLabel('Name').fill('Ada');
    await page.getByLabel('Email').fill('ada@example.com');
    await page.locator('input[name=password]').fill('another fine phrase');
    await page.keyboard.press('Enter');
    await tells('You cannot sign in with this password', 'sign-up-taken');
    await follow(page, '/reset-password?token=x');
    await page.locator('input[name=password]').fill('correct horse battery');
    await page.keyboard.press('Enter');
    await tells('This link no longer works', 'reset-dead-link');
    await follow(page, '/forgot-password');
    await tells('This gateway sends no mail.', 'forgot-no-mail');
    await follow(page, '/confirm-email?token=x');
    await page.getByRole('button', { name: 'Confirm' }).click();
    await tells('This link no longer works.', 'confirm-dead-link');
    await page.route('**/console/api/settings', async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), sign_up: false, mail: true } });
    });
    await page.goto('/console/forgot-password');
    await page.getByLabel('Email').fill('nobody@example.com');
    await page.keyboard.press('Enter');
    await tells('Look into your mail', 'forgot-done');
    await follow(page, '/sign-up');
    await tells('This gateway takes no new accounts', 'sign-up-closed');
    assert.deepEqual([...faults, ...page.troubles], []);
    await page.close();
  });

  test('every page of an account', async () => look(await openPage(context), { ...inside, job: `jobs/${jobId}` }));

  test('every menu and dialog of a key', async () => {
    const page = await openPage(context);
    const faults: string[] = [];
    const look = async (name: string): Promise<void> => {
      faults.push(...(await faultsInEveryView(browser, page, name)));
    };
    await page.goto('/console/keys?create=true');
    await page.getByRole('dialog').getByRole('button', { name: 'Limit a single model' }).click();
    await look('key-form');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove the limits of this model' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('For dialogs');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByTestId('new-key').waitFor();
    await look('key-new');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    for (const action of ['Edit', 'Rotate', 'Revoke']) {
      await page.getByRole('button', { name: 'Actions for For dialogs' }).click();
      await page.getByRole('menuitem', { name: action }).waitFor();
      if (action === 'Edit') await look('key-menu');
      await page.getByRole('menuitem', { name: action }).click();
      await page.getByRole('dialog', { name: action }).waitFor();
      await look(`key-${action.toLowerCase()}`);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      // The keyboard goes on where it was, at the menu's button.
      await page.locator('button:focus[aria-label="Actions for For dialogs"]').waitFor();
    }
    await page.getByRole('button', { name: /Account menu/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
    await look('account-menu');
    assert.deepEqual([...faults, ...page.troubles], []);
    await page.close();
  });
});
