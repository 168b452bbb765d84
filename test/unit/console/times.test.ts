import assert from 'node:assert/strict';
import { test } from 'node:test';

// By its address: the console's types are checked apart from these.
const module = new URL('../../../console/src/format/time.ts', import.meta.url).href;
const { duration, fromNow } = (await import(module)) as {
  duration: (ms: number) => string;
  fromNow: (at: number, now: number) => string;
};

test('the console tells no span of sixty seconds or minutes, of a thousand milliseconds or of twenty-four hours', () => {
  assert.deepEqual([999.4, 999.6, 9994, 9996, 59_940, 59_960, 119_999, 3_599_800].map(duration), [
    '999 ms',
    '1.00 s',
    '9.99 s',
    '10.0 s',
    '59.9 s',
    '1 min 0 s',
    '2 min 0 s',
    '1 h 0 min',
  ]);
  assert.deepEqual(
    [3540, 3599, 84_000, 86_399].map((seconds) => fromNow(0, seconds * 1000)),
    ['59 minutes ago', '1 hour ago', '23 hours ago', '23 hours ago'],
  );
});
