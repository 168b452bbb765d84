import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { attemptsKey } from '../../shared/redis/keys.ts';
import { AdminKeys } from '../support/admin-keys.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { TestGateway } from '../support/gateway.ts';

describe("a user's API keys in the console", () => {
  let gateway: TestGateway;
  let [ann, bob] = [new ConsoleClient(''), new ConsoleClient('')];
  before(async () => {
    gateway = await TestGateway.start();
    [ann, bob] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
    await ann.signUp('ann@example.org');
    await bob.signUp('bob@example.org');
  });
  after(() => gateway?.stop());

  const create = async (user: ConsoleClient, fields: object = {}) => {
    const { status, body } = await user.call('POST', '/console/api/keys', { name: 'mine', ...fields });
    assert.equal(status, 201, JSON.stringify(body));
    return body;
  };
  const statusWith = async (key: string): Promise<number> => {
    const response = await gateway.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } });
    await response.arrayBuffer();
    return response.status;
  };

  it("a user's API keys in the console are made, listed, changed, rotated and revoked", async () => {
    const { id, key } = await create(ann, { models: ['sandbox-*'], budget: { amount: 3, period: 'never' } });
    assert.equal(await statusWith(key), 200);
    const { body: page } = await ann.call('GET', '/console/api/keys');
    assert.deepEqual(
      page.data.map((entry: { id: string }) => entry.id),
      [id],
    );
    assert.equal(JSON.stringify(page).includes(key), false);
    const { body: changed } = await ann.call('PATCH', `/console/api/keys/${id}`, { name: 'renamed', models: null });
    assert.deepEqual([changed.name, changed.models, changed.budget.spent], ['renamed', null, 0]);
    const rotated = await ann.call('POST', `/console/api/keys/${id}/rotate`, { overlap_seconds: 0 });
    assert.equal(rotated.status, 201);
    assert.deepEqual([await statusWith(key), await statusWith(rotated.body.key)], [401, 200]);
    const revoked = await ann.call('DELETE', `/console/api/keys/${rotated.body.id}`);
    assert.deepEqual([revoked.status, revoked.body.status], [200, 'revoked']);
    assert.equal(await statusWith(rotated.body.key), 401);
  });

  it("a user's API keys in the console name nothing of the operator's own accounts at vendors: users cannot set that, and see what operators have set", async () => {
    const refused = await ann.call('POST', '/console/api/keys', { name: 'mine', vendor_ids: ['*'] });
    assert.equal(refused.status, 400);
    const { id } = await create(ann);
    assert.equal((await ann.call('PATCH', `/console/api/keys/${id}`, { vendor_ids: ['*'] })).status, 400);
    const { body } = await ann.call('PATCH', `/console/api/keys/${id}`, { rpm: 5 });
    assert.equal(body.vendor_ids, null);
    const keys = await AdminKeys.open(gateway);
    await keys.change(id, { vendor_ids: ['file-1'] });
    const { body: renamed } = await ann.call('PATCH', `/console/api/keys/${id}`, { name: 'renamed' });
    assert.deepEqual([renamed.name, renamed.vendor_ids], ['renamed', ['file-1']]);
  });

  it("a user's API keys in the console of another account are the same 404 as unknown ones, and so are operators' keys of one's own", async () => {
    const { id, key, account } = await create(ann);
    const keys = await AdminKeys.open(gateway);
    const operator = await keys.create({ kind: 'operator' }, account);
    const answers = async (user: ConsoleClient, of: string) => [
      await user.call('PATCH', `/console/api/keys/${of}`, { rpm: 1 }),
      await user.call('POST', `/console/api/keys/${of}/rotate`, {}),
      await user.call('DELETE', `/console/api/keys/${of}`),
    ];
    const unknown = await answers(bob, 'key_none');
    for (const foreign of [await answers(bob, id), await answers(ann, operator.id)]) {
      for (const [index, answer] of foreign.entries()) {
        assert.equal(answer.status, 404);
        assert.deepEqual(answer.body, unknown[index]?.body);
      }
    }
    assert.equal(await statusWith(key), 200);
    for (const user of [ann, bob]) {
      const { body } = await user.call('GET', '/console/api/keys');
      assert.equal(JSON.stringify(body).includes(operator.id), false);
    }
    assert.deepEqual((await bob.call('GET', '/console/api/keys')).body.data, []);
    assert.equal((await bob.call('GET', `/console/api/keys?after=${id}`)).status, 400);
  });

  it("a user's API keys in the console are made and rotated so often in an hour, and not more: every row stays", async () => {
    const eve = new ConsoleClient(gateway.url);
    await eve.signUp('eve@example.org');
    const { id } = await create(eve);
    const { account } = (await eve.call('GET', '/console/api/session')).body;
    const redis = new Redis(gateway.redisUrl);
    try {
      // As if it had made nearly as many by now.
      const hash = createHash('sha256').update(`keys of ${account.id}`).digest('hex').slice(0, 32);
      assert.equal(await redis.get(attemptsKey(hash)), '1');
      assert.ok((await redis.pttl(attemptsKey(hash))) > 0);
      await redis.incrby(attemptsKey(hash), 198);
      await create(eve);
      const more = await eve.call('POST', '/console/api/keys', { name: 'more' });
      assert.deepEqual([more.status, more.body.error.code], [429, 'rate_limit_exceeded']);
      assert.equal((await eve.call('POST', `/console/api/keys/${id}/rotate`, {})).status, 429);
      assert.equal((await eve.call('DELETE', `/console/api/keys/${id}`)).status, 200);
      await create(ann);
    } finally {
      redis.disconnect();
    }
  });

  it("a user's API keys in the console are never made for operators, nor by anybody who is not signed in", async () => {
    const made = await ann.call('POST', '/console/api/keys', { name: 'more', kind: 'operator' });
    assert.equal(made.status, 400);
    const nobody = new ConsoleClient(gateway.url);
    for (const [method, path] of [
      ['GET', '/console/api/keys'],
      ['POST', '/console/api/keys'],
      ['DELETE', '/console/api/keys/key_none'],
    ] as const) {
      assert.equal((await nobody.call(method, path, method === 'POST' ? { name: 'x' } : undefined)).status, 401);
    }
  });
});
