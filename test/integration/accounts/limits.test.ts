import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import OpenAI from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/chat/completions';

function post(gateway: TestGateway, body: object, more: RequestInit & { url?: string } = {}): Promise<Response> {
  return gateway.fetch(path, { ...more, method: 'POST', body: JSON.stringify(body) });
}

describe('limits of an API key', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2 });
  });
  after(() => gateway.stop());

  it('a key above its concurrency limit gets 429 with Retry-After, until one of its requests ends', async () => {
    const authorization = `Bearer ${await makeApiKey(gateway, { concurrency: 2 })}`;
    const headers = { authorization };
    const running = gateway.apis.map(({ url }) =>
      post(gateway, held('WORDS:60@20', { user: 'two' }), { url, headers }),
    );
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'two')).length, 2));
    for (const stream of [false, true]) {
      const refused = await post(gateway, { ...held('Hi', { user: 'third' }), stream }, { headers });
      await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
      assert.ok(Number(refused.headers.get('retry-after')) >= 1);
      assert.ok(Number(refused.headers.get('retry-after-ms')) > 0);
    }
    const [first] = await Promise.all(running);
    assert.equal(first?.headers.get('x-ratelimit-limit-requests'), '2');
    assert.match(first?.headers.get('x-ratelimit-remaining-requests') ?? '', /^[01]$/);
    assert.equal(first?.headers.get('x-ratelimit-reset-requests'), '1s');
    assert.equal((await post(gateway, held('Hi'), { headers })).status, 200);
    assert.deepEqual(await vendorCalls(gateway, 'third'), []);
  });

  it('a key with a concurrency of 1 serves sequential requests without a 429', async () => {
    const client = gateway.client({ apiKey: await makeApiKey(gateway, { concurrency: 1 }) });
    for (let count = 0; count < 20; count++) await client.chat.completions.create(held('Hi'));
  });

  it('the retries of the OpenAI client get through a key at its concurrency limit', async () => {
    const apiKey = await makeApiKey(gateway, { concurrency: 1 });
    const client = gateway.client({ apiKey, maxRetries: 5 });
    const answers = await Promise.all([1, 2].map(() => client.chat.completions.create(held('WORDS:10@40'))));
    assert.equal(answers.length, 2);
  });

  it('a revoked key gets 401 at once from every api process, also on routes without admission', async () => {
    const apiKey = await makeApiKey(gateway);
    const clients = gateway.apis.map(({ url }) => gateway.client({ apiKey, url }));
    for (const client of clients) {
      await client.chat.completions.create(held('Hi'));
      await client.models.list();
    }
    await revokeKey(gateway, apiKey);
    for (const client of clients) {
      await assert.rejects(client.models.list(), OpenAI.AuthenticationError);
      await assert.rejects(client.models.retrieve('sandbox-chat'), OpenAI.AuthenticationError);
      await assert.rejects(client.chat.completions.create(held('Hi')), OpenAI.AuthenticationError);
      await assert.rejects(client.chat.completions.create(streamed('Hi')), OpenAI.AuthenticationError);
    }
    const headers = { authorization: `Bearer ${apiKey}` };
    const unknown = `/v1/jobs/job_${'0'.repeat(32)}`;
    for (const [method, route] of [
      ['GET', unknown],
      ['GET', `${unknown}/events`],
      ['DELETE', unknown],
    ] as const) {
      await assertErrorAnswer(await gateway.fetch(route, { method, headers }), 401, 'invalid_api_key');
    }
  });

  it('a request refused after the revocation of its key never reaches the vendor and leaves nothing in Redis', async () => {
    const apiKey = await makeApiKey(gateway);
    const headers = { authorization: `Bearer ${apiKey}` };
    // From here on the key's requests are sent to the queue right behind their admission.
    for (let count = 0; count < 3; count++) assert.equal((await post(gateway, held('Hi'), { headers })).status, 200);
    await revokeKey(gateway, apiKey);
    const refused = Array.from({ length: 20 }, () => post(gateway, held('Hi', { user: 'refused' }), { headers }));
    for (const answer of await Promise.all(refused)) await assertErrorAnswer(answer, 401, 'invalid_api_key');
    // The queue is first in, first out: what was before this one has been taken when it is answered.
    assert.equal((await post(gateway, held('Hi'))).status, 200);
    assert.deepEqual(await vendorCalls(gateway, 'refused'), []);
    assert.deepEqual(await leftovers(gateway.redisUrl), [], 'nothing is left');
  });
});

describe('limits of the queue', () => {
  it('a full queue returns 503 with Retry-After at once, and queued requests are answered later', async () => {
    const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_QUEUE_LIMIT: '3' } });
    try {
      const queued: Promise<Response>[] = [];
      for (let count = 0; count < 3; count++) {
        queued.push(post(gateway, held('Hi', { user: 'queued' })));
        await eventually(async () => {
          const text = await (await fetch(`${gateway.url}/metrics`)).text();
          assert.match(text, new RegExp(`^sluice_queue_waiting\\{[^}]*\\} ${count + 1}$`, 'm'));
        });
      }
      for (const stream of [false, true]) {
        const refused = await post(gateway, { ...held('Hi', { user: 'refused' }), stream });
        await assertErrorAnswer(refused, 503, 'service_unavailable');
        assert.ok(Number(refused.headers.get('retry-after')) >= 1);
      }
      await gateway.startWorker();
      for (const response of await Promise.all(queued)) assert.equal(response.status, 200);
      assert.deepEqual(await vendorCalls(gateway, 'refused'), []);
      assert.deepEqual(await leftovers(gateway.redisUrl), []);
    } finally {
      await gateway.stop();
    }
  });

  it('a job that no worker claims in time returns 503 with Retry-After, held and streamed', async () => {
    const gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_QUEUE_WAIT_SECONDS: '1' } });
    try {
      const answers = await Promise.all(
        [false, true].map((stream) => post(gateway, { ...held('Hi', { user: 'late' }), stream })),
      );
      for (const answer of answers) {
        assert.ok(Number(answer.headers.get('retry-after')) >= 1);
        await assertErrorAnswer(answer, 503, 'service_unavailable');
      }
      assert.deepEqual(await leftovers(gateway.redisUrl), []);
      await gateway.startWorker();
      assert.equal((await post(gateway, held('Hi'))).status, 200);
      assert.deepEqual(await vendorCalls(gateway, 'late'), []);
    } finally {
      await gateway.stop();
    }
  });
});

describe('Redis short of memory', () => {
  let redis: TestRedis;
  let gateway: TestGateway;
  before(async () => {
    redis = await startRedis({ args: ['--maxmemory', '64mb'] });
    gateway = await TestGateway.start({ redisUrl: redis.url });
  });
  after(async () => {
    await gateway.stop();
    await redis.stop();
  });

  it('new requests get 503 above 70 % of the memory of Redis, while reads work, and 200 again below it', async () => {
    assert.equal((await post(gateway, held('Hi'))).status, 200);
    const client = new Redis(redis.url);
    for (let part = 0; part < 48; part++) await client.set(`filler:${part}`, 'x'.repeat(1024 * 1024));
    // The figure is a second old at most, and read behind a request's back.
    const refused = await eventually(async () => {
      const response = await post(gateway, held('Hi'));
      assert.equal(response.status, 503);
      return response;
    });
    assert.ok(Number(refused.headers.get('retry-after')) >= 1);
    await assertErrorAnswer(refused, 503, 'service_unavailable');
    assert.equal((await gateway.fetch('/v1/models')).status, 200);
    await client.flushall();
    client.disconnect();
    await eventually(async () => assert.equal((await post(gateway, held('Hi'))).status, 200));
  });
});
