/**
 * Fills the ledger of a Postgres with rows of a year, 10 million or as many as the first argument says, and times what a
 * console asks of it: `node --import tsx test/bench/postgres-questions.ts [ROWS]`. Fails when a question takes 200 ms.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SelectQueryBuilder, sql } from 'kysely';
import pg from 'pg';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import type { Tables } from '../../shared/database/tables.ts';
import { startPostgres } from '../support/postgres.ts';

const rowCount = Number(process.argv[2] ?? 10_000_000);
const rowsPerInsert = 500_000;
const rounds = 15;
const limitMs = 200;
const day = 86_400_000;
const now = Date.now();
const year = 365 * day;

/**
 * Rows `first` to `last` of a year that ends now, evenly over it: of a thousand accounts, the first of which has a fifth of
 * them, and each other less than the one before.
 */
async function fill(client: pg.Client, first: number, last: number): Promise<void> {
  await client.query(
    `insert into jobs
     select
       lpad(to_hex(at), 12, '0') || '7' || substr(md5(n::text), 1, 19),
       'account-' || account,
       'key-' || account || '-' || n % 5,
       (array['chat.completions', 'chat.completions', 'chat.completions', 'responses', 'messages', 'embeddings'])[1 + n % 6],
       'chat',
       'vendor/model-' || (n * 7919) % 40,
       'vendor',
       n % 2,
       at, at + 12, at + 1800,
       case when n % 25 = 0 then 'failed' else 'completed' end,
       case when n % 25 = 0 then 'server_error' end,
       1,
       900 + n % 300,
       200 + n % 100,
       '{"prompt_tokens":1000,"completion_tokens":250,"total_tokens":1250,"prompt_tokens_details":{"cached_tokens":512}}',
       case when n % 10 = 0 then 86400000 else 0 end
     from generate_series($1::bigint, $2::bigint) as n,
       lateral (select $3::bigint + n * $4::bigint / $5::bigint as at) as times,
       lateral (select case when n % 10 = 0 then 0 else floor(1000 * power(random(), 3))::int end as account) as owners`,
    [first, last, now - year, year, rowCount],
  );
}

async function fillAll(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (let first = 0; first < rowCount; first += rowsPerInsert) {
    await fill(client, first, Math.min(first + rowsPerInsert, rowCount) - 1);
    console.log(`${Math.min(first + rowsPerInsert, rowCount)} rows after ${Math.round(process.uptime())} s`);
  }
  // As autovacuum does after every 100,000 rows.
  await client.query('vacuum (analyze) jobs');
  const sizes = await client.query(
    "select pg_size_pretty(pg_table_size('jobs')) as rows, pg_size_pretty(pg_indexes_size('jobs')) as indexes",
  );
  console.log(`jobs: ${sizes.rows[0].rows}, its indexes: ${sizes.rows[0].indexes}`);
  await client.end();
}

const idAt = (time: number): string => time.toString(16).padStart(12, '0');

/** What an account used in the last 30 days, in groups. */
function usageBy(db: Database, account: string, group: ReturnType<typeof sql<string>>) {
  return db
    .selectFrom('jobs')
    .select([group.as('group'), sql<number>`count(*)`.as('jobs')])
    .select([sql<number>`sum(input_tokens)`.as('input'), sql<number>`sum(output_tokens)`.as('output')])
    .select(sql<number>`count(*) filter (where outcome = 'failed')`.as('failed'))
    .where('account_id', '=', account)
    .where('id', '>=', idAt(now - 30 * day))
    .groupBy(group);
}

type Question = SelectQueryBuilder<Tables, 'jobs', object>;

function questions(db: Database, account: string): Record<string, Question> {
  const newest = db.selectFrom('jobs').selectAll().where('account_id', '=', account).orderBy('id', 'desc').limit(50);
  return {
    'usage per day, 30 days': usageBy(db, account, sql<string>`created_at / ${sql.lit(day)}`),
    'usage by model, 30 days': usageBy(db, account, sql<string>`model`),
    'usage by key, 30 days': usageBy(db, account, sql<string>`api_key_id`),
    'usage by endpoint, 30 days': usageBy(db, account, sql<string>`endpoint`),
    'newest jobs, first page': newest,
    'newest jobs, a page of half a year ago': newest.where('id', '<', idAt(now - year / 2)),
    'newest jobs of one key': newest.where('api_key_id', '=', `key-${account.replace('account-', '')}-0`),
  };
}

async function time(question: {
  execute(): Promise<unknown[]>;
}): Promise<{ median: number; most: number; rows: number }> {
  const times: number[] = [];
  let rows = 0;
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    rows = (await question.execute()).length;
    times.push(performance.now() - begun);
  }
  times.sort((one, other) => one - other);
  return { median: times[rounds >> 1] ?? 0, most: times.at(-1) ?? 0, rows };
}

async function run(db: Database): Promise<boolean> {
  let isFast = true;
  const say = async (name: string, question: { execute(): Promise<unknown[]> }): Promise<void> => {
    const { median, most, rows } = await time(question);
    console.log(`${name}: ${median.toFixed(1)} ms (at most ${most.toFixed(1)}), ${rows} rows`);
    isFast &&= median < limitMs && rows > 0;
  };
  for (const account of ['account-0', 'account-500']) {
    const { count } = await db
      .selectFrom('jobs')
      .select(sql<number>`count(*)`.as('count'))
      .where('account_id', '=', account)
      .where('id', '>=', idAt(now - 30 * day))
      .executeTakeFirstOrThrow();
    console.log(`${account}, ${count} jobs in 30 days`);
    for (const [name, question] of Object.entries(questions(db, account))) await say(`  ${name}`, question);
  }
  const { id } = await db
    .selectFrom('jobs')
    .select('id')
    .orderBy('id', 'desc')
    .offset(1000)
    .limit(1)
    .executeTakeFirstOrThrow();
  await say('one job', db.selectFrom('jobs').selectAll().where('id', '=', id));
  return isFast;
}

const server = await startPostgres({ settings: { shared_buffers: '1GB', max_wal_size: '4GB', work_mem: '16MB' } });
const dataDir = await mkdtemp(join(tmpdir(), 'sluice-bench-postgres-'));
try {
  const databaseUrl = await server.createDatabase();
  const db = await openDatabase({ databaseUrl, dataDir });
  await fillAll(databaseUrl);
  if (!(await run(db))) process.exitCode = 1;
  await db.destroy();
} finally {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}
