import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeValues } from '../../../workers/vendors/openai/take-values.ts';

const take = (json: string) => takeValues(Buffer.from(json), 'embedding', (value) => value.toString());

test('lists and strings are taken out of JSON by their key, and nothing else is', () => {
  const { found, rest } = take(
    '{"data":[{"embedding":[1,2]},{"embedding": "AAAA"},{"embedding":[]},{"embedding":7}],"of":"[\\"embedding\\":[]]"}',
  );
  assert.deepEqual(found, ['[1,2]', '"AAAA"', '[]']);
  assert.equal(
    rest,
    '{"data":[{"embedding":0},{"embedding":1},{"embedding":2},{"embedding":7}],"of":"[\\"embedding\\":[]]"}',
  );
});

test('lists that are never closed, or hold others of the same key, are left in their place, a million of them as well', () => {
  for (const end of ['', ']'.repeat(1_000_000)]) {
    const json = `${'{"embedding":[1,'.repeat(1_000_000)}1${end}`;
    const { found, rest } = take(json);
    assert.deepEqual(found, end === '' ? [] : ['[1,1]']);
    assert.equal(rest.length, end === '' ? json.length : json.length - '[1,1]'.length + 1);
  }
});
