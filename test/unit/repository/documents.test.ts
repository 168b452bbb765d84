import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Every page of the project's own: at the root, and in docs and test. */
const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...pagesIn('docs'),
  'test/README.md',
  'test/bench/README.md',
];

function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join(folder, path));
}

/** A page without its examples, whose brackets are not links. */
function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8').replace(/^```[\s\S]*?^```$/gm, '');
}

function linksOf(page: string): string[] {
  const targets = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string);
  return targets.filter((target) => !/^https?:/.test(target));
}

/** The anchors of a page, as GitHub makes them of its headings. */
function anchorsOf(page: string): string[] {
  return [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    (heading as string)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** The page that a link leads to, from the project's root; the page itself where the link is an anchor alone. */
function targetOf(page: string, link: string): string {
  const [path = ''] = link.split('#');
  return path === '' ? page : relative(root, join(root, dirname(page), path));
}

describe('the documentation', () => {
  test('README.md has at most 8 KB', () => {
    const { size } = statSync(join(root, 'README.md'));
    assert.ok(size <= 8192, `${size} bytes`);
  });

  test('the documentation has no dead links', () => {
    const dead = pages.flatMap((page) =>
      linksOf(page)
        .filter((link) => {
          const target = targetOf(page, link);
          const [, anchor] = link.split('#');
          if (!existsSync(join(root, target))) return true;
          return anchor !== undefined && !anchorsOf(target).includes(anchor);
        })
        .map((link) => `${page}: ${link}`),
    );
    assert.deepEqual(dead, []);
  });

  test('the documentation has no page that its indexes do not list', () => {
    const indexes = ['docs/README.md', 'docs/decisions/README.md'];
    const listed = new Set([
      ...indexes,
      ...indexes.flatMap((page) => linksOf(page).map((link) => targetOf(page, link))),
    ]);
    assert.deepEqual(
      pagesIn('docs').filter((page) => !listed.has(page)),
      [],
    );
  });

  test('every decision states its status and date', () => {
    for (const page of pagesIn('docs/decisions').filter((path) => !path.endsWith('README.md'))) {
      assert.match(textOf(page), /^# .+\n\nStatus: (accepted|superseded by \[.+\]\(.+\)), \d{4}-\d\d-\d\d\.\n/, page);
    }
  });

  test('docs/operations.md sizes by the figures of the newest benchmark results', () => {
    const results = readFileSync(join(root, 'test/bench/RESULTS.md'), 'utf8');
    const sizing = readFileSync(join(root, 'docs/operations.md'), 'utf8').replaceAll(/\s+/g, ' ');
    const caseOf = (heading: string): string => results.split(`\n## ${heading}`)[1]?.split('\n## ')[0] ?? '';
    const shares = (heading: string): string[] => {
      const [, ...figures] = /^\| sluice .*api ([\d.]+), worker ([\d.]+), redis ([\d.]+)/m.exec(caseOf(heading)) ?? [];
      return figures.map((figure) => Number(figure).toFixed(0));
    };
    const [api, worker, redis] = shares('Held JSON, 64 connections');
    const [apiToken, workerToken, redisToken] = shares('500 open streams');
    const perStream = (process: string): string => {
      const row = new RegExp(`^\\| sluice +\\| +${process} .*`, 'm').exec(caseOf('5,000 open slow streams'));
      return Number(row?.[0].split('|').at(-3)).toFixed(0);
    };
    for (const figures of [
      `${api} µs of an api's CPU, ${worker} µs of a worker's and ${redis} µs of Redis's`,
      `a streamed token ${apiToken}, ${workerToken} and ${redisToken} µs`,
      `requests a second × ${redis} µs and tokens a second × ${redisToken} µs`,
      `${perStream('api')} KB of memory for each open stream; beyond`,
      `${perStream('worker')} KB for each open stream; one process`,
      `${perStream('redis')} KB for each open stream. Memory`,
    ]) {
      assert.ok(sizing.includes(figures), figures);
    }
  });

  test('the documentation names no source file that does not exist', () => {
    const named = pages
      .filter((page) => page.startsWith('docs/') && !page.startsWith('docs/decisions/'))
      .flatMap((page) =>
        [
          ...textOf(page).matchAll(
            /`((?:api|workers|shared|sandbox|launcher|console|catalogue|deploy|test)\/[\w./-]*)`/g,
          ),
        ].map(([, path]) => [page, path as string] as const),
      );
    assert.ok(named.length > 20);
    const missing = named.filter(([, path]) => !existsSync(join(root, path)));
    assert.deepEqual(missing, []);
  });
});
