import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitedModel } from '../../../../api/admission/limited-model.ts';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../../shared/catalogue/model.ts';
import { vendorRows } from '../../../../shared/vendors/vendors.ts';

const row = (id: string, more: Partial<Model> = {}): Model => ({
  ...{ id, created: 0, ownedBy: 'openai', capability: 'chat', routes: [{ vendor: 'openai', model: `${id}-1` }] },
  ...more,
});
const openai = vendorRows.find(({ name }) => name === 'openai');
assert.ok(openai);
const small = row('small');
const catalogue = createCatalogue({
  vendors: { openai: { row: openai, isOpen: true } },
  models: [small, { ...small, id: 'fast', aliasOf: 'small' }, row('large'), { ...row('big'), aliasOf: 'hidden' }],
});

const limitOf = (model: string, ...names: string[]): string | undefined => {
  const modelLimits = Object.fromEntries(names.map((name) => [name, { rpm: 1 }]));
  return limitedModel(catalogue, { model, capability: 'chat' }, modelLimits);
};

test('the limit of a model counts requests for it by its id, an alias and vendor/model', () => {
  for (const name of ['small', 'fast', 'openai/small-1']) assert.equal(limitOf(name, 'small'), 'small', name);
  assert.equal(limitOf('big', 'hidden'), 'hidden');
});

test('the limit of an alias, or of vendor/model, counts requests for its model by every name', () => {
  assert.equal(limitOf('small', 'fast'), 'fast');
  assert.equal(limitOf('openai/small-1', 'fast'), 'fast');
  assert.equal(limitOf('small', 'openai/small-1'), 'openai/small-1');
  assert.equal(limitOf('openai/other', 'openai/other'), 'openai/other');
});

test('a limit for the very name comes before one for another name of the model', () => {
  assert.equal(limitOf('fast', 'small', 'fast'), 'fast');
  assert.equal(limitOf('openai/small-1', 'small', 'openai/small-1'), 'openai/small-1');
});

test('the limit of a model counts no requests for others', () => {
  for (const name of ['large', 'openai/large-1', 'openai/other', 'unknown', 'constructor']) {
    assert.equal(limitOf(name, 'small', 'fast'), undefined, name);
  }
});
