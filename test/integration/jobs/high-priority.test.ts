import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { accountKeys } from '../../../shared/redis/keys.ts';
import { connectRedis } from '../../../shared/redis/redis.ts';
import { createLogger } from '../../../shared/runtime/log.ts';
import { AdminKeys } from '../../support/admin-keys.ts';
import { Asking } from '../../support/asking.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';

const high = { 'x-sluice-priority': 'high' };
const later = { prefer: 'respond-async' };

/** An account's keys, some of which may use high priority once an operator allows it to the account. */
class Team {
  readonly account: string;
  readonly #gateway: TestGateway;
  readonly #admin: AdminKeys;

  private constructor(gateway: TestGateway, admin: AdminKeys, account: string) {
    this.account = account;
    this.#gateway = gateway;
    this.#admin = admin;
  }

  static async make(gateway: TestGateway, maxPriority: 'normal' | 'high'): Promise<Team> {
    const admin = await AdminKeys.open(gateway);
    const fields = { name: 'team', is_unlimited: true, max_priority: maxPriority };
    const account = await admin.answer(201, 'POST', '/accounts', fields);
    assert.equal(account.max_priority, maxPriority);
    return new Team(gateway, admin, account.id);
  }

  /** Requests with a new key. */
  async asking(fields: object = {}): Promise<Asking> {
    return (await this.key(fields)).asking;
  }

  async key(fields: object): Promise<{ asking: Asking; change: (fields: object) => Promise<unknown> }> {
    const { id, key } = await this.#admin.create(fields, this.account);
    return {
      asking: new Asking(this.#gateway, key),
      change: (changed: object) => this.#admin.change(id, changed),
    };
  }

  async allow(maxPriority: 'normal' | 'high'): Promise<void> {
    const changed = await this.#admin.answer(200, 'PATCH', `/accounts/${this.account}`, { max_priority: maxPriority });
    assert.equal(changed.max_priority, maxPriority);
  }
}

describe('requests of high priority', () => {
  let gateway: TestGateway;
  let team: Team;
  let plain: Asking;
  let named = 0;
  before(async () => {
    const settings = { WORKER_CONCURRENCY_CHAT: '1', SLUICE_QUEUE_WAIT_SECONDS: '30', SLUICE_PRIORITY_SHARE: '1' };
    gateway = await TestGateway.start({ settings });
    team = await Team.make(gateway, 'high');
    plain = new Asking(gateway);
  });
  after(() => gateway?.stop());

  /**
   * Sends requests one after the other while the only slot is taken, asynchronously. Returns the order in which the vendor was called,
   * each by its place, beginning with 0, and how many of them waited in the lanes.
   */
  async function waitAll(requests: readonly ((name: string) => Promise<Response>)[]): Promise<{
    order: number[];
    high: number;
    low: number;
  }> {
    const names = requests.map((_, place) => `request ${++named} ${place}`);
    const release = await plain.occupy(`occupant ${named}`);
    for (const [place, request] of requests.entries()) {
      const answer = await request(names[place] as string);
      assert.equal(answer.status, 202, await answer.text());
    }
    const [high, low] = [await plain.waiting('high'), await plain.waiting('flex')];
    await release();
    const order = await eventually(async () => {
      const found = (await plain.order()).filter((name) => names.includes(name));
      assert.equal(found.length, names.length, 'all are called');
      return found;
    }, 20_000);
    return { order: order.map((name) => names.indexOf(name)), high, low };
  }

  const asNormal = (name: string) => plain.ask('Hi', name, later);

  it('by header, service_tier or their key they are served before those that came earlier', async () => {
    const asking = await team.asking({ max_priority: 'high' });
    const usually = await team.asking({ max_priority: 'high', priority: 'high' });
    const { order, high: waited } = await waitAll([
      asNormal,
      asNormal,
      (name) => asking.ask('Hi', name, { ...high, ...later }),
      (name) => asking.ask('Hi', name, later, { service_tier: 'priority' }),
      (name) => usually.ask('Hi', name, later),
      (name) => usually.ask('Hi', name, { ...later, 'x-sluice-priority': 'normal' }),
    ]);
    assert.deepEqual(new Set(order.slice(0, 3)), new Set([2, 3, 4]));
    assert.equal(waited, 3);
  });

  it('one that waits is counted, has its true place, and can be cancelled', async () => {
    const asking = await team.asking({ max_priority: 'high' });
    const release = await plain.occupy('another');
    const ids = new Map<string, string>();
    for (const name of ['n1', 'n2', 'h1', 'h2', 'h3']) {
      const of = name.startsWith('h') ? asking.ask('Hi', name, { ...high, ...later }) : plain.ask('Hi', name, later);
      ids.set(name, ((await (await of).json()) as { id: string }).id);
    }
    assert.equal(await plain.waiting('high'), 3);
    assert.equal((await asking.other('DELETE', `/v1/jobs/${ids.get('h3')}`)).status, 200);
    assert.equal(await plain.waiting('high'), 2);
    const places = new Map<string, number>();
    for (const name of ['n1', 'n2', 'h1', 'h2']) {
      const of = name.startsWith('h') ? asking : plain;
      const job = (await (await of.other('GET', `/v1/jobs/${ids.get(name)}`)).json()) as { queue_position: number };
      places.set(name, job.queue_position);
    }
    assert.equal(places.get('h1'), 0);
    await release();
    const order = await eventually(async () => {
      const found = (await plain.order()).filter((name) => places.has(name));
      assert.equal(found.length, 4, 'all are called');
      return found;
    });
    assert.deepEqual(
      order.map((name) => places.get(name)),
      [0, 1, 2, 3],
    );
    assert.equal(await plain.calls('h3'), 0);
    assert.equal(await plain.waiting('high'), 0);
  });

  it('403 for the header of a key that may not, whose service_tier and default are then as all others', async () => {
    const asking = await team.asking({ priority: 'high' });
    for (const more of [{}, { prefer: 'quote' }, later]) {
      const refused = await asking.ask('Hi', 'refused', { ...high, ...more });
      const { param, message } = await assertErrorAnswer(refused, 403, 'permission_denied');
      assert.equal(param, 'X-Sluice-Priority');
      assert.match(message, /X-Sluice-Priority/);
    }
    const { high: waited } = await waitAll([
      (name) => asking.ask('Hi', name, later, { service_tier: 'priority' }),
      (name) => asking.ask('Hi', name, later),
    ]);
    assert.equal(waited, 0);
    assert.equal(await plain.calls('refused'), 0);
  });

  it('no key gives itself high priority: it takes the operator, who can take it back at once', async () => {
    const others = await Team.make(gateway, 'normal');
    const asking = await others.asking({ max_priority: 'high', priority: 'high' });
    await assertErrorAnswer(await asking.ask('Hi', 'before', high), 403, 'permission_denied');
    const byDefault = async () => (await waitAll([asNormal, (name) => asking.ask('Hi', name, later)])).high;
    assert.equal(await byDefault(), 0);
    await others.allow('high');
    assert.equal((await asking.ask('Hi', 'allowed', high)).status, 200);
    // As if an api process of the release before had loaded the account.
    const redis = await connectRedis(gateway.redisUrl, createLogger('silent', 'test').log);
    assert.equal(await redis.client.hdel(accountKeys.account(others.account), 'priority'), 1);
    assert.equal((await asking.ask('Hi', 'allowed still', high)).status, 200);
    assert.equal(await redis.client.hget(accountKeys.account(others.account), 'priority'), 'high');
    await redis.close();
    assert.equal(await byDefault(), 1);
    await others.allow('normal');
    await assertErrorAnswer(await asking.ask('Hi', 'after', high), 403, 'permission_denied');
    assert.equal(await byDefault(), 0);
  });

  it('a key whose highest priority is low never has more', async () => {
    const asking = await team.asking({ max_priority: 'low' });
    await assertErrorAnswer(
      await asking.ask('Hi', 'refused', { 'x-sluice-priority': 'normal' }),
      403,
      'permission_denied',
    );
    const usually = await team.asking({ priority: 'low' });
    const { order, low } = await waitAll([
      (name) => asking.ask('Hi', name, later),
      (name) => asking.ask('Hi', name, later, { service_tier: 'priority' }),
      (name) => usually.ask('Hi', name, later),
      (name) => usually.ask('Hi', name, { ...later, 'x-sluice-priority': 'normal' }),
    ]);
    assert.deepEqual([order[0], low], [3, 3]);
  });

  it('a quote for one knows how long it would wait', async () => {
    const asking = await team.asking({ max_priority: 'high' });
    await eventually(async () => {
      const quote = await (await asking.ask('Hi', 'quote', { ...high, prefer: 'quote' })).json();
      assert.equal((quote as { expected_wait_seconds: unknown }).expected_wait_seconds, 0);
    });
  });
});

describe('requests of high priority beside many others', () => {
  it('a key that loses the right at one api has lost it at another that still remembers the key', async (t) => {
    const gateway = await TestGateway.start({ apis: 2, settings: { WORKER_CONCURRENCY_CHAT: '1' } });
    t.after(() => gateway.stop());
    const { asking, change } = await (await Team.make(gateway, 'high')).key({ max_priority: 'high' });
    const url = gateway.apis[1]?.url as string;
    assert.equal((await asking.ask('Hi', 'known', high, {}, url)).status, 200);
    await change({ max_priority: null });
    const plain = new Asking(gateway);
    const release = await plain.occupy('occupant');
    assert.equal((await plain.ask('Hi', 'normal', later)).status, 202);
    assert.equal((await asking.ask('Hi', 'late', { ...high, ...later }, {}, url)).status, 202);
    assert.equal(await plain.waiting('high'), 0);
    await release();
    await assertErrorAnswer(await asking.ask('Hi', 'later', high, {}, url), 403, 'permission_denied');
  });

  it('a key whose highest priority changes at one api has the new one at another that still remembers the key', async (t) => {
    const gateway = await TestGateway.start({ apis: 2, settings: { WORKER_CONCURRENCY_CHAT: '1' } });
    t.after(() => gateway.stop());
    const { asking, change } = await (await Team.make(gateway, 'high')).key({});
    const url = gateway.apis[1]?.url as string;
    assert.equal((await asking.ask('Hi', 'known', {}, {}, url)).status, 200);
    await change({ max_priority: 'high' });
    const raised = await asking.ask('Hi', 'raised', high, {}, url);
    assert.equal(raised.status, 200, await raised.text());
    const plain = new Asking(gateway);
    const release = await plain.occupy('occupant');
    await change({ max_priority: 'low' });
    assert.equal((await asking.ask('Hi', 'lowered', later, {}, url)).status, 202);
    assert.equal(await plain.waiting('flex'), 1);
    await release();
    await eventually(async () => assert.equal(await plain.calls('lowered'), 1));
  });

  it('others go on with their share while both wait', async (t) => {
    const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_PRIORITY_SHARE: '0.75' } });
    t.after(() => gateway.stop());
    const asking = await (await Team.make(gateway, 'high')).asking({ max_priority: 'high' });
    const plain = new Asking(gateway);
    for (let count = 0; count < 30; count++) {
      assert.equal((await asking.ask('Hi', 'high', { ...high, ...later })).status, 202);
      if (count < 12) assert.equal((await plain.ask('Hi', 'normal', later)).status, 202);
    }
    assert.equal(await plain.waiting('high'), 30);
    await eventually(async () => assert.equal(await plain.waiting('waiting'), 42));
    await gateway.startWorker({ WORKER_CONCURRENCY_CHAT: '1', SLUICE_PRIORITY_SHARE: '0.75' }, 'chat');
    const order = await eventually(async () => {
      const found = await plain.order();
      assert.equal(found.length, 42, 'all are called');
      return found;
    }, 20_000);
    assert.deepEqual(order.slice(0, 8), [...['high', 'high', 'high', 'normal'], ...['high', 'high', 'high', 'normal']]);
    assert.equal(order.slice(0, 40).filter((name) => name === 'high').length, 30);
    assert.equal(await plain.waiting('high'), 0);
  });

  it('they are served on a Redis Cluster, by the shards of a queue, and leave nothing', async (t) => {
    const cluster = await startRedisCluster();
    t.after(() => cluster.stop());
    const settings = { WORKER_CONCURRENCY_CHAT: '4', SLUICE_QUEUE_SHARDS: '3' };
    const gateway = await TestGateway.start({ redisUrl: cluster.url, settings });
    t.after(() => gateway.stop());
    const asking = await (await Team.make(gateway, 'high')).asking({ max_priority: 'high' });
    const plain = new Asking(gateway);
    // A process that has just started is busy with its first requests, and would refuse some of many at once.
    for (let count = 0; count < 5; count++) await plain.ask('Hi', 'normal');
    const asks = Array.from({ length: 40 }, (_, count) =>
      count % 2 ? asking.ask('Hi', 'high', high) : plain.ask('Hi', 'normal'),
    );
    const statuses = (await Promise.all(asks)).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200]));
    assert.equal(await plain.waiting('high'), 0);
  });
});
