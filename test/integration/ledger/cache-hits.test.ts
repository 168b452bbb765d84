import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { sql } from 'kysely';
import type { CacheHits as Hits } from '../../../api/ledger/usage/cache-hits.ts';
import type { Database } from '../../../shared/database/database.ts';
import { databaseSettings } from '../../support/database-settings.ts';
import { eventually } from '../../support/eventually.ts';
import { loadProduct } from '../../support/gateway.ts';

const { openDatabase } =
  await loadProduct<typeof import('../../../shared/database/database.ts')>('shared/database/database');
const { createLogger } = await loadProduct<typeof import('../../../shared/runtime/log.ts')>('shared/runtime/log');
const { CacheHits } =
  await loadProduct<typeof import('../../../api/ledger/usage/cache-hits.ts')>('api/ledger/usage/cache-hits');
const { readUsage } = await loadProduct<typeof import('../../../api/ledger/usage/usage-report.ts')>(
  'api/ledger/usage/usage-report',
);

const { log } = createLogger('silent', 'test');
const hour = 3_600_000;
const day = 24 * hour;
const morning = Date.now() - (Date.now() % day) - 3 * day;
/** Longer than any test: what is written then is written by `flush` or `close`. */
const never = 3_600_000;

let dataDir: string;
let db: Database;
const databases: Database[] = [];
const counters: Hits[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-cache-hits-'));
  db = await opened();
});
afterEach(async () => {
  await Promise.all(counters.splice(0).map((counter) => counter.close()));
  await Promise.all(databases.splice(0).map((database) => database.destroy()));
  await rm(dataDir, { recursive: true, force: true });
});

async function opened(): Promise<Database> {
  const database = await openDatabase(await databaseSettings(dataDir));
  databases.push(database);
  return database;
}

function counter(more: Partial<ConstructorParameters<typeof CacheHits>[0]> = {}): Hits {
  const hits = new CacheHits({ db, log, intervalMs: never, ...more });
  counters.push(hits);
  return hits;
}

function hit(more: Partial<Parameters<Hits['add']>[0]> = {}) {
  const usual = { account: 'account', apiKeyId: 'key', endpoint: 'chat', capability: 'chat', model: 'model' } as const;
  return { ...usual, createdAt: morning, ...more };
}

async function usage(groupBy: 'hour' | 'day' | 'model' | 'key' | 'account', account?: string) {
  const question = { account, from: morning - day, to: morning + 2 * day, groupBy, timeZoneMs: 0 };
  const { rows, total } = await readUsage(db, question);
  return { groups: rows.map((row) => [row.group, row.cache_hits]), total };
}

describe('cached answers', () => {
  test('cached answers are counted by hour, account, key and model, in days and for all accounts, too', async () => {
    const hits = counter();
    for (let index = 0; index < 12; index++) {
      hits.add(
        hit({ model: `model-${index % 3}`, apiKeyId: `key-${index % 2}`, createdAt: morning + index * 600_000 }),
      );
    }
    hits.add(hit({ account: 'another', createdAt: morning + day }));
    await hits.flush();
    assert.deepEqual((await usage('hour', 'account')).groups, [
      [morning, 6],
      [morning + hour, 6],
    ]);
    assert.deepEqual((await usage('day')).groups, [
      [morning, 12],
      [morning + day, 1],
    ]);
    const sorted = async (groupBy: Parameters<typeof usage>[0]) => (await usage(groupBy)).groups.map(String).sort();
    assert.deepEqual(await sorted('model'), ['model,1', 'model-0,4', 'model-1,4', 'model-2,4']);
    assert.deepEqual(await sorted('key'), ['key,1', 'key-0,6', 'key-1,6']);
    assert.deepEqual(await sorted('account'), ['account,12', 'another,1']);
    const { requests, cost, input_tokens: tokens, cache_hits: count } = (await usage('day')).total;
    assert.deepEqual([requests, cost, tokens, count], [0, 0, 0, 13]);
  });

  test('cached answers of several processes are all counted, without a deadlock', async () => {
    const others = [await opened(), await opened(), await opened()];
    const all = [db, ...others].map((own) => counter({ db: own }));
    for (let round = 0; round < 5; round++) {
      for (const [index, hits] of all.entries()) {
        for (let number = 0; number < 1200; number++) {
          const model = `model-${index % 2 === 0 ? number : 1199 - number}`;
          hits.add(hit({ model }));
        }
      }
      await Promise.all(all.map((hits) => hits.flush()));
    }
    assert.equal((await usage('day')).total.cache_hits, 4 * 5 * 1200);
  });

  test('cached answers are written after the interval, and on closing', async () => {
    const hits = counter({ intervalMs: 10 });
    hits.add(hit());
    await eventually(async () => assert.equal((await usage('day')).total.cache_hits, 1));
    const closing = counter();
    for (let index = 0; index < 3; index++) closing.add(hit());
    await closing.close();
    assert.equal((await usage('day')).total.cache_hits, 4);
  });

  test('cached answers wait while the database refuses them, and count once after that', async () => {
    const hits = counter({ intervalMs: 10 });
    await sql`alter table usage_hours rename to usage_hours_gone`.execute(db);
    let failures = 0;
    const failing = counter({ log: { warn: () => (failures += 1) } as never, intervalMs: 10 });
    hits.add(hit());
    failing.add(hit());
    await eventually(() => assert.ok(failures >= 3, 'tried again'));
    failing.add(hit());
    await sql`alter table usage_hours_gone rename to usage_hours`.execute(db);
    await eventually(async () => assert.equal((await usage('day')).total.cache_hits, 3));
    await Promise.all([hits.close(), failing.close()]);
    assert.equal((await usage('day')).total.cache_hits, 3);
    assert.equal((await usage('key')).total.cache_hits, 3, 'the days were rolled back with the hours');
  });

  test('cached answers of more groups than there is room for are told of, and those of known groups still count', async () => {
    const told: unknown[] = [];
    const hits = counter({ log: { warn: (line: unknown) => told.push(line) } as never, maxGroups: 10 });
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 15; index++) hits.add(hit({ model: `model-${index}` }));
    }
    await hits.flush();
    assert.equal((await usage('day')).total.cache_hits, 20);
    assert.deepEqual(told, [{ hits: 10 }]);
  });
});
