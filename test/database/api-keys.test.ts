import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { CallerDirectory } from '../../api/auth/authenticate.ts';
import {
  type ApiKey,
  createApiKey,
  defaultAccountId,
  ensureApiKey,
  ensureConsoleKey,
  findApiKeyByHash,
  findApiKeys,
  listApiKeys,
} from '../../shared/accounts/api-keys.ts';
import {
  announceKey,
  changeApiKey,
  createLimitedApiKey,
  revokeApiKey,
  rotateApiKey,
} from '../../shared/accounts/change-api-key.ts';
import { syncKeyFlags } from '../../shared/accounts/key-flag.ts';
import { type Database, databaseFile, openDatabase } from '../../shared/database/database.ts';
import { hashApiKey } from '../../shared/ids.ts';
import { accountKeys } from '../../shared/redis/keys.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { databaseSettings, isOnPostgres } from '../support/database-settings.ts';
import { eventually } from '../support/eventually.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const allSettings = {
  expiresAt: 4_000_000_000_000,
  capabilities: ['chat', 'image'],
  models: ['gpt-4o', 'openai/*'],
  rpm: 60,
  tpm: 10_000,
  modelLimits: { 'gpt-4o': { rpm: 5 } },
  budget: { amount: 2_500_000_000, period: 'month' },
  concurrency: 7,
  onDisconnect: 'continue',
  unsupportedParameters: 'drop',
  cacheBreakpoints: 'automatic',
  priority: 'low',
  maxPriority: 'high',
  singleFlight: true,
  cacheSeconds: 3600,
  vendorIds: ['file-1', 'vs_*'],
} as const;

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
  const stored = async (text: string): Promise<ApiKey> => {
    const key = await findApiKeyByHash(db, hashApiKey(text));
    assert.ok(key);
    return key;
  };
  const flagOf = (key: Pick<ApiKey, 'id' | 'accountId'>) => redis.get(accountKeys.keyActive(key.accountId, key.id));
  const newDirectory = () =>
    new CallerDirectory({
      ...{ db, redis, log: createLogger('silent', 'test').log },
      ...{ watch: { isBehind: false }, clock: { now: () => Date.now() }, wrongKeysPerMinute: 60 },
    });
  const addAccount = (id: string) => db.insertInto('accounts').values({ id, name: id, created_at: 1 }).execute();

  test('a new key has 256 random bits and is found by its hash, with its settings', async () => {
    const options = {
      accountId: defaultAccountId,
      name: 'with settings',
      ...allSettings,
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
      hash: hashApiKey(key),
      prefix: key.slice(0, 16),
      kind: 'standard',
      revision: 1,
      revokedAt: undefined,
      rotatedTo: undefined,
      budgetId: undefined,
      lastUsedAt: undefined,
      ...allSettings,
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
    await syncKeyFlags(db, redis);
    assert.deepEqual(await redis.mget(flags), ['0', '1']);
  });

  test('a Redis that still has an older revision of a key learns of the newer one by the sync', async () => {
    const key = await stored((await newKey('changed')).key);
    await changeApiKey(db, redis, key, { rpm: 5 });
    await redis.set(accountKeys.keyActive(key.accountId, key.id), '1');
    await syncKeyFlags(db, redis);
    assert.equal(await flagOf(key), '2');
  });

  test('a change keeps what it does not name, takes away what it names as undefined, and raises the revision', async () => {
    const { key: text } = await createApiKey(db, { accountId: defaultAccountId, name: 'before', ...allSettings });
    const changed = await changeApiKey(db, redis, await stored(text), {
      name: 'after',
      models: undefined,
      budget: undefined,
      rpm: 61,
    });
    assert.ok(changed);
    const { expiresAt, capabilities, models, budget, rpm, name, revision } = changed;
    assert.deepEqual(
      { expiresAt, capabilities, models, budget, rpm, name, revision },
      {
        expiresAt: allSettings.expiresAt,
        capabilities: allSettings.capabilities,
        models: undefined,
        budget: undefined,
        rpm: 61,
        name: 'after',
        revision: 2,
      },
    );
    assert.deepEqual(await stored(text), changed);
    assert.equal(await flagOf(changed), '2');
  });

  test('a revoked key stays revoked, whatever comes late: a change, its announcement, a rotation', async () => {
    const { key: text } = await newKey('raced');
    const before = await stored(text);
    // Read before the revocation, announced after it.
    await revokeApiKey(db, redis, before);
    assert.equal(await announceKey(db, redis, { ...before, revision: 9 }), undefined);
    assert.equal(await changeApiKey(db, redis, before, { rpm: 5 }), undefined);
    assert.equal(await rotateApiKey(db, redis, before, 1000), undefined);
    assert.equal(await flagOf(before), '0');
    const directory = newDirectory();
    await assert.rejects(directory.find(text), { status: 401 });
  });

  test('of many changes and a revocation at once, the revocation is what stays', async () => {
    for (let round = 0; round < 10; round++) {
      const { key: text } = await newKey(`round ${round}`);
      const key = await stored(text);
      await Promise.all([
        changeApiKey(db, redis, key, { rpm: 1 }),
        changeApiKey(db, redis, key, { rpm: 2 }),
        revokeApiKey(db, redis, key),
        changeApiKey(db, redis, key, { rpm: 3 }),
        newDirectory()
          .find(text)
          .catch(() => undefined),
      ]);
      assert.equal(await flagOf(key), '0');
    }
  });

  test('a later revision is never overwritten by an earlier one', async () => {
    const key = await stored((await newKey('ahead')).key);
    await changeApiKey(db, redis, key, { rpm: 1 });
    const current = await announceKey(db, redis, key);
    assert.deepEqual([current?.revision, current?.rpm], [2, 1]);
    assert.equal(await flagOf(key), '2');
  });

  test('a database that was set back to an older copy overtakes the revision that Redis has', async () => {
    const { key: text } = await newKey('set back');
    const key = await stored(text);
    await redis.set(accountKeys.keyActive(key.accountId, key.id), '5');
    const directory = newDirectory();
    const caller = await directory.assertActive(await directory.find(text));
    assert.equal(caller.revision, 6);
    assert.equal((await stored(text)).revision, 6);
    assert.equal(await directory.assertActive(caller), caller);
  });

  test('a process that remembers a key sees a change, and a revocation, with its next request', async () => {
    const { key: text } = await newKey('remembered');
    const directory = newDirectory();
    const caller = await directory.assertActive(await directory.find(text));
    assert.equal(caller.revision, 1);
    await changeApiKey(db, redis, await stored(text), { models: ['gpt-4o'] });
    const changed = await directory.assertActive(await directory.find(text));
    assert.deepEqual([changed.revision, changed.models], [2, ['gpt-4o']]);
    assert.equal(await directory.find(text), changed);
    await revokeApiKey(db, redis, await stored(text));
    await assert.rejects(directory.assertActive(await directory.find(text)), { status: 401 });
    await assert.rejects(directory.reload(changed), { status: 401, code: 'invalid_api_key' });
    await assert.rejects(directory.find(text), { status: 401 });
  });

  test('a Redis that lost a flag gets it from the database, and one that was not told of a revocation, too', async () => {
    const { key: text } = await newKey('lost');
    const key = await stored(text);
    const directory = newDirectory();
    const caller = await directory.find(text);
    await directory.restoreFlag(caller);
    assert.equal(await flagOf(key), '1');
    await redis.del(accountKeys.keyActive(key.accountId, key.id));
    await directory.assertActive(caller);
    assert.equal(await flagOf(key), '1');
    await db.updateTable('api_keys').set({ revoked_at: 1 }).where('id', '=', key.id).execute();
    await assert.rejects(directory.reload(caller), { status: 401 });
    assert.equal(await flagOf(key), '0');
  });

  test('an expired key is told so, also by a process that remembers it', async (context) => {
    const expiresAt = Date.now() + 60_000;
    const { key: text } = await createApiKey(db, { accountId: defaultAccountId, name: 'short', expiresAt });
    const directory = newDirectory();
    const caller = await directory.find(text);
    await directory.assertActive(caller);
    context.mock.timers.enable({ apis: ['Date'], now: expiresAt });
    const expired = { status: 401, code: 'invalid_api_key', message: /expired/ };
    await assert.rejects(directory.find(text), expired);
    await assert.rejects(directory.assertActive(caller), expired);
    await assert.rejects(newDirectory().find(text), expired);
    await assert.rejects(directory.reload(caller), expired);
    assert.equal(await rotateApiKey(db, redis, await stored(text), 1000), undefined);
  });

  test('rotation makes a key with the same settings, and the old one ends with the overlap', async () => {
    const { key: text } = await createApiKey(db, { accountId: defaultAccountId, name: 'turning', ...allSettings });
    const old = await stored(text);
    const before = Date.now();
    const rotated = await rotateApiKey(db, redis, old, 60_000);
    assert.ok(rotated);
    const replaced = await stored(text);
    assert.equal(replaced.rotatedTo, rotated.key.id);
    assert.ok(replaced.expiresAt && replaced.expiresAt >= before + 60_000 && replaced.expiresAt <= Date.now() + 60_000);
    assert.equal(await flagOf(old), '2');
    const created = await stored(rotated.text);
    assert.deepEqual(created, rotated.key);
    const { id, hash, prefix, revision, createdAt, ...settings } = created;
    const { id: _id, hash: _hash, prefix: _prefix, revision: _revision, createdAt: _createdAt, ...previous } = old;
    assert.deepEqual(settings, { ...previous, budgetId: old.id });
    assert.notEqual(id, old.id);
    assert.equal(hash, hashApiKey(rotated.text));
    assert.equal(prefix, rotated.text.slice(0, 16));
    assert.equal(revision, 1);
    assert.ok(createdAt >= before);
    const next = await rotateApiKey(db, redis, created, 0);
    assert.ok(next);
    assert.ok((await stored(rotated.text)).revokedAt);
    assert.equal(await flagOf(created), '0');
  });

  test('rotation never lets a key live longer than it would have', async () => {
    const expiresAt = Date.now() + 30_000;
    const { key: text } = await createApiKey(db, { accountId: defaultAccountId, name: 'ending', expiresAt });
    assert.ok(await rotateApiKey(db, redis, await stored(text), 86_400_000));
    assert.equal((await stored(text)).expiresAt, expiresAt);
  });

  test('an account has one hidden key, however many ask for it at once, and no list shows it', async () => {
    await addAccount('players');
    const keys = await Promise.all(Array.from({ length: 8 }, () => ensureConsoleKey(db, 'players')));
    assert.equal(new Set(keys.map(({ id }) => id)).size, 1);
    assert.equal(keys[0]?.kind, 'console');
    const [id, prefix] = [keys[0]?.id as string, keys[0]?.prefix as string];
    assert.equal(
      (await listApiKeys(db)).some((key) => key.id === id),
      false,
    );
    assert.deepEqual([await findApiKeys(db, id), await findApiKeys(db, prefix)], [[], []]);
    const directory = newDirectory();
    const [caller, again] = [await directory.consoleCallerOf('players'), await directory.consoleCallerOf('players')];
    assert.equal(caller.apiKeyId, id);
    assert.equal(again, caller);
    await directory.assertActive(caller);
  });

  test('an account has only so many valid keys, also when it makes several at once', async () => {
    await addAccount('collector');
    const make = () => createLimitedApiKey(db, { accountId: 'collector', name: 'one of many' }, 3);
    const made = await Promise.all(Array.from({ length: 6 }, make));
    const keys = made.flatMap((created) => created?.key ?? []);
    assert.equal(keys.length, 3);
    await revokeApiKey(db, redis, keys[0] as ApiKey);
    assert.ok(await make());
    assert.equal(await make(), undefined);
    // A rotation leaves both valid for a time; one without an overlap makes none more.
    const [, second, third] = keys as [ApiKey, ApiKey, ApiKey];
    await assert.rejects(rotateApiKey(db, redis, second, 60_000, 3), { status: 400 });
    assert.ok(await rotateApiKey(db, redis, second, 0, 3));
    assert.equal(await make(), undefined);
    await revokeApiKey(db, redis, third);
    const [{ key: one }] = [(await make()) as { key: ApiKey }];
    await revokeApiKey(db, redis, one);
    const valid = (await listApiKeys(db)).filter(({ accountId, revokedAt }) => {
      return accountId === 'collector' && revokedAt === undefined;
    });
    const rotated = await Promise.all(
      valid.map((key) => rotateApiKey(db, redis, key, 60_000, 3).catch(() => undefined)),
    );
    assert.deepEqual([valid.length, rotated.filter((created) => created !== undefined).length], [2, 1]);
  });

  test('the last use of a key is written soon, but not again within a minute', async () => {
    const { key: text } = await newKey('used');
    const directory = newDirectory();
    const before = Date.now();
    await Promise.all(Array.from({ length: 20 }, () => directory.find(text)));
    const first = await eventually(async () => {
      const { lastUsedAt = 0 } = await stored(text);
      assert.ok(lastUsedAt >= before, 'the use is not written yet');
      return lastUsedAt;
    });
    await directory.find(text);
    await directory.close();
    assert.equal((await stored(text)).lastUsedAt, first);
    const other = newDirectory();
    await other.find(text);
    await other.close();
    assert.ok(((await stored(text)).lastUsedAt as number) > first);
  });

  test('lists name all keys, and one is found by its id, its beginning or its whole text', async () => {
    const { id, key } = await newKey('to be found');
    const listed = (await listApiKeys(db)).find((entry) => entry.id === id);
    assert.equal(listed?.name, 'to be found');
    assert.deepEqual(await findApiKeys(db, id), [listed]);
    assert.deepEqual(await findApiKeys(db, key.slice(0, 16)), [listed]);
    for (const text of [key, `Bearer ${key}`, `Authorization: Bearer ${key}`, `"${key}"`, ` ${key}\n`]) {
      assert.deepEqual(await findApiKeys(db, text), [listed]);
    }
    assert.deepEqual(await findApiKeys(db, 'key_none'), []);
  });
});
