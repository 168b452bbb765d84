import assert from 'node:assert/strict';
import { it } from 'node:test';
import { modelList } from '../../../../api/management/console/models.ts';
import type { Services } from '../../../../api/services.ts';
import type { Context } from '../../../../api/state.ts';
import { createCatalogue } from '../../../../shared/catalogue/catalogue.ts';
import type { Model } from '../../../../shared/catalogue/models.ts';
import { vendorsOn } from '../../../support/vendor-settings.ts';

const common = { created: 1, ownedBy: 'maker', capability: 'chat' } as const;
const models: readonly Model[] = [
  { ...common, id: 'off', routes: [{ vendor: 'groq', model: 'off' }] },
  {
    ...{ ...common, id: 'on', routes: [{ vendor: 'openai', model: 'on' }] },
    ...{
      contextWindow: 1000,
      maxOutputTokens: 100,
      input: ['text'],
      output: ['text'],
      reasoning: true,
      deprecatedAt: 5,
    },
    prices: {
      ...{
        input: 2_500_000,
        cachedInput: 1_250_000,
        output: 10_000_000,
        image: 40_000_000,
        imageKinds: { hd: 80_000_000 },
      },
      request: { low: 5_000_000, medium: 8_000_000, high: 12_000_000 },
      above: [{ tokens: 200, input: 5_000_000 }],
      tiers: { flex: 0.5, priority: { input: 5_000_000, cachedInput: 2_500_000, output: 20_000_000 } },
    },
  },
];

it("the console's model list has every model with its prices in dollars, the available models first", async () => {
  const catalogue = createCatalogue({ vendors: vendorsOn('openai'), models });
  const ctx = { state: {}, query: {} } as Context;
  await modelList({ catalogue } as Services)(ctx as never, async () => undefined);
  const [usable, other] = (ctx.body as { data: Record<string, unknown>[] }).data;
  const none = {
    ...{ cache_write: null, image_output: null, audio_input: null, image_input: null, second: null, character: null },
    request: { low: 0.005, medium: 0.008, high: 0.012 },
  };
  assert.deepEqual(usable, {
    ...{ id: 'on', owned_by: 'maker', capability: 'chat', vendors: ['openai'], available: true, context_window: 1000 },
    ...{ max_output_tokens: 100, input: ['text'], output: ['text'], reasoning: true, deprecated_at: 5000 },
    ...{ paths: ['/v1/chat/completions', '/v1/responses', '/v1/messages'], timestamps: null },
    prices: {
      ...{ ...none, input: 2.5, cached_input: 1.25, output: 10, image: 0.04, image_kinds: { hd: 0.08 } },
      above: [{ tokens: 200, input: 5, cached_input: null, cache_write: null, output: null }],
      tiers: {
        flex: {
          ...{ input: 1.25, cached_input: 0.625, output: 5, image: 0.02, image_kinds: { hd: 0.04 } },
          request: { low: 0.0025, medium: 0.004, high: 0.006 },
          above: [{ tokens: 200, input: 2.5, cached_input: null, cache_write: null, output: null }],
        },
        priority: {
          ...{ input: 5, cached_input: 2.5, output: 20, image: 0.04, image_kinds: { hd: 0.08 }, request: none.request },
          above: [{ tokens: 200, input: 5, cached_input: 5, cache_write: 5, output: 20 }],
        },
      },
    },
  });
  assert.deepEqual(
    [other?.id, other?.available, other?.vendors, other?.prices, other?.context_window, other?.deprecated_at],
    ['off', false, ['groq'], null, null, null],
  );
});
