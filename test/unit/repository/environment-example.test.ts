import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { environmentExample } from '../../../docs/environment-example.ts';
import { settingNames } from '../../../shared/config/config.ts';

test('.env.example is what `npm run documents` makes, and has every setting once', () => {
  const text = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8');
  assert.equal(text, environmentExample());
  const names = [...text.matchAll(/^# ([A-Z][A-Z0-9_]+)=$/gm)].map(([, name]) => name as string);
  assert.deepEqual(names, [...new Set(names)]);
  // An address is only listed for those vendors that are turned on by it.
  const wanted = settingNames.filter((name) => !/_(API_KEY|BASE_URL)$/.test(name));
  assert.deepEqual(
    wanted.filter((name) => !names.includes(name)),
    [],
  );
});
