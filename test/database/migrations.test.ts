import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { ConfigError } from '../../shared/config/config.ts';
import { databaseFile, openDatabase } from '../../shared/database/database.ts';
import { migratePostgres, readPostgresSchema } from '../../shared/database/migrate-postgres.ts';
import { type Migration, newestVersion, readMigrations } from '../../shared/database/migrations.ts';
import { migrateDatabase, readSchemaStatus } from '../../shared/database/schema-status.ts';
import { openSqliteFile } from '../../shared/database/sqlite-file.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

const expand: Migration = { name: '990-later-column', sql: 'ALTER TABLE accounts ADD COLUMN later TEXT' };
const contract: Migration = { name: '991-no-way-back', sql: 'UPDATE schema_compat SET min_version = 991' };
const index: Migration = {
  name: '992-later-index',
  sql: `-- Outside a transaction: the table is written to meanwhile.
DROP INDEX CONCURRENTLY IF EXISTS accounts_by_name;
CREATE INDEX CONCURRENTLY accounts_by_name ON accounts (name);
`,
};
const newest = newestVersion(readMigrations('sqlite'));
const gone = new RegExp(
  `a newer version of the gateway has changed it for good \\(its schema needs version 991, and this gateway has ${newest}\\)`,
);

function sentence(pattern: RegExp) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ConfigError, String(error));
    assert.match(error.message, pattern);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  };
}

let folder = '';
let server: TestPostgres;
let made = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-test-migrations-'));
  server = await startPostgres();
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const newSqlite = async () => ({ dataDir: join(folder, `data-${++made}`), databaseUrl: undefined });
const newPostgres = async () => ({ dataDir: folder, databaseUrl: await server.createDatabase() });
type Place = Awaited<ReturnType<typeof newSqlite>> | Awaited<ReturnType<typeof newPostgres>>;

/** What a newer version does to a database that this one has made. */
async function migrateFurther(place: Place, later: readonly Migration[]): Promise<void> {
  const known = readMigrations(place.databaseUrl === undefined ? 'sqlite' : 'postgres');
  await migrateTo(place, [...known, ...later]);
}

async function migrateTo({ dataDir, databaseUrl }: Place, migrations: readonly Migration[]): Promise<void> {
  if (databaseUrl === undefined) {
    await mkdir(dataDir, { recursive: true });
    openSqliteFile(join(dataDir, databaseFile), [...migrations]).close();
  } else await migratePostgres(databaseUrl, { migrations: [...migrations] });
}

const clients: pg.Client[] = [];
/** Also after a failure: a transaction left open would keep a migration waiting for half an hour. */
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
});

/** A connection of another program. */
async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, query_timeout: 30_000 });
  clients.push(client);
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

for (const [kind, newDatabase] of [
  ['SQLite', newSqlite],
  ['Postgres', newPostgres],
] as const) {
  describe(`migrations on ${kind}`, () => {
    test(`a version starts, and writes, on a database of ${kind} that a newer one has only expanded`, async () => {
      const place = await newDatabase();
      await (await openDatabase(place)).destroy();
      await migrateFurther(place, [expand]);
      const db = await openDatabase(place);
      await db.insertInto('accounts').values({ id: 'old', name: 'old', created_at: 1 }).execute();
      await db.destroy();
      const { missing, newer, minVersion } = await readSchemaStatus(place);
      assert.deepEqual({ missing, newer, minVersion }, { missing: [], newer: [expand.name], minVersion: 0 });
      // The versions before the first such step look for names that they do not know here.
      assert.ok(!(await namesIn(place)).includes(expand.name));
    });

    test(`keys that were rotated before ${kind} knew common budgets spend one, as those that are rotated by any version`, async () => {
      const place = await newDatabase();
      const all = readMigrations(place.databaseUrl === undefined ? 'sqlite' : 'postgres');
      await migrateTo(
        place,
        all.filter(({ name }) => name < '028'),
      );
      const key = (id: string, next: string | null) =>
        `INSERT INTO api_keys (id, account_id, name, hash, prefix, created_at, rotated_to)
         VALUES ('${id}', 'default', 'key', '${id}', 'sk', 1, ${next === null ? 'NULL' : `'${next}'`})`;
      const rows = [key('a', 'b'), key('b', 'c'), key('c', null), key('d', 'e'), key('e', null), key('f', null)];
      // As the release before rotates: e once, a for the second time, and a key that never was.
      const rotations = [
        key('g', null),
        "UPDATE api_keys SET rotated_to = 'g' WHERE id = 'e'",
        key('h', null),
        "UPDATE api_keys SET rotated_to = 'h', expires_at = 5 WHERE id = 'a'",
        key('i', null),
        "UPDATE api_keys SET rotated_to = 'i' WHERE id = 'f'",
      ];
      await migrateTo(place, [...all.filter(({ name }) => name < '028'), { name: '027-rows', sql: rows.join(';') }]);
      await migrateTo(place, all);
      await migrateTo(place, [...all, { name: '990-rotations', sql: rotations.join(';') }]);
      const db = await openDatabase(place);
      const found = await db.selectFrom('api_keys').select(['id', 'budget_id']).orderBy('id').execute();
      await db.destroy();
      const budgets = Object.fromEntries(found.map(({ id, budget_id: budget }) => [id, budget]));
      const expected = { a: 'a', b: 'a', c: 'a', d: 'd', e: 'd', f: 'f', g: 'd', h: 'a', i: 'f' };
      assert.deepEqual(budgets, expected);
    });

    test(`a version refuses a database of ${kind} whose minimum is above its own, and leaves it as it is`, async () => {
      const place = await newDatabase();
      await (await openDatabase(place)).destroy();
      await migrateFurther(place, [expand, contract]);
      await assert.rejects(openDatabase(place), sentence(gone));
      await assert.rejects(readSchemaStatus(place), sentence(gone));
      await assert.rejects(migrateDatabase(place), sentence(gone));
      // The newer one starts again.
      await migrateFurther(place, [expand, contract]);
    });

    test(`with migrations at the start off, a process refuses a database of ${kind} that lacks them, until they are run`, async () => {
      const place = await newDatabase();
      const off = { ...place, migratesAtStart: false };
      await assert.rejects(openDatabase(off), sentence(/it lacks 001-accounts.*run "npm run migrate" first/));
      assert.deepEqual(
        (await readSchemaStatus(place)).missing,
        readMigrations('sqlite').map(({ name }) => name),
      );
      if (place.databaseUrl === undefined) assert.ok(!existsSync(join(place.dataDir, databaseFile)));
      assert.deepEqual(
        await migrateDatabase(off),
        readMigrations('sqlite').map(({ name }) => name),
      );
      assert.deepEqual(await migrateDatabase(off), []);
      await (await openDatabase(off)).destroy();
    });
  });
}

async function namesIn({ dataDir, databaseUrl }: Place): Promise<string[]> {
  const query = 'SELECT name FROM migrations';
  if (databaseUrl === undefined) {
    const file = openSqliteFile(join(dataDir, databaseFile), []);
    const rows = file.prepare(query).all() as { name: string }[];
    file.close();
    return rows.map(({ name }) => name);
  }
  const client = await connect(databaseUrl);
  const { rows } = await client.query<{ name: string }>(query);
  return rows.map(({ name }) => name);
}

describe('migrations of a Postgres database in use', () => {
  const insert = "insert into accounts values ('concurrent-' || gen_random_uuid(), '', 1)";

  test('a migration gives way while others use its table, so that writes behind it go on, and is done once they end', async () => {
    const { databaseUrl: url } = await newPostgres();
    await migratePostgres(url);
    const [reader, writer, observer] = await Promise.all([connect(url), connect(url), connect(url)]);
    await reader.query('begin');
    await reader.query('select count(*) from accounts');
    const migrating = migratePostgres(url, { migrations: [...readMigrations('postgres'), expand] });
    const waiting = "select 1 from pg_locks where not granted and relation = 'accounts'::regclass";
    await eventually(async () => assert.equal((await observer.query(waiting)).rowCount, 1), 20_000);
    // It waits for the reader's lock, and this insert for it: only its giving way lets the insert through.
    await writer.query(insert);
    assert.ok(!(await readPostgresSchema(url)).done.has(expand.name));
    await reader.query('commit');
    assert.deepEqual(await migrating, [expand.name]);
  });

  test('an index is made concurrently by one of several processes that start, while a transaction writes to its table', async () => {
    const { databaseUrl: url } = await newPostgres();
    await migratePostgres(url);
    const migrations = [...readMigrations('postgres'), index];
    const [writer, observer] = await Promise.all([connect(url), connect(url)]);
    await writer.query('begin');
    await writer.query(insert);
    const starting = Promise.all(Array.from({ length: 4 }, () => migratePostgres(url, { migrations })));
    const building =
      "select 1 from pg_stat_activity where query like 'CREATE INDEX CONCURRENTLY%' and state = 'active'";
    await eventually(async () => assert.equal((await observer.query(building)).rowCount, 1), 20_000);
    await observer.query(insert);
    await writer.query('commit');
    const done = await starting;
    assert.deepEqual(done.flat(), [index.name]);
  });

  test('an index that an interrupted migration left invalid is made anew by the next one', async () => {
    const { databaseUrl: url } = await newPostgres();
    await migratePostgres(url);
    const migrations = [...readMigrations('postgres'), index];
    const [writer, observer] = await Promise.all([connect(url), connect(url)]);
    await writer.query('begin');
    await writer.query(insert);
    const interrupted = migratePostgres(url, { migrations });
    interrupted.catch(() => undefined);
    const invalid = "select 1 from pg_index where indexrelid = to_regclass('accounts_by_name') and not indisvalid";
    await eventually(async () => assert.equal((await observer.query(invalid)).rowCount, 1), 20_000);
    await observer.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'CREATE INDEX CONCURRENTLY%'",
    );
    await assert.rejects(interrupted);
    await writer.query('commit');
    assert.equal((await observer.query(invalid)).rowCount, 1);
    assert.deepEqual(await migratePostgres(url, { migrations }), [index.name]);
    assert.equal((await observer.query(invalid)).rowCount, 0);
  });

  test('a process that loses the lock of migrations stops migrating', async () => {
    const { databaseUrl: url } = await newPostgres();
    await migratePostgres(url);
    const [reader, observer] = await Promise.all([connect(url), connect(url)]);
    await reader.query('begin');
    await reader.query('select count(*) from accounts');
    const migrating = migratePostgres(url, { migrations: [...readMigrations('postgres'), expand] });
    migrating.catch(() => undefined);
    const holders = "select pid from pg_locks where locktype = 'advisory' and granted";
    await eventually(async () => assert.equal((await observer.query(holders)).rowCount, 1), 20_000);
    await observer.query(`select pg_terminate_backend(pid) from (${holders}) as holder`);
    await assert.rejects(migrating);
    await reader.query('commit');
    assert.ok(!(await readPostgresSchema(url)).done.has(expand.name));
  });
});

describe('npm run migrate', () => {
  const program = fileURLToPath(new URL('../../dist/launcher/migrate.js', import.meta.url));
  const run = (args: readonly string[], environment: Record<string, string>) =>
    new Promise<{ code: number; out: string; error: string }>((resolve) => {
      const { PATH, NODE_COMPILE_CACHE } = process.env;
      const env = { PATH, NODE_COMPILE_CACHE, ...environment };
      execFile(process.execPath, [program, ...args], { env }, (failure, out, error) =>
        resolve({ code: Number(failure?.code ?? 0), out, error }),
      );
    });

  test('npm run migrate shows what is missing, runs it, and then finds nothing to do', async () => {
    const { databaseUrl: url } = await newPostgres();
    const environment = { DATABASE_URL: url, SLUICE_DATA_DIR: folder, SLUICE_MIGRATE_AT_START: 'off' };
    const status = await run(['--status'], environment);
    assert.equal(status.code, 3);
    assert.match(status.out, /^Missing: 001-accounts-and-api-keys, /m);
    assert.equal((await readPostgresSchema(url)).done.size, 0);
    const unclear = await run(['--json'], environment);
    assert.deepEqual([unclear.code, unclear.out], [2, '']);
    assert.match(unclear.error, /^migrate: --json belongs to --status\n/);
    assert.equal((await readPostgresSchema(url)).done.size, 0, 'who asks for a report changes nothing');
    const migrated = await run([], environment);
    assert.deepEqual([migrated.code, migrated.error], [0, '']);
    assert.match(migrated.out, /^Migrated: 001-accounts-and-api-keys, /);
    const after = await run(['--status', '--json'], environment);
    assert.equal(after.code, 0);
    assert.deepEqual(JSON.parse(after.out).missing, []);
    const refused = await run(['--statsu'], environment);
    assert.equal(refused.code, 2);
    assert.match(refused.error, /usage:/);
  });
});
