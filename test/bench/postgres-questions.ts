/**
 * Fills the ledger of a Postgres with rows of a year, 10 million or as many as the first argument says, and times what the
 * console asks of it, with the console's own statements: `node --import tsx test/bench/postgres-questions.ts [ROWS]`. Fails when a question takes 200 ms.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import pg from 'pg';
import { findListedJob, type JobFilter, listJobs } from '../../api/ledger/job-list.ts';
import { readUsage, type UsageGroup, type UsageQuestion } from '../../api/ledger/usage/usage-report.ts';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import { readMigrations } from '../../shared/database/migrations.ts';
import { startPostgres } from '../support/postgres.ts';

const rowCount = Number(process.argv[2] ?? 10_000_000);
const rowsPerInsert = 500_000;
const rounds = 15;
const limitMs = 200;
const hour = 3_600_000;
const day = 24 * hour;
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
       case when n % 10 = 0 then 86400000 else 0 end,
       1000000 + n % 5000,
       case when n % 50 = 0 then '{"customer":"customer-' || n % 7 || '"}' end,
       null,
       at + 300
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
  // As the migrations add up what is there.
  const migrations = new Map(readMigrations('postgres').map(({ name, sql }) => [name, sql]));
  for (const name of ['006-money', '009-usage-days']) {
    const migration = migrations.get(name) as string;
    await client.query(migration.slice(migration.indexOf('INSERT INTO usage_')));
  }
  // As autovacuum does after every 100,000 rows.
  await client.query('vacuum (analyze)');
  for (const table of ['jobs', 'usage_hours', 'usage_days']) {
    const sizes = await client.query(
      `select pg_size_pretty(pg_table_size($1::regclass)) as rows, pg_size_pretty(pg_indexes_size($1::regclass)) as indexes,
         (select reltuples from pg_class where oid = $1::regclass) as count`,
      [table],
    );
    const { rows, indexes, count } = sizes.rows[0];
    console.log(`${table}: ${Math.round(count)} rows, ${rows}, indexes ${indexes}`);
  }
  await client.end();
}

const idAt = (time: number): string => time.toString(16).padStart(12, '0');

interface Question {
  execute(): Promise<unknown[]>;
}

const last30Days = { from: now - (now % hour) - 30 * day, to: now - (now % hour) + hour };

/** What was used in the last 30 days, in groups; of all accounts where none is named. */
function usageBy(
  db: Database,
  account: string | undefined,
  groupBy: UsageGroup,
  more: Partial<UsageQuestion> = {},
): Question {
  const question = { account, ...last30Days, groupBy, timeZoneMs: 0, ...more };
  return { execute: async () => (await readUsage(db, question)).rows };
}

function jobs(db: Database, filter: JobFilter, after?: string): Question {
  return { execute: () => listJobs(db, filter, { limit: 51, after }) };
}

function questions(db: Database, account: string | undefined): Record<string, Question> {
  const model = 'vendor/model-0';
  const groups: UsageGroup[] = ['day', 'model', 'key', 'endpoint', 'vendor'];
  if (account === undefined) groups.push('account');
  const last90Days = { from: last30Days.to - 90 * day };
  return {
    ...Object.fromEntries(groups.map((group) => [`usage by ${group}`, usageBy(db, account, group)])),
    ...(account === undefined && {
      // From these the console's filters are chosen.
      'usage by account of 90 days': usageBy(db, account, 'account', last90Days),
      'usage by model of one key': usageBy(db, account, 'model', { key: 'key-500-0' }),
    }),
    'usage by day of one model, in another time zone': usageBy(db, account, 'day', { model, timeZoneMs: -5 * hour }),
    'newest jobs, first page': jobs(db, { account }),
    'newest jobs, a page of half a year ago': jobs(db, { account }, idAt(now - year / 2)),
    'failed jobs of a model': jobs(db, { account, model, status: 'failed' }),
    ...(account !== undefined && {
      'newest jobs of one key': jobs(db, { account, key: `key-${account.replace('account-', '')}-0` }),
    }),
  };
}

async function time(question: Question): Promise<{ median: number; most: number; rows: number }> {
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
  const say = async (name: string, question: Question): Promise<void> => {
    const { median, most, rows } = await time(question);
    console.log(`${name}: ${median.toFixed(1)} ms (at most ${most.toFixed(1)}), ${rows} rows`);
    isFast &&= median < limitMs;
  };
  for (const account of ['account-0', 'account-500', undefined]) {
    const { count } = await db
      .selectFrom('jobs')
      .select(sql<number>`count(*)`.as('count'))
      .where((expression) => expression.and(account === undefined ? [] : [expression('account_id', '=', account)]))
      .where('id', '>=', idAt(now - 30 * day))
      .executeTakeFirstOrThrow();
    console.log(`${account ?? 'all accounts'}, ${count} jobs in 30 days`);
    for (const [name, question] of Object.entries(questions(db, account))) {
      await say(`  ${name}`, question);
    }
  }
  const { id } = await db
    .selectFrom('jobs')
    .select('id')
    .orderBy('id', 'desc')
    .offset(1000)
    .limit(1)
    .executeTakeFirstOrThrow();
  await say('one job', { execute: async () => [await findListedJob(db, id)] });
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
