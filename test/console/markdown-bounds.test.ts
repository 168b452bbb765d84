import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import Markdown from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { isBoundedMarkdown } from '../../console/src/pages/playground/chat/markdown-bounds.ts';

const usual = `# A heading

Some *text* with [a link](https://example.com), ~~struck~~, and a list:

- one
  - two
    1. three

> A quote.

| a | b |
|---|---|
| 1 | 2 |

\`\`\`ts
const x = 1;
\`\`\`
`;

/** Texts that cost a parser much more than their length, or become many more elements than they have characters. */
const hostile: Readonly<Record<string, string>> = {
  'quotes in quotes': '>'.repeat(10_000),
  'quotes in lists': '- > '.repeat(2000),
  'marks of what is struck out': '~a~~b'.repeat(4000),
  'openings of links': '[a](<b'.repeat(3000),
  'openings of pictures': '!['.repeat(8000),
  'notes that name each other': Array.from({ length: 1500 }, (_, index) => `[^${index}]: a[^${index}]`).join('\n\n'),
  'a table of 300 columns whose rows are empty': `|${'a|'.repeat(300)}\n|${'-|'.repeat(300)}\n${'|\n'.repeat(4000)}`,
  'a table of ten thousand columns': `${'|a'.repeat(5000)}\n${'|-'.repeat(5000)}`,
  'underlined lines': 'a\n='.repeat(6000),
  'a book': 'word '.repeat(100_000),
};

test('an answer of a usual kind is shown as Markdown, also while it grows', () => {
  for (const isGrowing of [true, false]) {
    assert.ok(isBoundedMarkdown(usual, isGrowing));
    assert.ok(isBoundedMarkdown(usual.repeat(40), isGrowing));
  }
});

for (const [name, text] of Object.entries(hostile)) {
  test(`an answer that would stop the page is shown as it is written: ${name}`, () => {
    assert.equal(isBoundedMarkdown(text, false), false);
  });
}

test('the part of a hostile answer that is short enough becomes few elements', () => {
  for (const [name, text] of Object.entries(hostile)) {
    let length = text.length;
    while (!isBoundedMarkdown(text.slice(0, length), false)) length = Math.floor(length * 0.8);
    assert.ok(length > 0, name);
    const html = renderToStaticMarkup(createElement(Markdown, { remarkPlugins: [remarkGfm] }, text.slice(0, length)));
    assert.ok(html.split('<').length < 20_000, `${name}: ${html.split('<').length} tags of ${length} characters`);
  }
});
