import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { costOf, type Prices, tokenPrices } from '../../../../shared/money/cost.ts';
import {
  isStandardTier,
  pricesAt,
  recordedTier,
  tierName,
  tiersToCharge,
} from '../../../../shared/money/service-tier.ts';

const priced: Prices = {
  ...{ input: 1000, cachedInput: 100, cacheWrite: 1250, output: 4000, audioInput: 8000, imageOutput: 9000 },
  above: [{ tokens: 200, input: 2000, output: 6000 }],
  request: { low: 10, medium: 20, high: 30 },
  tiers: { flex: 0.5, priority: { input: 1750, output: 7000 }, ultrafast: 6 },
};
const usage = { prompt_tokens: 100, completion_tokens: 10 };

describe('prices at service tiers', () => {
  it('a tier that is a number multiplies every price, and no length of requests', () => {
    assert.deepEqual(pricesAt(priced, 'flex'), {
      ...{ input: 500, cachedInput: 50, cacheWrite: 625, output: 2000, audioInput: 4000, imageOutput: 4500 },
      above: [{ tokens: 200, input: 1000, output: 3000 }],
      request: { low: 5, medium: 10, high: 15 },
    });
    const odd = { input: 7, image: 3, imageKinds: { hd: 5 }, second: 1, character: 1, tiers: { priority: 1.75 } };
    const rounded = { input: 13, image: 6, imageKinds: { hd: 9 }, second: 2, character: 2 };
    assert.deepEqual(pricesAt(odd, 'priority'), rounded, 'rounded up');
    assert.equal(pricesAt({ input: 70_000, tiers: { x: 100 } }, 'x')?.input, 7_000_000, 'no error of a float');
  });

  it('what a list of prices leaves out is never cheaper than the model or than the tier itself', () => {
    assert.deepEqual(pricesAt(priced, 'priority'), {
      ...{ input: 1750, cachedInput: 1750, cacheWrite: 1750, output: 7000, audioInput: 8000, imageOutput: 9000 },
      above: [{ tokens: 200, input: 2000, output: 7000, cachedInput: 2000, cacheWrite: 2000 }],
      request: { low: 10, medium: 20, high: 30 },
    });
    const short = { input: 5, output: 6, tiers: { priority: { output: 9, cachedInput: 1 } } };
    assert.deepEqual(pricesAt(short, 'priority'), { input: 5, output: 9, cachedInput: 1 });
    const imageOnly = { image: 5, tiers: { priority: { above: [{ tokens: 9, input: 7 }] } } };
    assert.deepEqual(pricesAt(imageOnly, 'priority'), { image: 5, above: [{ tokens: 9, input: 7 }] });
  });

  it('a tier without prices has none, whatever its name', () => {
    for (const tier of ['scale', 'constructor', '__proto__', 'toString', '']) {
      assert.equal(pricesAt(priced, tier), undefined, tier);
      assert.equal(pricesAt({ input: 1 }, tier), undefined, tier);
    }
    assert.equal(pricesAt(undefined, 'flex'), undefined);
    assert.equal(pricesAt(priced, 'flex'), pricesAt(priced, 'flex'), 'it is made once');
  });

  it('a name of a tier is short, and fast is priority', () => {
    assert.deepEqual(['flex', 'fast', 'on_demand'].map(tierName), ['flex', 'priority', 'on_demand']);
    const others = [undefined, null, 1, {}, [], '', 'a b', 'x'.repeat(33), 'flex\n', '"'];
    assert.deepEqual(others.map(tierName), Array(others.length).fill(undefined));
    assert.deepEqual(['default', 'standard', 'on_demand', null, undefined].map(isStandardTier), Array(5).fill(true));
    assert.deepEqual(['auto', 'flex', 1].map(isStandardTier), [false, false, false]);
    assert.deepEqual(
      [{ service_tier: 'flex' }, { service_tier: 7 }, {}, null, 'text', { service_tier: 'x'.repeat(99) }].map(
        recordedTier,
      ),
      ['flex', null, null, null, null, null],
    );
  });
});

describe('the service tier that an answer is charged by', () => {
  const auto = 'priority';
  const tiers = (asked: string | undefined, said: string | undefined, isInterrupted = false) =>
    tiersToCharge(priced, { asked, said: [said], auto, isInterrupted }).map(({ tier }) => tier ?? 'standard');

  it('it is the one that the vendor says it has used', () => {
    for (const asked of [undefined, 'auto', 'flex', 'priority', 'scale']) {
      assert.deepEqual(tiers(asked, 'flex'), ['flex']);
      assert.deepEqual(tiers(asked, 'priority'), ['priority']);
      assert.deepEqual(tiers(asked, 'default'), ['standard']);
      assert.deepEqual(tiers(asked, 'on_demand'), ['standard']);
    }
  });

  it('it is the standard or the requested one if the vendor says nothing, or names a tier without a price', () => {
    for (const said of [undefined, 'scale', 'gold', 'auto', 'constructor']) {
      assert.deepEqual(tiers(undefined, said), ['standard']);
      assert.deepEqual(tiers('priority', said), ['standard', 'priority']);
      assert.deepEqual(tiers('flex', said), ['standard', 'flex']);
      assert.deepEqual(tiers('auto', said), ['standard', 'priority']);
      assert.deepEqual(tiers('scale', said), ['standard']);
    }
    assert.deepEqual(
      tiersToCharge({ input: 1 }, { asked: 'priority', said: ['priority'], auto }).map(({ tier }) => tier),
      [undefined],
    );
    assert.deepEqual(tiersToCharge(undefined, { asked: undefined, said: [undefined], auto }), [
      { tier: undefined, prices: undefined },
    ]);
  });

  it('it is the dearest of those that several calls of the vendor have used', () => {
    const several = (asked: string | undefined, ...said: (string | undefined)[]) =>
      tiersToCharge(priced, { asked, said, auto }).map(({ tier }) => tier ?? 'standard');
    assert.deepEqual(several('flex', 'flex', 'default'), ['flex', 'standard']);
    assert.deepEqual(several(undefined, 'priority', 'flex'), ['priority', 'flex']);
    assert.deepEqual(several('flex', 'priority', undefined), ['priority', 'standard', 'flex']);
    assert.deepEqual([several('flex'), several(undefined)], [['standard', 'flex'], ['standard']]);
  });

  it('an interrupted answer may cost what was said until then, and what was requested', () => {
    assert.deepEqual(tiers('priority', 'default', true), ['standard', 'priority']);
    assert.deepEqual(tiers('priority', undefined, true), ['standard', 'priority']);
    assert.deepEqual(tiers('flex', 'flex', true), ['flex', 'flex']);
    assert.deepEqual(tiers('flex', undefined, true), ['standard', 'flex']);
    assert.deepEqual(tiers(undefined, 'priority', true), ['priority', 'standard']);
    assert.deepEqual(tiers(undefined, 'flex', true), ['flex', 'standard']);
  });

  it('whatever a vendor says, it lowers no charge below what the named tier costs', () => {
    const costs = (asked: string | undefined, said: string | undefined): number =>
      Math.max(...tiersToCharge(priced, { asked, said: [said], auto }).map(({ prices }) => costOf(prices, usage) ?? 0));
    const named = fc.oneof(fc.constantFrom(undefined, 'default', 'flex', 'priority', 'ultrafast', 'auto'), fc.string());
    fc.assert(
      fc.property(fc.constantFrom(undefined, 'auto', 'flex', 'priority', 'scale'), named, (asked, said) => {
        const own = said === undefined ? undefined : pricesAt(priced, said);
        const least = own ?? priced;
        assert.ok(costs(asked, tierName(said)) >= (costOf(least, usage) as number), `${asked} ${said}`);
      }),
    );
  });

  it('a list of prices at a tier is never cheaper for what it leaves out, whatever it has', () => {
    const price = fc.option(fc.nat(10_000), { nil: undefined });
    const kinds = { input: price, cachedInput: price, cacheWrite: price, output: price };
    const list = fc.record({ ...kinds, audioInput: price, imageOutput: price });
    fc.assert(
      fc.property(list, list, (standard, tier) => {
        const found = tokenPrices(pricesAt({ ...(standard as Prices), tiers: { t: tier as Prices } }, 't') as Prices);
        const own = tokenPrices(standard as Prices);
        for (const kind of ['cachedInput', 'cacheWrite', 'audioInput', 'imageOutput'] as const) {
          const base = kind === 'imageOutput' ? found.output : found.input;
          if (tier[kind] !== undefined && standard[kind] === undefined) continue;
          const least = tier[kind] ?? Math.max(standard[kind] ?? 0, Math.min(base, own[kind]));
          assert.ok(found[kind] >= least, `${kind}: ${found[kind]} < ${least}`);
        }
      }),
    );
  });
});
