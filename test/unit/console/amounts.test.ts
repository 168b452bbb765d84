import assert from 'node:assert/strict';
import { test } from 'node:test';

// By its address: the console's types are checked apart from these.
const module = new URL('../../../console/src/format/amount.ts', import.meta.url).href;
interface Range {
  readonly decimals: number;
  readonly min?: number;
  readonly max?: number;
}
const { amountOf, amountText, readAmount } = (await import(module)) as {
  amountOf: (text: string, range: Range) => number | null;
  amountText: (value: number, decimals: number) => string;
  readAmount: (text: string, range: Range) => { readonly value?: number; readonly problem?: string };
};

const cents = { decimals: 2 };
const whole = { decimals: 0, min: 1 };
const budget = { decimals: 9, min: 0, max: 1_000_000 };
const values = (range: Range, texts: readonly string[]) => texts.map((text) => readAmount(text, range).value);

test('an amount is read as it is meant, with points or commas, spaces or apostrophes', () => {
  const thousands = ['1,000', '1000', '1 000', '1\u202f000', "1'000", '$1,000', ' 1,000.00 ', '1.000,00', '1000,00'];
  assert.deepEqual(new Set(values(cents, thousands)), new Set([1000]));
  const parts = ['12,50', '12.5', '0,05', '.5', ',5', '12.', '-0.5', '−$5', '-1,000.50', '1.234.567', '1,234,567.89'];
  const meant = [12.5, 12.5, 0.05, 0.5, 0.5, 12, -0.5, -5, -1000.5, 1_234_567, 1_234_567.89];
  assert.deepEqual(values(cents, parts), meant);
  assert.deepEqual(values(budget, ['0,005', '0.0000005', '1.1250', '1,000.125']), [0.005, 0.0000005, 1.125, 1000.125]);
  assert.deepEqual(values(whole, ['1,000', '1.000', '1 000', '1.000.000', '60']), [1000, 1000, 1000, 1_000_000, 60]);
});

test('an amount that is none, or can be meant in two ways, is a problem and never another amount', () => {
  const none = [
    '1e3',
    '-',
    '$',
    '.',
    '1,00,000',
    '1.000.50',
    '1,000,50',
    '12.50.1',
    '12 50',
    '0x10',
    '5%',
    '--5',
    '5-',
    '٣',
  ];
  for (const [range, texts] of [
    [cents, [...none, '1.000', '12.505', '12,5051', '-1.000', '10,0000', '1,000000']],
    [whole, [...none, '1.5', '12,50', '0', '-5', '10,0000']],
    [budget, [...none, '1.000', '999.999', '-1', '1,000,001', '12,0005', '10,0000']],
  ] as const) {
    for (const text of texts) {
      const { value, problem } = readAmount(text, range);
      assert.deepEqual([text, value, typeof problem], [text, undefined, 'string']);
      assert.throws(() => amountOf(text, range));
    }
  }
  assert.deepEqual(readAmount(' ', cents), {});
  assert.equal(amountOf('', whole), null);
});

test('an amount is written so that it is read as the same', () => {
  for (const [value, text] of [
    [1000, '1,000'],
    [12.5, '12.50'],
    [1.125, '1.1250'],
    [-12.505, '-12.5050'],
    [1000.125, '1,000.125'],
    [0.005, '0.005'],
    [0.0000005, '0.0000005'],
    [0, '0'],
  ] as const) {
    assert.equal(amountText(value, 9), text);
    assert.equal(readAmount(text, { decimals: 9 }).value, value);
  }
});
