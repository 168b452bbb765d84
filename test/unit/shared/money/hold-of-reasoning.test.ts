import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { costOf } from '../../../../shared/money/cost.ts';
import { highestCostOf, holdOf } from '../../../../shared/money/hold.ts';
import { madeUpModel } from '../../../support/routed-model.ts';

/** A dollar for a million tokens of input, two for output. */
const prices = { input: 1_000_000, output: 2_000_000 };
const outputPrice = 2000;

function row(vendor: string, model: string, fields: { reasoning?: boolean; maxOutputTokens?: number } = {}) {
  const more = { reasoning: true, maxOutputTokens: 8192, ...fields };
  return madeUpModel({ id: 'm', capability: 'chat', routes: [{ vendor, model }], prices, ...more }, vendor);
}

/** The tokens of reasoning that a hold without input has beside its output. */
function reasoningIn(routes: readonly ReturnType<typeof row>[], facts: object = {}): number {
  const { fixed } = holdOf(routes, { bytes: 0, outputTokens: 1, ...facts });
  return (fixed <= 1 ? 0 : fixed) / outputPrice;
}

const qwen = row('siliconflow', 'Qwen/Qwen3-14B');
const deepseek = row('siliconflow', 'deepseek-ai/DeepSeek-R1');

describe('what holdOf holds for reasoning', () => {
  it('holdOf holds reasoning beside the output at vendors whose limit does not count it, and nowhere else', () => {
    assert.deepEqual([reasoningIn([qwen]), reasoningIn([deepseek])], [8192, 8192]);
    assert.equal(reasoningIn([row('dashscope', 'qwen-plus')]), 8192);
    for (const vendor of ['openai', 'deepseek', 'vllm', 'together'])
      assert.equal(reasoningIn([row(vendor, 'Qwen/Qwen3-14B')], { reasoningTokens: 4096 }), 0, vendor);
  });

  it('holdOf holds no reasoning for a model that does not reason, and some for one of which that is not known', () => {
    assert.equal(reasoningIn([row('siliconflow', 'm', { reasoning: false })], { reasoningTokens: 4096 }), 0);
    const unknown = madeUpModel({ id: 'm', capability: 'chat', prices }, 'siliconflow');
    assert.equal(reasoningIn([unknown]), 16_384);
    assert.equal(
      reasoningIn([row('siliconflow', 'deepseek-ai/DeepSeek-V4-Pro', { maxOutputTokens: 384_000 })]),
      81_920,
    );
  });

  it('holdOf takes the limit of the reasoning, but for models that pass over it only if it is higher', () => {
    for (const reasoningTokens of [1, 32_768]) {
      assert.equal(reasoningIn([qwen], { reasoningTokens }), reasoningTokens);
      const most = Math.max(8192, reasoningTokens);
      for (const model of ['deepseek-ai/DeepSeek-R1', 'Qwen/QwQ-32B', 'deepseek-ai/DeepSeek-R1-Distill-Qwen-32B'])
        assert.equal(reasoningIn([row('siliconflow', model)], { reasoningTokens }), most, model);
      assert.equal(reasoningIn([qwen, deepseek], { reasoningTokens }), most);
    }
  });

  it('holdOf holds reasoning for each choice, and none where nothing is generated', () => {
    assert.equal(reasoningIn([qwen], { choices: 3, reasoningTokens: 100 }), 300);
    assert.equal(reasoningIn([qwen], { outputTokens: 0 }), 0);
  });

  it('holdOf holds reasoning in the part that a lowered limit of output leaves as it is', () => {
    const hold = holdOf([qwen], { bytes: 0, reasoningTokens: 1000 });
    assert.deepEqual([hold.outputTokens, hold.isGiven], [8192, false]);
    assert.equal(highestCostOf({ ...hold, outputTokens: 10 }), 1010 * outputPrice);
  });

  it('holdOf is never less than the cost of an answer and its reasoning within their limits, by any route', () => {
    const tokens = fc.integer({ min: 1, max: 100_000 });
    const limit = fc.option(tokens, { nil: undefined });
    const routes = fc.uniqueArray(fc.constantFrom(qwen, deepseek, row('openai', 'm')), { minLength: 1 });
    fc.assert(
      fc.property(routes, tokens, limit, fc.integer({ min: 1, max: 8 }), (some, most, reasoningTokens, choices) => {
        const hold = holdOf(some, { bytes: 10, outputTokens: most, reasoningTokens, choices });
        for (const { route } of some) {
          const longest = route.vendor === 'openai' ? 0 : (reasoningTokens ?? 8192);
          const thought = route.model === 'deepseek-ai/DeepSeek-R1' ? Math.max(longest, 8192) : longest;
          const usage = { prompt_tokens: 10, completion_tokens: choices * (most + thought) };
          assert.ok((costOf(prices, usage) ?? 0) <= highestCostOf({ ...hold, outputTokens: most }));
        }
      }),
    );
  });
});
