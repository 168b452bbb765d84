import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import type { ApiError } from '../../shared/errors.ts';
import type { Frame } from '../../shared/jobs/append.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import type { FrameWriterOptions } from '../../workers/run/frame-writer.ts';
import type { WorkerContext } from '../../workers/worker-context.ts';
import { eventually } from '../support/eventually.ts';
import { JobFixture } from '../support/faults/job-fixture.ts';
import { loadProduct } from '../support/gateway.ts';
import { unlimitedBandwidth } from '../support/unlimited-bandwidth.ts';

const { jobKeys } = await loadProduct<typeof import('../../shared/redis/keys.ts')>('shared/redis/keys');
const { Blobs } = await loadProduct<typeof import('../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { readJobState } = await loadProduct<typeof import('../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { readLog } = await loadProduct<typeof import('../../shared/jobs/answer-log.ts')>('shared/jobs/answer-log');
const { inlineLimit } = await loadProduct<typeof import('../../shared/queue/queue.ts')>('shared/queue/queue');
const { FrameWriter } =
  await loadProduct<typeof import('../../workers/run/frame-writer.ts')>('workers/run/frame-writer');
const { JobRun } = await loadProduct<typeof import('../../workers/run/job-run.ts')>('workers/run/job-run');
const { finishRun } = await loadProduct<typeof import('../../workers/run/finish-run.ts')>('workers/run/finish-run');
const { createLogger } = await loadProduct<typeof import('../../shared/runtime/log.ts')>('shared/runtime/log');

const large = JSON.stringify('x'.repeat(inlineLimit));
const whole = { outcome: 'completed', answer: { body: '{"usage":null}', usage: { total_tokens: 1 } } } as const;

let jobs: JobFixture;
let folder: string;

before(async () => {
  jobs = await JobFixture.start();
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-frames-'));
});

after(async () => {
  await jobs?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A job that is run, and what writes its frames. An embedding, of which nobody counts tokens. */
class Running {
  readonly run: InstanceType<typeof JobRun>;
  readonly writer: InstanceType<typeof FrameWriter>;
  readonly job: JobIdentity;

  private constructor(job: JobIdentity, options: Partial<FrameWriterOptions>) {
    this.job = job;
    this.run = new JobRun(job);
    this.run.attempt = 1;
    this.writer = new FrameWriter({
      ...{ redis: jobs.redis, blobs: {} as never, isCluster: false, jobId: job.id, attempt: 1, lastSeq: 0 },
      ...{ account: job.account, bandwidth: unlimitedBandwidth },
      ...{ lifetimeMs: 60_000, onConfirmed: () => undefined, onLost: (reason) => this.run.stop(reason) },
      ...options,
    });
  }

  static async start(options: Partial<FrameWriterOptions> = {}): Promise<Running> {
    const job = await jobs.create({ capability: 'image' });
    await jobs.take(job);
    return new Running(job, options);
  }

  write(text: string): boolean {
    return this.writer.write({ type: 'delta', text });
  }

  /** Writes three frames, each into the log before the next, of which Redis then forgets all but the first. */
  async writeAndForget(): Promise<void> {
    for (const word of ['"one"', '"two"', '"three"']) {
      this.write(word);
      await this.writer.flushed();
    }
    await this.forgetAfterFirst();
  }

  /** Ends the job as its vendor's answer is whole. */
  async finishRun(): Promise<void> {
    const counted = { inc: () => undefined };
    const context = {
      ...{ redis: jobs.redis, isCluster: false, clock: { now: Date.now }, log: createLogger('silent', 'test').log },
      ...{ metrics: { jobs: counted, errors: counted }, settler: { add: () => undefined } },
    } as unknown as WorkerContext;
    assert.equal(await finishRun(context, this.run, 1, this.writer, whole), 'done');
  }

  /** How the job has ended, and what its readers see: the type of each frame, and its text. */
  async ended(): Promise<{ outcome: string | undefined; code: string | undefined; frames: string[] }> {
    const state = await readJobState(jobs.redis, this.job.id);
    const read: Frame[] = [];
    for (let isLast = false; !isLast; ) {
      const page = await readLog(jobs.redis, this.job.id, read.at(-1)?.seq ?? 0);
      read.push(...page.batches.flatMap((batch) => batch.frames));
      isLast = page.isLast;
    }
    const frames = read.map(({ type, text }) => `${type} ${text.slice(0, 20)}`);
    const shown = frames.map((frame) => (frame.startsWith('error') ? 'error' : frame));
    return { outcome: state?.outcome, code: state?.errorCode, frames: shown };
  }

  /** Forgets what has been appended since the first frame, as a Redis does that comes back without its last writes. */
  async forgetAfterFirst(): Promise<void> {
    const log = jobKeys.log(this.job.id);
    const [[id, fields]] = (await jobs.redis.xrange(log, '-', '+', 'COUNT', 1)) as [[string, string[]]];
    await jobs.redis
      .multi()
      .del(log)
      .xadd(log, id, ...fields)
      .hset(jobKeys.state(this.job.id), 'seq', 1)
      .exec();
  }
}

const failed = { outcome: 'failed', code: 'stream_interrupted' };

/** A place for blobs that is gone. */
const noBlobs = { put: () => Promise.reject(new Error('no space left on device')) } as never;

describe('frames that cannot be stored', () => {
  test('a frame that cannot be stored ends its own job with an error, not the process, even while an append is pending', async () => {
    const running = await Running.start({ blobs: noBlobs });
    // The append is answered long after the frame behind it has failed.
    await jobs.redis.client('PAUSE', 200, 'WRITE');
    running.write('"first"');
    running.write(large);
    await eventually(() => assert.ok(running.run.stopReason instanceof Error, 'it goes on'));
    assert.equal(running.write('"behind it"'), false);
    await running.finishRun();
    assert.deepEqual(await running.ended(), { ...failed, frames: ['delta "first"', 'error'] });
  });

  test('a frame that cannot be stored raises no unhandled error when its answer is discarded', async () => {
    const running = await Running.start({ blobs: noBlobs });
    running.write('"first"');
    running.write(large);
    await running.writer.discard();
    // An error without an owner fails the test once the event loop has turned.
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(running.run.stopReason, undefined);
  });

  test('a job ends with an error when its last frame, or the frame before its end, cannot be stored', async () => {
    const running = await Running.start({ blobs: noBlobs });
    running.write('"first"');
    await running.writer.flushed();
    running.writer.write({ type: 'delta', text: large });
    await running.finishRun();
    assert.deepEqual(await running.ended(), { ...failed, frames: ['delta "first"', 'error'] });
    const held = await Running.start({ blobs: noBlobs });
    const last = await held.writer.close().then(() => held.writer.endWith(large));
    assert.equal(last, undefined);
    assert.equal(held.writer.failure?.code, 'server_error', 'nothing was said: it may be asked again');
  });

  test('a frame that Redis did not accept leaves no gap in an answer that ends as complete', async () => {
    const closed = new Redis(jobs.server.url);
    const running = await Running.start({ redis: closed });
    running.write('"BEGIN"');
    await running.writer.flushed();
    closed.disconnect();
    running.write('"MIDDLE"');
    const flushed = running.writer.flushed();
    running.write('"END"');
    // The vendor's answer is whole before the append has failed.
    await Promise.all([running.finishRun(), flushed]);
    assert.deepEqual(await running.ended(), { ...failed, frames: ['delta "BEGIN"', 'error'] });
  });

  test('a job ends with stream_interrupted at the next append after Redis lost frames', async () => {
    const running = await Running.start();
    await running.writeAndForget();
    running.write('"four"');
    await running.writer.flushed();
    assert.equal((running.run.stopReason as ApiError).code, 'stream_interrupted');
    await running.finishRun();
    assert.deepEqual(await running.ended(), { ...failed, frames: ['delta "one"', 'error'] });
  });

  test('a job ends with stream_interrupted when Redis lost frames before its end', async () => {
    const running = await Running.start();
    await running.writeAndForget();
    await running.finishRun();
    assert.deepEqual(await running.ended(), { ...failed, frames: ['delta "one"', 'error'] });
  });

  test('a job fails once its answer exceeds the size limit, in the log and in blobs together', async () => {
    const blobs = await Blobs.open(folder);
    const megabyte = JSON.stringify('x'.repeat(1024 * 1024));
    const running = await Running.start({ blobs: blobs.of('account') });
    let written = 0;
    for (; written < 64 && running.run.stopReason === undefined; written++) {
      running.write(megabyte);
      await running.writer.drained();
    }
    assert.ok(written > 30 && written < 40, `${written} MB were taken`);
    await running.finishRun();
    const { outcome, code, frames } = await running.ended();
    assert.deepEqual([outcome, code, frames.at(-1)], ['failed', 'server_error', 'error']);
    blobs.close();
  });

  test('append accepts a batch that was appended before, and reports a gap before a later one', async () => {
    const job = await jobs.create();
    await jobs.take(job);
    assert.equal(await jobs.write(job, 1, 1, ['a', 'b']), 'ok');
    assert.equal(await jobs.write(job, 1, 4, ['d']), 'gap');
    assert.equal(await jobs.write(job, 1, 1, ['a', 'b']), 'ok');
    assert.equal(await jobs.write(job, 1, 3, ['c']), 'ok');
    assert.equal((await readJobState(jobs.redis, job.id))?.seq, 3);
  });
});
