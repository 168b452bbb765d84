import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { generatedDocuments } from '../../../docs/generated-documents.ts';
import { settingNames } from '../../../shared/config/config.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

for (const { path, text } of generatedDocuments) {
  test(`${path} equals the output of npm run documents`, () => assert.equal(read(path), text()));
}

test('.env.example has every setting once', () => {
  const names = [...read('.env.example').matchAll(/^# ([A-Z][A-Z0-9_]+)=$/gm)].map(([, name]) => name as string);
  assert.deepEqual(names, [...new Set(names)]);
  // An address is only listed for those vendors that are turned on by it.
  const wanted = settingNames.filter((name) => !/_(API_KEY|BASE_URL)$/.test(name));
  assert.deepEqual(
    wanted.filter((name) => !names.includes(name)),
    [],
  );
});
