import assert from 'node:assert/strict';
import { it } from 'node:test';
import { vendorRows } from '../../../shared/vendors/vendors.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { rowAnswer } from '../contracts/row-vendor.ts';

/** The fields by which a vendor gets a limit of 64 tokens, by the caller's name of it. */
async function sentLimits(name: string): Promise<Record<string, unknown>> {
  const row = vendorRows.find((each) => each.name === name);
  assert.ok(row);
  const server = await startFixtureVendor();
  const vendor = createVendor(name, vendorSettings(name, server.baseUrl, 'sk-test'), 'sk-test');
  const sent: Record<string, unknown> = {};
  try {
    for (const field of ['max_tokens', 'max_completion_tokens']) {
      server.answer(rowAnswer(row, { role: 'assistant', content: 'Hello.' }));
      const request = JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], [field]: 64 });
      await vendor.chat?.(callOf({ model: 'm', stream: false, request }), collect());
      const { messages: _, model: _model, ...limits } = JSON.parse(server.requests.at(-1)?.body ?? '');
      sent[field] = limits;
    }
  } finally {
    await vendor.close();
    await server.close();
  }
  return sent;
}

for (const name of ['deepseek', 'siliconflow', 'nvidia']) {
  it(`${name}, whose reference lists max_tokens alone, gets a limit under that name, whichever the caller has`, async () => {
    const limits = { max_tokens: 64 };
    assert.deepEqual(await sentLimits(name), { max_tokens: limits, max_completion_tokens: limits });
  });
}

it('dashscope gets a limit under the name that the caller has: there only the newer one limits the reasoning, too', async () => {
  assert.deepEqual(await sentLimits('dashscope'), {
    max_tokens: { max_tokens: 64 },
    max_completion_tokens: { max_completion_tokens: 64 },
  });
});
