import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitsStrictMode } from '../../../../workers/execute/strict-schema.ts';

test('a schema of very many properties fits strict mode if all of them are required, in any order', () => {
  const names = Array.from({ length: 100_000 }, (_, at) => `property_${at}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const schema = { type: 'object', properties, additionalProperties: false };
  assert.equal(fitsStrictMode({ ...schema, required: names.toReversed() }), true);
  assert.equal(fitsStrictMode({ ...schema, required: names.slice(1) }), false);
  assert.equal(fitsStrictMode(schema), false);
});
