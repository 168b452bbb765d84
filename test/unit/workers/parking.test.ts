import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ParkedJobs } from '../../../shared/queue/parking/parked-jobs.ts';
import { Parking } from '../../../workers/queue/parking.ts';
import { eventually } from '../../support/eventually.ts';

test('parked jobs are released again after a release that took longer than the next one was due', async () => {
  const route = 'vendor/model';
  let answerFirst = (): void => undefined;
  const first = new Promise<void>((resolve) => {
    answerFirst = resolve;
  });
  let releases = 0;
  const ready: number[] = [];
  const jobs: Pick<ParkedJobs, 'park' | 'unpark'> = {
    park: async () => ({ verdict: 'parked', ms: 0, waiting: 1 }),
    unpark: async (withCapacity = new Map()) => {
      if (++releases === 1) await first;
      ready.push(withCapacity.get(route) ?? 0);
      return [{ route, nextMs: 60_000, waiting: 1, intervalMs: 0 }];
    },
  };
  const parking = new Parking('chat', jobs as ParkedJobs, { warn: () => undefined });
  const call = { id: 'job', token: 'claim', account: 'account', route, waitMs: 0, intervalMs: 0 };
  await parking.park({ ...call, latestMs: 600_000, maxParked: 100, work: 1 });
  await eventually(() => assert.equal(releases, 1));
  // Redis is slow: the next release is due while this one is under way.
  parking.hasCapacity(route);
  await delay(150);
  answerFirst();
  try {
    await eventually(() => assert.ok(ready.length > 1, 'nothing is released any more'), 2000);
    assert.deepEqual(ready.slice(0, 2), [0, 1]);
  } finally {
    await parking.close();
  }
});
