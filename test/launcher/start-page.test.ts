import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { logo } from '../../api/pages/page-parts.ts';
import { startPage, startPagePolicy } from '../../api/pages/start-page.ts';
import { cssVariables, theme } from '../../console/src/theme.ts';

const options = {
  baseUrl: 'http://127.0.0.1:8080',
  examples: { chat: 'sandbox-chat', image: 'sandbox-image', speech: 'sandbox-speech', video: 'sandbox-video' },
  sandbox: true,
};

describe('the start page', () => {
  test('the start page says how to call what runs', () => {
    const page = startPage(options);
    for (const part of ['http://127.0.0.1:8080/v1', 'stand-in']) {
      assert.ok(page.includes(part), part);
    }
    for (const model of Object.values(options.examples)) assert.ok(page.includes(`"model":"${model}"`), model);
    for (const path of ['/console/', '/docs', '/healthz', '/readyz']) assert.ok(page.includes(`href="${path}"`), path);
    // What a stranger is refused is no link.
    assert.doesNotMatch(page, /href="\/(v1|metrics)/);
    for (const path of ['responses', 'messages', 'videos', 'images/generations', 'audio/speech']) {
      assert.ok(page.includes(`${options.baseUrl}/v1/${path} \\\n`) || page.includes(`/v1/${path} -o`), path);
    }
    assert.doesNotMatch(page, /\{\{|undefined|<!--/);
    assert.ok(!startPage({ ...options, sandbox: false }).includes('stand-in'));
  });

  test('the start page shows no video where no model makes any', () => {
    const page = startPage({ ...options, examples: { ...options.examples, video: undefined } });
    assert.doesNotMatch(page, /curl [^\n]*\/v1\/videos|client\.videos|A video|\{\{|undefined|<!--/);
    assert.ok(page.includes('curl -N http://127.0.0.1:8080/v1/responses'));
    assert.ok(page.includes('Look inside'));
  });

  test('escapes what it shows', () => {
    const page = startPage({ ...options, baseUrl: `http://x/"><script>'&` });
    assert.equal(page.split('<script').length, startPage(options).split('<script').length);
    assert.ok(page.includes('http://x/&quot;&gt;&lt;script&gt;&#39;&amp;/v1'));
  });

  test('the start page needs nothing from outside, and its policy allows its one style, its one script and the icon', () => {
    const page = startPage(options);
    for (const element of ['style', 'script']) {
      const parts = [...page.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, 'g'))];
      assert.equal(parts.length, 1);
      const hash = createHash('sha256')
        .update(parts[0]?.[1] ?? '')
        .digest('base64');
      assert.ok(startPagePolicy.includes(`; ${element}-src 'sha256-${hash}';`), element);
    }
    assert.ok(startPagePolicy.startsWith("default-src 'none'; "));
    assert.doesNotMatch(startPagePolicy, /unsafe|https?:|\*/);
    assert.equal(page.match(/<script/g)?.length, 1);
    assert.doesNotMatch(page, /<(img|iframe)|\sstyle=|\son\w+=|url\(|@import/);
    assert.deepEqual(page.match(/<link [^>]*>/g), ['<link rel="icon" href="/favicon.ico" type="image/svg+xml">']);
  });

  test('the start page shows every piece of code in a block that the keyboard reaches and that has a name of its own', () => {
    const page = startPage(options);
    const blocks = page.match(/<pre[^>]*>/g) ?? [];
    const names = blocks.map((block) => /^<pre tabindex="0" role="region" aria-label="([^"]+)">$/.exec(block)?.[1]);
    assert.ok(names.length > 8);
    assert.ok(!names.includes(undefined), String(blocks));
    assert.equal(new Set(names).size, names.length);
  });

  test('the start page has the colours, the fonts and the mark of the console', () => {
    const page = startPage(options);
    const { light, dark } = cssVariables(theme as never) as unknown as Record<string, Record<string, string>>;
    const names = ['--sluice-ground', '--sluice-card', '--sluice-line', '--mantine-color-dimmed'];
    const accents = [theme.colors?.sluice?.[7], theme.colors?.sluice?.[3]];
    for (const color of [...names.flatMap((name) => [light?.[name], dark?.[name]]), ...accents]) {
      assert.ok(color !== undefined && page.includes(color), String(color));
    }
    assert.ok(theme.fontFamily !== undefined && page.includes(theme.fontFamily));
    assert.ok(theme.fontFamilyMonospace !== undefined && page.includes(theme.fontFamilyMonospace));
    const mark = readFileSync(new URL('../../console/public/favicon.svg', import.meta.url), 'utf8').trim();
    assert.equal(logo, mark);
    assert.ok(page.includes(mark));
  });

  test('the start page tells neither the version nor a vendor', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    assert.ok(!startPage(options).includes(version));
    assert.doesNotMatch(startPage({ ...options, sandbox: false }), /vendor/i);
  });
});
