import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import OpenAI from 'openai';
import { eventually } from '../../support/eventually.ts';
import { startFailover } from '../../support/failover.ts';
import { readJournal } from '../../support/faults/checker.ts';
import { Load, streamCount, verify } from '../../support/faults/load.ts';
import { GatedVendor, gatedText } from '../../support/gated-vendor.ts';
import { loadProduct, TestGateway } from '../../support/gateway.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { startRedisCluster, type TestRedisCluster } from '../../support/redis-cluster.ts';
import { createVideo, pollToEnd } from '../../support/sandbox-videos.ts';

const { queuePrefix, shardOfJob } =
  await loadProduct<typeof import('../../../shared/redis/keys.ts')>('shared/redis/keys');

const patience = { timeout: 30_000 };
const shards = 5;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly result: OpenAI.ChatCompletion | null;
}

describe('a gateway on a Redis Cluster of three nodes, whose queues have shards', () => {
  let cluster: TestRedisCluster;
  let vendor: GatedVendor;
  let gateway: TestGateway;

  before(async () => {
    cluster = await startRedisCluster();
    vendor = await GatedVendor.start();
    // So few places that each worker has some of the jobs.
    const settings = { WORKER_CONCURRENCY_CHAT: String(streamCount(8, 80)), SLUICE_QUEUE_SHARDS: String(shards) };
    const { configuration } = vendor;
    gateway = await TestGateway.start({ redisUrl: cluster.url, apis: 2, workers: 2, settings, configuration });
  });

  after(async () => {
    await gateway?.stop();
    await vendor?.close();
    await cluster?.stop();
  });

  const ask = (text: string, testId: string) => ({
    model: 'sandbox-chat',
    messages: [{ role: 'user' as const, content: text }],
    metadata: { test_id: testId },
  });

  const waitFor = async (id: string, isThere: (job: Job) => boolean): Promise<Job> => {
    for (;;) {
      const job = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as Job;
      if (isThere(job)) return job;
      await delay(50);
    }
  };

  test('streams on a Redis Cluster arrive complete, with job states on every node', async (t) => {
    const load = new Load(gateway);
    // So many that each node has some of them; their states are soon removed once they are delivered.
    const count = streamCount(40, 200);
    // One after the other: jobs of the same moment get the same shard.
    for (let begun = 0; begun < count; begun += 5) {
      load.add(5, { words: 20, wordsPerSecond: 20 });
      await load.reached(begun + 5, 1);
    }
    for (const node of cluster.nodes) {
      const redis = new Redis(node.url);
      const states = await redis.keys('*:job:*');
      redis.disconnect();
      assert.ok(states.length > 0, 'every node has job states');
    }
    await verify(t, 'Cluster, plain', { gateway, records: await load.records(), endings: ['done'] });
  });

  test('on a Redis Cluster two workers report to every shard of a queue', async () => {
    const [any] = cluster.nodes.map(({ url }) => url) as [string];
    const client = new Cluster([any]);
    try {
      for (let shard = 0; shard <= shards; shard++) {
        const key = `${queuePrefix('chat', shard)}:workers`;
        assert.equal(await client.zcard(key), 2, key);
      }
    } finally {
      client.disconnect();
    }
  });

  test("on a Redis Cluster the retry of a client whose api process was killed gets the first try's answer", async () => {
    const { url, fetch, tries } = await startFailover(gateway, () => vendor.callsOf('killed').length);
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: gateway.apiKey, maxRetries: 2, fetch });
    const answer = client.chat.completions.create({ ...ask('Hi', 'killed'), model: 'gated', user: 'killed' });
    answer.catch(() => undefined);
    await eventually(() => assert.equal(tries(), 2));
    for (const call of vendor.callsOf('killed')) call.release();
    assert.equal((await answer).choices[0]?.message.content, gatedText);
    assert.deepEqual([tries(), vendor.callsOf('killed').length], [2, 1]);
  });

  test('held answers on a Redis Cluster arrive complete', async () => {
    const client = gateway.client();
    const texts = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const completion = await client.chat.completions.create(
          ask(`Reply with exactly: held ${index}`, `held${index}`),
        );
        return completion.choices[0]?.message.content;
      }),
    );
    assert.deepEqual(
      texts,
      texts.map((_, index) => `held ${index}`),
    );
  });

  test('a client disconnect on a Redis Cluster closes the connection to the vendor', patience, async () => {
    const controller = new AbortController();
    const stream = await gateway
      .client()
      .chat.completions.create({ ...ask('WORDS:500@20', 'leaver'), stream: true }, { signal: controller.signal });
    for await (const _ of stream) controller.abort();
    const calls = (await readJournal(gateway.sandbox.url)).get('leaver');
    assert.deepEqual(
      calls?.map((call) => call.ended),
      ['client_closed'],
    );
  });

  test('a job on a Redis Cluster is cancelled through another api process', patience, async () => {
    const created = (await (
      await gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        headers: { prefer: 'respond-async' },
        body: JSON.stringify(ask('WORDS:500@20', 'cancelled')),
      })
    ).json()) as Job;
    await waitFor(created.id, (job) => job.status === 'in_progress');
    const other = gateway.apis[1]?.url as string;
    const cancelled = (await (
      await gateway.fetch(`/v1/jobs/${created.id}`, { method: 'DELETE', url: other })
    ).json()) as Job;
    assert.equal(cancelled.status, 'cancelled');
    const calls = (await readJournal(gateway.sandbox.url)).get('cancelled');
    assert.deepEqual(
      calls?.map((call) => call.ended),
      ['client_closed'],
    );
  });

  test('a video on a Redis Cluster is made and read through different api processes', { timeout: 60_000 }, async () => {
    const [one, other] = gateway.apis.map(({ url }) => gateway.client({ url })) as [OpenAI, OpenAI];
    const completed = async (id: string): Promise<void> => {
      for (;;) {
        const { status } = await other.videos.retrieve(id);
        assert.notEqual(status, 'failed');
        if (status === 'completed') return;
        await delay(200);
      }
    };
    const { id } = await createVideo(one, { sandbox: { video: { duration_ms: 3000 } } });
    await completed(id);
    assert.ok((await (await other.videos.downloadContent(id)).arrayBuffer()).byteLength > 1000);
    const remix = await other.videos.remix(id, { prompt: 'At night' });
    await completed(remix.id);
    for (const made of [remix.id, id]) await one.videos.delete(made);
    assert.deepEqual((await other.videos.list()).data, []);
  });

  test('videos on every shard of their queue are polled until they are complete', { timeout: 90_000 }, async () => {
    const client = gateway.client();
    const ids = new Map<number, string>();
    while (ids.size < shards) {
      const { id } = await createVideo(client, { sandbox: { video: { duration_ms: 2000 } } });
      const shard = shardOfJob(id.replace(/^video_/, ''), shards);
      if (ids.has(shard)) await client.videos.delete(id);
      else ids.set(shard, id);
    }
    for (const id of ids.values()) {
      assert.equal((await pollToEnd(client, id)).at(-1)?.status, 'completed');
      await client.videos.delete(id);
    }
  });

  test('an asynchronous job on a Redis Cluster ends with its result', patience, async () => {
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { prefer: 'respond-async' },
      body: JSON.stringify(ask('Reply with exactly: later', 'later')),
    });
    assert.equal(response.status, 202);
    const { id } = (await response.json()) as Job;
    const job = await waitFor(id, ({ status }) => status !== 'queued' && status !== 'in_progress');
    assert.equal(job.result?.choices[0]?.message.content, 'later');
  });

  test('an idempotency key on a Redis Cluster gives one answer of one vendor call at both api processes', async () => {
    const send = async (url: string, text: string): Promise<Response> =>
      gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        url,
        headers: { 'idempotency-key': 'one' },
        body: JSON.stringify(ask(text, 'keyed')),
      });
    const urls = gateway.apis.map((api) => api.url);
    const answers = await Promise.all(
      [...urls, ...urls].map(async (url) => (await send(url, 'WORDS:5')).json() as Promise<OpenAI.ChatCompletion>),
    );
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    assert.equal((await readJournal(gateway.sandbox.url)).get('keyed')?.length, 1);
    assert.equal((await send(urls[1] as string, 'WORDS:6')).status, 422);
  });

  test('streams on a Redis Cluster resume after their connections are reset', async (t) => {
    const load = new Load(gateway);
    load.add(streamCount(10, 100), {
      words: 30,
      wordsPerSecond: 20,
      headers: { 'x-sluice-on-disconnect': 'continue' },
      onEvent: (count, connection) => {
        if (count === 7 || count === 15) connection.reset();
      },
    });
    const summary = await verify(t, 'Cluster, client RST', {
      gateway,
      records: await load.records(),
      endings: ['done'],
    });
    assert.equal(summary.resumed, summary.streams);
  });

  test('streams on a Redis Cluster end as interrupted when their worker is killed', { timeout: 60_000 }, async (t) => {
    const load = new Load(gateway);
    const count = streamCount(10, 100);
    load.add(count, { words: 40, wordsPerSecond: 20 });
    await load.reached(count, 5);
    await gateway.workers[0]?.kill();
    const records = await load.records();
    const endings = ['done', 'stream_interrupted'] as const;
    const summary = await verify(t, 'Cluster, worker SIGKILL', { gateway, records, endings, hasDeadWorkers: true });
    assert.ok(summary.interrupted > 0 && summary.interrupted < count);
  });

  test('a Redis Cluster has no leftovers on any node afterwards', { timeout: 60_000 }, async () => {
    assert.deepEqual(await leftovers(cluster.url, { withinMs: withLostReadersMs, hasDeadWorkers: true }), []);
  });
});
