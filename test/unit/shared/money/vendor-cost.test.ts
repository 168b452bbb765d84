import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readVendorCost } from '../../../../shared/money/vendor-cost.ts';

describe('readVendorCost', () => {
  const stated: readonly (readonly [vendor: string, usage: Record<string, unknown>, nanos: number | undefined])[] = [
    ['Perplexity', { cost: { request_cost: 0.005, total_cost: 0.00507 } }, 5_070_000],
    ['OpenRouter', { cost: 0.00000537, cost_details: { upstream_inference_cost: 0.1 } }, 5370],
    ['xAI', { cost_in_usd_ticks: 37_756_000 }, 3_775_600],
    ['a vendor that charges parts of a nano-dollar', { cost: 1e-10 }, 0],
    ['a vendor that charges nothing', { cost: 0 }, 0],
    ['a vendor at the upper bound', { cost: 9_007_199 }, 9_007_199_000_000_000],
    ['a vendor that states no cost', { prompt_tokens: 5 }, undefined],
    ['a vendor that states only a breakdown', { cost: { request_cost: 0.005 } }, undefined],
  ];
  for (const [vendor, usage, nanos] of stated) {
    test(`readVendorCost reads the cost of ${vendor} in nano-dollars`, () =>
      assert.equal(readVendorCost(usage), nanos));
  }

  test('readVendorCost ignores a cost that cannot be true', () => {
    const lies = [-1, -0.1, 1e10, 1e308, Number.POSITIVE_INFINITY, Number.NaN, '5', null, true, [], {}, undefined];
    for (const cost of lies) {
      for (const usage of [{ cost }, { cost: { total_cost: cost } }]) {
        assert.equal(readVendorCost(usage), undefined, JSON.stringify(usage));
      }
    }
    assert.equal(readVendorCost({ cost_in_usd_ticks: -10 }), undefined);
    assert.equal(readVendorCost({ cost_in_usd_ticks: 1e18 }), undefined);
  });

  test('readVendorCost returns undefined or an amount that the ledger can hold, whatever a vendor reports', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('cost', 'cost_in_usd_ticks'), fc.anything()), (usage) => {
        const cost = readVendorCost(usage);
        assert.ok(cost === undefined || (Number.isSafeInteger(cost) && cost >= 0), String(cost));
      }),
    );
  });
});
