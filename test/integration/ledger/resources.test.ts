import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Registry } from 'prom-client';
import type { Database } from '../../../shared/database/database.ts';
import type { JobIdentity, JobState, StoredRequest } from '../../../shared/jobs/job-state.ts';
import { databaseSettings } from '../../support/database-settings.ts';
import { JobFixture } from '../../support/faults/job-fixture.ts';
import { loadProduct } from '../../support/gateway.ts';

const { jobKeys } = await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');
const { openDatabase } =
  await loadProduct<typeof import('../../../shared/database/database.ts')>('shared/database/database');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { createApiMetrics } =
  await loadProduct<typeof import('../../../shared/runtime/metrics.ts')>('shared/runtime/metrics');
const { createJobState } =
  await loadProduct<typeof import('../../../shared/jobs/job-state.ts')>('shared/jobs/job-state');
const { Blobs } = await loadProduct<typeof import('../../../shared/blobs/blobs.ts')>('shared/blobs/blobs');
const { JobLedger } = await loadProduct<typeof import('../../../api/ledger/job-ledger.ts')>('api/ledger/job-ledger');
const { StoredJobs } = await loadProduct<typeof import('../../../api/ledger/stored-jobs.ts')>('api/ledger/stored-jobs');
const { packViewOptions, readViewOptions } =
  await loadProduct<typeof import('../../../api/replies/view.ts')>('api/replies/view');

const day = 86_400_000;

let jobs: JobFixture;
let db: Database;
let dataDir: string;
let ledger: InstanceType<typeof JobLedger>;
let stored: InstanceType<typeof StoredJobs>;
let blobs: Awaited<ReturnType<typeof Blobs.open>>;
let own: ReturnType<typeof blobs.of>;

before(async () => {
  jobs = await JobFixture.start();
});
after(() => jobs?.stop());

beforeEach(async () => {
  await jobs.redis.flushall();
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-resources-'));
  db = await openDatabase(await databaseSettings(dataDir));
  blobs = await Blobs.open(dataDir);
  own = blobs.of('account');
  const metrics = createApiMetrics(new Registry());
  const viewOf = () => ({ stream: () => () => [], held: () => '' });
  ledger = new JobLedger({
    db,
    redis: jobs.redis,
    blobs,
    viewOf,
    retentionMs: 30 * day,
    blobMs: day,
    metrics,
    log: createLogger('silent', 'test').log,
  });
  stored = new StoredJobs({ db, redis: jobs.redis, blobs }, 30 * day);
});
afterEach(async () => {
  await db.destroy();
  await rm(dataDir, { recursive: true, force: true });
});

/** A response in the foreground that has ended; the ledger has yet to write it. */
async function ended(request: StoredRequest = { request: '{"input":[]}' }, more: Partial<JobIdentity> = {}) {
  const job = jobs.identity({ endpoint: 'responses', retentionMs: day, resource: 'foreground', ...more });
  await createJobState(jobs.redis, job, 'api-reader', request);
  await jobs.take(job);
  await jobs.write(job, 1, 1, ['a']);
  await jobs.end(job, { attempt: 1 });
  return job;
}

const write = (job: JobIdentity): Promise<void> => {
  const times = { beganAt: job.createdAt + 1, endedAt: job.createdAt + 2 };
  const end = { outcome: 'completed', errorCode: undefined, attempts: 1, usage: undefined } as const;
  return ledger.write([{ ...job, ...times, ...end, vendor: 'sandbox' }]);
};

const find = async (job: JobIdentity): Promise<JobState> => {
  const found = await stored.find(job.id);
  assert.ok(found !== undefined, 'it is not there');
  return found;
};

const forgetInRedis = (job: JobIdentity) => jobs.redis.del(jobKeys.state(job.id), jobKeys.log(job.id));

describe('request of a resource', () => {
  test('the request of a resource is readable from Redis, and from the database afterwards', async () => {
    const job = await ended({ request: '{"input":[1]}' });
    assert.equal(await stored.findRequest(await find(job)), '{"input":[1]}');
    await write(job);
    await forgetInRedis(job);
    assert.equal(await stored.findRequest(await find(job)), '{"input":[1]}');
  });

  test('the request of a resource moves from its blob into the row, and stays in the blob if it is too large', async () => {
    const small = 'x'.repeat(100_000);
    const large = 'x'.repeat(1_200_000);
    for (const text of [small, large]) {
      const job = await ended({ requestBlob: await own.put(text) });
      assert.equal(await stored.findRequest(await find(job)), text);
      await write(job);
      await forgetInRedis(job);
      assert.equal(await stored.findRequest(await find(job)), text);
      const row = await db.selectFrom('job_bodies').selectAll().where('job_id', '=', job.id).executeTakeFirstOrThrow();
      assert.equal(row.request_blob === null, text === small);
      assert.equal(row.expires_at > Date.now() + 2 * day, text === small, 'what is in a blob expires with it');
    }
  });

  test('the ledger writes a resource whose request blob or view options blob is missing', async () => {
    const gone = await own.put('{}');
    await own.delete(gone);
    const [one, two] = [await ended({ requestBlob: gone }), await ended({}, { viewOptions: `{"blob":"${gone}"}` })];
    await write(one);
    await write(two);
    assert.equal((await db.selectFrom('jobs').selectAll().execute()).length, 2);
    await forgetInRedis(one);
    assert.equal(await stored.findRequest(await find(one)), undefined);
  });
});

describe('view options', () => {
  test('view options over 64 KiB are in a blob while Redis has the job, and in the row afterwards', async () => {
    const options = { tools: 'x'.repeat(70_000) };
    const packed = await packViewOptions(blobs, 'account', options);
    assert.ok(packed.length < 100);
    assert.deepEqual(JSON.parse(await readViewOptions(own, packed)), options);
    assert.equal(await packViewOptions(blobs, 'account', { a: 1 }), '{"a":1}');
    const job = await ended({}, { viewOptions: packed });
    await write(job);
    await forgetInRedis(job);
    assert.deepEqual(JSON.parse((await find(job)).viewOptions), options);
  });
});

describe('deleted resources', () => {
  const isGone = async (job: JobIdentity): Promise<void> => {
    assert.equal(await stored.find(job.id), undefined);
    assert.equal(await stored.findAnswer(job), undefined);
    const ledgerRow = await db.selectFrom('jobs').select('outcome').where('id', '=', job.id).executeTakeFirst();
    assert.equal(ledgerRow?.outcome, 'completed', "the job's row stays");
  };

  test('a deleted resource is gone at once with its bodies and blobs, while its job stays in the ledger', async () => {
    const requestBlob = await own.put('x'.repeat(1_200_000));
    const viewOptions = await packViewOptions(blobs, 'account', { instructions: 'x'.repeat(70_000) });
    const optionsBlob = JSON.parse(viewOptions).blob as string;
    const job = await ended({ requestBlob }, { viewOptions });
    await write(job);
    const file = await own.put('a file');
    await stored.delete(await find(job), [file]);
    await isGone(job);
    await forgetInRedis(job);
    await isGone(job);
    for (const blob of [requestBlob, optionsBlob, file])
      await assert.rejects(own.text(blob), { name: 'MissingBlobError' });
  });

  test('a resource whose files cannot be deleted for now stays, with a 503, and is deleted by a retry', async () => {
    const requestBlob = await own.put('x'.repeat(1_200_000));
    const viewOptions = await packViewOptions(blobs, 'account', { instructions: 'x'.repeat(70_000) });
    const job = await ended({ requestBlob }, { viewOptions });
    await write(job);
    const hour = join(dataDir, 'blobs', requestBlob.slice(0, 10));
    await rename(hour, `${hour}-away`);
    await writeFile(hour, '');
    await assert.rejects(stored.delete(await find(job), []), { code: 'service_unavailable' });
    await rm(hour);
    await rename(`${hour}-away`, hour);
    await stored.delete(await find(job), []);
    await isGone(job);
    await assert.rejects(own.text(requestBlob), { name: 'MissingBlobError' });
  });

  test('a deleted resource is not restored by a later record', async () => {
    const job = await ended();
    await stored.delete(await find(job), []);
    await write(job);
    await isGone(job);
    await forgetInRedis(job);
    await isGone(job);
  });

  test('a deleted resource is not restored by a ledger that has read its answer before', async () => {
    const job = await ended();
    const state = await find(job);
    // The ledger reads state and log, then the size of the request's blob: just then the owner deletes.
    const of = blobs.ofRecords.bind(blobs);
    blobs.ofRecords = (account) => {
      const records = of(account);
      const size = records.size.bind(records);
      records.size = async (id) => {
        const bytes = await size(id);
        await stored.delete(state, []);
        return bytes;
      };
      return records;
    };
    await jobs.redis.hset(jobKeys.state(job.id), 'requestBlob', await own.put('{"input":[]}'));
    await write(job);
    await isGone(job);
    await forgetInRedis(job);
    await isGone(job);
  });
});

describe('list of resources', () => {
  test('a list of resources pages through one account and its endpoints, without deleted or expired ones', async () => {
    const made: JobIdentity[] = [];
    for (let count = 0; count < 6; count++) {
      made.push(await ended({}, { endpoint: count % 2 === 0 ? 'videos' : 'videos.remix' }));
      await write(made[count] as JobIdentity);
    }
    for (const other of [{ account: 'another' }, { endpoint: 'responses' }, { retentionMs: 0 }]) {
      await write(await ended({}, { endpoint: 'videos', ...other }));
    }
    const [first, , third, fourth, , sixth] = made.map(({ id }) => id) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    await stored.delete(await find(made[1] as JobIdentity), []);
    await db
      .updateTable('job_bodies')
      .set({ expires_at: 1 })
      .where('job_id', '=', made[4]?.id as string)
      .execute();
    const list = async (order: 'asc' | 'desc', limit: number, after?: string): Promise<string[]> => {
      const page = { account: 'account', endpoints: ['videos', 'videos.remix'], order, limit, after };
      return (await stored.list(page)).map(({ id }) => id);
    };
    assert.deepEqual(await list('desc', 10), [sixth, fourth, third, first]);
    assert.deepEqual(await list('asc', 2), [first, third]);
    assert.deepEqual(await list('asc', 2, third), [fourth, sixth]);
    assert.deepEqual(await list('desc', 2, fourth), [third, first]);
  });
});
