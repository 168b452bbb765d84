import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { held, streamed } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
import { isSoak, Load, streamCount, verify } from '../support/faults/load.ts';
import { TestGateway } from '../support/gateway.ts';
import type { TestRedis } from '../support/redis.ts';
import { refusals, timesAnswered } from '../support/redis-refusals.ts';
import { sseEvents, textOf } from '../support/sse-events.ts';
import { startFixtureVendor } from '../vendors/contracts/fixture-vendor.ts';

/** How long Redis refuses. One without a disk refuses just as one without replicas does. */
const durations: Readonly<Record<string, number>> = { NOREPLICAS: 5000, OOM: 300, READONLY: 2000 };

describe('answers while Redis rejects writes', { concurrency: isSoak ? 1 : 3 }, () => {
  for (const { code, begin, end } of refusals.filter((one) => one.code in durations)) {
    const ms = durations[code] as number;
    test(`streams, held answers and queued jobs survive ${ms} ms of ${code}`, async (t) => {
      // Those that come last begin while Redis refuses.
      const count = streamCount(8, 200);
      const gateway = await TestGateway.start({ settings: { WORKER_CONCURRENCY_CHAT: String(2 * count) } });
      const redis = new Redis(gateway.redisUrl);
      try {
        const load = new Load(gateway);
        // Long enough that a busy machine still has them running when the others are queued.
        load.add(count, { words: 70, wordsPerSecond: 10 });
        load.add(count / 2, { words: 5, wordsPerSecond: 10, firstTokenMs: 6000 });
        const words = Array.from({ length: 10 }, (_, index) => `word${index + 1}`).join(' ');
        const answers = Array.from({ length: count / 2 }, (_, index) =>
          gateway.client().chat.completions.create(held('WORDS:10@2', { metadata: { test_id: `held${index}` } })),
        );
        await load.reached(count, 3);
        const queued = new Load(gateway);
        queued.add(count / 2, { words: 5 });
        queued.add(2, { words: 5, isLarge: true });
        // Those beyond the worker's slots wait in the queue.
        const all = 2 * count + count / 2 + 2;
        await eventually(async () => {
          const accepted = (await redis.keys('sluice:{a*}:job:*')).length;
          assert.ok(accepted >= all, `${accepted} jobs are accepted`);
        });
        await begin(redis, gateway.redis as TestRedis);
        await delay(ms);
        const refused = await timesAnswered(redis, code);
        await end(redis);
        assert.ok(refused > 0, 'nothing was refused: the test did not hit what it is for');
        for (const answer of await Promise.all(answers)) assert.equal(answer.choices[0]?.message.content, words);
        const records = [...(await load.records()), ...(await queued.records())];
        await verify(t, `${code} for ${ms} ms`, { gateway, records, endings: ['done'] });
      } finally {
        redis.disconnect();
        await gateway.stop();
      }
    });
  }

  test('an answer that cannot be stored ends with an error, and its worker continues all other jobs', async (t) => {
    const vendor = await startFixtureVendor();
    t.after(() => vendor.close());
    const gateway = await TestGateway.start({
      settings: { OPENAI_API_KEY: 'a-key', OPENAI_BASE_URL: vendor.baseUrl },
    });
    const redis = new Redis(gateway.redisUrl);
    try {
      const chunk = (content: string) =>
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content } }] })}\n\n`;
      vendor.answer(async (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunk('first'));
        await delay(50);
        // The frame cannot be stored while the append before it is under way.
        await redis.client('PAUSE', 200, 'WRITE');
        response.write(chunk(' second'));
        await delay(20);
        response.write(chunk('x'.repeat(100_000)));
        await delay(1000);
        response.end(`${chunk(' last')}data: [DONE]\n\n`);
      });
      const innocent = gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify(streamed('WORDS:20@10')),
      });
      const blobs = join(gateway.dataDir, 'blobs');
      await rename(blobs, `${blobs}.away`);
      await writeFile(blobs, 'no folder');
      const response = await gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ ...streamed('Say something.'), model: 'gpt-4o-mini' }),
      });
      const events = sseEvents(await response.text());
      assert.equal(JSON.parse(events.at(-1)?.data ?? '').error.code, 'stream_interrupted');
      assert.match(textOf(events.slice(0, -1)), /^first( second)?$/);
      assert.equal(sseEvents(await (await innocent).text()).at(-1)?.data, '[DONE]');
      const [worker] = gateway.workers;
      assert.equal(worker?.child.exitCode ?? worker?.child.signalCode, null, worker?.output().slice(-2000));
    } finally {
      redis.disconnect();
      await gateway.stop();
    }
  });
});
