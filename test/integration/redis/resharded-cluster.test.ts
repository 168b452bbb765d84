import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { accountKeys, jobKeys, queuePrefix } from '../../../shared/redis/keys.ts';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { startRedisCluster, type TestRedisCluster } from '../../support/redis-cluster.ts';

/** A slot on its way from one node of a Cluster to another, as redis-cli moves it. */
interface MovingSlot {
  /** Its keys on the node that it leaves. */
  keys(): Promise<string[]>;
  moveKeys(names: readonly string[]): Promise<void>;
  /** Resolves once a call had to wait for the move. */
  isAwaited(): Promise<void>;
  /** Moves the rest of the keys, and ends. */
  finish(): Promise<void>;
}

describe('a Cluster whose slots are moved to other nodes', () => {
  let cluster: TestRedisCluster;
  let records: JobRecords;
  let nodes: Redis[];

  before(async () => {
    cluster = await startRedisCluster();
    records = await JobRecords.start({ redisUrl: cluster.url });
    nodes = cluster.nodes.map(({ url }) => new Redis(url));
    await ask();
  });
  after(async () => {
    for (const node of nodes ?? []) node.disconnect();
    await records?.stop();
    await cluster?.stop();
  });

  const ask = async (): Promise<string | null | undefined> => {
    const answer = await records.gateway.client().chat.completions.create(held('Reply with exactly: hi'));
    return answer.choices[0]?.message.content;
  };

  /** Begins to move the slot of a key. */
  async function beginToMove(key: string): Promise<MovingSlot> {
    const slot = Number(await nodes[0]?.call('CLUSTER', 'KEYSLOT', key));
    const ranges = (await nodes[0]?.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
    const port = ranges.find(([first, last]) => first <= slot && slot <= last)?.[2][1];
    const at = cluster.nodes.findIndex((node) => node.port === port);
    const [from, to] = [nodes[at], nodes[(at + 1) % nodes.length]] as [Redis, Redis];
    const target = cluster.nodes[(at + 1) % nodes.length];
    const [fromId, toId] = await Promise.all([from.call('CLUSTER', 'MYID'), to.call('CLUSTER', 'MYID')]);
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId));
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId));
    const keysOf = async (node: Redis): Promise<string[]> =>
      (await node.call('CLUSTER', 'GETKEYSINSLOT', slot, 1000)) as string[];
    // Without REPLACE, as redis-cli does it: a key that both nodes have ends it.
    const moveKeys = async (names: readonly string[]): Promise<void> => {
      for (const name of names) await from.call('MIGRATE', '127.0.0.1', Number(target?.port), name, 0, 5000);
    };
    const refusals = async (): Promise<number> => {
      const counts = await Promise.all(
        [from, to].map(async (node) => /TRYAGAIN:count=(\d+)/.exec(await node.info('errorstats'))),
      );
      return counts.reduce((sum, count) => sum + Number(count?.[1] ?? 0), 0);
    };
    const refused = await refusals();
    return {
      isAwaited: () => eventually(async () => assert.ok((await refusals()) > refused, 'no call has waited')),
      keys: () => keysOf(from),
      moveKeys,
      finish: async () => {
        for (let left = await keysOf(from); left.length > 0; left = await keysOf(from)) await moveKeys(left);
        for (const node of [to, from]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(toId));
      },
    };
  }

  it('requests of an account wait while its slot is moved, none is refused, and no key is made twice', async () => {
    const moving = await beginToMove(accountKeys.account('default'));
    const left = await moving.keys();
    assert.ok(left.length > 1, `${left}`);
    const before = ask();
    // It is refused, or answered, unless it waits.
    await Promise.race([before, moving.isAwaited()]);
    await moving.moveKeys(left.slice(0, 1));
    const between = ask();
    await moving.moveKeys(left.slice(1));
    const late = ask();
    assert.deepEqual(await Promise.race([before, between, late, moving.keys()]), []);
    await moving.finish();
    assert.deepEqual(await Promise.all([before, between, late, ask()]), ['hi', 'hi', 'hi', 'hi']);
    assert.deepEqual(await moving.keys(), []);
  });

  for (const slot of ['of its job', 'of its queue'] as const) {
    it(`a stream is whole though the slot ${slot} is moved while it runs`, async () => {
      const { data, response } = await records.gateway
        .client()
        .chat.completions.create(streamed('WORDS:60@20'))
        .withResponse();
      const jobId = jobIdOf(response);
      assert.match(jobId, /\S/);
      const text = streamedText(data);
      const moving = await beginToMove(slot === 'of its job' ? jobKeys.state(jobId) : `${queuePrefix('chat')}:x`);
      const left = await moving.keys();
      await moving.moveKeys(left.slice(0, 1));
      const asked = ask();
      await moving.isAwaited();
      await moving.finish();
      assert.match(await text, /^word1 .* word60$/);
      assert.equal(await asked, 'hi');
      assert.equal((await records.ended(jobId)).outcome, 'completed');
    });
  }
});
