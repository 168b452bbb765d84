import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** How a page is looked at. Nothing moves: what is half faded in has the colours of neither state. */
const views = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, reducedMotion: 'reduce' },
} as const;

export type View = keyof typeof views;

/** No page lives long enough for what optimizing compilers make of its scripts: they take an eighth of its time. */
const unoptimized = ['--js-flags=--no-opt --no-maglev'];

/** A page that keeps what went wrong in it. */
export interface WatchedPage extends Page {
  /** Errors of scripts, and what the Content-Security-Policy refused. */
  readonly troubles: string[];
}

/** Debian's Chromium, for one suite: `chromium-headless-shell`. */
export class TestBrowser {
  readonly #browser: Browser;
  /** Where screenshots go: `SLUICE_TEST_SCREENSHOTS`; without it none are made, they take as long as all the rest. */
  readonly screenshots = process.env.SLUICE_TEST_SCREENSHOTS;

  private constructor(browser: Browser) {
    this.#browser = browser;
    if (this.screenshots !== undefined) mkdirSync(this.screenshots, { recursive: true });
  }

  static async start(): Promise<TestBrowser> {
    const executablePath = execFileSync('which', ['chromium-headless-shell'], { encoding: 'utf8' }).trim();
    // The tests run as root in containers, where Chromium's own sandbox does not start.
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', ...unoptimized];
    return new TestBrowser(await chromium.launch({ executablePath, args }));
  }

  /** A new browser profile: nobody is signed in. @param url of the gateway, without a slash at the end */
  async context(url: string, view: View = 'light', storageState?: Session): Promise<BrowserContext> {
    const context = await this.#browser.newContext({
      baseURL: url,
      ...views[view],
      permissions: ['clipboard-read', 'clipboard-write'],
      ...(storageState === undefined ? {} : { storageState }),
    });
    // A machine with other work takes its time; who waits for what does not come must end, too.
    context.setDefaultTimeout(30_000);
    return context;
  }

  close(): Promise<void> {
    return this.#browser.close();
  }
}

/** Cookies of somebody signed in, as `BrowserContext.storageState()` answers them. */
export type Session = Awaited<ReturnType<BrowserContext['storageState']>>;

export async function openPage(context: BrowserContext): Promise<WatchedPage> {
  const page = Object.assign(await context.newPage(), { troubles: [] as string[] });
  page.on('pageerror', (error) => page.troubles.push(error.message));
  page.on('console', (message) => {
    // An answer that is not 2xx is told by the browser itself: whether it is right is for the test to say.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
      page.troubles.push(message.text());
    }
  });
  return page;
}

/** Waits until nothing on the page says that it loads. */
export async function settled(page: Page): Promise<void> {
  await page.locator('main h1').first().waitFor();
  const loading =
    '[aria-busy="true"], [role="status"][aria-label^="Loading"], .mantine-Skeleton-root[data-visible="true"]';
  await page.locator(loading).first().waitFor({ state: 'detached' });
}

/**
 * What axe looks for. Another theme has other colours and nothing else that is new, a phone all but colours: to reckon those
 * is most of axe's work.
 */
const rules: Readonly<Record<View, object>> = {
  light: {},
  dark: { runOnly: ['color-contrast', 'link-in-text-block'] },
  phone: { rules: { 'color-contrast': { enabled: false } } },
};

/** Leaves out the rules whose findings are never serious, and so never count: they are a third of axe's work. */
const countedRules = `axe.configure({
  rules: axe._audit.rules
    .filter(({ impact }) => impact === 'minor' || impact === 'moderate')
    .map(({ id }) => ({ id, enabled: false })),
})`;

/**
 * What is wrong with a page as it stands, with its open dialogs: what axe finds serious or critical, and what is wider than
 * the window. It is looked at in light, in dark and on a phone, and is as before then.
 */
export async function faultsInEveryView(browser: TestBrowser, page: Page, name: string): Promise<string[]> {
  // Not by a script element: the page's Content-Security-Policy would refuse that. A page keeps it until it is loaded anew.
  if (!(await answered(page.evaluate<boolean>('"axe" in globalThis'), 'axe'))) {
    await answered(page.evaluate(`${axe}; ${countedRules}`), 'axe');
  }
  const faults: string[] = [];
  for (const view of Object.keys(views) as View[]) {
    await show(page, view);
    if (browser.screenshots !== undefined) {
      await page.screenshot({ path: join(browser.screenshots, `${name}-${view}.png`), fullPage: true });
    }
    const found = [...(await accessibilityFaults(page, rules[view])), ...(await overflow(page))];
    faults.push(...found.map((fault) => `${name}, ${view}: ${fault}`));
  }
  await show(page, 'light');
  return faults;
}

/** What measures itself, such as a chart, is drawn anew. */
const drawn = 'new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))';

/** No colour is on its way to another. Of transitions only: what turns while something loads has no end. */
const transitionsEnd = `Promise.allSettled(
  document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished),
).then(() => {})`;

/** A page that draws no frame, as a browser without time for it may, is looked at as it is: nothing more comes of waiting. */
const patience = 'new Promise((resolve) => setTimeout(resolve, 5000))';

/** The longest that anything asked of a page may take, in ms. */
const answerMs = 60_000;

/** What a page answers. Playwright itself waits for that without end. */
async function answered<T>(asking: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the page did not answer in time: ${what}`)), answerMs);
  });
  return await Promise.race([asking, late]).finally(() => clearTimeout(timer));
}

async function show(page: Page, view: View): Promise<void> {
  const { viewport, ...media } = views[view];
  await page.setViewportSize(viewport);
  await page.emulateMedia(media);
  // Pages without a script have no theme of Mantine's to wait for.
  if ((await page.locator('html[data-mantine-color-scheme]').count()) > 0) {
    await page.locator(`html[data-mantine-color-scheme=${media.colorScheme}]`).waitFor({ state: 'attached' });
  }
  for (const end of [drawn, transitionsEnd]) {
    await answered(page.evaluate(`Promise.race([${end}, ${patience}])`), end);
  }
}

/** What axe finds serious or critical: `rule: element: why`. It is in the page already. */
async function accessibilityFaults(page: Page, options: object): Promise<string[]> {
  const asking = page.evaluate(
    async (given) =>
      (await (globalThis as unknown as { axe: { run(options: object): Promise<AxeResults> } }).axe.run(
        given,
      )) as AxeResults,
    // Of media and style sheets that it would load itself, no rule that counts here has use; selectors it makes of all that it looks at.
    { resultTypes: ['violations'], preload: false, selectors: false, ...options },
  );
  const results = await answered(asking, 'what axe finds');
  return results.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
}

/** Says so where the page is wider than its window: nothing is to be scrolled sideways. */
async function overflow(page: Page): Promise<string[]> {
  const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  const pixels = await answered(page.evaluate<number>(wider), wider);
  return pixels === 0 ? [] : [`${pixels} pixels wider than its window`];
}

/** Waits until the usage of whoever is signed in there has as many requests: a page shows what there is when it is loaded. */
export async function usageRecorded(context: BrowserContext, requests: number, path = 'console/api'): Promise<void> {
  await eventually(async () => {
    const answer = await context.request.get(`/${path}/usage`);
    assert.ok((await answer.json()).total.requests >= requests, 'not all requests are recorded');
  }, 30_000);
}

/** Pages that `onConsolePage` goes on with: to begin one costs more than to load the console. */
const idlePages = new WeakMap<BrowserContext, WatchedPage>();

/** Small, and without a script. */
const emptyPage = '/console/favicon.svg';

/** A page as a new one is: its last reader has left nothing in it. */
async function freshPage(context: BrowserContext): Promise<WatchedPage> {
  const page = idlePages.get(context);
  if (page === undefined) return await openPage(context);
  idlePages.delete(context);
  await page.unrouteAll({ behavior: 'wait' });
  for (const event of ['request', 'response'] as const) page.removeAllListeners(event);
  await page.setViewportSize(views.light.viewport);
  // What it leaves writes what was typed once more.
  await page.goto(emptyPage);
  await page.evaluate('sessionStorage.clear()');
  page.troubles.length = 0;
  return page;
}

/** Runs `work` on a page of the console, which must end without an error of its scripts or its policy. */
export async function onConsolePage(
  context: BrowserContext,
  path: string,
  work: (page: WatchedPage) => Promise<void>,
): Promise<void> {
  const page = await freshPage(context);
  try {
    await page.goto(`/console${path}`);
    await settled(page);
    await work(page);
    assert.deepEqual(page.troubles, []);
  } catch (error) {
    await page.close();
    throw error;
  }
  idlePages.set(context, page);
}

/**
 * Goes to another page of the console as its links do: the console is not loaded anew. For a page that is another one, not the
 * same with other filters.
 */
export async function follow(page: Page, path: string): Promise<void> {
  const heading = await page.locator('main h1').first().elementHandle();
  await page.evaluate(`history.pushState({}, '', ${JSON.stringify(`/console${path}`)})`);
  await heading?.waitForElementState('hidden');
  await settled(page);
}

/** Makes a user, who is signed in then: what the pages for it come to. @param origin of the gateway */
export async function joinAs(context: BrowserContext, origin: string, email: string): Promise<void> {
  const password = 'correct horse battery';
  for (const [way, fields] of [
    ['sign-up', { name: 'Ada Lovelace', email, password }],
    ['sign-in', { email, password }],
  ] as const) {
    const answer = await context.request.post(`/console/api/auth/${way}/email`, { data: fields, headers: { origin } });
    assert.equal(answer.status(), 200, await answer.text());
  }
}

/** Signs up in a page that is not signed in; ends on the overview. */
export async function signUp(page: Page, email: string, password = 'correct horse battery'): Promise<void> {
  await page.goto('/console/sign-up');
  await page.getByLabel('Name').fill('Ada Lovelace');
  await page.getByLabel('Email').fill(email);
  await page.locator('input[name=password]').fill(password);
  await page.getByRole('button', { name: 'Sign up' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
}
