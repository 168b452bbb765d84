import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PacedKey } from '../../../../workers/pacing/call-scopes.ts';
import { CallStock, type StockedCalls } from '../../../../workers/pacing/call-stock.ts';
import { eventually } from '../../../support/eventually.ts';

const key: PacedKey = { vendor: 'v', account: 'one', returned: [], isLeased: true };
const callsOf = (count: number, tokens = 0): StockedCalls => ({
  key,
  ids: Array.from({ length: count }, (_, index) => `call.${index + 1}`),
  tokens,
});

describe('reserved calls of a route', () => {
  const unexpected = (): void => assert.fail('calls are returned');

  test('reserved calls are taken one by one, by jobs that may use their key', async () => {
    const stock = new CallStock(unexpected);
    assert.equal(stock.take('v/m', ['one'], 0), undefined);
    await stock.fill('v/m', Promise.resolve(callsOf(2)));
    assert.equal(stock.take('v/m', ['two'], 0), undefined);
    assert.equal(stock.wanted('v/m'), 0);
    assert.equal(stock.take('v/other', ['one'], 0), undefined);
    assert.deepEqual(stock.take('v/m', ['two', 'one'], 0), { key, id: 'call.1', tokens: 0 });
    assert.deepEqual(stock.take('v/m', ['one'], 0), { key, id: 'call.2', tokens: 0 });
    assert.equal(stock.take('v/m', ['one'], 0), undefined);
  });

  test('a call takes the tokens that it is expected to use, the last one what is left, and a larger one than that none', async () => {
    const stock = new CallStock(unexpected);
    await stock.fill('v/m', Promise.resolve(callsOf(3, 300)));
    assert.equal(stock.take('v/m', ['one'], 301), undefined);
    assert.equal(stock.take('v/m', ['one'], 20)?.tokens, 20);
    assert.equal(stock.take('v/m', ['one'], 250)?.tokens, 250);
    assert.equal(stock.take('v/m', ['one'], 31), undefined);
    assert.equal(stock.take('v/m', ['one'], 10)?.tokens, 30);
  });

  test('more is reserved each time that all was used, up to a bound, and by one call at a time', async () => {
    const stock = new CallStock(unexpected);
    const wanted: number[] = [];
    for (let round = 0; round < 8; round++) {
      const count = stock.wanted('v/m');
      wanted.push(count);
      const filling = stock.fill('v/m', Promise.resolve(callsOf(count)));
      assert.equal(stock.wanted('v/m'), 0);
      assert.equal(stock.coming('v/m'), filling);
      await filling;
      assert.equal(stock.coming('v/m'), undefined);
      while (stock.take('v/m', ['one'], 0) !== undefined);
    }
    assert.deepEqual(wanted, [1, 3, 7, 15, 31, 63, 64, 64]);
  });

  test('calls that are not made in time are returned with their tokens, and fewer are reserved after that', async () => {
    const returned: StockedCalls[] = [];
    const stock = new CallStock((unused) => void returned.push(unused));
    await stock.fill('v/m', Promise.resolve(callsOf(10, 100)));
    assert.equal(stock.take('v/m', ['one'], 30)?.id, 'call.1');
    await eventually(() => assert.equal(returned.length, 1));
    assert.deepEqual(returned, [{ key, ids: callsOf(10).ids.slice(1), tokens: 70 }]);
    assert.equal(stock.take('v/m', ['one'], 0), undefined);
    assert.equal(stock.wanted('v/m'), 1);
  });

  test('where none could be reserved in addition, or Redis failed, none are asked for or waited for until later', async () => {
    const none = [async () => undefined, async () => callsOf(0), () => Promise.reject(new Error('away'))];
    for (const reserve of none) {
      const stock = new CallStock(unexpected);
      await stock.fill('v/m', reserve());
      assert.equal(stock.coming('v/m'), undefined);
      assert.equal(stock.wanted('v/m'), 0);
      assert.equal(stock.take('v/m', ['one'], 0), undefined);
      await eventually(() => assert.equal(stock.wanted('v/m'), 1));
    }
  });

  test('all calls are returned once the limits have changed', async () => {
    const returned: StockedCalls[] = [];
    const stock = new CallStock((unused) => void returned.push(unused));
    await stock.fill('v/m', Promise.resolve(callsOf(5)));
    stock.clear();
    assert.deepEqual(returned, [callsOf(5)]);
    assert.equal(stock.take('v/m', ['one'], 0), undefined);
  });
});
