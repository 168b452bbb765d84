import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AccountBandwidth } from '../../../../shared/runtime/account-bandwidth.ts';

const free = 4096;
const rate = 1_000_000;

/** A worker that serves `a` and `b`. */
function shared(): AccountBandwidth {
  const bandwidth = new AccountBandwidth(rate);
  bandwidth.see('a');
  bandwidth.see('b');
  return bandwidth;
}

test('large frames of an account are paid for by its rate while the worker serves another one', () => {
  const bandwidth = shared();
  const first = bandwidth.take('a', free + rate);
  // The first second of its rate is a burst.
  assert.ok(Math.abs(first - performance.now()) < 1000);
  for (let frame = 1; frame <= 3; frame++) {
    const resumeAt = bandwidth.take('a', free + 2 * rate);
    assert.equal(Math.round(resumeAt - first), frame * 2000);
  }
});

test('an account that has a worker to itself is not paused', () => {
  const bandwidth = new AccountBandwidth(rate);
  for (let frame = 0; frame < 10; frame++) assert.equal(bandwidth.take('a', 10 * rate), 0);
});

test('frames of the size of tokens are free', () => {
  const bandwidth = shared();
  for (let frame = 0; frame < 1000; frame++) assert.equal(bandwidth.take('a', free), 0);
  const first = bandwidth.take('a', free + rate);
  assert.ok(first < performance.now() + 1);
});

test('what an account has taken does not pause another one', () => {
  const bandwidth = shared();
  bandwidth.take('a', 100 * rate);
  assert.ok(bandwidth.take('b', free + rate) < performance.now() + 1);
  assert.ok(bandwidth.take('a', 2 * free) > performance.now() + 90_000);
});

test('debts that are paid are forgotten', async () => {
  const bandwidth = new AccountBandwidth(1e9);
  bandwidth.see('other');
  for (let account = 0; account < 500; account++) {
    bandwidth.take(`account-${account}`, free + 1);
    if (account % 100 === 0) await delay(1);
  }
  await delay(1);
  bandwidth.take('last', free + 1);
  assert.equal(bandwidth.size, 1);
});
