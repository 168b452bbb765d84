import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { startPage, startPagePolicy } from '../../api/start-page.ts';

const options = {
  baseUrl: 'http://127.0.0.1:8080',
  examples: { chat: 'sandbox-chat', image: 'sandbox-image', speech: 'sandbox-speech', video: 'sandbox-video' },
  sandbox: true,
};

describe('the start page', () => {
  test('says how to call what runs', () => {
    const page = startPage(options);
    for (const part of ['http://127.0.0.1:8080/v1', 'stand-in']) {
      assert.ok(page.includes(part), part);
    }
    for (const model of Object.values(options.examples)) assert.ok(page.includes(`"model":"${model}"`), model);
    for (const path of ['/v1/models', '/healthz', '/readyz', '/metrics'])
      assert.ok(page.includes(`href="${path}"`), path);
    for (const path of ['responses', 'messages', 'videos', 'images/generations', 'audio/speech']) {
      assert.ok(page.includes(`${options.baseUrl}/v1/${path} \\\n`) || page.includes(`/v1/${path} -o`), path);
    }
    assert.doesNotMatch(page, /\{\{|undefined|<!--/);
    assert.ok(!startPage({ ...options, sandbox: false }).includes('stand-in'));
  });

  test('shows no video where no model makes any', () => {
    const page = startPage({ ...options, examples: { ...options.examples, video: undefined } });
    assert.doesNotMatch(page, /curl [^\n]*\/v1\/videos|client\.videos|A video|\{\{|undefined|<!--/);
    assert.ok(page.includes('curl -N http://127.0.0.1:8080/v1/responses'));
    assert.ok(page.includes('Look inside'));
  });

  test('escapes what it shows', () => {
    const page = startPage({ ...options, baseUrl: `http://x/"><script>'&` });
    assert.ok(!page.includes('<script'));
    assert.ok(page.includes('http://x/&quot;&gt;&lt;script&gt;&#39;&amp;/v1'));
  });

  test('needs nothing from outside, and its policy allows its one style and nothing else', () => {
    const page = startPage(options);
    const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)];
    assert.equal(styles.length, 1);
    const hash = createHash('sha256')
      .update(styles[0]?.[1] ?? '')
      .digest('base64');
    assert.ok(startPagePolicy.includes(`default-src 'none'; style-src 'sha256-${hash}'`));
    assert.doesNotMatch(page, /<(script|link|img|iframe)|\sstyle=|\son\w+=|url\(|@import/);
  });
});
