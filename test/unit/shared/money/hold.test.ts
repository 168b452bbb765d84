import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { costOf, type Prices, searchContextSizes } from '../../../../shared/money/cost.ts';
import { type Hold, highestCostOf, holdOf } from '../../../../shared/money/hold.ts';
import { tiersToCharge } from '../../../../shared/money/service-tier.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

/** The hold of so many output tokens per choice: as many as `admit` lowers a request to. */
const amountOf = (hold: Hold, outputTokens: number): number => highestCostOf({ ...hold, outputTokens });

const cheap = madeUpModel({
  ...{ id: 'cheap', capability: 'chat', maxOutputTokens: 100 },
  prices: { input: 1_000_000, output: 2_000_000 },
});
const dear = madeUpModel({
  ...{ id: 'dear', capability: 'chat', maxOutputTokens: 50 },
  prices: {
    ...{ input: 3_000_000, cacheWrite: 4_000_000, output: 1_000_000 },
    above: [{ tokens: 1000, input: 10_000_000, output: 20_000_000 }],
  },
});

describe('holdOf', () => {
  it('holdOf takes the highest prices of all routes, and of all kinds of input', () => {
    const hold = holdOf([cheap, dear], { bytes: 10 });
    assert.deepEqual(hold, { fixed: 40_000, outputPrice: 2_000_000, outputTokens: 100, isGiven: false });
    assert.equal(amountOf(hold, 100), 40_000 + 200_000);
  });

  it('holdOf covers a prompt that is written to the cache whole, which costs a quarter more than input', () => {
    const prices = { input: 3_000_000, cachedInput: 300_000, cacheWrite: 3_750_000, output: 15_000_000 };
    const claude = madeUpModel({ id: 'claude', capability: 'chat', prices });
    const usage = { prompt_tokens: 1000, completion_tokens: 10, prompt_tokens_details: { cache_write_tokens: 1000 } };
    const amount = amountOf(holdOf([claude], { bytes: 1000, outputTokens: 10 }), 10);
    assert.deepEqual([costOf(prices, usage), amount], [3_900_000, 3_900_000]);
  });

  it('holdOf covers a prompt that is kept for an hour whole, if the request wants that', () => {
    const prices = { input: 3_000_000, cachedInput: 300_000, cacheWrite: 3_750_000, output: 15_000_000 };
    const claude = madeUpModel({ id: 'claude', capability: 'chat', prices });
    const details = { cache_write_tokens: 1000, cache_creation_token_details: { ephemeral_1h_input_tokens: 1000 } };
    const usage = { prompt_tokens: 1000, completion_tokens: 10, prompt_tokens_details: details };
    const facts = { bytes: 1000, outputTokens: 10, fee: { hourCache: true as const } };
    assert.deepEqual([costOf(prices, usage), amountOf(holdOf([claude], facts), 10)], [6_150_000, 6_150_000]);
  });

  it('holdOf takes the prices of longer requests only when the request may be one', () => {
    assert.equal(holdOf([dear], { bytes: 1000 }).outputPrice, 1_000_000);
    const longer = holdOf([dear], { bytes: 1001 });
    assert.deepEqual([longer.fixed, longer.outputPrice], [10_010_000, 20_000_000]);
  });

  it('holdOf counts an image as the most tokens that a model of its routes takes for one', () => {
    assert.equal(holdOf([cheap], { bytes: 10, imageInputs: 2 }).fixed, 10_010 * 1000);
    const hungry = madeUpModel({ id: 'gpt-4o-mini', capability: 'chat', prices: { input: 1_000_000 } });
    assert.equal(holdOf([cheap, hungry], { bytes: 10, imageInputs: 1 }).fixed, 48_179 * 1000);
  });

  it('holdOf subtracts the bytes of image data, and never more than all bytes', () => {
    assert.equal(holdOf([cheap], { bytes: 500, imageInputs: 1, mediaBytes: 490 }).fixed, 5010 * 1000);
    assert.equal(holdOf([cheap], { bytes: 500, imageInputs: 1, mediaBytes: 10_000 }).fixed, 5000 * 1000);
  });

  it('holdOf takes the lowest prices for no input, and is never 0 when there is a price', () => {
    for (const facts of [{ bytes: 0 }, { bytes: 10, mediaBytes: 10_000 }, { bytes: 0, seconds: Number.NaN }]) {
      assert.deepEqual([holdOf([cheap], facts).fixed, holdOf([cheap], facts).outputPrice], [1, 2_000_000]);
    }
    const timed = madeUpModel({ id: 'timed', capability: 'video', prices: { second: 5 } });
    for (const seconds of [0, -5, Number.POSITIVE_INFINITY])
      assert.equal(holdOf([timed], { bytes: 9, seconds }).fixed, 1);
  });

  it('holdOf counts documents as the longest input of all routes', () => {
    const window = madeUpModel({ id: 'w', capability: 'chat', contextWindow: 8000, prices: { input: 1000 } });
    const wider = madeUpModel({ id: 'w', capability: 'chat', contextWindow: 9000, prices: { input: 1000 } });
    assert.equal(holdOf([window, wider], { bytes: 10, documents: 2 }).fixed, 9010);
  });

  it("holdOf takes the caller's output limit, and holds it for each choice", () => {
    const hold = holdOf([cheap], { bytes: 0, outputTokens: 7, choices: 3 });
    assert.deepEqual([hold.outputTokens, hold.isGiven, amountOf(hold, 7)], [7, true, 1 + 3 * 7 * 2000]);
  });

  it('holdOf assumes a default output limit when the model has none, and no more than its context window', () => {
    const silent = madeUpModel({ id: 'silent', capability: 'chat' });
    assert.equal(holdOf([silent], { bytes: 1 }).outputTokens, 16_384);
    const small = madeUpModel({ id: 'small', capability: 'chat', contextWindow: 4096 });
    assert.equal(holdOf([small], { bytes: 1 }).outputTokens, 4096);
  });

  it('holdOf counts images, seconds and characters', () => {
    const priced = madeUpModel({ id: 'm', capability: 'video', prices: { image: 3, second: 5000, character: 7 } });
    assert.equal(holdOf([priced], { bytes: 9, images: 2, seconds: 1.5, characters: 4 }).fixed, 6 + 7500 + 28);
  });

  it('holdOf holds the price of each request, never more for a search context than for a larger one', () => {
    const sized = (low: number, medium: number, high: number) =>
      madeUpModel({ id: 'm', capability: 'chat', prices: { request: { low, medium, high } } });
    const flat = madeUpModel({ id: 'm', capability: 'chat', prices: { request: 6 } });
    const fixed = (routes: Parameters<typeof holdOf>[0]) =>
      ([undefined, 'low', 'medium', 'high'] as const).map(
        (searchContext) => holdOf(routes, { bytes: 9, fee: { searchContext } }).fixed,
      );
    assert.deepEqual(fixed([sized(5, 8, 12)]), [5, 5, 8, 12]);
    assert.deepEqual(fixed([sized(8, 5, 12), flat]), [8, 8, 8, 12]);
    assert.deepEqual(fixed([flat]), [6, 6, 6, 6]);
    assert.equal(holdOf([flat], { bytes: 9, fee: { requests: 3 } }).fixed, 18);
    assert.equal(holdOf([sized(0, 0, 4)], { bytes: 9 }).fixed, 1, 'never nothing where there is a price');
  });

  it("holdOf holds the price of an image's size and quality, and never less than the default price", () => {
    const imageKinds = { '256x256': 10, '1792x1024': 80, hd: 90, '1792x1024 hd': 50 };
    const kinds = madeUpModel({ id: 'm', capability: 'image', prices: { image: 40, imageKinds } });
    const other = madeUpModel({ id: 'm', capability: 'image', prices: { image: 60 } });
    const fixed = (routes: Parameters<typeof holdOf>[0], imageSize?: string, imageQuality?: string) =>
      holdOf(routes, { bytes: 9, images: 2, fee: { imageSize, imageQuality } }).fixed;
    assert.deepEqual([fixed([kinds]), fixed([kinds], '256x256'), fixed([kinds], '1792x1024')], [80, 80, 160]);
    assert.deepEqual([fixed([kinds], undefined, 'hd'), fixed([kinds], '1792x1024', 'hd')], [180, 180]);
    assert.deepEqual([fixed([kinds, other]), fixed([kinds, other], '1792x1024')], [120, 160]);
    const onlyKinds = madeUpModel({ id: 'm', capability: 'image', prices: { imageKinds: { hd: 90, '256x256': 10 } } });
    assert.deepEqual([fixed([onlyKinds], '256x256'), fixed([onlyKinds], undefined, 'hd')], [20, 180]);
    assert.deepEqual(
      [fixed([onlyKinds]), fixed([onlyKinds], '512x512')],
      [180, 180],
      'the dearest of those that are known',
    );
  });

  it('holdOf holds the tokens of an image of any size, as its vendor counts them', () => {
    const row = (model: string) => {
      const prices = { input: 5_000_000, output: 30_000_000 };
      return madeUpModel({ id: model, capability: 'image', prices, routes: [{ vendor: 'openai', model }] });
    };
    // https://community.openai.com/t/gpt-image-2-output-pricing-calculator-online-and-in-your-code/1382699
    const counted = { '1024x1024': 7024, '3584x2048': 12_329, '3840x2160': 13_342, '2880x2880': 23_719 };
    for (const [imageSize, tokens] of Object.entries(counted)) {
      const hold = (model: string) => holdOf([row(model)], { bytes: 9, images: 2, fee: { imageSize } }).outputTokens;
      for (const model of ['gpt-image-2', 'gpt-image-2-2026-04-21']) {
        assert.ok(hold(model) >= 2 * tokens, `${model}, ${imageSize}`);
        assert.ok(hold(model) <= 2 * 24_019, `${model}, ${imageSize}`);
      }
      assert.equal(hold('gpt-image-1'), 2 * 8192);
    }
    assert.equal(holdOf([row('gpt-image-2')], { bytes: 9, images: 1 }).outputTokens, 8192);
  });

  it('holdOf is 0 for a model without prices', () => {
    const free = madeUpModel({ id: 'free', capability: 'chat' });
    assert.equal(amountOf(holdOf([free], { bytes: 1_000_000 }), 1_000_000), 0);
  });

  const price = fc.integer({ min: 0, max: 100_000_000_000 });
  const maybe = fc.option(price, { nil: undefined });
  const tokenPrices = { input: maybe, cachedInput: maybe, cacheWrite: maybe, output: maybe };
  const step = fc.record({ tokens: fc.integer({ min: 1, max: 2_000_000 }), ...tokenPrices });
  const steps = fc
    .uniqueArray(step, { maxLength: 3, selector: ({ tokens }) => tokens })
    .map((some) => some.sort((one, other) => one.tokens - other.tokens));
  const tierList = fc.record({
    ...{ ...tokenPrices, audioInput: maybe, imageInput: maybe, imageOutput: maybe },
    above: fc.option(steps, { nil: undefined }),
  });
  const factor = fc.double({ min: 0.01, max: 100, noNaN: true });
  const tierNames = ['flex', 'priority', 'unpriced'] as const;
  const prices = fc.record({
    ...tokenPrices,
    ...{ audioInput: maybe, imageInput: maybe, imageOutput: maybe },
    ...{ image: maybe, second: maybe, character: maybe },
    imageKinds: fc.option(fc.dictionary(fc.constantFrom('1x1', 'hd', '1x1 hd', '2x2'), price), { nil: undefined }),
    request: fc.option(fc.oneof(price, fc.record({ low: price, medium: price, high: price })), { nil: undefined }),
    above: steps,
    tiers: fc.option(fc.dictionary(fc.constantFrom('flex', 'priority'), fc.oneof(factor, tierList)), {
      nil: undefined,
    }),
  }) as fc.Arbitrary<Prices>;
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const used = fc.record({
    ...{ bytes: fc.nat(3_000_000), outputTokens: fc.nat(200_000), choices: fc.integer({ min: 1, max: 8 }) },
    ...{ images: fc.nat(10), seconds: fc.double({ min: 0, max: 1e5, noNaN: true }), characters: fc.nat(5000) },
    fee: fc.record({
      ...{ searchContext: fc.constantFrom(undefined, ...searchContextSizes), requests: fc.nat(9) },
      ...{ imageSize: fc.constantFrom(undefined, '1x1', '2x2'), imageQuality: fc.constantFrom(undefined, 'hd', 'low') },
      tier: fc.constantFrom(undefined, 'auto', ...tierNames),
      hourCache: fc.constantFrom(undefined, true as const),
    }),
    shares: fc.tuple(share, share, share, share, share, share, share),
  });

  it('holdOf is never less than the cost of a request within its bounds, by any route', () => {
    fc.assert(
      fc.property(fc.array(prices, { minLength: 1, maxLength: 3 }), used, (lists, { shares, ...facts }) => {
        const routes = lists.map((list) => ({ ...cheap, prices: list }));
        const hold = holdOf(routes, facts);
        const amount = amountOf(hold, facts.outputTokens);
        const part = (most: number, index: number): number => Math.floor(most * (shares[index] as number));
        const [input, output] = [part(facts.bytes, 0), part(facts.outputTokens * facts.choices, 1)];
        const usage = {
          ...{ prompt_tokens: input, completion_tokens: output },
          prompt_tokens_details: {
            ...{ cached_tokens: part(input, 2), cache_write_tokens: part(input, 3), audio_tokens: part(input, 4) },
            image_tokens: part(input, 6),
            ...(facts.fee.hourCache && {
              cache_creation_token_details: { ephemeral_1h_input_tokens: part(input, 5) },
            }),
          },
          completion_tokens_details: { image_tokens: part(output, 5) },
        };
        for (const { prices: list } of routes) {
          const asked = facts.fee.tier;
          // What the vendor says, where it is no dearer tier than the requested one.
          for (const said of [undefined, 'default', 'who knows', asked]) {
            for (const isInterrupted of [false, true]) {
              for (const charged of tiersToCharge(list, { asked, said: [said], auto: 'priority', isInterrupted })) {
                const cost = costOf(charged.prices, usage, facts, facts.fee) ?? 0;
                assert.ok(Number.isSafeInteger(cost) && cost >= 0);
                assert.ok(cost <= amount, `${cost} > ${amount} at ${charged.tier}`);
              }
            }
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('holdOf never holds less for a request that names a service tier, and no less for a dearer one', () => {
    fc.assert(
      fc.property(
        fc.array(prices, { minLength: 1, maxLength: 3 }),
        used,
        factor,
        (lists, { shares: _, ...facts }, dear) => {
          const tiers = { flex: 0.5, priority: Math.max(1, dear), ultrafast: Math.max(1, dear) * 3 };
          const dearer = lists.map((list) => ({ ...cheap, prices: { ...list, tiers } }));
          for (const routes of [lists.map((list) => ({ ...cheap, prices: list })), dearer]) {
            const amounts = [undefined, 'unpriced', 'flex', 'auto', 'priority', 'ultrafast'].map((tier) =>
              amountOf(holdOf(routes, { ...facts, fee: { ...facts.fee, tier } }), facts.outputTokens),
            );
            const [standard = 0, unpriced, flex = 0, auto = 0, priority = 0, ultrafast = 0] = amounts;
            assert.equal(unpriced, standard);
            assert.ok(flex >= standard && auto >= standard && priority >= standard);
            assert.equal(auto, priority, 'OpenAI may choose it');
            if (routes === dearer) assert.ok(flex === standard && ultrafast >= priority, String(amounts));
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('holdOf holds the price of the requested service tier, never less than the standard one, and that of priority for auto', () => {
    const model = madeUpModel({
      ...{ id: 'm', capability: 'chat' },
      prices: { input: 1000, output: 2000, tiers: { flex: 0.5, priority: { input: 1750, output: 4000 } } },
    });
    const fixed = (tier?: string, routes = [model]) => {
      const hold = holdOf(routes, { bytes: 1000, fee: { tier } });
      return [hold.fixed, hold.outputPrice];
    };
    assert.deepEqual([fixed(), fixed('flex'), fixed('scale')], Array(3).fill([1000, 2000]));
    assert.deepEqual([fixed('priority'), fixed('auto')], Array(2).fill([1750, 4000]));
    // Groq chooses no tier that is dearer.
    const other = madeUpModel({ id: 'm', capability: 'chat', prices: model.prices as Prices }, 'groq');
    assert.deepEqual(
      [fixed('auto', [other]), fixed('priority', [other])],
      [
        [1000, 2000],
        [1750, 4000],
      ],
    );
    assert.deepEqual(fixed('priority', [cheap, model]), [1_000_000, 2_000_000]);
  });

  it('holdOf rises with the request, and costOf with the usage', () => {
    fc.assert(
      fc.property(prices, used, fc.nat(1000), (list, { shares: _, ...facts }, more) => {
        const priced = { ...list, above: [] };
        const routes = [{ ...cheap, prices: priced }];
        const [one, other] = [holdOf(routes, facts), holdOf(routes, { ...facts, bytes: facts.bytes + more })];
        assert.ok(other.fixed >= one.fixed && amountOf(one, more + 1) >= amountOf(one, more));
        const usage = { prompt_tokens: facts.bytes, completion_tokens: facts.outputTokens };
        const larger = { prompt_tokens: facts.bytes + more, completion_tokens: facts.outputTokens + more };
        assert.ok((costOf(priced, larger, facts) ?? 0) >= (costOf(priced, usage, facts) ?? 0));
      }),
      { numRuns: 300 },
    );
  });
});
