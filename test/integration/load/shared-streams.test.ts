import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { gatedText } from '../../support/gated-vendor.ts';
import type { GatewayOptions } from '../../support/gateway.ts';
import { jobIdOf } from '../../support/job-records.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { flightOf, SharedRequests } from '../../support/shared-requests.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';

const count = process.env.SLUICE_SOAK ? 1000 : 60;
const model = 'gated';
const patienceMs = 120_000;

/** Sends identical streams to two apis at once; a third of them leave in the middle, and the rest get the whole answer. */
async function shareStreams(options: GatewayOptions): Promise<{ streams: number; calls: number; rows: number }> {
  const shared = await SharedRequests.start(options);
  try {
    const accountId = 'sharing';
    const headers = { authorization: `Bearer ${await makeApiKey(shared.gateway, { accountId })}` };
    const body = streamed('Hi', { model, user: 'all' });
    const open = await Promise.all(
      Array.from({ length: count }, (_, index) => shared.open(body, { headers, api: index % 2 })),
    );
    assert.equal(open.filter(({ response }) => flightOf(response) === 'first').length, 1);
    assert.equal(open.filter(({ response }) => flightOf(response) === 'joined').length, count - 1);
    assert.equal(new Set(open.map(({ response }) => jobIdOf(response))).size, 1);
    const texts = open.map(({ response }) => response.text());
    const more = await Promise.all(Array.from({ length: count / 2 }, () => shared.open(body, { headers })));
    for (const { leave } of more) leave();
    shared.release('all');
    for (const text of await Promise.all(texts)) {
      const events = sseEvents(text);
      assert.deepEqual([textOf(events), events.at(-1)?.data], [gatedText, '[DONE]']);
    }
    const rows = await eventually(async () => {
      const found = await shared.records.db
        .selectFrom('jobs')
        .select(['cost', 'outcome'])
        .where('account_id', '=', accountId)
        .execute();
      assert.equal(found.length, 1);
      return found;
    }, patienceMs);
    assert.equal(rows[0]?.outcome, 'completed');
    assert.ok(Number(rows[0]?.cost) > 0, 'it is charged');
    assert.deepEqual(await leftovers(shared.gateway.redisUrl), []);
    return { streams: texts.length, calls: shared.vendor.calls.length, rows: rows.length };
  } finally {
    await shared.stop();
  }
}

describe(`${count} identical single-flight streams on two apis`, () => {
  test('they are one vendor call, charged once, and each is exact, on one Redis', async (t) => {
    const { streams, calls } = await shareStreams({});
    t.diagnostic(`${streams} exact streams of ${calls} vendor call`);
    assert.equal(calls, 1);
  });

  for (const shards of [1, 4]) {
    test(`the same on a Cluster of three nodes with ${shards} shard(s) of each queue`, async (t) => {
      const cluster = await startRedisCluster();
      try {
        const settings = { SLUICE_QUEUE_SHARDS: String(shards) };
        const { streams, calls } = await shareStreams({ redisUrl: cluster.url, settings });
        t.diagnostic(`${streams} exact streams of ${calls} vendor call`);
        assert.equal(calls, 1);
      } finally {
        await cluster.stop();
      }
    });
  }
});

test('a request that does not ask for it, or turns it off, costs Redis nothing of it', async () => {
  const shared = await SharedRequests.start({ apis: 1 });
  const redis = new Redis(shared.gateway.redisUrl);
  let monitor: Redis | undefined;
  try {
    // Until it is settled, too.
    const send = async (headers: Record<string, string>): Promise<void> => {
      const response = await shared.records.post(held('WORDS:2@200'), headers);
      assert.equal(response.status, 200);
      await response.text();
      await shared.records.ended(jobIdOf(response));
    };
    // What follows an ended request that asks for it comes before that of one that does not.
    await send({ 'x-sluice-single-flight': '1' });
    await send({});
    monitor = await redis.monitor();
    const commands: string[] = [];
    // Without a script's text: one that runs at times, such as the sweeper's, may be sent for the first time now.
    monitor.on('monitor', (_time: string, [name, ...words]: readonly string[]) =>
      commands.push([name, ...(/^eval$|^script$/i.test(name as string) ? words.slice(1) : words)].join(' ')),
    );
    const ofIt = async (headers: Record<string, string>): Promise<number> => {
      commands.length = 0;
      await send(headers);
      await redis.set('sluice:test-done', '1');
      await eventually(() =>
        assert.ok(
          commands.some((command) => command.includes('sluice:test-done')),
          'not yet',
        ),
      );
      return commands.filter((command) => /sharer|shared-|kept/.test(command)).length;
    };
    assert.equal(await ofIt({}), 0);
    assert.equal(await ofIt({ 'x-sluice-single-flight': '0' }), 0);
    assert.ok((await ofIt({ 'x-sluice-single-flight': '1' })) > 0, 'the commands are not seen');
  } finally {
    monitor?.disconnect();
    redis.disconnect();
    await shared.stop();
  }
});
