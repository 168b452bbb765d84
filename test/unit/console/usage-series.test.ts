import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

interface Point {
  readonly at: number;
  readonly requests: number;
}

// By its address: the console's types are checked apart from these.
const module = new URL('../../../console/src/pages/usage/usage-series.ts', import.meta.url).href;
const { usageSeries } = (await import(module)) as {
  usageSeries: (rows: object[], span: { from: number; to: number }, size: 'hour' | 'day') => Point[];
};

const hour = 3_600_000;
const zone = process.env.TZ;

before(() => {
  process.env.TZ = 'Europe/Berlin';
});
after(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

function rowsOf(...times: readonly number[]): object[] {
  return times.map((group, index) => ({ group, label: '', requests: index + 1, failed: 0, cancelled: 0 }));
}

test('the hour that comes twice when clocks are set back has two points in a chart of usage, each with its own requests', () => {
  // 02:00 in summer time, 02:00 in winter time, and the hours around them.
  const from = Date.UTC(2026, 9, 24, 23);
  const times = [0, 1, 2, 3].map((index) => from + index * hour);
  const points = usageSeries(rowsOf(...times), { from, to: from + 4 * hour }, 'hour');
  assert.deepEqual(
    points.map(({ at, requests }) => [at, requests]),
    times.map((at, index) => [at, index + 1]),
  );
});

test('days of 23, 24 and 25 hours have a point each in a chart of usage, whatever the offset of their sums', () => {
  for (const [month, day] of [
    [2, 29],
    [9, 25],
  ] as const) {
    const midnight = (index: number): number => new Date(2026, month, day + index).getTime();
    for (const offset of [1, 2]) {
      const rows = rowsOf(...[-1, 0, 1].map((index) => Date.UTC(2026, month, day + index) - offset * hour));
      const points = usageSeries(rows, { from: midnight(-1), to: midnight(2) }, 'day');
      assert.deepEqual(
        points.map(({ requests }) => requests),
        [1, 2, 3],
        `${month} ${offset}`,
      );
    }
  }
});
