import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { Queue } from 'bullmq';
import { ApiError } from '../../shared/errors.ts';
import type { JobRecord } from '../../shared/jobs/settlement/outbox.ts';
import { eventually } from '../support/eventually.ts';
import { type StoppingPoint, startDoomedWorker } from '../support/faults/doomed-worker.ts';
import { picture, type QueuedVideo, VideoJobs } from '../support/faults/video-jobs.ts';
import { linesOf, loadProduct } from '../support/gateway.ts';
import { type JournalEntry, vendorCalls } from '../support/vendor-journal.ts';
import { sendJson, startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';

const { jobKeys } = await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');

/** Takes longer than a dead worker goes unnoticed, and says on the way that it is less far than it was. */
const video = { duration_ms: 14_000, queued_ms: 0, progress: [41, 20] };
/** Says nothing more until its caller leaves, the first time. */
const silentOnce = { kind: 'silence', times: 1 };

interface Phase {
  readonly name: string;
  /** Kills the worker that it starts at its place in the job's life. */
  readonly kill: (jobs: VideoJobs, job: QueuedVideo) => Promise<void>;
  /** What is asked of the sandbox. */
  readonly sandbox?: object;
  readonly outcome?: 'failed';
  readonly errorCode?: string;
  /** How often the vendor was asked to make something; 1 unless it is said. */
  readonly creations?: number;
}

/** Kills a worker where it calls a script. */
function at(script: string, stop: StoppingPoint['stop'], call = 1): Phase['kill'] {
  return async ({ gateway }) => {
    const { hit } = await startDoomedWorker(gateway, { script, stop, call }, {}, new Set());
    await hit;
  };
}

/** Kills a worker once the sandbox has seen something of the job. */
function when(name: string, hasCome: (call: JournalEntry | undefined) => boolean): Phase['kill'] {
  return async ({ gateway }, job) => {
    const worker = await gateway.startWorker();
    await eventually(async () => {
      const [call] = await vendorCalls(gateway, job.id);
      assert.ok(hasCome(call), `the vendor has not seen ${name}`);
    }, 30_000);
    await worker.kill();
  };
}

const unknown = { outcome: 'failed', errorCode: 'outcome_unknown' } as const;
const phases: readonly Phase[] = [
  { name: 'before begin', kill: at('begin', 'before') },
  // "sent" is committed with the attempt: whether the vendor was called, nobody can know.
  { name: 'after begin and before the creation', kill: at('begin', 'after'), ...unknown, creations: 0 },
  {
    name: 'during the creation',
    kill: when('the creation', (call) => call !== undefined),
    sandbox: { video, first_token_ms: 3000 },
    ...unknown,
  },
  { name: 'after the creation and before its task is stored', kill: at('store-task', 'before'), ...unknown },
  { name: 'after its task is stored', kill: at('store-task', 'after') },
  { name: 'before the first pause', kill: at('pause', 'before') },
  { name: 'between the first pause and the delay', kill: at('pause', 'after') },
  {
    name: 'during a poll',
    kill: when('a poll', (call) => call?.video?.polls === 2),
    sandbox: { video: { ...video, poll_fault: { ...silentOnce, after: 1 } } },
  },
  { name: 'after a poll and before its pause', kill: at('pause', 'before', 2) },
  { name: 'between a poll’s pause and the delay', kill: at('pause', 'after', 2) },
  {
    name: 'while the job waits for its next poll',
    kill: async (jobs, job) => {
      const worker = await jobs.gateway.startWorker();
      await jobs.delayed(job);
      await worker.kill();
      assert.ok((await jobs.blobs.text(job.requestBlob)).includes('otter'), 'its request is gone');
      assert.equal(await jobs.blobs.size(job.uploads[0]?.blob ?? ''), picture.length);
      assert.equal((await jobs.state(job)).outcome, undefined);
    },
  },
  {
    name: 'during a download',
    kill: when('a download', (call) => call?.video?.downloads === 1),
    sandbox: { video: { ...video, content_fault: silentOnce } },
  },
  { name: 'before finish', kill: at('finish', 'before') },
  { name: 'after finish and before settle', kill: at('settle', 'before') },
  { name: 'after settle', kill: at('settle', 'after') },
];

/** One outcome that the state and the one record agree in; whole numbers that rise; as many creations as expected. */
async function checkEnd(jobs: VideoJobs, job: QueuedVideo, record: JobRecord, phase: Phase): Promise<void> {
  const { outcome = 'completed', errorCode, creations = 1 } = phase;
  const state = await jobs.state(job);
  assert.deepEqual([state.outcome, state.errorCode], [outcome, errorCode]);
  assert.deepEqual([record.outcome, record.errorCode], [outcome, errorCode]);
  assert.equal((await vendorCalls(jobs.gateway, job.id)).length, creations, 'creations');
  assert.equal(record.attempts, 1, 'polls count as attempts');
  const { progress, end } = await jobs.log(job);
  for (const [index, step] of progress.entries()) {
    assert.ok(Number.isInteger(step) && step > (progress[index - 1] ?? 0), `progress: ${progress.join()}`);
  }
  if (outcome === 'failed') return;
  assert.equal(state.progress, 100);
  assert.equal(record.vendor, 'sandbox');
  const { content, bytes } = await jobs.blobs.read(end?.files.video.file as string);
  content.destroy();
  assert.ok(bytes > 1000 && bytes === end?.files.video.bytes, 'the video is not there');
}

describe('video jobs of killed workers', { concurrency: 3 }, () => {
  for (const phase of phases) {
    test(`a video job whose worker is killed ${phase.name} ends with one outcome and the expected creations`, async (t) => {
      const jobs = await VideoJobs.start();
      try {
        const job = await jobs.add(phase.sandbox ?? { video });
        await phase.kill(jobs, job);
        const killedAt = Date.now();
        await jobs.gateway.startWorker();
        const record = await jobs.over(job);
        await checkEnd(jobs, job, record, phase);
        const { progress } = await jobs.log(job);
        const end = `${record.outcome} ${record.errorCode ?? ''}`;
        t.diagnostic(`${phase.name}: ${end} after ${Date.now() - killedAt} ms, progress ${progress.join()}`);
      } finally {
        await jobs.stop();
      }
    });
  }
});

describe('video jobs across faults', { concurrency: 3 }, () => {
  test('all video jobs end when Redis and all workers are killed in the middle', async () => {
    const jobs = await VideoJobs.start({ aof: true, workers: 2, settings: { WORKER_CONCURRENCY_VIDEO: '2' } });
    try {
      const sandbox = { video };
      const added = await Promise.all(Array.from({ length: 12 }, () => jobs.add(sandbox)));
      await Promise.all(
        added.map((job) => eventually(async () => assert.ok((await jobs.state(job)).task, 'no task'), 30_000)),
      );
      await jobs.redis.ping();
      await Promise.all(jobs.gateway.workers.map((worker) => worker.kill()));
      await jobs.gateway.redis?.kill();
      await jobs.gateway.redis?.restart();
      await jobs.gateway.startWorker();
      for (const job of added)
        await checkEnd(jobs, job, await jobs.over(job), { name: 'restart', kill: at('', 'before') });
    } finally {
      await jobs.stop();
    }
  });

  test('video jobs hold no slot of their worker while they wait for a poll', async () => {
    const jobs = await VideoJobs.start({ workers: 1, settings: { WORKER_CONCURRENCY_VIDEO: '1' } });
    try {
      const long = await jobs.add({ video: { duration_ms: 60_000 } });
      await jobs.delayed(long);
      const short = await jobs.add({ video: { duration_ms: 0 } });
      await jobs.over(short, 15_000);
      assert.equal((await jobs.state(long)).outcome, undefined);
    } finally {
      await jobs.stop();
    }
  });

  test('a video job returns from its poll without the priority it was queued with', async () => {
    const jobs = await VideoJobs.start();
    const queue = new Queue('video', { connection: jobs.redis, prefix: 'sluice:{q-video}', skipVersionCheck: true });
    try {
      const job = await jobs.add({ video: { duration_ms: 60_000 } });
      await (await queue.getJob(`job_${job.id}`))?.changePriority({ priority: 5 });
      await jobs.gateway.startWorker();
      await jobs.delayed(job);
      assert.equal((await queue.getJob(`job_${job.id}`))?.priority, 0);
    } finally {
      await queue.close();
      await jobs.stop();
    }
  });

  test('video jobs move to another worker at once when theirs shuts down, during a poll or between two', async () => {
    const jobs = await VideoJobs.start({ settings: { SLUICE_SHUTDOWN_SECONDS: '600' } });
    try {
      const first = await jobs.gateway.startWorker();
      const silent = { video: { ...video, poll_fault: { ...silentOnce, after: 1 } } };
      const [polled, waiting] = [await jobs.add(silent), await jobs.add({ video })];
      await eventually(async () => {
        assert.equal((await vendorCalls(jobs.gateway, polled.id))[0]?.video?.polls, 2, 'the silent poll has not come');
      }, 30_000);
      assert.equal(await first.stop(), 0);
      assert.ok((linesOf(first, 'waiting for running jobs')[0]?.requeued ?? 0) >= 1, first.output());
      assert.equal(linesOf(first, 'running jobs are over')[0]?.interrupted, 0);
      await jobs.gateway.startWorker();
      for (const job of [polled, waiting]) {
        await checkEnd(jobs, job, await jobs.over(job, 20_000), { name: 'drained', kill: at('', 'before') });
      }
    } finally {
      await jobs.stop();
    }
  });

  test('a job that waits for the lease of another worker is requeued at once when its own worker shuts down', async () => {
    const jobs = await VideoJobs.start({ settings: { SLUICE_SHUTDOWN_SECONDS: '600' } });
    try {
      const job = await jobs.add({ video: { duration_ms: 0 } });
      const leased = { attempt: 1, worker: 'another', lease: Date.now() + 3_600_000 };
      await jobs.redis.hset(jobKeys.state(job.id), leased);
      const first = await jobs.gateway.startWorker();
      const list = (name: string): Promise<string[]> => jobs.redis.lrange(`sluice:{q-video}:video:${name}`, 0, -1);
      await eventually(async () => assert.deepEqual(await list('active'), [`job_${job.id}`]), 30_000);
      assert.equal(await first.stop(), 0);
      assert.deepEqual([await list('active'), await list('wait')], [[], [`job_${job.id}`]]);
      await jobs.redis.hset(jobKeys.state(job.id), { lease: 0 });
      await jobs.gateway.startWorker();
      assert.equal((await jobs.over(job, 20_000)).outcome, 'completed');
    } finally {
      await jobs.stop();
    }
  });

  test('video jobs survive polls and downloads that fail', async () => {
    const jobs = await VideoJobs.start({ workers: 1, settings: { SLUICE_VENDOR_SILENCE_SECONDS: '1' } });
    try {
      const faults = ['silence', 'reset', 'error', 'eof'] as const;
      const added = await Promise.all(
        faults.map((kind) => {
          const fault = { kind, ...(kind === 'error' && { status: 502 }) };
          const both = { poll_fault: { ...fault, times: 2 }, content_fault: { ...fault, times: 4 } };
          return jobs.add({ video: { duration_ms: 1000, ...both } });
        }),
      );
      for (const job of added) {
        await checkEnd(jobs, job, await jobs.over(job), { name: 'faults', kill: at('', 'before') });
      }
    } finally {
      await jobs.stop();
    }
  });

  test("a failed or rejected video ends with the vendor's error, and only a rate-limited creation is repeated", async () => {
    const jobs = await VideoJobs.start({ workers: 1 });
    try {
      const failed = await jobs.add({ video: { duration_ms: 500, failure: { code: 'moderation_blocked' } } });
      const refused = await jobs.add({ fault: { kind: 'rate_limit', retry_after: 30 } });
      const lost = await jobs.add({ fault: { kind: 'reset' } });
      assert.equal((await jobs.over(failed)).errorCode, 'invalid_request_error');
      assert.equal((await jobs.over(refused)).errorCode, 'rate_limit_exceeded');
      assert.equal((await jobs.over(lost)).errorCode, 'outcome_unknown');
      for (const job of [failed, refused, lost]) {
        assert.equal((await vendorCalls(jobs.gateway, job.id)).length, 1, 'it was asked for again');
      }
      // What the vendor has not begun is asked for again.
      const fault = { kind: 'rate_limit', retry_after: 1, times: 1, key: 'limited' };
      const limited = await jobs.add({ fault, video: { duration_ms: 500 } });
      assert.equal((await jobs.over(limited)).outcome, 'completed');
      const calls = await vendorCalls(jobs.gateway, limited.id);
      assert.deepEqual([calls.length, calls.filter(({ video }) => video?.id !== undefined).length], [2, 1]);
    } finally {
      await jobs.stop();
    }
  });

  test('a video job survives a worker that freezes in a poll and changes nothing once it is awake', async () => {
    const jobs = await VideoJobs.start();
    try {
      const frozen = await jobs.gateway.startWorker();
      const job = await jobs.add({ video: { ...video, poll_fault: { ...silentOnce, after: 1 } } });
      await eventually(async () => {
        assert.equal((await vendorCalls(jobs.gateway, job.id))[0]?.video?.polls, 2, 'the silent poll has not come');
      }, 30_000);
      process.kill(frozen.pid, 'SIGSTOP');
      await jobs.gateway.startWorker();
      const record = await jobs.over(job);
      const log = await jobs.log(job);
      assert.equal(await frozen.stop(), 0);
      assert.deepEqual(await jobs.log(job), log);
      await checkEnd(jobs, job, record, { name: 'frozen', kill: at('', 'before') });
    } finally {
      await jobs.stop();
    }
  });

  test('a video job ends with a timeout at its deadline, even when no poll is due', async () => {
    const jobs = await VideoJobs.start({ workers: 1 });
    try {
      const job = await jobs.add({ video: { duration_ms: 60_000 } }, { deadlineAt: Date.now() + 4000 });
      const record = await jobs.over(job);
      assert.deepEqual([record.outcome, record.errorCode, record.attempts], ['failed', 'timeout', 1]);
    } finally {
      await jobs.stop();
    }
  });
});

describe('cancelled video jobs', { concurrency: 3 }, () => {
  /** A vendor whose creation is answered by the test; what else it is asked stands in `asked`. */
  async function startVendor() {
    const asked: string[] = [];
    const vendor = await startFixtureVendor();
    const creation = new Promise<ServerResponse>((resolve) => {
      vendor.answer((response, { method, url }) => {
        asked.push(`${method} ${url}`);
        if (method === 'POST') resolve(response);
        else sendJson(response, 200, JSON.stringify({ id: 'video_1', status: 'in_progress', progress: 5 }));
      });
    });
    return { vendor, asked, creation };
  }

  const cancelled = new ApiError('cancelled', 'The request was cancelled.');
  const answer = '{"id":"video_1","status":"queued","progress":0}';

  test('a cancelled video is discarded at its vendor by its next poll, and not polled again', async () => {
    const { vendor, asked, creation } = await startVendor();
    const jobs = await VideoJobs.start({ workers: 1, settings: { SANDBOX_BASE_URL: vendor.baseUrl } });
    try {
      const job = await jobs.add({});
      sendJson(await creation, 200, answer);
      await jobs.delayed(job);
      await eventually(() => assert.ok(asked.includes('GET /v1/videos/video_1'), 'it was not polled'));
      await jobs.delayed(job);
      asked.length = 0;
      assert.equal((await jobs.cancel(job, cancelled)).verdict, 'finished');
      assert.equal((await jobs.over(job)).outcome, 'cancelled');
      assert.deepEqual(asked, ['DELETE /v1/videos/video_1']);
    } finally {
      await jobs.stop();
      await vendor.close();
    }
  });

  test('a video job given up while its worker was frozen is discarded at its vendor once the worker is awake', async () => {
    const { vendor, asked, creation } = await startVendor();
    const jobs = await VideoJobs.start({ workers: 1, settings: { SANDBOX_BASE_URL: vendor.baseUrl } });
    try {
      const job = await jobs.add({});
      const response = await creation;
      const frozen = jobs.gateway.workers[0]?.pid as number;
      process.kill(frozen, 'SIGSTOP');
      sendJson(response, 200, answer);
      await jobs.gateway.startWorker();
      assert.equal((await jobs.over(job)).errorCode, 'outcome_unknown');
      assert.deepEqual(asked, ['POST /v1/videos']);
      process.kill(frozen, 'SIGCONT');
      await eventually(() => assert.deepEqual(asked, ['POST /v1/videos', 'DELETE /v1/videos/video_1']));
    } finally {
      await jobs.stop();
      await vendor.close();
    }
  });

  test('a video cancelled during its creation is discarded at its vendor at once', async () => {
    const { vendor, asked, creation } = await startVendor();
    const jobs = await VideoJobs.start({ workers: 1, settings: { SANDBOX_BASE_URL: vendor.baseUrl } });
    try {
      const job = await jobs.add({});
      const response = await creation;
      assert.equal((await jobs.cancel(job, cancelled)).verdict, 'finished');
      sendJson(response, 200, answer);
      assert.equal((await jobs.over(job)).outcome, 'cancelled');
      assert.deepEqual(asked, ['POST /v1/videos', 'DELETE /v1/videos/video_1']);
      assert.equal((await jobs.state(job)).task, undefined);
    } finally {
      await jobs.stop();
      await vendor.close();
    }
  });
});
