import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { openApiDocument } from '../../api/reference/document.ts';
import { llmsText } from '../../api/reference/llms-text.ts';
import { referencePage, referencePagePolicy } from '../../api/reference/reference-page.ts';
import { typeText } from '../../api/reference/schema-text.ts';

const models = {
  ...{ chat: 'a-chat-model', completion: 'b', embedding: 'c', image: 'd', transcription: 'e', speech: 'f', video: 'g' },
};
const facts = { baseUrl: 'http://127.0.0.1:8080', models };
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;').replaceAll("'", '&#39;');

describe('the reference page', () => {
  const page = referencePage(facts);
  const document = openApiDocument(facts);

  test('the reference page has every operation with its example, every parameter and every object of the document', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, { summary, 'x-codeSamples': samples = [] }] of Object.entries(item)) {
        const name = `<code>${method.toUpperCase()} ${path}</code> <span>${escaped(summary)}</span>`;
        assert.ok(page.includes(name), name);
        for (const { source } of samples) assert.ok(page.includes(`<code>${escaped(source)}</code></pre>`), source);
      }
    }
    for (const name of Object.keys(document.components.schemas)) {
      assert.ok(page.includes(`<div id="object-${name.toLowerCase()}">`), name);
    }
    for (const part of ['messages[].role', 'bucket_width', '401 <code>invalid_api_key</code>', 'a-chat-model']) {
      assert.ok(page.includes(part), part);
    }
    assert.doesNotMatch(page, /\{\{|\[object Object\]|>undefined</);
    assert.ok(page.length < 600_000, `${page.length} characters`);
  });

  test('leads nowhere that is not there', () => {
    const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    assert.deepEqual([...new Set(ids)], ids);
    for (const [, target = ''] of page.matchAll(/href="#([^"]*)"/g)) assert.ok(ids.includes(target), target);
  });

  test('escapes what it shows', () => {
    const hostile = { baseUrl: `http://x/"><script>'&`, models: { ...models, chat: `'</code><script>{{errors}}` } };
    const shown = referencePage(hostile);
    assert.ok(!shown.includes('<script'));
    assert.ok(shown.includes('&lt;/code&gt;&lt;script&gt;{{errors}}'));
  });

  test('the reference page needs nothing from outside, and its policy allows its one style and nothing else', () => {
    const styles = [...page.matchAll(/<style>([\s\S]*?)<\/style>/g)];
    assert.equal(styles.length, 1);
    const hash = createHash('sha256')
      .update(styles[0]?.[1] ?? '')
      .digest('base64');
    assert.ok(referencePagePolicy.startsWith(`default-src 'none'; style-src 'sha256-${hash}';`));
    assert.doesNotMatch(page, /<(script|link|img|iframe)|\sstyle=|\son\w+=|url\(|@import/);
  });

  test('the reference page tells types in a few words', () => {
    const text = { type: 'string', minLength: 1, maxLength: 9 };
    assert.equal(typeText({ anyOf: [text, { type: 'null' }] }), 'string, 1 to 9 characters or null');
    assert.equal(typeText({ type: 'array', items: { enum: ['a', 'b'] } }), 'list of "a" or "b"');
    assert.equal(typeText({ type: 'integer', minimum: 0, default: 5 }), 'integer, 0 or more, default 5');
    const message = { type: 'object', properties: { role: { const: 'user' }, content: {} } };
    assert.equal(typeText({ oneOf: [message, {}] }), 'object (role "user") or any');
  });
});

describe('llms.txt', () => {
  test('llms.txt says what the gateway is, where it is, and what it offers', () => {
    const text = llmsText(facts);
    for (const part of [
      '# Sluice\n',
      `${facts.baseUrl}/v1\n`,
      '/v1/models',
      `(${facts.baseUrl}/docs)`,
      'a-chat-model',
    ]) {
      assert.ok(text.includes(part), part);
    }
    for (const part of ['- POST /v1/chat/completions: ', '- GET /v1/jobs/{id}: ', '/openapi.json)']) {
      assert.ok(text.includes(part), part);
    }
    assert.ok(text.length < 10_000);
    assert.doesNotMatch(text, /undefined|\/admin|\/console\/api/);
  });
});
