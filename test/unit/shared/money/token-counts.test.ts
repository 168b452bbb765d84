import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasCounts } from '../../../../shared/money/token-counts.ts';

describe('hasCounts', () => {
  const cases: readonly (readonly [usage: Record<string, unknown>, ofChat: boolean, ofEmbedding: boolean])[] = [
    [{ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 }, true, true],
    [{ input_tokens: 9, output_tokens: 3 }, true, true],
    [{ completion_tokens: 3, total_tokens: 12 }, true, true],
    // Nothing was written, which is an answer, too.
    [{ prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 }, true, true],
    // Of the cache whole.
    [{ prompt_tokens: 9, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 9 } }, true, true],
    [{ prompt_tokens: 9 }, false, true],
    [{ total_tokens: 9 }, false, true],
    [{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, false, false],
    [{ prompt_tokens: 0, completion_tokens: 3, total_tokens: 3 }, false, false],
    [{ completion_tokens: 3, total_tokens: 3 }, false, false],
    [{ total_tokens: 0 }, false, false],
    [{ prompt_tokens: '9', completion_tokens: '3' }, false, false],
    [{ completion_tokens: 3 }, false, false],
    [{}, false, false],
  ];
  for (const [usage, ofChat, ofEmbedding] of cases) {
    it(`hasCounts is ${ofChat} for a chat and ${ofEmbedding} for an embedding of the usage ${JSON.stringify(usage)}`, () =>
      assert.deepEqual([hasCounts(usage, false), hasCounts(usage, true)], [ofChat, ofEmbedding]));
  }
});
