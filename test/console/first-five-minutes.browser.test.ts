import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { type LauncherProcess, startLauncher } from '../launcher/launcher-process.ts';
import { eventually } from '../support/eventually.ts';
import { openPage, TestBrowser, usageRecorded } from './browser.ts';

let dataDir: string;
let browser: TestBrowser;
let launcher: LauncherProcess | undefined;

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-first-minutes-'));
  browser = await TestBrowser.start();
});

after(async () => {
  await browser?.close();
  launcher?.signal('SIGTERM');
  await launcher?.exit;
  await rm(dataDir, { recursive: true, force: true });
});

/** Runs what a page shows as a person does who pastes it. Returns the answer and its status. */
async function runInShell(command: string, key: string): Promise<{ status: number; answer: string }> {
  const { PATH = '' } = process.env;
  const told = `${command} --silent --show-error --write-out '\\n%{http_code}'`;
  const { stdout } = await promisify(execFile)('sh', ['-c', told], { env: { PATH, SLUICE_API_KEY: key } });
  const [answer = '', status] = stdout.split(/\n(?=\d+$)/);
  return { status: Number(status), answer };
}

test('a first start leads to a request by the shown command, to its traces, and to a second user, without a detour', async (t) => {
  let stepAt = Date.now();
  const done = (step: string): void => {
    t.diagnostic(`${step}: ${((Date.now() - stepAt) / 1000).toFixed(1)} s`);
    stepAt = Date.now();
  };

  launcher = await startLauncher({ dataDir });
  const { origin } = new URL((await launcher.welcome()).baseUrl);
  done('the gateway starts on an empty data folder');

  const [, email = '', password = ''] = /(\S+@sluice\.localhost), password (\S+) /.exec(launcher.output) ?? [];
  const page = await openPage(await browser.context(origin));
  await page.goto(/Console +(\S+)/.exec(launcher.output)?.[1] ?? '');
  await page.getByLabel('Email').fill(email);
  await page.locator('input[name=password]').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  done('the operator signs in as the first start says');

  // The first start has made one already.
  await page.getByText('You have a key').waitFor();
  await page.getByRole('link', { name: 'See the keys' }).click();
  await page.getByRole('button', { name: 'Create key' }).first().click();
  await page.getByRole('dialog').getByLabel('Name').fill('First');
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
  const key = (await page.getByTestId('new-key').textContent()) ?? '';
  await page.getByRole('button', { name: 'I have copied it' }).click();
  done('a key is created');

  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  const command = (await page.getByRole('region', { name: 'Example for curl' }).textContent()) ?? '';
  const { status, answer } = await runInShell(command, key);
  assert.equal(status, 200, answer);
  assert.match(answer, /"chat\.completion"/);
  done('the shown command is run, and answered');

  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await page.getByRole('table').getByText('sandbox-chat').first().waitFor();
  await usageRecorded(page.context(), 1);
  await eventually(async () => {
    await page.getByRole('link', { name: 'Usage', exact: true }).click();
    await page.reload();
    await page.getByRole('table').getByRole('row').nth(1).waitFor({ timeout: 2000 });
  }, 30_000);
  done('the request is seen in Jobs and Usage');

  await page.getByRole('link', { name: 'Users', exact: true }).click();
  await page.getByRole('button', { name: 'Invite user' }).click();
  await page.getByLabel('Email').fill('second@example.com');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const link = (await page.getByRole('region', { name: 'The link' }).textContent()) ?? '';
  const guest = await openPage(await browser.context(origin));
  await guest.goto(link);
  await guest.getByRole('textbox', { name: 'Password' }).fill('chosen by themselves');
  await guest.getByRole('button', { name: 'Set the password' }).click();
  await guest.getByRole('link', { name: 'Sign in', exact: true }).click();
  await guest.getByLabel('Email').fill('second@example.com');
  await guest.getByRole('textbox', { name: 'Password' }).fill('chosen by themselves');
  await guest.getByRole('button', { name: 'Sign in' }).click();
  await guest.getByRole('heading', { name: 'Overview' }).waitFor();
  done('a second user comes in by the link of an invitation');
  assert.deepEqual([...page.troubles, ...guest.troubles], []);
});
