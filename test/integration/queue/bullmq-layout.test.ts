import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type * as bullmq from 'bullmq';
import type { Queue, Worker } from 'bullmq';
import type { ClaimedJob, JobConsumerOptions } from '../../../workers/queue/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { noting, QueueFixture } from '../../support/faults/queue-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { queueOptions } = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');

/**
 * The version that the product has, and the newest of its major version (`npm update bullmq-newest` brings it): an upgrade is a
 * decision, for which these tests pass.
 */
for (const name of ['bullmq', 'bullmq-newest']) {
  const library = (await import(name)) as typeof bullmq;

  describe(`a queue shared by ${name} and the gateway`, () => {
    let queues: QueueFixture;
    let theirs: Queue;
    before(async () => {
      queues = await QueueFixture.start();
    });
    after(() => queues?.stop());
    beforeEach(() => {
      queues.newQueue();
      theirs = queues.closeLater(new library.Queue(queues.capability, options({})));
    });

    function options<Options extends object>(more: Options) {
      return queueOptions(queues.capability, queues.redis.client, more);
    }

    /** Starts one of its Workers. @param run what its jobs are done by; left out: their ids are noted */
    async function work(run?: (job: bullmq.Job) => Promise<unknown>, more: Partial<bullmq.WorkerOptions> = {}) {
      const ran: string[] = [];
      const note = async ({ data }: bullmq.Job): Promise<void> => void ran.push(data.id);
      const settings = { concurrency: 1, stalledInterval: 200, removeOnComplete: { count: 0 }, ...more };
      const worker: Worker = new library.Worker(queues.capability, run ?? note, options(settings));
      queues.closeLater(worker);
      await worker.waitUntilReady();
      return ran;
    }

    /** Has the gateway claim one job, which runs until it is let go. */
    async function claimOne(more: Partial<JobConsumerOptions> = {}): Promise<() => void> {
      let letGo: () => void = () => undefined;
      const held = new Promise<'done'>((resolve) => {
        letGo = () => resolve('done');
      });
      await new Promise<void>((claimed) => {
        const run = (): Promise<'done'> => {
          claimed();
          return held;
        };
        queues.consume(run, { concurrency: 1, ...more });
      });
      return letGo;
    }

    /** Adds a job as it does. */
    async function add(more: bullmq.JobsOptions = {}): Promise<string> {
      const job = queues.job();
      await theirs.add('job', job, { jobId: `job_${job.id}`, removeOnFail: true, ...more });
      return job.id;
    }

    test(`a Worker of ${name} runs the jobs of the gateway in order of priority and leaves nothing in Redis`, async () => {
      const late = await queues.putAt(20);
      const early = await queues.putAt(10);
      const [first, second] = await queues.put(2);
      const ran = await work();
      await eventually(() => assert.deepEqual(ran, [first, second, early, late]));
      await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
    });

    test(`the gateway claims the jobs added by ${name} in order of priority and leaves nothing in Redis`, async () => {
      const late = await add({ priority: 20 });
      const early = await add({ priority: 10 });
      const [first, second] = [await add(), await add()];
      const claimed: ClaimedJob[] = [];
      queues.consume(
        async (job) => {
          claimed.push(job);
          return 'done';
        },
        { concurrency: 1 },
      );
      await eventually(() =>
        assert.deepEqual(
          claimed.map(({ job, priority }) => [job.id, priority]),
          [
            [first, 0],
            [second, 0],
            [early, 10],
            [late, 20],
          ],
        ),
      );
      await eventually(async () => assert.deepEqual(await queues.leftovers(), []));
    });

    test(`jobs with a priority run in one order, whether ${name} or the gateway added them`, async () => {
      const last = await queues.putAt(20);
      const second = await add({ priority: 15 });
      const first = await queues.putAt(10);
      const ran = await work();
      await eventually(() => assert.deepEqual(ran, [first, second, last]));
    });

    test(`a job added by the gateway has the same fields as one added by ${name}`, async () => {
      const options = { removeOnFail: true, attempts: 0 };
      for (const priority of [0, 10]) {
        const ours = priority === 0 ? (await queues.put(1))[0] : await queues.putAt(priority);
        const other = await add({ ...options, ...(priority > 0 && { priority }) });
        const [one, another] = await Promise.all(
          [ours, other].map((id) => queues.jobs.redis.hgetall(`${queues.keysPrefix}job_${id}`)),
        );
        // By its account the gateway finds its line, which its work moves on.
        const { data: _, timestamp: when, opts = '', account: ___, work: ____, ...written } = one ?? {};
        const { data: __, timestamp, opts: theirOpts = '', ...theirsWritten } = another ?? {};
        assert.deepEqual(written, theirsWritten);
        assert.deepEqual(JSON.parse(opts), { ...JSON.parse(theirOpts), jobId: `job_${ours}` });
        assert.ok(Math.abs(Number(when) - Number(timestamp)) < 5000);
      }
    });

    test(`a queue paused by ${name} gives the gateway no jobs, until it is resumed`, async () => {
      await theirs.pause();
      const ids = [...(await queues.put(2)), await add()];
      const { ran, run } = noting();
      queues.consume(run);
      const again = noting();
      // A second one that starts while it is paused looks at the queue before it waits.
      await queues.consume(again.run).close();
      assert.deepEqual([ran, again.ran], [[], []]);
      assert.equal((await queues.reader.depth()).waiting, 3);
      await theirs.resume();
      await eventually(() => assert.deepEqual([...ran].sort(), [...ids].sort()));
    });

    test(`a Worker of ${name} takes over a claimed job whose lock expired, and counts it as stalled`, async () => {
      const [id] = await queues.put(1);
      // It is renewed far too late, as by a process that was stopped.
      const letGo = await claimOne({ lockMs: 600_000 });
      await queues.jobs.redis.del(`${queues.keysPrefix}job_${id}:lock`);
      const stalled: [string, number][] = [];
      await work(async ({ data, stalledCounter }) => void stalled.push([data.id, stalledCounter]));
      await eventually(() => assert.deepEqual(stalled, [[id, 1]])).finally(letGo);
    });

    test(`the gateway does not claim a delayed job of ${name}, which a Worker runs when it is due`, async () => {
      const delayed = await add({ delay: 1500 });
      const { ran, run } = noting();
      const consumer = queues.consume(run);
      const [id] = await queues.put(1);
      await eventually(() => assert.deepEqual(ran, [id]));
      await consumer.close();
      assert.deepEqual(ran, [id]);
      assert.equal((await queues.reader.depth()).waiting, 0);
      assert.equal(await theirs.getDelayedCount(), 1);
      const theirRan = await work();
      await eventually(() => assert.deepEqual(theirRan, [delayed]));
    });

    test(`${name} drains the jobs of the gateway, with and without a priority`, async () => {
      const ids = [...(await queues.put(2)), ...(await queues.put(2, { hasPriority: true }))];
      await theirs.drain();
      for (const id of ids) assert.equal(await queues.queue.has(id), false);
      assert.deepEqual(await queues.reader.depth(), { waiting: 0, active: 0, oldestWaitMs: 0 });
      // BullMQ leaves the counter of its priorities, and so does the gateway until a claim finds nothing.
      assert.deepEqual(await queues.leftovers(), [`${queues.keysPrefix}pc`]);
    });

    test(`${name} shows and removes jobs that the gateway has added and claimed`, async () => {
      const [claimedId] = await queues.put(1);
      const letGo = await claimOne();
      const [waiting] = await queues.put(1);
      const [withTurn] = await queues.put(1, { hasPriority: true });
      const counts = await theirs.getJobCounts('wait', 'active', 'prioritized', 'delayed', 'failed');
      assert.deepEqual(counts, { wait: 1, active: 1, prioritized: 1, delayed: 0, failed: 0 });
      for (const [state, id] of [
        ['active', claimedId],
        ['wait', waiting],
        ['prioritized', withTurn],
      ] as const) {
        const [job] = await theirs.getJobs([state]);
        assert.deepEqual([job?.id, job?.name, job?.data.id], [`job_${id}`, 'job', id]);
      }
      const [job] = await theirs.getJobs(['wait']);
      await job?.remove();
      assert.equal(await queues.queue.has(waiting as string), false);
      letGo();
    });

    test(`the gateway counts, positions and removes jobs of ${name} like its own`, async () => {
      const [ours] = await queues.put(1);
      const other = await add();
      const last = await add({ priority: 3 });
      const { queue } = queues;
      assert.equal(
        await queue.reader.waiting(),
        await theirs.getWaitingCount().then(async (n) => n + (await theirs.getPrioritizedCount())),
      );
      assert.deepEqual(
        [
          await queue.reader.position(ours as string),
          await queue.reader.position(other),
          await queue.reader.position(last),
        ],
        [0, 1, 2],
      );
      assert.equal((await queue.find(other))?.id, other);
      assert.equal(await queue.remove(other), true);
      assert.equal(await theirs.getJob(`job_${other}`), undefined);
    });

    test(`the gateway removes a job of ${name} wherever it waits, and one whose worker died, but no claimed one`, async () => {
      const { queue } = queues;
      const waiting = [await add(), await add({ priority: 5 }), await add({ delay: 600_000 })];
      const claimed = await add();
      for (const id of waiting) assert.equal(await queue.remove(id), true);
      assert.equal(await queue.remove(waiting[0] as string), false, 'removed before');
      const letGo = await claimOne({ lockMs: 600_000, stalledCheckMs: 600_000 });
      try {
        assert.equal(await queue.remove(claimed), false, 'claimed');
        await queues.jobs.redis.del(`${queues.keysPrefix}job_${claimed}:lock`);
        assert.equal(await queue.remove(claimed), true);
        // The counter of priorities stays until the next claim.
        assert.deepEqual(await queues.leftovers(), [`${queues.keysPrefix}pc`]);
      } finally {
        letGo();
      }
    });
  });
}
