import assert from 'node:assert/strict';
import { it } from 'node:test';
import { vendorRows } from '../../shared/catalogue/vendors.ts';
import { createVendors } from '../../workers/vendors/registry.ts';

it('the registry has an adapter for every row of the table, and each offers something', async () => {
  const settings = vendorRows.map(({ name, dialect }) => {
    return [name, { dialect, baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key' }] as const;
  });
  const vendors = createVendors({ vendors: Object.fromEntries(settings) });
  for (const { name } of vendorRows) {
    const vendor = vendors.get(name);
    assert.ok(vendor, name);
    const { close: _, name: __, ...offered } = vendor;
    assert.ok(Object.keys(offered).length > 0, name);
    await vendor.close();
  }
});

it('the registry creates the vendors that have settings, by their names', async () => {
  const settings = { dialect: 'openai', baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key' } as const;
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
