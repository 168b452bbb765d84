import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AccountBandwidth, AccountPace } from '../../../../shared/fairness/account-bandwidth.ts';

const free = 4096;
const rate = 1_000_000;

/** A worker that serves `a` and `b`. */
function shared(onPaced?: () => void): AccountBandwidth {
  const bandwidth = new AccountBandwidth(rate, onPaced);
  bandwidth.accounts.see('a');
  bandwidth.accounts.see('b');
  return bandwidth;
}

test('large frames of an account are paid for by its rate while the worker serves another one', () => {
  let paced = 0;
  const bandwidth = shared(() => paced++);
  const first = bandwidth.take('a', free + rate - 1000);
  // The first second of its rate is a burst.
  assert.ok(Math.abs(first - performance.now()) < 1000);
  assert.equal(paced, 0);
  for (let frame = 1; frame <= 3; frame++) {
    const resumeAt = bandwidth.take('a', free + 2 * rate);
    assert.equal(Math.round(resumeAt - first), frame * 2000);
    assert.equal(paced, frame);
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
  bandwidth.accounts.see('other');
  for (let account = 0; account < 500; account++) {
    bandwidth.take(`account-${account}`, free + 1);
    if (account % 100 === 0) await delay(1);
  }
  await delay(1);
  bandwidth.take('last', free + 1);
  assert.equal(bandwidth.size, 1);
});

/** Of an answer whose account may go on at the next of these times, in ms of `performance.now()`. */
function paceOf(...resumeAt: number[]): AccountPace {
  return new AccountPace({ take: () => resumeAt.shift() ?? 0 }, 'a');
}

test('an answer rests until its account may take more, also by a frame that comes meanwhile', async () => {
  const now = performance.now();
  const pace = paceOf(now + 20, now + 60);
  assert.equal(pace.isResting, false);
  await pace.rested();
  pace.take(1);
  assert.equal(pace.isResting, true);
  const rested = pace.rested();
  pace.take(1);
  await rested;
  assert.ok(performance.now() >= now + 60);
  assert.equal(pace.isResting, false);
});

test('the end of an answer ends its rest', { timeout: 4000 }, async () => {
  const pace = paceOf(performance.now() + 5000);
  pace.take(1);
  let isOver = false;
  const rested = pace.rested().then(() => {
    isOver = true;
  });
  await delay(10);
  assert.equal(isOver, false);
  pace.close();
  await rested;
  await pace.rested();
});
