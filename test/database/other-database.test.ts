import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { readSchemaStatus } from '../../shared/database/schema-status.ts';
import { databaseKey, signingKey } from '../../shared/redis/keys.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { sharedPostgres } from '../support/postgres.ts';

describe('processes of one Redis with contradictory settings', () => {
  let gateway: TestGateway;
  let other = '';
  before(async () => {
    const server = await sharedPostgres();
    other = await server.createDatabase();
    gateway = await TestGateway.start({ workers: 0, databaseUrl: await server.createDatabase() });
  });
  after(() => gateway?.stop());

  test('an api or a ledger with another database than the others of its Redis does not start, and says what to set', async () => {
    const elsewhere = { DATABASE_URL: other };
    const sentence = /The other processes on this Redis use another database: give all of them the same DATABASE_URL/;
    await assert.rejects(gateway.startApi(elsewhere), sentence);
    await assert.rejects(gateway.startApi({ DATABASE_URL: '' }), sentence);
    await assert.rejects(gateway.startLedger(elsewhere), sentence);
    assert.equal(await (await gateway.startLedger()).stop(), 0, 'one with the same database starts');
    const redis = new Redis(gateway.redisUrl);
    try {
      // Everything moves: the claim has expired a minute after the last process has stopped.
      assert.ok((await redis.pttl(databaseKey)) <= 60_000);
      await Promise.all(gateway.apis.map((api) => api.stop()));
      await redis.del(databaseKey);
      const moved = await gateway.startApi(elsewhere);
      await assert.rejects(gateway.startApi(), sentence);
      assert.equal(await moved.stop(), 0);
      await redis.del(databaseKey);
    } finally {
      redis.disconnect();
    }
  });

  test('an api with another SLUICE_SECRET than the others starts, as while one is replaced, and says so in its log', async () => {
    const redis = new Redis(gateway.redisUrl);
    await redis.del(signingKey);
    redis.disconnect();
    const one = await gateway.startApi({ SLUICE_SECRET: 'one secret of more than 32 characters' });
    const same = await gateway.startApi({ SLUICE_SECRET: 'one secret of more than 32 characters' });
    const another = await gateway.startApi({ SLUICE_SECRET: 'another one of more than 32 characters' });
    await eventually(() =>
      assert.match(
        another.output(),
        /another process on this Redis has another SLUICE_SECRET, or had it within the last minute/,
      ),
    );
    assert.doesNotMatch(one.output() + same.output(), /another SLUICE_SECRET/);
    assert.doesNotMatch(another.output(), /more than 32/);
  });

  test('an api with another SLUICE_BOOTSTRAP_KEY names the keys of before in its log: they are valid until revoked', async () => {
    const warning = /"keys":\[("key_\w+",?)+\].*SLUICE_BOOTSTRAP_KEY names a new key; those it named before stay valid/;
    const [first, second] = ['sk-the-first-key-of-all-processes', 'sk-the-second-key-of-all-processes'];
    await gateway.startApi({ SLUICE_BOOTSTRAP_KEY: first });
    const another = await gateway.startApi({ SLUICE_BOOTSTRAP_KEY: second });
    await eventually(() => assert.match(another.output(), warning));
    const again = await gateway.startApi({ SLUICE_BOOTSTRAP_KEY: first });
    for (const key of [first, second]) {
      const models = await fetch(`${again.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal(models.status, 200);
    }
    assert.doesNotMatch(again.output(), /names a new key/);
  });
});

test('a file of DATABASE_URL that cannot be read is told by its name, and not taken for a server that is away', async () => {
  const url = 'postgres://u:secret@127.0.0.1:1/name';
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const databaseUrl = `${url}?${name}=/none.pem`;
    const thrown = await readSchemaStatus({ databaseUrl, dataDir: '/none' }).catch((error: Error) => error);
    const sentence = `The database of DATABASE_URL cannot be used: the file /none.pem of its ${name} cannot be read (ENOENT).`;
    assert.equal((thrown as Error).message, sentence);
  }
});
