import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { ConfigError, readConfig } from '../../shared/config/config.ts';
import { type Database, openDatabase } from '../../shared/database/database.ts';
import { readMigrations } from '../../shared/database/migrations.ts';
import { PostgresError } from '../../shared/database/postgres-dialect.ts';
import { readSecret } from '../../shared/database/secrets.ts';
import { selectRows } from '../../shared/database/select-rows.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { typescriptFlags } from '../support/typescript-flags.ts';

const openAndInsert = fileURLToPath(new URL('open-and-insert.ts', import.meta.url));
const account = (id: string) => ({ id, name: id, created_at: 1 });
const apiKey = { id: 'key', account_id: 'default', name: '', hash: 'hash-of-it', prefix: '', created_at: 1 };
/** What a caller waits at most for a database that does not answer: 7 s, and time for a busy machine. */
const silentMs = 12_000;

describe('the Postgres database', () => {
  let server: TestPostgres;
  const open = (databaseUrl: string): Promise<Database> => openDatabase({ databaseUrl, dataDir: '/nowhere' });
  const openNew = async (): Promise<Database> => open(await server.createDatabase());
  const accountIds = async (db: Database): Promise<string[]> =>
    (await db.selectFrom('accounts').select('id').orderBy('id').execute()).map(({ id }) => id);

  before(async () => {
    server = await startPostgres();
  });
  after(() => server?.stop());

  test('a new one gets the tables and the first account; a second opening finds what the first one wrote', async () => {
    const url = await server.createDatabase();
    const first = await open(url);
    const { created_at: createdAt } = await first.selectFrom('accounts').selectAll().executeTakeFirstOrThrow();
    assert.ok(Math.abs(createdAt - Date.now()) < 60_000);
    await first.insertInto('accounts').values(account('kept')).execute();
    const secret = await readSecret(
      first,
      { databaseUrl: url, dataDir: '/nowhere', secret: undefined },
      'result-links',
    );
    await first.destroy();
    const second = await open(url);
    assert.deepEqual(await accountIds(second), ['default', 'kept']);
    assert.deepEqual(
      await readSecret(second, { databaseUrl: url, dataDir: '/nowhere', secret: undefined }, 'result-links'),
      secret,
    );
    assert.equal(secret.length, 32);
    await second.destroy();
  });

  test('the Postgres database has the tables, columns and migrations that SQLite has', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-schema-'));
    const [postgres, sqlite] = [await openNew(), await openDatabase({ dataDir, databaseUrl: undefined })];
    try {
      const names = (kind: 'sqlite' | 'postgres') => readMigrations(kind).map(({ name }) => name);
      assert.deepEqual(names('postgres'), names('sqlite'));
      assert.deepEqual(await schemaOf(postgres), await schemaOf(sqlite));
    } finally {
      await Promise.all([postgres.destroy(), sqlite.destroy()]);
      await rm(dataDir, { recursive: true });
    }
  });

  test('four processes that start at once on a new one migrate it once, and all write to it', async () => {
    const url = await server.createDatabase();
    const children = ['a', 'b', 'c', 'd'].map((name) =>
      fork(openAndInsert, [name, '25', '/nowhere', url], { execArgv: [...typescriptFlags] }),
    );
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0] as number));
    assert.deepEqual(codes, [0, 0, 0, 0]);
    const db = await open(url);
    assert.equal((await accountIds(db)).length, 101);
    const { rows } = await sql<{ count: number }>`
      select count(*) from (select name from migrations union all select name from schema_changes) as steps`.execute(
      db,
    );
    assert.equal(rows[0]?.count, readMigrations('postgres').length);
    await db.destroy();
  });

  test('a broken constraint rejects with its code, and shows no values', async () => {
    const db = await openNew();
    const refused = (code: string) => (error: unknown) => {
      assert.ok(error instanceof PostgresError, String(error));
      assert.equal(error.code, code);
      assert.doesNotMatch(JSON.stringify({ ...error, message: error.message, stack: error.stack }), /hash-of-it/);
      return true;
    };
    const insert = (more: object = {}) =>
      db
        .insertInto('api_keys')
        .values({ ...apiKey, ...more })
        .execute();
    await insert();
    await assert.rejects(insert(), refused('23505'));
    await assert.rejects(insert({ id: 'other' }), refused('23505'));
    await assert.rejects(insert({ id: 'other', hash: 'hash-of-it-2', account_id: 'nobody' }), refused('23503'));
    await assert.rejects(insert({ id: 'other', hash: 'hash-of-it-3', concurrency: 0 }), refused('23514'));
    await db.destroy();
  });

  test('transactions never mix with each other or with single statements', async () => {
    const db = await openNew();
    const failing = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('accounts').values(account('rolled-back')).execute();
      await transaction.insertInto('accounts').values(account('default')).execute();
    });
    const single = db.insertInto('accounts').values(account('single')).execute();
    const passing = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('accounts').values(account('committed')).execute();
    });
    await assert.rejects(failing, PostgresError);
    await Promise.all([single, passing]);
    assert.deepEqual(await accountIds(db), ['committed', 'default', 'single']);
    await db.destroy();
    await assert.rejects(accountIds(db));
  });

  test('a connection that finds its server read-only is not used again: after a failover the address leads elsewhere', async () => {
    const url = await server.createDatabase();
    const [db, administrator] = [await open(url), await open(url)];
    // Of the database as new connections find it, as of the server that an address leads to.
    const makeReadOnly = async (isReadOnly: boolean) => {
      const name = sql.id(new URL(url).pathname.slice(1));
      await sql`alter database ${name} set default_transaction_read_only = ${sql.lit(isReadOnly)}`.execute(
        administrator,
      );
    };
    const insert = (id: string) => db.insertInto('accounts').values(account(id)).execute();
    await makeReadOnly(true);
    await assert.rejects(insert('refused'), { code: '25006' });
    await makeReadOnly(false);
    await insert('written');
    assert.deepEqual(await accountIds(db), ['default', 'written']);
    await Promise.all([db.destroy(), administrator.destroy()]);
  });

  test('text that Postgres cannot hold is stored with a mark in its place', async () => {
    const db = await openNew();
    await db.insertInto('accounts').values(account('a\0b')).execute();
    const rows = [{ id: 'c\0d\ud800e "\\u0000" 😀', name: 'of rows', created_at: 2 ** 45 }];
    const columns = ['id', 'name', 'created_at'] as const;
    await sql`insert into accounts (id, name, created_at) ${selectRows(db, 'accounts', columns, rows)}`.execute(db);
    assert.deepEqual(await accountIds(db), ['a\ufffdb', 'c\ufffdd\ufffde "\\u0000" 😀', 'default']);
    const { created_at: createdAt } = await db
      .selectFrom('accounts')
      .select('created_at')
      .where('name', '=', 'of rows')
      .executeTakeFirstOrThrow();
    assert.equal(createdAt, 2 ** 45);
    await db.destroy();
  });

  test('a statement that takes too long is ended', async () => {
    const db = await openNew();
    const begun = Date.now();
    await assert.rejects(
      sql`select pg_sleep(60)`.execute(db),
      (error) => error instanceof PostgresError && error.code === '57014',
    );
    assert.ok(Date.now() - begun < silentMs);
    await db.destroy();
  });

  test('more statements than connections wait for their turn', async () => {
    const db = await openNew();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, number) =>
        sql<{ n: number }>`select ${number}::bigint as n, pg_sleep(0.05)`.execute(db),
      ),
    );
    assert.deepEqual(
      answers.map(({ rows }) => rows[0]?.n),
      Array.from({ length: 60 }, (_, number) => number),
    );
    const { rows } = await sql<{ n: number }>`
      select count(*) as n from pg_stat_activity where datname = current_database()`.execute(db);
    assert.ok((rows[0]?.n ?? 99) <= 10, `${rows[0]?.n} connections`);
    await db.destroy();
  });

  test('while the server is stopped statements fail in bounded time, and what they began is never committed', async () => {
    const url = await server.createDatabase();
    const db = await open(url);
    let stop = (): void => undefined;
    const stopped = new Promise<void>((resolve) => {
      stop = resolve;
    });
    const cut = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('accounts').values(account('cut-1')).execute();
      server.pause();
      stop();
      await transaction.insertInto('accounts').values(account('cut-2')).execute();
    });
    await stopped;
    const begun = Date.now();
    try {
      const statements = [cut, accountIds(db), db.insertInto('accounts').values(account('cut-3')).execute()];
      for (const outcome of await Promise.allSettled(statements)) assert.equal(outcome.status, 'rejected');
      assert.ok(Date.now() - begun < silentMs, `${Date.now() - begun} ms`);
    } finally {
      server.resume();
    }
    await eventually(
      () =>
        db
          .insertInto('accounts')
          .values(account('afterwards'))
          .execute()
          .then(() => undefined),
      20_000,
    );
    const other = await open(url);
    assert.deepEqual(await accountIds(other), ['afterwards', 'default']);
    await Promise.all([db.destroy(), other.destroy()]);
  });

  test('a server that ends and comes back is used again, also by a transaction that it cut', async () => {
    const db = await openNew();
    // One that is idle meanwhile, one that is lent.
    await Promise.all([accountIds(db), accountIds(db)]);
    const cut = db.transaction().execute(async (transaction) => {
      await transaction.insertInto('accounts').values(account('cut')).execute();
      await server.shutDown();
      await transaction.insertInto('accounts').values(account('cut-2')).execute();
    });
    await assert.rejects(cut, PostgresError);
    await assert.rejects(accountIds(db), PostgresError);
    await server.start();
    await db.insertInto('accounts').values(account('afterwards')).execute();
    assert.deepEqual(await accountIds(db), ['afterwards', 'default']);
    await db.destroy();
  });

  describe('what cannot be used is one sentence, without the password', () => {
    const sentence = (pattern: RegExp) => (error: unknown) => {
      assert.ok(error instanceof ConfigError, String(error));
      assert.match(error.message, pattern);
      assert.doesNotMatch(error.message, /\n|geheim/);
      return true;
    };

    test('a port on which no server listens', async () => {
      const url = `postgres://sluice:geheim@127.0.0.1:${await freePort()}/sluice`;
      await assert.rejects(open(url), sentence(/DATABASE_URL cannot be used: no server listens there\.$/));
    });

    test('a server that does not answer', async () => {
      const url = await server.createDatabase();
      server.pause();
      try {
        await assert.rejects(open(url), sentence(/cannot be used: timeout/));
      } finally {
        server.resume();
      }
    });

    test('a database that is not there, a user that the server does not know, a URL that is none', async () => {
      const url = await server.createDatabase();
      await assert.rejects(open(url.replace(/database_\d+/, 'absent')), sentence(/has no database of that name/));
      await assert.rejects(open(url.replace('sluice@', 'nobody:geheim@')), sentence(/the server refuses the user/));
      await assert.rejects(open('postgres://sluice:geheim@host:port/sluice'), sentence(/is not a URL like/));
      assert.throws(
        () => readConfig({ DATABASE_URL: 'mysql://sluice:geheim@127.0.0.1/sluice' }),
        sentence(/^DATABASE_URL must begin with postgres:\/\/\.$/),
      );
    });
  });
});

/** Its tables with their columns: name, whether it may be null, and the kind of its values as both databases know it. */
async function schemaOf(db: Database): Promise<object[]> {
  const kinds: Record<string, string> = { bigint: 'int8', integer: 'int8', blob: 'bytea' };
  const tables = await db.introspection.getTables();
  return (
    tables
      // Without SQLite's own tables, and Postgres's partitions.
      .filter(({ name }) => !/^(sqlite|jobs)_/.test(name))
      .map(({ name, columns }) => ({
        name,
        columns: columns
          .map(({ name: column, dataType, isNullable }) => {
            const type = dataType.toLowerCase();
            return `${column} ${kinds[type] ?? type}${isNullable ? '' : ' not null'}`;
          })
          .sort(),
      }))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
  );
}
