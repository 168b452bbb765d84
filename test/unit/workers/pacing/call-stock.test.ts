import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CallStock } from '../../../../workers/pacing/call-stock.ts';

describe('reserved calls of a route', () => {
  test('reserved calls are taken one by one, by jobs that may use their key', () => {
    const stock = new CallStock();
    assert.equal(stock.take('v/m', ['one']), undefined);
    assert.equal(stock.wanted('v/m'), 1);
    stock.put('v/m', 'one', 2);
    assert.equal(stock.take('v/m', ['two']), undefined);
    assert.equal(stock.wanted('v/m'), 0);
    assert.equal(stock.take('v/other', ['one']), undefined);
    assert.deepEqual([stock.take('v/m', ['two', 'one']), stock.take('v/m', ['one'])], ['one', 'one']);
    assert.equal(stock.take('v/m', ['one']), undefined);
  });

  test('more is reserved each time that all was used, up to a bound', () => {
    const stock = new CallStock();
    const wanted: number[] = [];
    for (let round = 0; round < 8; round++) {
      const count = stock.wanted('v/m');
      wanted.push(count);
      stock.put('v/m', 'one', count);
      while (stock.take('v/m', ['one']) !== undefined);
    }
    assert.deepEqual(wanted, [1, 3, 7, 15, 31, 63, 64, 64]);
  });

  test('calls that were not made in time are lost, and fewer are reserved after that', async () => {
    const stock = new CallStock();
    stock.put('v/m', 'one', 10);
    assert.equal(stock.take('v/m', ['one']), 'one');
    await delay(150);
    assert.equal(stock.take('v/m', ['one']), undefined);
    assert.equal(stock.wanted('v/m'), 1);
  });

  test('no calls are kept where none were reserved, nor once the limits have changed', () => {
    const stock = new CallStock();
    stock.put('v/m', 'one', 0);
    assert.equal(stock.take('v/m', ['one']), undefined);
    stock.put('v/m', 'one', 5);
    stock.clear();
    assert.equal(stock.take('v/m', ['one']), undefined);
  });
});
