import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { ParkedJobs } from '../../../shared/queue/parking/parked-jobs.ts';
import { Parking } from '../../../workers/queue/parking.ts';
import { VendorLines } from '../../../workers/queue/vendor-lines.ts';
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
    unpark: async (withCapacity = []) => {
      if (++releases === 1) await first;
      ready.push(new Map(withCapacity).get(route) ?? 0);
      return [{ route, nextMs: 60_000, waiting: 1, intervalMs: 0 }];
    },
  };
  const parking = new Parking('chat', jobs as ParkedJobs, { warn: () => undefined }, new VendorLines());
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

test('what the calls of a vendor leave, the lines of its routes have in turn, in all queues', async () => {
  const lines = new VendorLines();
  const released: Record<string, number>[] = [];
  const open = (capability: 'chat' | 'embedding', ...routes: string[]): Parking => {
    const known = routes.map((route) => ({ route, nextMs: 60_000, waiting: 9, intervalMs: 0 }));
    const jobs: Pick<ParkedJobs, 'park' | 'unpark'> = {
      park: async () => ({ verdict: 'parked', ms: 60_000, waiting: 9 }),
      unpark: async (ready = []) => {
        for (const [route, number] of ready) released.push({ [route]: number });
        return known;
      },
    };
    return new Parking(capability, jobs as ParkedJobs, { warn: () => undefined }, lines);
  };
  const chat = open('chat', 'vendor/busy', 'vendor/rare', 'vendors/other');
  const embedding = open('embedding', 'vendor/vectors');
  const call = { id: 'job', token: 'claim', account: 'account', waitMs: 0, intervalMs: 0 };
  const rest = { latestMs: 600_000, maxParked: 100, work: 1 };
  for (const route of ['vendor/busy', 'vendor/rare', 'vendors/other']) await chat.park({ ...call, ...rest, route });
  await embedding.park({ ...call, ...rest, route: 'vendor/vectors' });
  for (let ended = 0; ended < 6; ended++) chat.hasCapacity('vendor/busy', 'vendor');
  chat.hasCapacity('vendors/other');
  try {
    await eventually(() => assert.equal(released.length, 5));
    // The route of the calls may use what the others cannot, and comes last.
    const inChat = [{ 'vendor/busy': 2 }, { 'vendor/rare': 2 }, { 'vendors/other': 1 }, { 'vendor/busy': 4 }];
    assert.deepEqual(
      released.filter((each) => !('vendor/vectors' in each)),
      inChat,
    );
    assert.deepEqual(
      released.filter((each) => 'vendor/vectors' in each),
      [{ 'vendor/vectors': 2 }],
    );
  } finally {
    await Promise.all([chat.close(), embedding.close()]);
  }
});
