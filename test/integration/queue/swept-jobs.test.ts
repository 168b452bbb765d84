import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../../shared/jobs/settlement/end-job.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import { QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { readJobState } = await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { holdMember } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { Sweeper } = await loadProduct<typeof import('../../../shared/jobs/settlement/sweeper.ts')>(
  'shared/jobs/settlement/sweeper',
);

let queues: QueueFixture;
before(async () => {
  queues = await QueueFixture.start();
});
beforeEach(() => queues.newQueue());
after(() => queues?.stop());

/** Has the sweeper look at jobs; returns what it logs. */
async function sweep(...jobs: readonly JobIdentity[]): Promise<[fields: object, message: string][]> {
  const { redis } = queues.jobs;
  for (const job of jobs) await redis.zadd(accountKeys.holds(job.account), 1, holdMember({ ...job, jobId: job.id }));
  const blobs = { ofRecords: () => ({ delete: async () => undefined }) } as never;
  const context: EndJobContext = { redis, isCluster: false, blobs, queue: () => queues.queue };
  const lines: [object, string][] = [];
  const log = { warn: (fields: object, message: string) => lines.push([fields, message]) } as unknown as Logger;
  const sweeper = new Sweeper(context, log);
  try {
    await sweeper.sweep();
  } finally {
    sweeper.close();
  }
  return lines;
}

const codeOf = async ({ id }: JobIdentity) => (await readJobState(queues.jobs.redis, id))?.errorCode;

test('the sweeper logs each job that it ends as lost, by its id and code', async () => {
  const { jobs } = queues;
  const unqueued = await jobs.create();
  assert.deepEqual(await sweep(unqueued), [
    [{ job: unqueued.id, code: 'service_unavailable' }, 'job was lost; it is ended'],
  ]);
  assert.equal(await codeOf(unqueued), 'service_unavailable');
  const begun = await jobs.create();
  await jobs.take(begun);
  await jobs.expireLease(begun);
  assert.deepEqual(await sweep(begun), [[{ job: begun.id, code: 'outcome_unknown' }, 'job was lost; it is ended']]);
});

test('the sweeper logs nothing of a job that waits in its queue, nor of one whose deadline has passed', async () => {
  const { jobs } = queues;
  const waiting = await jobs.create();
  await queues.queue.enqueue(waiting);
  const overdue = await jobs.create({ createdAt: Date.now() - 60_000, deadlineAt: Date.now() - 1000 });
  assert.deepEqual(await sweep(waiting, overdue), []);
  assert.deepEqual([await codeOf(waiting), await codeOf(overdue)], [undefined, 'timeout']);
});
