import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folders = ['api', 'workers', 'shared', 'launcher', 'sandbox', 'catalogue', 'console/src', 'docs'];
const sources = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(ts|tsx|lua)$/.test(path))
    .map((path) => join(folder, path)),
);
const notWords = readFileSync(join(root, 'docs/glossary.md'), 'utf8').split('## Words that are not used')[1] as string;

/** A forbidden word of the glossary: `most…` is the beginning of a name in which another word follows. */
interface NotWord {
  readonly text: string;
  readonly pattern: RegExp;
  /** Stands in comments and messages, too: it is no single word. */
  readonly isPhrase: boolean;
}

const words: NotWord[] = notWords
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .flatMap((line) => (line.split('|')[1] as string).match(/[^`,\s][^`,]*(?=`)/g) ?? [])
  .map((text) => {
    const isPhrase = text.includes(' ');
    const [stem, isStem] = text.endsWith('…') ? [text.slice(0, -1), true] : [text, false];
    return { text, isPhrase, pattern: new RegExp(`(?<![\\w$])${stem}${isStem ? '(?=[A-Z])' : '(?![\\w$])'}`) };
  });

/** A key of the operator's file keeps its name for as long as there are such files. */
const publicName = /(?<![\w$])longestRetryAfterSeconds(?![\w$])/g;

/** Code without its comments and texts, line by line: names alone. */
function namesOf(path: string, text: string): string {
  const blank = (found: string): string => found.replace(/[^\n]/g, ' ');
  const bare = path.endsWith('.lua')
    ? text.replace(/--[^\n]*/g, blank)
    : text.replace(/\/\*[\s\S]*?\*\//g, blank).replace(/(?<![:'"`\\])\/\/[^\n]*/g, blank);
  return bare.replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, blank);
}

function found(path: string, text: string): string[] {
  const names = namesOf(path, text).replace(publicName, '').split('\n');
  return text
    .split('\n')
    .flatMap((line, index) =>
      words
        .filter(({ pattern, isPhrase }) => pattern.test(isPhrase ? line : (names[index] as string)))
        .map((word) => `${path}:${index + 1}: ${word.text}`),
    );
}

describe('docs/glossary.md', () => {
  it("the glossary's forbidden words are found in names, and its phrases in comments and texts", () => {
    assert.ok(words.length > 15, `${words.length} words`);
    for (const line of [
      'const mostBytes = 1;',
      'class Crowd {',
      'prepareChat(body)',
      '// It is given back.',
      "'given back'",
    ]) {
      assert.notDeepEqual(found('a.ts', line), [], line);
    }
    for (const line of ['almost, most of all', '// A Crowd.', "const a = 'Taken';", 'maxBytes', 'db.prepare(sql)']) {
      assert.deepEqual(found('a.ts', line), [], line);
    }
    assert.deepEqual(found('a.lua', '-- perform\nlocal performChat = 1'), ['a.lua:2: perform…']);
  });

  it('every source follows the glossary', () => {
    const kept = sources.flatMap((path) => found(path, readFileSync(join(root, path), 'utf8')));
    assert.deepEqual(kept, []);
  });
});
