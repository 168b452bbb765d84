import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import type { AccountBlobs, Blobs as StoredBlobs } from '../../../shared/blobs/blobs.ts';
import type { UploadRecord } from '../../../shared/blobs/upload.ts';
import type { VideoEnd, VideoJob } from '../../../shared/capabilities/video.ts';
import type { ApiError } from '../../../shared/errors.ts';
import type { JobIdentity, JobState } from '../../../shared/jobs/job-state.ts';
import type { EndJobContext } from '../../../shared/jobs/settlement/end-job.ts';
import type { JobRecord } from '../../../shared/jobs/settlement/outbox.ts';
import type { CapabilityQueue } from '../../../shared/queue/queue.ts';
import { eventually } from '../eventually.ts';
import { type GatewayOptions, loadProduct, TestGateway } from '../gateway.ts';
import { pngBytes } from '../image-files.ts';

const { newJobId } = await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');
const { accountKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { createJobState, readJobState } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { holdMember } = await loadProduct<typeof import('../../../shared/jobs/settlement/settle.ts')>(
  'shared/jobs/settlement/settle',
);
const { lateField, parseRecord, recordField } = await loadProduct<
  typeof import('../../../shared/jobs/settlement/outbox.ts')
>('shared/jobs/settlement/outbox');
const { readLog } = await loadProduct<typeof import('../../../shared/jobs/answer-log.ts')>('shared/jobs/answer-log');
const { endJob } = await loadProduct<typeof import('../../../shared/jobs/settlement/end-job.ts')>(
  'shared/jobs/settlement/end-job',
);
const { Sweeper } = await loadProduct<typeof import('../../../shared/jobs/settlement/sweeper.ts')>(
  'shared/jobs/settlement/sweeper',
);
const queues = await loadProduct<typeof import('../../../shared/queue/queue.ts')>('shared/queue/queue');
const { Blobs } = await loadProduct<typeof import('../../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');

/** What every video begins with. */
export const picture = pngBytes(1280, 720);

/** A video job that was put into its queue by hand, and what lies beside it. */
export interface QueuedVideo extends JobIdentity {
  /** Ids of the blobs that hold its request and its upload. */
  readonly requestBlob: string;
  readonly uploads: readonly UploadRecord[];
}

/** Redis, the sandbox, workers and a sweeper without an api: video jobs go straight into their queue, with a hold each. */
export class VideoJobs {
  readonly gateway: TestGateway;
  readonly redis: Redis;
  /** Those of the jobs' account. */
  readonly blobs: AccountBlobs;
  readonly queue: CapabilityQueue;
  readonly #context: EndJobContext;
  readonly #sweeper: { close(): void };

  private constructor(gateway: TestGateway, blobs: StoredBlobs) {
    this.gateway = gateway;
    this.redis = new Redis(gateway.redisUrl);
    // It is cut when the suite restarts Redis, and connects again.
    this.redis.on('error', () => undefined);
    this.blobs = blobs.of('account');
    this.queue = new queues.CapabilityQueue('video', this.redis);
    this.#context = { redis: this.redis, blobs, isCluster: false, queue: () => this.queue };
    this.#sweeper = new Sweeper(this.#context, createLogger('silent', 'test').log);
  }

  static async start(options: GatewayOptions = {}): Promise<VideoJobs> {
    const gateway = await TestGateway.start({ apis: 0, workers: 0, ...options });
    return new VideoJobs(gateway, await Blobs.open(gateway.dataDir));
  }

  async stop(): Promise<void> {
    this.#sweeper.close();
    await this.queue.close();
    this.redis.disconnect();
    await this.gateway.stop();
  }

  /** @param sandbox what is asked of the sandbox, which then knows the creation by the job's id */
  async add(sandbox: object, more: Partial<JobIdentity> = {}): Promise<QueuedVideo> {
    const now = Date.now();
    const identity: JobIdentity = {
      ...{ id: newJobId(), account: 'account', apiKeyId: 'key', capability: 'video', endpoint: 'videos' },
      ...{ model: 'sandbox-video', stream: false, createdAt: now, deadlineAt: now + 300_000, retentionMs: 600_000 },
      ...{ idempotency: '', viewOptions: '{}', ...more },
    };
    const request: VideoJob = {
      ...{ prompt: 'A sea otter', input: null, remixed: null },
      parameters: { user: identity.id, sandbox },
    };
    const requestBlob = await this.blobs.put(JSON.stringify(request));
    const blob = await this.blobs.put([picture]);
    const upload = { blob, field: 'input_reference', name: 'a.png', type: 'image/png', bytes: picture.length };
    const job = { ...identity, requestBlob, uploads: [upload] };
    await createJobState(this.redis, identity, 'api-reader');
    await this.redis.zadd(accountKeys.holds('account'), now + 10_000, holdMember({ ...identity, jobId: identity.id }));
    await this.queue.enqueue(job);
    return job;
  }

  async state(job: JobIdentity): Promise<JobState> {
    const state = await readJobState(this.redis, job.id);
    assert.ok(state, 'the job has no state');
    return state;
  }

  /** Waits until a job waits for its next poll. */
  async delayed(job: JobIdentity): Promise<void> {
    await eventually(async () => {
      const score = await this.redis.zscore('sluice:{q-video}:video:delayed', `job_${job.id}`);
      assert.ok(score !== null, 'the job does not wait for a poll');
    }, 30_000);
  }

  cancel(job: JobIdentity, error: ApiError): ReturnType<typeof endJob> {
    return endJob(this.#context, job, error);
  }

  /** The record of a job that is over: ended, settled, out of its queue, and nothing of its request left. */
  async over(job: QueuedVideo, ms = 60_000): Promise<JobRecord> {
    return await eventually(async () => {
      const entries = await this.redis.xrange(accountKeys.outbox('account'), '-', '+');
      // A worker that died between settling and saying so has another settle it: that record is marked as late, and the
      // ledger takes it only where it has no end of the job.
      const firsts = entries.filter(([, fields]) => !fields.includes(lateField));
      const records = firsts.map(([, fields]) => parseRecord(fields[fields.indexOf(recordField) + 1] as string));
      const own = records.filter((record) => record?.id === job.id);
      assert.equal(own.length, 1, `the job has ${own.length} records`);
      assert.equal(await this.queue.has(job.id), false, 'the job is still in its queue');
      const blobs = [job.requestBlob, ...job.uploads.map(({ blob }) => blob)];
      for (const blob of blobs) await assert.rejects(this.blobs.text(blob));
      const member = holdMember({ ...job, jobId: job.id });
      assert.equal(await this.redis.zscore(accountKeys.holds('account'), member), null, 'the job is still held');
      return own[0] as JobRecord;
    }, ms);
  }

  /** What stands in a job's log: its progress, and its end where it is completed. */
  async log(job: JobIdentity): Promise<{ progress: number[]; end: VideoEnd | undefined }> {
    const { batches } = await readLog(this.redis, job.id, 0);
    const frames = batches.flatMap((batch) => batch.frames);
    const data = (type: string) => frames.filter((frame) => frame.type === type).map(({ text }) => JSON.parse(text));
    return { progress: data('progress').map(({ progress }) => progress), end: data('end')[0] };
  }
}
