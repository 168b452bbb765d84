import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { droppingRefused } from '../../../workers/execute/dropping-refused.ts';
import { executeChat } from '../../../workers/execute/execute.ts';
import { createVendor } from '../../../workers/vendors/registry.ts';
import type { Vendor } from '../../../workers/vendors/vendor.ts';
import { madeUpModel } from '../../support/routed-model.ts';
import { vendorSettings } from '../../support/vendor-settings.ts';
import { callOf, collect, type FixtureVendor, sendJson, startFixtureVendor } from '../contracts/fixture-vendor.ts';
import { completion } from '../recorded/recorded-openai.ts';

const row = madeUpModel({ id: 'm', capability: 'chat' }, 'groq');
const messages = [{ role: 'user', content: 'Hello' }];

/** Jobs of every endpoint that make chats, with something that Groq refuses. */
const jobs: readonly (readonly [endpoint: string, request: object])[] = [
  ['chat', { messages, n: 2, temperature: 0.5 }],
  ['completions', { prompt: 'Hello', n: 2, temperature: 0.5 }],
  ['messages', { messages, logit_bias: { 1: 2 }, temperature: 0.5 }],
  [
    'responses',
    {
      input: [{ type: 'message', role: 'user', content: 'Hello' }],
      include: ['message.output_text.logprobs'],
      temperature: 0.5,
    },
  ],
];

describe('chats with fields that their vendor rejects', () => {
  let server: FixtureVendor;
  let vendor: Vendor;
  before(async () => {
    server = await startFixtureVendor();
    server.answer((response) => sendJson(response, 200, JSON.stringify(completion)));
    vendor = createVendor('groq', vendorSettings('groq', server.baseUrl), 'a-key');
  });
  after(async () => {
    await vendor.close();
    await server.close();
  });

  for (const [endpoint, request] of jobs) {
    const execute = (dropsUnsupported: boolean) => {
      const call = callOf({ stream: false, request: JSON.stringify(request) });
      return executeChat({ vendor, row, endpoint, keep: false, dropsUnsupported, call, sink: collect() });
    };

    it(`${endpoint}: a chat is sent without rejected fields when the caller's key allows dropping them`, async () => {
      await execute(true);
      const sent = JSON.parse(server.requests.at(-1)?.body ?? '') as Record<string, unknown>;
      for (const field of ['n', 'logit_bias', 'logprobs']) assert.equal(field in sent, false, field);
      assert.equal(sent.temperature, 0.5);
      assert.ok(Array.isArray(sent.messages));
    });

    it(`${endpoint}: a chat with rejected fields never reaches the vendor by default`, async () => {
      const asked = server.requests.length;
      await assert.rejects(execute(false), { name: 'ApiError', status: 400 });
      assert.equal(server.requests.length, asked);
    });
  }

  it('a dropped service tier is not charged: a vendor that names none has used its standard one', async () => {
    const { vendorRow, route } = row;
    const fields = { ...vendorRow.chat?.fields, service_tier: 'rejected' as const };
    const withoutTier = { ...vendorRow, chat: { ...vendorRow.chat, fields } };
    const dropping = droppingRefused(vendor, { vendorRow: withoutTier, route });
    const request = JSON.stringify({ messages, service_tier: 'priority' });
    for (const [said, tier] of [
      [undefined, 'default'],
      ['flex', 'flex'],
    ]) {
      server.answer((response) => sendJson(response, 200, JSON.stringify({ ...completion, service_tier: said })));
      const answer = await dropping.chat?.(callOf({ stream: false, request }), collect());
      assert.equal(answer?.tier, tier);
      assert.equal('service_tier' in JSON.parse(server.requests.at(-1)?.body ?? ''), false);
    }
  });
});
