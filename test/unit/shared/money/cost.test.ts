import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  costOf,
  type FeeFacts,
  formatDollars,
  type Prices,
  parseDollars,
  type Quantities,
  savedBy,
} from '../../../../shared/money/cost.ts';

/** Nano-dollars for a thousand tokens: 2 dollars in, 8 out, for a million. */
const plain: Prices = { input: 2_000_000, output: 8_000_000 };
const cached: Prices = { ...plain, cachedInput: 500_000, cacheWrite: 2_500_000 };
const searching: Prices = { ...plain, request: { low: 5_000_000, medium: 8_000_000, high: 12_000_000 } };
const tiered: Prices = {
  ...cached,
  above: [{ tokens: 1000, input: 4_000_000, cachedInput: 1_000_000, output: 12_000_000 }],
};

interface Case {
  readonly of: string;
  readonly prices?: Prices;
  readonly usage: Record<string, unknown> | null;
  readonly quantities?: Quantities;
  readonly fee?: FeeFacts;
  readonly cost: number | undefined;
}

const chatCases: readonly Case[] = [
  {
    of: 'a chat',
    ...{ prices: plain, usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 } },
    // 10 × 2,000 + 3 × 8,000
    cost: 44_000,
  },
  {
    of: 'a chat whose thoughts are part of its output',
    prices: plain,
    usage: {
      ...{ prompt_tokens: 10, completion_tokens: 30, total_tokens: 40 },
      completion_tokens_details: { reasoning_tokens: 20 },
    },
    cost: 20_000 + 240_000,
  },
  {
    of: 'a chat whose thoughts are counted beside its output',
    prices: plain,
    usage: {
      ...{ prompt_tokens: 10, completion_tokens: 30, total_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 20 },
    },
    cost: 20_000 + 50 * 8000,
  },
  {
    of: 'a chat with a cache',
    prices: cached,
    usage: {
      ...{ prompt_tokens: 100, completion_tokens: 1 },
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
    },
    // 60 × 500 + 30 × 2,500 + 10 × 2,000 + 8,000
    cost: 30_000 + 75_000 + 20_000 + 8000,
  },
  {
    of: 'a cache that keeps some of it for an hour, which costs twice the price of input',
    prices: cached,
    usage: {
      ...{ prompt_tokens: 100, completion_tokens: 1 },
      prompt_tokens_details: {
        ...{ cached_tokens: 60, cache_write_tokens: 30 },
        cache_creation_token_details: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
      },
    },
    // 60 × 500 + 10 × 2,500 + 20 × 4,000 + 10 × 2,000 + 8,000
    cost: 30_000 + 25_000 + 80_000 + 20_000 + 8000,
  },
  {
    of: "OpenRouter's cache, which does not say for how long it keeps what it was asked to keep for an hour",
    prices: cached,
    usage: {
      ...{ prompt_tokens: 100, completion_tokens: 1 },
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
    },
    fee: { hourCache: true },
    // 60 × 500 + 30 × 4,000 + 10 × 2,000 + 8,000
    cost: 30_000 + 120_000 + 20_000 + 8000,
  },
  {
    of: 'a cache that claims to keep more for an hour than was written',
    prices: cached,
    usage: {
      prompt_tokens: 10,
      prompt_tokens_details: {
        ...{ cached_tokens: 0, cache_write_tokens: 5 },
        cache_creation_token_details: { ephemeral_1h_input_tokens: 50 },
      },
    },
    cost: 5 * 4000 + 5 * 2000,
  },
  {
    of: 'a cache without prices of its own',
    prices: plain,
    usage: { prompt_tokens: 100, prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } },
    cost: 200_000,
  },
  { of: "DeepSeek's cache", prices: cached, usage: { prompt_tokens: 10, prompt_cache_hit_tokens: 4 }, cost: 14_000 },
  {
    of: "the cache of Mistral's older answers",
    ...{ prices: cached, usage: { prompt_tokens: 10, completion_tokens: 0, num_cached_tokens: 4 } },
    cost: 14_000,
  },
  {
    of: 'a cache that claims more than there was',
    prices: cached,
    usage: { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 50, cache_write_tokens: 50 } },
    cost: 5000,
  },
  {
    of: 'audio in a chat',
    prices: { ...plain, audioInput: 10_000_000 },
    usage: { prompt_tokens: 10, completion_tokens: 0, prompt_tokens_details: { audio_tokens: 4 } },
    cost: 12_000 + 40_000,
  },
  {
    of: 'an edit of images, whose tokens in the request have a price of their own',
    prices: { input: 5_000_000, cachedInput: 1_250_000, imageInput: 10_000_000, output: 40_000_000 },
    usage: {
      ...{ input_tokens: 6300, output_tokens: 1056, total_tokens: 7356 },
      input_tokens_details: { text_tokens: 60, image_tokens: 6240 },
    },
    quantities: { images: 1 },
    cost: 60 * 5000 + 6240 * 10_000 + 1056 * 40_000,
  },
  {
    of: 'images in a request without a price of their own',
    prices: plain,
    usage: { input_tokens: 100, input_tokens_details: { text_tokens: 40, image_tokens: 60 } },
    cost: 200_000,
  },
  {
    of: 'more images in a request than its input has tokens',
    prices: { ...plain, imageInput: 10_000_000 },
    usage: { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 4, image_tokens: 50 } },
    cost: 4 * 2000 + 6 * 10_000,
  },
  {
    of: 'audio in a chat that is counted beside its prompt, as the total shows',
    prices: { ...plain, audioInput: 10_000_000 },
    usage: {
      ...{ prompt_tokens: 9, completion_tokens: 248, total_tokens: 632 },
      prompt_tokens_details: { audio_tokens: 375 },
    },
    // 9 × 2,000 + 375 × 10,000 + 248 × 8,000
    cost: 18_000 + 3_750_000 + 1_984_000,
  },
  {
    of: 'audio beside its prompt, and thoughts that are part of the output',
    prices: plain,
    usage: {
      ...{ prompt_tokens: 9, completion_tokens: 248, total_tokens: 632 },
      ...{ prompt_tokens_details: { audio_tokens: 375 }, completion_tokens_details: { reasoning_tokens: 100 } },
    },
    cost: 384 * 2000 + 248 * 8000,
  },
  {
    of: 'audio that is part of the prompt, and thoughts beside the output',
    prices: plain,
    usage: {
      ...{ prompt_tokens: 400, completion_tokens: 248, total_tokens: 748 },
      ...{ prompt_tokens_details: { audio_tokens: 375 }, completion_tokens_details: { reasoning_tokens: 100 } },
    },
    cost: 400 * 2000 + 348 * 8000,
  },
  {
    of: 'audio and thoughts that are both counted beside',
    prices: plain,
    usage: {
      ...{ prompt_tokens: 9, completion_tokens: 248, total_tokens: 732 },
      ...{ prompt_tokens_details: { audio_tokens: 375 }, completion_tokens_details: { reasoning_tokens: 100 } },
    },
    cost: 384 * 2000 + 348 * 8000,
  },
  {
    of: 'audio in a chat that is longer than the total leaves room for',
    prices: plain,
    usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 20, prompt_tokens_details: { audio_tokens: 375 } },
    cost: 9 * 2000 + 8000,
  },
  {
    of: 'a chat at the upper bound of its price tier',
    prices: tiered,
    usage: { prompt_tokens: 1000 },
    cost: 2_000_000,
  },
  {
    of: 'a chat above that bound, priced as a whole in the next tier',
    prices: tiered,
    usage: {
      ...{ prompt_tokens: 1001, completion_tokens: 10 },
      prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 1000 },
    },
    // Its tier names no price of what is written: it is the one below.
    cost: 1000 + 2_500_000 + 120_000,
  },
  {
    of: 'a chat that costs parts of a nano-dollar, rounded up once',
    prices: { input: 100, output: 100 },
    usage: { prompt_tokens: 1, completion_tokens: 1 },
    cost: 1,
  },
  {
    of: 'a chat beyond what numbers hold exactly',
    prices: { input: 99_999_999_999 },
    usage: { prompt_tokens: 90_001 },
    cost: 9_000_099_999_910,
  },
  {
    of: 'a response',
    prices: cached,
    usage: {
      ...{ input_tokens: 10, input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 } },
      ...{ output_tokens: 5, output_tokens_details: { reasoning_tokens: 2 }, total_tokens: 15 },
    },
    cost: 4 * 500 + 6 * 2000 + 5 * 8000,
  },
  { of: 'embeddings', prices: { input: 20_000 }, usage: { prompt_tokens: 5, total_tokens: 5 }, cost: 100 },
  { of: 'embeddings with only a total count', prices: { input: 20_000 }, usage: { total_tokens: 5 }, cost: 100 },
  {
    of: 'a chat whose requests have a price',
    ...{ prices: { ...plain, request: 5_000_000 }, usage: { prompt_tokens: 1 }, cost: 5_000_000 + 2000 },
  },
  {
    of: 'a chat without counts whose requests have a price, too',
    ...{ prices: { ...plain, request: 5_000_000 }, usage: null, cost: undefined },
  },
  {
    of: 'a chat without counts whose requests alone have a price',
    ...{ prices: { input: 0, output: 0, request: 5_000_000 }, usage: null, cost: 5_000_000 },
  },
  {
    of: 'a transcript of unknown length whose requests have a price, too',
    ...{ prices: { second: 100_000, request: 1000 }, usage: null, cost: undefined },
  },
  {
    of: 'a chat that asks for no search context',
    ...{ prices: searching, usage: { prompt_tokens: 1 }, cost: 5_000_000 + 2000 },
  },
  {
    of: 'a chat that asks for a large search context',
    ...{ prices: searching, usage: { prompt_tokens: 1 }, fee: { searchContext: 'high' }, cost: 12_000_000 + 2000 },
  },
  {
    of: 'a chat whose vendor reports another search context than requested',
    prices: searching,
    usage: { prompt_tokens: 1, search_context_size: 'medium' },
    ...{ fee: { searchContext: 'high' }, cost: 8_000_000 + 2000 },
  },
  {
    of: 'a chat whose vendor reports an unknown search context',
    prices: searching,
    usage: { prompt_tokens: 1, search_context_size: 'constructor' },
    ...{ fee: { searchContext: 'high' }, cost: 12_000_000 + 2000 },
  },
  {
    of: 'a completion of three prompts',
    ...{ prices: searching, usage: { prompt_tokens: 1 }, fee: { requests: 3 }, cost: 15_000_000 + 2000 },
  },
  {
    of: 'a completion of no prompts',
    ...{ prices: searching, usage: { prompt_tokens: 0 }, fee: { requests: 0 }, cost: 0 },
  },
  { of: 'a free model', prices: { input: 0, output: 0 }, usage: { prompt_tokens: 5 }, cost: 0 },
  { of: 'a model without prices', usage: { prompt_tokens: 5 }, cost: undefined },
  { of: 'an answer without counts', prices: plain, usage: null, cost: undefined },
];

const mediaCases: readonly Case[] = [
  {
    of: 'images by tokens',
    prices: { ...plain, imageOutput: 32_000_000 },
    usage: {
      ...{ input_tokens: 10, input_tokens_details: { text_tokens: 4, image_tokens: 6 } },
      ...{ output_tokens: 100, output_tokens_details: { text_tokens: 20, image_tokens: 80 } },
    },
    quantities: { images: 1 },
    cost: 20_000 + 20 * 8000 + 80 * 32_000,
  },
  {
    of: 'images by tokens that are not split',
    prices: { ...plain, imageOutput: 32_000_000 },
    usage: { input_tokens: 10, output_tokens: 100 },
    quantities: { images: 1 },
    cost: 20_000 + 100 * 32_000,
  },
  {
    of: 'images priced each',
    prices: { image: 40_000_000 },
    usage: null,
    quantities: { images: 3 },
    cost: 120_000_000,
  },
  ...(
    [
      [undefined, undefined, 40],
      ['1024x1024', 'standard', 40],
      ['1792x1024', undefined, 80],
      ['1792x1024', 'standard', 80],
      ['1024x1024', 'hd', 90],
      ['1792x1024', 'hd', 120],
      ['constructor', '__proto__', 40],
    ] as const
  ).map(([imageSize, imageQuality, cost]) => ({
    of: `images of the size ${imageSize} and the quality ${imageQuality}`,
    prices: { image: 40, imageKinds: { '1792x1024': 80, hd: 90, '1792x1024 hd': 120 } },
    ...{ usage: null, quantities: { images: 2 }, fee: { imageSize, imageQuality }, cost: 2 * cost },
  })),
  ...(
    [
      [undefined, undefined, 120],
      ['1024x1024', 'low', 120],
      ['1792x1024', 'low', 80],
      [undefined, 'hd', 90],
    ] as const
  ).map(([imageSize, imageQuality, cost]) => ({
    of: `images of the size ${imageSize} and the quality ${imageQuality}, where only some kinds have a price`,
    prices: { imageKinds: { '1792x1024': 80, hd: 90, '1792x1024 hd': 120 } },
    ...{ usage: null, quantities: { images: 2 }, fee: { imageSize, imageQuality }, cost: 2 * cost },
  })),
  {
    of: 'a transcription by tokens',
    prices: { input: 2_500_000, audioInput: 6_000_000, output: 10_000_000 },
    usage: {
      ...{ type: 'tokens', input_tokens: 14, input_token_details: { text_tokens: 4, audio_tokens: 10 } },
      ...{ output_tokens: 2, total_tokens: 16 },
    },
    cost: 4 * 2500 + 10 * 6000 + 2 * 10_000,
  },
  {
    of: 'a transcription by tokens that are not split',
    prices: { input: 2_500_000, audioInput: 6_000_000, output: 10_000_000 },
    usage: { type: 'tokens', input_tokens: 14, output_tokens: 2 },
    cost: 14 * 6000 + 2 * 10_000,
  },
  {
    of: 'a transcription by its length',
    ...{ prices: { second: 100_000 }, usage: { type: 'duration', seconds: 3 }, cost: 300_000 },
  },
  {
    of: 'a transcription by parts of a second',
    ...{ prices: { second: 30_833 }, usage: { type: 'duration', seconds: 2.5 } },
    // 77,082.5
    cost: 77_083,
  },
  {
    of: 'a transcription whose length is known from elsewhere',
    prices: { second: 100_000 },
    usage: { type: 'tokens', input_tokens: 10, output_tokens: 1 },
    quantities: { seconds: 1.5 },
    cost: 150_000,
  },
  { of: 'a video', prices: { second: 400_000_000 }, usage: null, quantities: { seconds: 8 }, cost: 3_200_000_000 },
  {
    of: 'speech by characters',
    prices: { character: 15_000 },
    usage: null,
    quantities: { characters: 11 },
    cost: 165_000,
  },
  {
    of: 'speech by tokens',
    prices: { input: 600_000, output: 12_000_000 },
    usage: { input_tokens: 4, output_tokens: 100, total_tokens: 104 },
    quantities: { characters: 11 },
    cost: 2400 + 1_200_000,
  },
  { of: 'an unknown duration', prices: { second: 100_000 }, usage: { input_tokens: 5 }, cost: undefined },
];

describe('costOf', () => {
  for (const { of, prices, usage, quantities, fee, cost } of [...chatCases, ...mediaCases]) {
    it(`costOf is right for ${of}`, () => assert.equal(costOf(prices, usage, quantities, fee), cost));
  }

  it('costOf is never negative, and ignores counts that are no valid numbers', () => {
    for (const count of [-5, Number.NaN, Number.POSITIVE_INFINITY, '7', null]) {
      assert.equal(costOf(plain, { prompt_tokens: count, completion_tokens: 1 }), 8000, String(count));
    }
    assert.equal(costOf({ second: 5 }, null, { seconds: -1 }), 0);
  });

  it('costOf caps an amount beyond the maximum', () => {
    for (const much of [1e12, 1e303, Number.POSITIVE_INFINITY]) {
      assert.equal(costOf({ second: 5 }, null, { seconds: much }), 5e9, String(much));
      assert.equal(costOf({ second: 5 }, { type: 'duration', seconds: much }), 5e9, String(much));
      assert.equal(costOf({ character: 5 }, null, { characters: much }), 5e9, String(much));
    }
    assert.equal(costOf({ input: 1000, output: 1000 }, { prompt_tokens: 1e300, completion_tokens: 1e15 }), 2e9);
  });
});

describe('dollars', () => {
  it('formatDollars writes plain decimals that parseDollars reads back exactly', () => {
    const shown: readonly (readonly [number, string])[] = [
      [0, '0'],
      [1, '0.000000001'],
      [12_345, '0.000012345'],
      [1_500_000_000, '1.5'],
      [20_000_000_000, '20'],
      [-1, '-0.000000001'],
      [Number.MAX_SAFE_INTEGER, '9007199.254740991'],
    ];
    for (const [nanos, text] of shown) {
      assert.equal(formatDollars(nanos), text);
      assert.equal(parseDollars(text), nanos);
    }
  });

  it('parseDollars rejects everything but plain decimals within precision and range', () => {
    for (const text of ['', '1e3', '.5', '5.', '1.0000000001', '99999999', '+1', ' 1', '1,5', 'NaN']) {
      assert.equal(parseDollars(text), undefined, text);
    }
  });
});

describe('savedBy', () => {
  const saved = (prices: Prices | undefined, input: number, cachedTokens: number): number =>
    savedBy(prices, { input, cached: cachedTokens });

  it('savedBy is what cached tokens would have cost more at the plain price of input, at the prices of their length', () => {
    assert.equal(saved(cached, 900, 100), 100 * 1500);
    assert.equal(saved(tiered, 1000, 100), 100 * 1500);
    assert.equal(saved(tiered, 1001, 100), 100 * 3000);
  });

  it('savedBy is 0 without prices, without a price of cached input, without cached tokens, and where the cache costs more', () => {
    const dearer: Prices = { ...plain, cachedInput: 3_000_000 };
    for (const prices of [undefined, {}, plain, dearer]) assert.equal(saved(prices, 900, 100), 0);
    assert.equal(saved(cached, 900, 0), 0);
    assert.equal(savedBy(cached, undefined), 0);
  });

  it('savedBy is in whole nano-dollars, rounded down, and never beyond what sums hold', () => {
    assert.equal(saved({ input: 10, cachedInput: 3 }, 200, 143), 1);
    assert.equal(saved({ input: 10, cachedInput: 3 }, 200, 142), 0);
    assert.equal(saved({ input: Number.MAX_SAFE_INTEGER, cachedInput: 0 }, 1e9, 1e9), Number.MAX_SAFE_INTEGER);
  });

  it('savedBy and the cost together are the cost without a cache', () => {
    for (const cachedTokens of [0, 1, 50, 900]) {
      const counted = { prompt_tokens: 900, completion_tokens: 7 };
      const usage = { ...counted, prompt_tokens_details: { cached_tokens: cachedTokens } };
      assert.equal((costOf(cached, usage) ?? 0) + saved(cached, 900, cachedTokens), costOf(cached, counted));
    }
  });
});
