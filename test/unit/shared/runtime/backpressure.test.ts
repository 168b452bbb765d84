import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Backpressure } from '../../../../shared/runtime/backpressure.ts';

/** One whose account may take more from the next of these times on, in ms of `performance.now()`. */
function pressure(...resumeAt: number[]): Backpressure {
  return new Backpressure({ account: 'a', bandwidth: { take: () => resumeAt.shift() ?? 0 } });
}

/** Follows a promise. */
function follow(promise: Promise<void>): { isResolved: boolean } {
  const followed = { isResolved: false };
  promise.then(
    () => {
      followed.isResolved = true;
    },
    () => undefined,
  );
  return followed;
}

test('a vendor is paused while more than 256 Ki characters wait to be written', async () => {
  const stream = pressure();
  stream.add(200_000);
  assert.equal(stream.isFull, false);
  await stream.drained();
  stream.add(200_000);
  assert.equal(stream.isFull, true);
  const paused = follow(stream.drained());
  await turn();
  assert.equal(paused.isResolved, false);
  stream.remove(200_000);
  await turn();
  assert.deepEqual([paused.isResolved, stream.isFull], [true, false]);
});

test('a vendor is paused until its account may take more, also by a frame that comes meanwhile', async () => {
  const now = performance.now();
  const stream = pressure(now + 20, now + 60);
  stream.add(1);
  const paused = stream.drained();
  stream.add(1);
  stream.remove(2);
  await paused;
  assert.ok(performance.now() >= now + 60);
});

test('what is written does not end the pause of an account', async () => {
  const stream = pressure(performance.now() + 5000);
  stream.add(1);
  const paused = follow(stream.drained());
  stream.remove(1);
  await turn();
  assert.equal(paused.isResolved, false);
  stream.close();
  await turn();
  assert.equal(paused.isResolved, true, 'its end does');
  await stream.drained();
});
