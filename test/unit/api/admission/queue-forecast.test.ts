import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { QueueForecast, type QueueSample } from '../../../../api/admission/queue-forecast.ts';

const targetMs = 2000;
const patient = { queueWaitMs: 20_000, deadlineMs: 600_000, startMs: undefined as number | undefined };

/** A queue whose workers claim so many jobs a second, as an api process looks at it ten times a second. */
class WatchedQueue {
  readonly forecast = new QueueForecast(targetMs, 0.8);
  at = 1000;
  claimed = 0;

  look(lines: Record<string, number>, more: Partial<QueueSample> = {}): void {
    const waiting = Object.values(lines).reduce((sum, count) => sum + count, 0);
    const sample = { at: this.at, isBackedUp: true, waiting, active: 2, claimed: Math.floor(this.claimed) };
    this.forecast.note({ ...sample, lines: new Map(Object.entries(lines)), highLines: new Map(), ...more });
  }

  /** Time passes while the lines stay as they are. */
  pass(seconds: number, claimsPerSecond: number, lines: Record<string, number>): void {
    for (let step = 0; step < seconds * 10; step++) {
      this.at += 100;
      this.claimed += claimsPerSecond / 10;
      this.look(lines);
    }
  }

  refusal(account: string, more: Partial<typeof patient & { isHigh: boolean }> = {}) {
    return this.forecast.refusal({ account, isHigh: false, at: this.at, ...patient, ...more });
  }

  wait(account: string): number {
    return Math.round((this.forecast.waitOf(account) ?? Number.NaN) / 1000);
  }
}

/** One whose rate has been measured. */
function measured(lines: Record<string, number>, claimsPerSecond = 4): WatchedQueue {
  const queue = new WatchedQueue();
  queue.look(lines);
  queue.pass(20, claimsPerSecond, lines);
  return queue;
}

describe('forecast of a queue', () => {
  test('nothing is refused in a queue at which nobody has looked, or in which nothing waits', () => {
    const queue = new WatchedQueue();
    assert.equal(queue.refusal('a'), undefined);
    queue.look({}, { isBackedUp: false });
    assert.equal(queue.refusal('a', { deadlineMs: 1 }), undefined);
    assert.equal(queue.wait('a'), 0);
  });

  test('nothing is refused before the rate of a queue is measured, however long it is', () => {
    const queue = new WatchedQueue();
    queue.look({ a: 100_000 });
    queue.pass(30, 0, { a: 100_000 });
    assert.equal(queue.refusal('a', { deadlineMs: 1 }), undefined);
  });

  test('nothing is refused while no worker has any job', () => {
    const queue = measured({ a: 1000 });
    assert.ok(queue.refusal('a'));
    queue.at += 100;
    queue.look({ a: 1000 }, { active: 0 });
    assert.equal(queue.refusal('a'), undefined);
    queue.look({ a: 1000 }, { active: 0 });
    assert.equal(queue.refusal('a'), undefined);
  });

  test('the wait of an account that is alone is its line over the measured rate', () => {
    const queue = measured({ a: 40 });
    assert.equal(queue.wait('a'), 10);
    assert.equal(queue.wait('b'), 0);
  });

  test('an account waits for as many jobs of each other account as it has itself, and for all without a priority', () => {
    const queue = measured({ a: 40, b: 3, c: 100 });
    // 40 of its own, 3, and 41 of the third.
    assert.equal(queue.wait('a'), 21);
    assert.equal(queue.wait('b'), Math.round((3 + 4 + 4) / 4));
    assert.equal(queue.wait('new'), Math.round(3 / 4));
    queue.look({ a: 40 }, { waiting: 60 });
    assert.equal(queue.wait('a'), 15);
  });

  test('admitted jobs count before the next look, for their own account and for others', () => {
    const queue = measured({ a: 4, b: 4 });
    for (let count = 0; count < 36; count++) queue.forecast.added('a');
    assert.equal(queue.wait('a'), 11);
    assert.equal(queue.wait('b'), Math.round((4 + 5) / 4));
    for (let count = 0; count < 8; count++) queue.forecast.added('b');
    assert.equal(queue.wait('a'), 13);
  });

  test('a request is refused beyond four fifths of the queue wait, and told when it would not be', () => {
    const queue = measured({ a: 60 });
    assert.equal(queue.refusal('a'), undefined);
    queue.look({ a: 80 });
    const { isOwnLine, waitMs = 0, retryAfterMs = 0 } = queue.refusal('a') ?? {};
    assert.deepEqual([isOwnLine, Math.round(waitMs / 1000), Math.round(retryAfterMs / 1000)], [true, 20, 4]);
    assert.equal(queue.refusal('b'), undefined);
  });

  test('an account without waiting jobs is refused only if the queue itself is too long', () => {
    const many = Object.fromEntries(Array.from({ length: 80 }, (_, index) => [`other${index}`, 5]));
    const queue = measured(many);
    assert.equal(queue.refusal('new')?.isOwnLine, false);
  });

  test('a request is refused if it would wait beyond its deadline, less the time that a job takes', () => {
    const queue = measured({ a: 40 });
    assert.equal(queue.refusal('a', { deadlineMs: 11_000 }), undefined);
    assert.ok(queue.refusal('a', { deadlineMs: 9000 }));
    queue.look({ a: 40 }, { active: 40 });
    assert.ok(queue.refusal('a', { deadlineMs: 15_000 }), 'a job takes ten seconds');
    assert.equal(queue.refusal('a', { deadlineMs: 22_000 }), undefined);
  });

  test('a request is refused if it would begin later than its caller allows', () => {
    const queue = measured({ a: 40 });
    assert.equal(queue.refusal('a', { startMs: 11_000 }), undefined);
    assert.ok(queue.refusal('a', { startMs: 9000 }));
    queue.look({ a: 40 }, { active: 40 });
    assert.equal(queue.refusal('a', { startMs: 11_000 }), undefined, 'it may take as long as it takes');
    assert.ok(queue.refusal('a', { queueWaitMs: Number.POSITIVE_INFINITY, startMs: 9000 }));
  });

  test('work that nobody waits for may wait until its deadline', () => {
    const queue = measured({ a: 400 });
    assert.ok(queue.refusal('a'));
    assert.equal(queue.refusal('a', { queueWaitMs: Number.POSITIVE_INFINITY }), undefined);
    assert.ok(queue.refusal('a', { queueWaitMs: Number.POSITIVE_INFINITY, deadlineMs: 50_000 }));
  });

  test('an account that is refused persistently gets in again once its line is as short as the target', () => {
    const queue = measured({ a: 80 });
    for (let step = 0; step < 30; step++) {
      queue.pass(0.1, 4, { a: 80 });
      assert.ok(queue.refusal('a'));
    }
    queue.pass(0.1, 4, { a: 40 });
    const { isOwnLine, retryAfterMs = 0 } = queue.refusal('a') ?? {};
    assert.deepEqual([isOwnLine, Math.round(retryAfterMs / 1000)], [true, 8]);
    assert.equal(queue.refusal('b'), undefined, 'another account is not kept to it');
    queue.pass(0.1, 4, { a: 7 });
    assert.equal(queue.refusal('a'), undefined);
  });

  test('a burst that was refused in part does not keep its account to the target', () => {
    const queue = measured({ a: 80 });
    for (let count = 0; count < 300; count++) assert.ok(queue.refusal('a'));
    queue.pass(3, 4, { a: 60 });
    assert.equal(queue.refusal('a'), undefined);
  });

  test('the rate follows workers that come and go', () => {
    const queue = measured({ a: 400 });
    queue.pass(30, 40, { a: 400 });
    assert.ok(queue.wait('a') <= 11, `${queue.wait('a')} s`);
    queue.pass(60, 4, { a: 400 });
    assert.ok(queue.wait('a') >= 80, `${queue.wait('a')} s`);
  });

  test('jobs that end together are not taken for a queue that slows down before the next ones end', () => {
    const queue = new WatchedQueue();
    const [slots, jobSeconds] = [50, 20];
    const waiting = { a: 50 };
    queue.look(waiting, { active: slots });
    for (let step = 1; step < jobSeconds * 10 * 6; step++) {
      queue.at += 100;
      if (step % (jobSeconds * 10) === 0) queue.claimed += slots;
      queue.look(waiting, { active: slots });
      assert.ok(
        Number.isNaN(queue.wait('a')) || queue.wait('a') <= 1.3 * jobSeconds,
        `${queue.wait('a')} s at ${step}`,
      );
    }
  });

  test('the rate falls once all jobs take longer than before', () => {
    const queue = measured({ a: 40 });
    queue.pass(60, 0, { a: 40 });
    assert.ok(queue.wait('a') > 60, `${queue.wait('a')} s`);
  });

  test('a measured rate is forgotten some time after jobs have waited, and when Redis is another', () => {
    const queue = measured({ a: 1000 });
    for (const [ms, isKnown] of [
      [30_000, true],
      [61_000, false],
    ] as const) {
      queue.look({}, { isBackedUp: false });
      queue.at += ms;
      queue.look({ a: 1000 });
      assert.equal(queue.refusal('a') !== undefined, isKnown);
    }
    const other = measured({ a: 1000 });
    other.at += 100;
    other.claimed = 0;
    other.look({ a: 1000 });
    assert.equal(other.refusal('a'), undefined);
  });

  test('a line that seems longer than the queue counts no more than that', () => {
    const queue = measured({ a: 4 });
    queue.look({ a: 1000 }, { waiting: 8 });
    assert.equal(queue.wait('a'), 2);
  });

  test('jobs of high priority wait for their lines, and for the share of others; others for both, up to the share', () => {
    const queue = measured({ a: 40, b: 40 });
    const high = new Map([
      ['a', 80],
      ['c', 8],
    ]);
    queue.look({ a: 40, b: 40 }, { waiting: 168, highLines: high });
    const before = (account: string, isHigh = false): number =>
      Math.round(100 * (queue.forecast.waitOf(account, isHigh) ?? 0) * (queue.forecast.rate ?? 0)) / 100;
    // One job of each line, and one of others for each four.
    assert.equal(before('new', true), 2 + 2 / 4);
    assert.equal(before('c', true), 9 + 8 + 17 / 4);
    // Four of high priority for each of the others, until none is left.
    assert.equal(before('new'), 2 + 3 * 4);
    assert.equal(before('a'), 80 + 88);
    for (let count = 0; count < 8; count++) queue.forecast.added('new', true);
    assert.equal(before('new', true), 9 + 8 + 8 + 25 / 4);
  });

  test('an account that is refused with one priority is not kept short with the other', () => {
    const queue = measured({ a: 400 });
    for (let step = 0; step < 30; step++) {
      queue.at += 100;
      queue.claimed += 0.4;
      queue.look({ a: 400 }, { waiting: 425, highLines: new Map([['a', 25]]) });
      assert.ok(queue.refusal('a'), 'its line is too long');
      if (step > 22) assert.equal(queue.refusal('a', { isHigh: true }), undefined);
    }
  });
});
