import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { CustomToolInput } from '../../../../api/endpoints/responses/custom-tool-input.ts';
import { pieces } from '../../../support/pieces.ts';

const places = fc.array(fc.nat(), { maxLength: 30 });

describe('CustomToolInput', () => {
  const escaped = (value: string): string =>
    [...value]
      .map((letter) => [...Array(letter.length).keys()].map((at) => unit(letter.charCodeAt(at))).join(''))
      .join('');
  const unit = (code: number): string => `\\u${code.toString(16).padStart(4, '0')}`;

  it('CustomToolInput returns the text however its JSON is written and split, and never half a character', () => {
    const write = fc.constantFrom(
      (value: string) => JSON.stringify({ input: value }),
      (value: string) => ` { "input" : ${JSON.stringify(value)} , "more": 1 } `,
      (value: string) => `{"input":"${escaped(value)}"}`,
      (value: string) => JSON.stringify({ other: 1, input: value }),
    );
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), write, places, (value, toJson, cuts) => {
        const input = new CustomToolInput();
        const told = [...pieces(toJson(value), cuts).map((piece) => input.push(piece)), input.end()];
        assert.equal(told.join(''), value);
        assert.equal(input.text, value);
        assert.ok(told.every((piece) => Buffer.from(piece).toString() === piece));
      }),
      { numRuns: 500 },
    );
  });

  it('CustomToolInput returns the input unchanged when it is no such object, and what arrived when it is truncated', () => {
    for (const [given, text] of [
      ['plain words', 'plain words'],
      ['{"input":5}', '{"input":5}'],
      ['{"input":"cut o', 'cut o'],
      ['', ''],
    ] as const) {
      const input = new CustomToolInput();
      input.push(given);
      input.end();
      assert.equal(input.text, text);
    }
  });

  it('CustomToolInput takes very many pieces that it cannot tell before the end', () => {
    const piece = 'x'.repeat(100);
    for (const beginning of ['{"other":"', '{"input":"\\u', ' '.repeat(2000)]) {
      const input = new CustomToolInput();
      input.push(beginning);
      for (let count = 0; count < 100_000; count++) input.push(piece);
      input.end();
      assert.ok(input.text.endsWith(piece) && input.text.length >= 10_000_000);
    }
  });
});
