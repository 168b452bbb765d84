import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createVendors } from '../../workers/vendors/registry.ts';

it('the registry creates the vendors that have settings, by their names', async () => {
  const settings = { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key' };
  assert.equal(createVendors({ vendors: {} }).size, 0);
  const vendors = createVendors({ vendors: { openai: settings, sandbox: settings } });
  assert.deepEqual(
    [...vendors].map(([name, vendor]) => [name, vendor.name]),
    [
      ['openai', 'openai'],
      ['sandbox', 'sandbox'],
    ],
  );
  for (const vendor of vendors.values()) await vendor.close();
});
