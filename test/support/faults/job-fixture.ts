import { Redis } from 'ioredis';
import type { AppendCall, AppendVerdict, Journaling, Ownership } from '../../../shared/jobs/append.ts';
import type { FinishCall } from '../../../shared/jobs/attempt.ts';
import type { JobIdentity } from '../../../shared/jobs/job-state.ts';
import { loadProduct } from '../gateway.ts';
import { startRedis, type TestRedis } from '../redis.ts';

const { newJobId } = await loadProduct<typeof import('../../../shared/ids.ts')>('shared/ids');
const { jobKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { createJobState } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { begin } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');
const { renewLeases } =
  await loadProduct<typeof import('../../../shared/jobs/leases/leases.ts')>('shared/jobs/leases/leases');
const { appendTo } = await loadProduct<typeof import('../../../shared/jobs/append.ts')>('shared/jobs/append');
const { finish } = await loadProduct<typeof import('../../../shared/jobs/attempt.ts')>('shared/jobs/attempt');

/** A Redis of the suite's own, and jobs made, taken, written and ended by hand with the product's own steps. */
export class JobFixture {
  readonly server: TestRedis;
  readonly redis: Redis;
  #claims = 0;

  private constructor(server: TestRedis) {
    this.server = server;
    this.redis = new Redis(server.url);
  }

  static async start(): Promise<JobFixture> {
    return new JobFixture(await startRedis());
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await this.server.stop();
  }

  /** A job that Redis knows nothing of. */
  identity(more: Partial<JobIdentity> = {}): JobIdentity {
    const now = Date.now();
    return {
      ...{ id: newJobId(), account: 'account', apiKeyId: 'key', capability: 'chat', endpoint: 'chat', model: 'model' },
      ...{ stream: true, createdAt: now, deadlineAt: now + 60_000, retentionMs: 0, idempotency: '', viewOptions: '{}' },
      ...more,
    };
  }

  /** A job with its state, as it stands when its worker takes it. */
  async create(more: Partial<JobIdentity> = {}): Promise<JobIdentity> {
    const job = this.identity(more);
    await createJobState(this.redis, job, 'api-reader');
    return job;
  }

  take(job: JobIdentity, more: { claim?: string; repeatable?: boolean } = {}): ReturnType<typeof begin> {
    this.#claims++;
    const claim = `claim${this.#claims}`;
    return begin(this.redis, { jobId: job.id, workerId: 'worker', claim, repeatable: true, ...more });
  }

  /** The worker has been dead for longer than its lease: by default for so long that nothing is expected of it any more. */
  async expireLease(job: JobIdentity, agoMs = 6000): Promise<void> {
    await this.redis.hset(jobKeys.state(job.id), 'lease', Date.now() - agoMs);
    const entry = await this.redis.hget(jobKeys.leases(job.id), job.id);
    if (entry === null) return;
    await this.redis.hset(jobKeys.leases(job.id), job.id, entry.replace(/^\d+/, String(Date.now() - agoMs)));
  }

  /** Renews the lease of an attempt whose vendor is silent. */
  async renew({ id: jobId }: Pick<JobIdentity, 'id'>, attempt = 1): Promise<Ownership | Error | undefined> {
    let renewed: Ownership | Error | undefined;
    await renewLeases(this.redis, [{ jobId, attempt }], (_, ownership) => {
      renewed = ownership;
    });
    return renewed;
  }

  write(job: JobIdentity, attempt: number, firstSeq: number, texts: readonly string[], more: Partial<AppendCall> = {}) {
    return this.append({
      ...{ jobId: job.id, attempt, firstSeq, lastSeq: firstSeq + texts.length - 1 },
      ...{ lines: texts.map((text) => `d"${text}"`).join('\n'), hasDelta: true, served: '' },
      ...{ lifetimeMs: 60_000, isCluster: false },
      ...more,
    });
  }

  append(call: AppendCall): Promise<AppendVerdict | Journaling> {
    return new Promise((resolve, reject) =>
      appendTo(this.redis, call, (verdict) => (verdict instanceof Error ? reject(verdict) : resolve(verdict))),
    );
  }

  end(
    job: JobIdentity,
    more: Partial<Pick<FinishCall, 'attempt' | 'guard' | 'served' | 'usage' | 'cost' | 'saved'>> & {
      outcome?: 'completed' | 'cancelled';
    } = {},
  ) {
    const outcome = more.outcome ?? 'completed';
    const lines = outcome === 'completed' ? 'e{}' : 'x{}';
    return finish(this.redis, {
      ...{ jobId: job.id, outcome, lines, lineCount: 1, retentionMs: 0, isCluster: false },
      ...more,
    });
  }
}
