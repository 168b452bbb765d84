import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { ensureAccount } from '../../shared/accounts/accounts.ts';
import { addCredit, listCredits } from '../../shared/accounts/credits.ts';
import { openDatabase } from '../../shared/database/database.ts';
import type { ApiError } from '../../shared/errors.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

describe('credit whose commit is not answered', () => {
  let server: TestPostgres;
  let redisServer: TestRedis;
  let redis: Redis;
  const closers: (() => unknown)[] = [];
  before(async () => {
    [server, redisServer] = await Promise.all([startPostgres(), startRedis()]);
    redis = new Redis(redisServer.url);
  });
  after(async () => {
    for (const close of closers) await close();
    redis?.disconnect();
    await Promise.all([server?.stop(), redisServer?.stop()]);
  });

  /** The way to a database, on which the answer to the next commit is lost with its connection; or with all later ones. */
  async function openLossyWay(url: string) {
    const socket = `${new URL(url).searchParams.get('host')}/.s.PGSQL.5432`;
    let loses: 'nothing' | 'answer' | 'all' = 'nothing';
    const proxy = createServer((client) => {
      const database = connect(socket);
      let isLost = false;
      client.on('data', (bytes) => {
        isLost ||= loses !== 'nothing' && bytes.includes('commit\0');
        database.write(bytes);
      });
      database.on('data', (bytes) => {
        if (!isLost) return void client.write(bytes);
        if (loses === 'answer') loses = 'nothing';
        else proxy.close();
        client.destroy();
      });
      for (const one of [client, database]) {
        one.on('error', () => undefined);
        one.on('close', () => [client, database].map((each) => each.destroy()));
      }
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    closers.push(() => proxy.close());
    const databaseUrl = `postgres://sluice@127.0.0.1:${port}${new URL(url).pathname}`;
    const db = await openDatabase({ databaseUrl, dataDir: '/nowhere' });
    closers.unshift(() => db.destroy());
    return {
      db,
      lose: (what: typeof loses) => {
        loses = what;
      },
    };
  }

  test('credit whose commit is not answered is looked for, and told as added, so that nobody adds it twice', async () => {
    const way = await openLossyWay(await server.createDatabase());
    await ensureAccount(way.db, { id: 'tenant', name: 'Tenant' });
    way.lose('answer');
    const credit = await addCredit(way.db, redis, { accountId: 'tenant', amount: 5, note: '', createdBy: 'operator' });
    const credits = await listCredits(way.db, 'tenant', { limit: 10, after: undefined });
    assert.deepEqual(credits, [credit]);
  });

  test('credit whose commit is not answered, by a database that is away then, is told as unknown', async () => {
    const url = await server.createDatabase();
    const way = await openLossyWay(url);
    await ensureAccount(way.db, { id: 'tenant', name: 'Tenant' });
    way.lose('all');
    await assert.rejects(
      addCredit(way.db, redis, { accountId: 'tenant', amount: 5, note: '', createdBy: 'operator' }),
      (error: ApiError) => error.code === 'outcome_unknown' && /before you repeat/.test(error.message),
    );
    const db = await openDatabase({ databaseUrl: url, dataDir: '/nowhere' });
    closers.unshift(() => db.destroy());
    assert.equal((await listCredits(db, 'tenant', { limit: 10, after: undefined }))?.length, 1);
  });
});
