import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { countChatTokens, countTexts } from '../../../../workers/usage/count-tokens.ts';
import { TokenCounter } from '../../../../workers/usage/token-counter.ts';

const never = (): AbortSignal => new AbortController().signal;
const countText = (text: string): number => countTexts([text]);
/** What its thread costs most is its start. */
const counter = new TokenCounter();
const requestOf = (content: string): string => JSON.stringify({ messages: [{ role: 'user', content }] });

describe('token counting', () => {
  it('countTexts counts like the tokenizer, whatever is in the text', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      fc.constantFrom('\n\n', '  ', "don't", '漢字'),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 40 }), (units) => {
        const text = units.join(' ');
        assert.equal(countText(text), countTokens(text, { disallowedSpecial: new Set() }));
      }),
    );
  });

  it('countTexts differs from the tokenizer by at most one token per split of a long text', () => {
    const text = "The quick brown fox jumps over the lazy dog, and it's fine.\n\n  x = foo(bar);\n".repeat(10_000);
    assert.ok(Math.abs(countText(text) - countTokens(text)) <= text.length / 8192);
  });

  it('countTexts finishes for long runs without a break', () => {
    for (const run of ['a', ' ', '\n', '-', '漢', '😀']) assert.ok(countText(run.repeat(500_000)) > 5000);
  });

  it('countTexts estimates very long texts within a tenth from samples of all of them', () => {
    const random = fc.sample(fc.string({ unit: 'grapheme-ascii', minLength: 5000, maxLength: 5000 }), 10).join('');
    const [words, code, noise] = ['The quick brown fox. '.repeat(5000), '{"a":[1,2,3]}\n'.repeat(5000), random];
    const texts = Array.from({ length: 60 }, (_, index) => [words, code, noise][index % 3] as string);
    const each = [words, code, noise].map(countText);
    const whole = 20 * each.reduce((sum, tokens) => sum + tokens, 0);
    const counted = countTexts(texts);
    assert.ok(Math.abs(counted - whole) < whole / 10, `${counted} of ${whole}`);
    assert.ok(countText('漢字かな交じり文'.repeat(250_000)) > 500_000);
  });

  it('countChatTokens counts sounds by their seconds, texts in files by their bytes, and documents that are linked as ten pages', () => {
    const tokens = (part: object): number =>
      countChatTokens(JSON.stringify({ messages: [{ role: 'user', content: [part] }] })) - 7;
    const base64 = (bytes: number): string => Buffer.alloc(bytes).toString('base64');
    const sound = (format: string, bytes: number) => tokens({ input_audio: { data: base64(bytes), format } });
    // Ten seconds, of 32 tokens each.
    assert.deepEqual([sound('wav', 320_000), sound('mp3', 40_000)], [320, 320]);
    const text = base64(120_000);
    const pdf = { file_data: `data:application/pdf;base64,${text}` };
    const plain = { file_data: `data:text/plain;base64,${text}` };
    for (const of of [
      (file: object) => ({ type: 'file', file }),
      (file: object) => ({ type: 'input_file', ...file }),
    ]) {
      assert.ok(Math.abs(tokens(of(pdf)) - 160_000 / 33) < 10);
      assert.ok(Math.abs(tokens(of(plain)) - 40_000) < 10);
      for (const link of [{ file_url: 'https://example.com/a.pdf' }, { file_id: 'file-1' }]) {
        assert.equal(tokens(of(link)), 20_000);
      }
    }
    assert.equal(tokens({ type: 'input_file', file_id: null, file_url: null }), 0);
    assert.equal(tokens({ type: 'made_up' }), 0);
  });

  it('TokenCounter counts many texts at once and returns each to its caller', async () => {
    const texts = Array.from({ length: 20 }, (_, index) => 'word '.repeat(index * 10 + 1).trim());
    const counts = await Promise.all(texts.map((text) => counter.count(requestOf(text), never())));
    assert.deepEqual(
      counts,
      texts.map((text) => 7 + countTokens(text)),
    );
  });

  it('TokenCounter does not block its process', async () => {
    await counter.count(requestOf('Hello'), never());
    let isCounted = false;
    const counting = counter.count(requestOf('word '.repeat(100_000)), never()).then((tokens) => {
      isCounted = true;
      return tokens;
    });
    await setImmediate();
    assert.equal(isCounted, false);
    assert.ok((await counting) >= 100_000);
  });

  it('TokenCounter fails for a request that the thread cannot read, and goes on with the next', async () => {
    const [broken, next] = [counter.count('{', never()), counter.count(requestOf('Hello world'), never())];
    await assert.rejects(broken, { code: 'server_error' });
    assert.equal(await next, 9);
  });

  it('TokenCounter stops counting when it is aborted, and continues the others', async () => {
    const controller = new AbortController();
    const [first, second, third] = [
      counter.count(requestOf('Hello'), never()),
      counter.count(requestOf('Hello'), controller.signal),
      counter.count(requestOf('Hello world'), never()),
    ];
    controller.abort();
    await assert.rejects(second, { code: 'cancelled' });
    assert.deepEqual(await Promise.all([first, third]), [8, 9]);
    await assert.rejects(counter.count(requestOf('Hello'), controller.signal), { code: 'cancelled' });
  });
});
