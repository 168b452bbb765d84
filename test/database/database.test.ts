import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import Libsql from 'libsql';
import { ConfigError } from '../../shared/config/config.ts';
import { type Database, databaseFile, openDatabase } from '../../shared/database/database.ts';
import { SqliteError } from '../../shared/database/sqlite-dialect.ts';
import { typescriptFlags } from '../support/typescript-flags.ts';

const openAndInsert = fileURLToPath(new URL('open-and-insert.ts', import.meta.url));
const openSqlite = (dataDir: string): Promise<Database> => openDatabase({ dataDir, databaseUrl: undefined });
const account = (id: string) => ({ id, name: id, created_at: 1 });

/** Begins so many inserts at once. When it returns, Kysely has passed them all on, and no event of the thread has been taken. */
async function beginInserts(db: Database, count: number): Promise<Promise<unknown>[]> {
  const written = Array.from({ length: count }, (_, index) =>
    db
      .insertInto('accounts')
      .values(account(`row-${index}`))
      .execute(),
  );
  await new Promise<void>((resolve) => process.nextTick(resolve));
  return written;
}

describe('the SQLite database', () => {
  let folder = '';
  let made = 0;
  const newFolder = (): string => join(folder, `data-${++made}`);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-test-database-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  test('a new folder gets a database with the first account, and only its owner may read it', async () => {
    const dataDir = join(newFolder(), 'nested');
    const db = await openSqlite(dataDir);
    const accounts = await db.selectFrom('accounts').selectAll().execute();
    assert.deepEqual(
      accounts.map((row) => row.id),
      ['default'],
    );
    assert.ok(Math.abs((accounts[0]?.created_at ?? 0) - Date.now()) < 60_000);
    const journal = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(db);
    assert.equal(journal.rows[0]?.journal_mode, 'wal');
    await db.destroy();
    assert.equal((await stat(dataDir)).mode & 0o777, 0o700);
  });

  test('a second opening finds what the first one wrote', async () => {
    const dataDir = newFolder();
    const first = await openSqlite(dataDir);
    await first.insertInto('accounts').values(account('kept')).execute();
    await first.destroy();
    const second = await openSqlite(dataDir);
    assert.equal((await second.selectFrom('accounts').selectAll().execute()).length, 2);
    await second.destroy();
  });

  test('four processes that start at once on a new folder migrate it once, and all write to it', async () => {
    const dataDir = newFolder();
    const children = ['a', 'b', 'c', 'd'].map((name) =>
      fork(openAndInsert, [name, '25', dataDir], { execArgv: [...typescriptFlags] }),
    );
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0] as number));
    assert.deepEqual(codes, [0, 0, 0, 0]);
    const db = await openSqlite(dataDir);
    const { count } = await db
      .selectFrom('accounts')
      .select((is) => is.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    assert.equal(count, 101);
    await db.destroy();
  });

  test('a start waits for another process that migrates, longer than any later statement waits for a lock', async () => {
    const dataDir = newFolder();
    await (await openSqlite(dataDir)).destroy();
    const migrating = new Libsql(join(dataDir, databaseFile));
    migrating.exec('BEGIN IMMEDIATE');
    const started = openSqlite(dataDir);
    // Longer than statements wait.
    await Promise.race([started, delay(6000)]);
    migrating.exec('COMMIT');
    migrating.close();
    const db = await started;
    const { rows } = await sql<{ timeout: number }>`pragma busy_timeout`.execute(db);
    assert.deepEqual(rows, [{ timeout: 5000 }]);
    await db.destroy();
  });

  test('a broken constraint rejects with the name SQLite gives it', async () => {
    const db = await openSqlite(newFolder());
    await assert.rejects(db.insertInto('accounts').values(account('default')).execute(), (error) => {
      assert.ok(error instanceof SqliteError);
      assert.equal(error.code, 'SQLITE_CONSTRAINT_PRIMARYKEY');
      return true;
    });
    const orphan = { id: 'k', account_id: 'nobody', name: '', hash: 'h', prefix: '', created_at: 1 };
    await assert.rejects(
      db
        .insertInto('api_keys')
        .values({ ...orphan, revoked_at: null, concurrency: null, on_disconnect: null })
        .execute(),
      (error) => error instanceof SqliteError && error.code === 'SQLITE_CONSTRAINT_FOREIGNKEY',
    );
    await db.destroy();
  });

  test('transactions never mix with each other or with single statements', async () => {
    const db = await openSqlite(newFolder());
    const failing = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('accounts').values(account('rolled-back')).execute();
      await transaction.insertInto('accounts').values(account('default')).execute();
    });
    const single = db.insertInto('accounts').values(account('single')).execute();
    const passing = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('accounts').values(account('committed')).execute();
    });
    await assert.rejects(failing, SqliteError);
    await Promise.all([single, passing]);
    const rows = await db.selectFrom('accounts').select('id').orderBy('id').execute();
    assert.deepEqual(
      rows.map((row) => row.id),
      ['committed', 'default', 'single'],
    );
    await db.destroy();
  });

  test('a transaction that finds the disk full rejects with that, and later ones are committed', async () => {
    const db = await openSqlite(newFolder());
    const limitPages = (pages: string) => sql.raw(`pragma max_page_count = ${pages}`).execute(db);
    const insert = (id: string) =>
      db.transaction().execute(async (transaction) => {
        await transaction
          .insertInto('accounts')
          .values({ ...account(id), name: id.repeat(100_000) })
          .execute();
      });
    // SQLite makes the limit the number of pages that the file has.
    await limitPages('1');
    await assert.rejects(insert('a'), (error) => error instanceof SqliteError && error.code === 'SQLITE_FULL');
    await limitPages('1000000');
    await insert('b');
    const rows = await db.selectFrom('accounts').select('id').orderBy('id').execute();
    assert.deepEqual(
      rows.map(({ id }) => id),
      ['b', 'default'],
    );
    await db.destroy();
  });

  describe('after another process has held its lock for longer than a statement waits', { concurrency: true }, () => {
    for (const [name, write] of Object.entries({
      'a transaction': (db: Database, row: ReturnType<typeof account>) =>
        db.transaction().execute(async (transaction) => transaction.insertInto('accounts').values(row).execute()),
      'a statement': (db: Database, row: ReturnType<typeof account>) => db.insertInto('accounts').values(row).execute(),
      'a statement that returns rows': (db: Database, row: ReturnType<typeof account>) =>
        db.insertInto('accounts').values(row).returningAll().execute(),
    })) {
      test(`${name}: everything is committed again`, async () => {
        const dataDir = newFolder();
        const db = await openSqlite(dataDir);
        const other = new Libsql(join(dataDir, databaseFile));
        other.exec('BEGIN IMMEDIATE');
        const isBusy = (error: unknown) => error instanceof SqliteError && error.code === 'SQLITE_BUSY';
        await assert.rejects(write(db, account('in vain')), isBusy);
        other.exec('ROLLBACK');
        await db.transaction().execute(async (transaction) => {
          await transaction.insertInto('accounts').values(account('later')).execute();
        });
        await write(db, account('again'));
        // Of another connection, which sees what is committed only.
        const rows = other.prepare('SELECT id FROM accounts ORDER BY id').all() as { id: string }[];
        assert.deepEqual(
          rows.map(({ id }) => id),
          ['again', 'default', 'later'],
        );
        const options = ['busy_timeout', 'foreign_keys', 'synchronous'].map(async (option) => {
          const { rows } = await sql.raw<Record<string, number>>(`pragma ${option}`).execute(db);
          return Object.values(rows[0] ?? {})[0];
        });
        assert.deepEqual(await Promise.all(options), [5000, 1, 1]);
        other.close();
        await db.destroy();
      });
    }
  });

  test('a write-ahead log that has grown beside a long reader, such as a backup, gives its disk back', async (t) => {
    const dataDir = newFolder();
    const db = await openSqlite(dataDir);
    t.after(() => db.destroy());
    const path = join(dataDir, databaseFile);
    const bytes = async () => (await stat(`${path}-wal`)).size;
    const name = 'x'.repeat(8 * 1024 * 1024);
    const reader = new Libsql(path);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM accounts').get();
    for (let number = 1; number <= 10; number++) {
      const row = { ...account(`${number}`), name };
      await db.insertInto('accounts').values(row).execute();
    }
    const grown = await bytes();
    assert.ok(grown > 80_000_000, `${grown}`);
    reader.exec('COMMIT');
    reader.close();
    // The first finds nobody who reads, the second begins the log anew.
    for (const id of ['one', 'two']) await db.insertInto('accounts').values(account(id)).execute();
    const left = await bytes();
    assert.ok(left <= 64 * 1024 * 1024, `${left}`);
  });

  test('a closed database rejects statements', async () => {
    const db = await openSqlite(newFolder());
    await db.destroy();
    await assert.rejects(db.selectFrom('accounts').selectAll().execute());
  });

  test('while the event loop is busy, statements go on: none waits for the result of the one before', async () => {
    const dataDir = newFolder();
    const db = await openSqlite(dataDir);
    const written = await beginInserts(db, 50);
    const reader = new Libsql(join(dataDir, databaseFile));
    const count = reader.prepare("SELECT count(*) AS rows FROM accounts WHERE id LIKE 'row-%'");
    const rows = (): number => (count.get([]) as { rows: number }).rows;
    const deadline = performance.now() + 10_000;
    while (rows() < 50 && performance.now() < deadline);
    assert.equal(rows(), 50);
    reader.close();
    await Promise.all(written);
    await db.destroy();
  });

  test('statements that were begun before a database is closed are completed, however many', async () => {
    const dataDir = newFolder();
    const db = await openSqlite(dataDir);
    const written = await beginInserts(db, 200);
    await Promise.all([db.destroy(), ...written]);
    const reopened = await openSqlite(dataDir);
    assert.equal((await reopened.selectFrom('accounts').select('id').execute()).length, 201);
    await reopened.destroy();
  });

  test('while a long statement runs, the event loop goes on', async () => {
    const db = await openSqlite(newFolder());
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const counted = await sql<{ n: number }>`
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 2000000)
      select count(*) as n from numbers`.execute(db);
    clearInterval(timer);
    assert.equal(counted.rows[0]?.n, 2_000_000);
    assert.ok(turns > 5, `the loop turned ${turns} times`);
    await db.destroy();
  });

  describe('what cannot be used is one sentence', () => {
    const sentence = (pattern: RegExp) => (error: unknown) => {
      assert.ok(error instanceof ConfigError, String(error));
      assert.match(error.message, pattern);
      assert.doesNotMatch(error.message, /\n/);
      return true;
    };

    test('a data folder whose path is a file', async () => {
      const path = newFolder();
      await writeFile(path, '');
      await assert.rejects(
        openSqlite(path),
        sentence(/The data folder .* cannot be used: it, or a part of its path, is a file/),
      );
      await assert.rejects(
        openSqlite(join(path, 'below')),
        sentence(/cannot be used: it, or a part of its path, is a file/),
      );
    });

    test('a data folder that may not be written to', async () => {
      const path = newFolder();
      await mkdir(path);
      await chmod(path, 0o500);
      // Root may write everywhere; for it the kernel's own folder stands in.
      const target = process.getuid?.() === 0 ? '/proc/sluice/data' : path;
      await assert.rejects(openSqlite(target), sentence(/The data folder .* cannot be used: it/));
    });

    test('a file that is no database', async () => {
      const path = newFolder();
      await mkdir(path);
      await writeFile(join(path, databaseFile), 'something else entirely, and long enough to be read. '.repeat(30));
      await assert.rejects(openSqlite(path), sentence(/The database .* cannot be used: it is not an SQLite file/));
    });
  });
});
