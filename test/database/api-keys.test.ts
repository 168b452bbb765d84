import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import {
  createApiKey,
  defaultAccountId,
  ensureApiKey,
  findApiKeyByHash,
  findApiKeys,
  hashApiKey,
  listApiKeys,
  revokeApiKey,
  syncRevokedKeys,
} from '../../shared/api-keys.ts';
import { type Database, databaseFile, openDatabase } from '../../shared/database/database.ts';
import { accountKeys } from '../../shared/keys.ts';
import { databaseSettings, isOnPostgres } from '../support/database-settings.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

describe('API keys', () => {
  let dataDir = '';
  let db: Database;
  let server: TestRedis;
  let redis: Redis;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'sluice-test-keys-'));
    db = await openDatabase(await databaseSettings(dataDir));
    server = await startRedis();
    redis = new Redis(server.url);
  });
  after(async () => {
    redis.disconnect();
    await db.destroy();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const newKey = (name: string) => createApiKey(db, { accountId: defaultAccountId, name });

  test('a new key has 256 random bits and is found by its hash, with its settings', async () => {
    const options = {
      accountId: defaultAccountId,
      name: 'with settings',
      concurrency: 7,
      onDisconnect: 'continue',
      unsupportedParameters: 'drop',
    } as const;
    const { id, key } = await createApiKey(db, options);
    assert.match(key, /^sk-sluice-[A-Za-z0-9_-]{43}$/);
    const found = await findApiKeyByHash(db, hashApiKey(key));
    assert.ok(found);
    const { createdAt, ...rest } = found;
    assert.ok(createdAt <= Date.now());
    assert.deepEqual(rest, {
      id,
      accountId: 'default',
      name: 'with settings',
      prefix: key.slice(0, 16),
      revokedAt: undefined,
      concurrency: 7,
      onDisconnect: 'continue',
      unsupportedParameters: 'drop',
    });
    assert.equal(await findApiKeyByHash(db, hashApiKey(`${key}x`)), undefined);
  });

  /** All that is stored of keys, as bytes by where they are. */
  const storedBytes = async (): Promise<[where: string, bytes: Buffer][]> => {
    if (isOnPostgres) {
      const rows = await db.selectFrom('api_keys').selectAll().execute();
      return [['rows', Buffer.from(JSON.stringify(rows))]];
    }
    const files = [databaseFile, `${databaseFile}-wal`];
    return await Promise.all(
      files.map(async (file): Promise<[string, Buffer]> => [file, await readFile(join(dataDir, file))]),
    );
  };

  test("no key's text is stored", async () => {
    const { key } = await newKey('secret');
    await ensureApiKey(db, 'a-secret-that-someone-chose');
    for (const [where, bytes] of await storedBytes()) {
      assert.equal(bytes.includes(key.slice(0, 24)), false, where);
      assert.equal(bytes.includes('a-secret'), false, where);
    }
  });

  test('a given text becomes a key once, also when several ask at once', async () => {
    const text = 'a-text-for-automation-1';
    const outcomes = await Promise.all([ensureApiKey(db, text), ensureApiKey(db, text), ensureApiKey(db, text)]);
    assert.deepEqual(outcomes.sort(), ['active', 'active', 'created']);
    const found = await findApiKeyByHash(db, hashApiKey(text));
    assert.equal(found?.accountId, defaultAccountId);
    assert.equal(found?.prefix, 'a-te');
  });

  test('a key is revoked in the database and in Redis, once, and a given text does not bring it back', async () => {
    const text = 'a-text-for-automation-2';
    await ensureApiKey(db, text);
    const key = await findApiKeyByHash(db, hashApiKey(text));
    assert.ok(key);
    const flag = accountKeys.keyActive(key.accountId, key.id);
    await redis.set(flag, '1');
    await revokeApiKey(db, redis, key);
    assert.equal(await redis.get(flag), '0');
    const revokedAt = (await findApiKeyByHash(db, hashApiKey(text)))?.revokedAt;
    assert.ok(revokedAt);
    await revokeApiKey(db, redis, key);
    assert.equal((await findApiKeyByHash(db, hashApiKey(text)))?.revokedAt, revokedAt);
    assert.equal(await ensureApiKey(db, text), 'revoked');
  });

  test('a Redis that still has a revoked key as active learns of it by the sync, and active keys stay', async () => {
    const [revoked, active] = [await newKey('revoked'), await newKey('active')];
    const key = (await findApiKeys(db, revoked.id))[0];
    assert.ok(key);
    await revokeApiKey(db, redis, key);
    const flags = [revoked.id, active.id].map((id) => accountKeys.keyActive(defaultAccountId, id));
    await redis.mset(...flags.flatMap((flag) => [flag, '1']));
    await syncRevokedKeys(db, redis);
    assert.deepEqual(await redis.mget(flags), ['0', '1']);
  });

  test('lists name all keys, and one is found by its id or its beginning', async () => {
    const { id, key } = await newKey('to be found');
    const listed = (await listApiKeys(db)).find((entry) => entry.id === id);
    assert.equal(listed?.name, 'to be found');
    assert.deepEqual(await findApiKeys(db, id), [listed]);
    assert.deepEqual(await findApiKeys(db, key.slice(0, 16)), [listed]);
    assert.deepEqual(await findApiKeys(db, 'key_none'), []);
  });
});
