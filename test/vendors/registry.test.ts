import assert from 'node:assert/strict';
import { it } from 'node:test';
import { vendorRows } from '../../shared/vendors/vendors.ts';
import { createVendor } from '../../workers/vendors/registry.ts';
import { vendorSettings } from '../support/vendor-settings.ts';
import { callOf, collect, sendJson, startFixtureVendor } from './contracts/fixture-vendor.ts';
import { completion } from './recorded/recorded-openai.ts';

it('the registry has an adapter for every vendor row, with its name and at least one method', async () => {
  for (const { name } of vendorRows) {
    // Some take a pair for a key.
    const vendor = createVendor(name, vendorSettings(name), 'an-access-key:a-secret-key');
    const { close: _, ...offered } = vendor;
    assert.equal(offered.name, name);
    assert.ok(Object.keys(offered).length > 1, name);
    await vendor.close();
  }
});

it('the registry gives a vendor of another name the wire of its row, its base URL and the key', async () => {
  const server = await startFixtureVendor();
  server.answer((response) => sendJson(response, 200, JSON.stringify({ ...completion, model: 'm' })));
  const vendor = createVendor('groq-eu', vendorSettings('groq', server.baseUrl), 'the-second-key');
  try {
    assert.equal(vendor.name, 'groq-eu');
    // What Groq's row says of a field holds for it, too.
    await vendor.chat?.(
      callOf({ stream: false, request: '{"messages":[{"role":"user","content":"Hi"}],"store":true}' }),
      collect(),
    );
    const [request] = server.requests;
    assert.equal(request?.headers.authorization, 'Bearer the-second-key');
    assert.equal('store' in JSON.parse(request?.body ?? ''), false);
  } finally {
    await vendor.close();
    await server.close();
  }
});
