import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { AcceptedJobs } from '../../api/ledger/accepted-jobs.ts';
import { readPartitions } from '../../api/ledger/retention/job-partitions.ts';
import { firstIdAt } from '../../api/ledger/usage/usage-report.ts';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import type { ApiError } from '../../shared/errors.ts';
import { newJobId } from '../../shared/ids.ts';
import type { JobIdentity } from '../../shared/jobs/job-state.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const day = 86_400_000;

function newJob(): JobIdentity {
  const now = Date.now();
  return {
    ...{ id: newJobId(), account: 'account', apiKeyId: 'key', capability: 'chat', endpoint: 'chat', model: 'model' },
    ...{ stream: false, createdAt: now, deadlineAt: now + day, retentionMs: day, idempotency: '', viewOptions: '{}' },
  };
}

describe('a job that was refused because its commit was never answered', () => {
  let server: TestPostgres;
  let db: Database;

  before(async () => {
    server = await startPostgres();
    db = await openDatabase({ databaseUrl: await server.createDatabase(), dataDir: '/nowhere' });
    // A commit that takes long enough to stop the server in the middle of it.
    await sql`
      create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(1.5); return null; end'`.execute(
      db,
    );
    await sql`
      create constraint trigger slow after insert on jobs deferrable initially deferred
      for each row when (new.model = 'slow') execute function wait()`.execute(db);
  });
  after(async () => {
    await db?.destroy();
    await server?.stop();
  });

  const ids = async (): Promise<string[]> => (await db.selectFrom('jobs').select('id').execute()).map(({ id }) => id);
  const bodyIds = async (): Promise<string[]> =>
    (await db.selectFrom('job_bodies').select('job_id').execute()).map(({ job_id: id }) => id);

  test('a job that was refused because its commit was never answered loses its row, should it have one after all, with the next job that is accepted', async () => {
    const accepted = new AcceptedJobs(db, day, createLogger('silent', 'test').log);
    const [refused, next] = [{ ...newJob(), model: 'slow' }, newJob()];
    const refusal = assert.rejects(
      accepted.add(refused, '{}'),
      (error) => (error as ApiError).code === 'service_unavailable',
    );
    await eventually(async () => {
      const { rows } = await sql`select 1 from pg_stat_activity where query = 'commit' and state = 'active'`.execute(
        db,
      );
      assert.equal(rows.length, 1);
    });
    server.pause();
    try {
      await refusal;
      // Until its statement is given up.
      await accepted.close();
    } finally {
      server.resume();
    }
    await eventually(async () => assert.deepEqual(await ids(), [refused.id]), 20_000);
    assert.deepEqual(await bodyIds(), [refused.id]);
    await accepted.add(next, '{}');
    assert.deepEqual(await ids(), [next.id]);
    assert.deepEqual(await bodyIds(), [next.id]);
  });
});

test('a job that comes while its partition is made is accepted, as the first ones of a fresh database are', async () => {
  const server = await startPostgres();
  const db = await openDatabase({ databaseUrl: await server.createDatabase(), dataDir: '/nowhere' });
  try {
    const accepted = new AcceptedJobs(db, day, createLogger('silent', 'test').log);
    const from = (await readPartitions(db)).at(-1)?.to ?? '';
    const job = newJob();
    let adding: Promise<void> | undefined;
    await db.transaction().execute(async (transaction) => {
      await sql`create table coming (like jobs including all)`.execute(transaction);
      const bounds = sql`from (${sql.lit(from)}) to (${sql.lit(firstIdAt(Date.now() + day))})`;
      await sql`alter table jobs attach partition coming for values ${bounds}`.execute(transaction);
      adding = accepted.add(job, '{}');
      await eventually(async () => {
        const waiting = sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into "jobs"%'`;
        assert.equal((await waiting.execute(db)).rows.length, 1);
      });
    });
    await adding;
    const { rows } = await sql<{ id: string }>`select id from coming`.execute(db);
    assert.deepEqual(rows, [{ id: job.id }]);
  } finally {
    await db.destroy();
    await server.stop();
  }
});
