import assert from 'node:assert/strict';
import { Cluster, Redis } from 'ioredis';
import type OpenAI from 'openai';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import { accountKeys, jobKeys } from '../../shared/redis/keys.ts';
import { eventually } from './eventually.ts';
import { TestGateway } from './gateway.ts';

const chatPath = '/v1/chat/completions';

/** A job of any endpoint as `GET /v1/jobs/{id}` shows it. */
export interface ReadJob<Result = unknown> {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly result: Result | null;
}

/** The header that makes a job an asynchronous one. */
export const later = { prefer: 'respond-async' };

/** The id of the job that answered, as the database has it. */
export function jobIdOf(response: Response): string {
  return response.headers.get('x-request-id')?.slice('job_'.length) as string;
}

/** A client of a Redis, or of a Cluster: then `keys` asks all of its nodes. */
function openRedis([url, ...others]: string[]): Redis {
  if (others.length === 0) return new Redis(url as string);
  const cluster = new Cluster([url, ...others] as string[]);
  const keys = async (pattern: string): Promise<string[]> =>
    (await Promise.all(cluster.nodes('master').map((node) => node.keys(pattern)))).flat();
  return Object.assign(cluster as unknown as Redis, { keys });
}

/** A gateway with its database and its Redis beside it, to look at what becomes of jobs. */
export class JobRecords {
  readonly gateway: TestGateway;
  readonly db: Database;
  readonly redis: Redis;

  private constructor(gateway: TestGateway, db: Database) {
    this.gateway = gateway;
    this.db = db;
    this.redis = openRedis(gateway.redisUrl.split(','));
  }

  static async start(...options: Parameters<typeof TestGateway.start>): Promise<JobRecords> {
    const gateway = await TestGateway.start(...options);
    return new JobRecords(gateway, await openDatabase(gateway));
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await this.db.destroy();
    await this.gateway.stop();
  }

  /** Sends a request, to `/v1/chat/completions` where no other path is given. */
  post(
    body: object,
    headers: Record<string, string> = {},
    { path = chatPath, ...more }: { path?: string; url?: string; signal?: AbortSignal } = {},
  ): Promise<Response> {
    return this.gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers, ...more });
  }

  /** Keys of the jobs' states in Redis that have so many fields whose names begin so. */
  async jobsWith(field: 'left' | 'adopter' | 'sharer:', count = 1): Promise<string[]> {
    const states = await this.redis.keys('sluice:{a*}:job:*');
    const fields = await Promise.all(states.map((state) => this.redis.hkeys(state)));
    return states.filter((_, at) => fields[at]?.filter((name) => name.startsWith(field)).length === count);
  }

  /** Waits until one more job than before has the field. */
  async untilMore(field: 'left' | 'adopter', before: readonly string[]): Promise<void> {
    await eventually(async () => {
      const added = (await this.jobsWith(field)).filter((state) => !before.includes(state));
      assert.equal(added.length, 1, `jobs with ${field}`);
    });
  }

  /** Sends an asynchronous one, and answers the id of its job. */
  async postLater(body: object, headers: Record<string, string> = {}, path = chatPath): Promise<string> {
    const response = await this.post(body, { ...later, ...headers }, { path });
    assert.equal(response.status, 202, 'it was not accepted');
    return ((await response.json()) as ReadJob).id.slice('job_'.length);
  }

  async read<Result = OpenAI.Chat.ChatCompletion>(id: string): Promise<ReadJob<Result>> {
    const response = await this.gateway.fetch(`/v1/jobs/${id}`);
    assert.equal(response.status, 200);
    return (await response.json()) as ReadJob<Result>;
  }

  /** A job's row, if there is one. */
  row(id: string) {
    return this.db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** The row of a job, once it has its end. */
  async ended(id: string) {
    return await eventually(async () => {
      const row = await this.row(id);
      assert.ok(row?.outcome, `${id} has no end in the database`);
      return row;
    });
  }

  /** Makes a job known to the database only. */
  async forget(id: string): Promise<void> {
    await this.ended(id);
    assert.equal(await this.redis.del(jobKeys.state(id), jobKeys.log(id)), 2);
  }

  /** How many records are on their way into the database. */
  async outboxes(): Promise<number> {
    const lengths = await Promise.all(accountKeys.allOutboxes().map((key) => this.redis.xlen(key)));
    return lengths.reduce((sum, length) => sum + length, 0);
  }

  /** The sum of a metric over all apis. */
  async metric(name: string): Promise<number> {
    const pages = await Promise.all(
      this.gateway.apis
        .filter(({ child }) => child.exitCode === null && child.signalCode === null)
        .map(async ({ url }) => (await fetch(`${url}/metrics`)).text()),
    );
    return pages.reduce((sum, page) => sum + Number(new RegExp(`^${name}\\S* (\\S+)$`, 'm').exec(page)?.[1] ?? 0), 0);
  }
}
