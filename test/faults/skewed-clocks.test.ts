import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { makeResetLink } from '../../shared/accounts/reset-link.ts';
import { openDatabase } from '../../shared/database/database.ts';
import { AdminKeys } from '../support/admin-keys.ts';
import { held } from '../support/chat-requests.ts';
import { ConsoleClient } from '../support/console-client.ts';
import { endedJob } from '../support/ended-job.ts';
import { eventually } from '../support/eventually.ts';
import { type ApiProcess, linesOf, TestGateway } from '../support/gateway.ts';
import { leftovers, withLostReadersMs } from '../support/leftovers.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { createVideo } from '../support/sandbox-videos.ts';
import { skewedClock } from '../support/skewed-clock.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

const elevenMinutes = 660_000;

/** Has what runs every ten minutes run every half a second, as an option of Node. */
const frequentHousekeeping = `--import=data:text/javascript,${encodeURIComponent(`const repeat = globalThis.setInterval;
  globalThis.setInterval = (run, ms, ...more) => repeat(run, ms === 600_000 ? 500 : ms, ...more);`)}`;

describe('apis with clocks eleven minutes off', () => {
  let gateway: TestGateway;
  let redis: Redis;
  let ahead: ApiProcess;
  let late: ApiProcess;
  before(async () => {
    // Files are kept for less time than the clocks are off.
    gateway = await TestGateway.start({ settings: { SLUICE_RESULT_SECONDS: '300' } });
    redis = new Redis(gateway.redisUrl);
    [ahead, late] = await Promise.all([
      gateway.startApi(skewedClock(elevenMinutes)),
      gateway.startApi(skewedClock(-elevenMinutes)),
    ]);
  });
  after(async () => {
    redis?.disconnect();
    await gateway?.stop();
  });

  const post = (url: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', { url, method: 'POST', body: JSON.stringify(body), headers });

  /** Has the sweepers look at every unfinished job now, and waits until one has. */
  async function sweep(): Promise<void> {
    const keys = await redis.keys('sluice:*:holds');
    assert.equal(keys.length, 1);
    const [key] = keys as [string];
    for (const member of await redis.zrange(key, '0', '-1')) await redis.zadd(key, 'XX', 1, member);
    await eventually(async () => assert.equal(await redis.zcount(key, 1, 1), 0));
  }

  test('apis with skewed clocks end no running job early, whichever of them sweeps', async () => {
    const request = held('Reply with exactly: here', { sandbox: { first_token_ms: 600_000 }, user: 'looked-at' });
    const response = await post(gateway.url, request, { prefer: 'respond-async' });
    assert.equal(response.status, 202);
    const { id } = (await response.json()) as { id: string };
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'looked-at')).length, 1));
    // Every sweeper may be the one that looks.
    for (let round = 0; round < 4; round++) await sweep();
    const job = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as { status: string };
    assert.equal(job.status, 'in_progress');
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    await endedJob(gateway, id);
  });

  test('apis with skewed clocks answer their own callers, also those with a timeout of a minute', async () => {
    for (const { url } of [ahead, late]) {
      const response = await post(url, held('Reply with exactly: mine'), { 'x-stainless-timeout': '60' });
      assert.equal(response.status, 200);
      const { created, choices } = (await response.json()) as { created: number; choices: { message: object }[] };
      assert.deepEqual(choices.length, 1);
      assert.ok(Math.abs(created - Date.now() / 1000) < 300, 'it was made now, by everybody’s clock');
    }
  });

  test('an api with a late clock lets a large request pass once the limit per minute of its key has room again', async () => {
    const headers = { authorization: `Bearer ${await makeApiKey(gateway, { rpm: 20 })}` };
    const used = await Promise.all(Array.from({ length: 20 }, () => post(late.url, held('Hi'), headers)));
    assert.deepEqual(new Set(used.map(({ status }) => status)), new Set([200]));
    // One of them is free again every 3 s.
    await delay(4000);
    const answer = await post(late.url, held('word '.repeat(20_000)), headers);
    assert.equal(answer.status, 200, await answer.text());
  });

  test('a limit per minute that Redis has noted with a clock ahead refuses no large request once that is put right', async () => {
    const headers = { authorization: `Bearer ${await makeApiKey(gateway, { rpm: 20 })}` };
    const known = await redis.keys('sluice:*:rate:*');
    assert.equal((await post(gateway.url, held('Hi'), headers)).status, 200);
    const [rate = ''] = (await redis.keys('sluice:*:rate:*')).filter((key) => !known.includes(key));
    assert.equal(await redis.hset(rate, 'requests ', `20.000 ${Date.now() + elevenMinutes}`), 0);
    const answer = await post(gateway.url, held('word '.repeat(20_000)), headers);
    assert.equal(answer.status, 200, await answer.text());
  });

  test('a key expires at apis with skewed clocks when it does at the others', async () => {
    const [young, over] = await Promise.all(
      [Date.now() + elevenMinutes / 2, Date.now() - 1000].map((expiresAt) => makeApiKey(gateway, { expiresAt })),
    );
    for (const { url } of [gateway, ahead, late]) {
      const statusOf = async (key: string | undefined) =>
        (await post(url, held('Hi'), { authorization: `Bearer ${key}` })).status;
      assert.deepEqual([await statusOf(young), await statusOf(over)], [200, 401]);
    }
  });

  test('a link to a result works at apis with skewed clocks for as long as at the others', async () => {
    const request = { model: 'sandbox-image', prompt: 'A boat', response_format: 'url' } as const;
    const { data } = await gateway.client().images.generate(request);
    const { pathname, search } = new URL(data?.[0]?.url ?? '');
    for (const { url } of [gateway, ahead, late]) assert.equal((await fetch(`${url}${pathname}${search}`)).status, 200);
  });

  test('a process whose clock is not that of Redis says so once, and by how much', async () => {
    const message = "this host's clock differs from Redis's: set the wrong one right";
    for (const [api, skewMs] of [
      [ahead, elevenMinutes],
      [late, -elevenMinutes],
    ] as const) {
      const [line, ...more] = await eventually(() => {
        const found = linesOf(api, message);
        assert.ok(found.length > 0, 'it is not logged');
        return found;
      });
      assert.deepEqual(more, []);
      assert.ok(Math.abs((line?.aheadMs ?? 0) - skewMs) < 60_000, JSON.stringify(line));
    }
    assert.deepEqual(linesOf(gateway.apis[0] as ApiProcess, message), []);
  });

  test('apis with skewed clocks return 504 when a deadline passes, and leave nothing behind', async () => {
    for (const { url } of [ahead, late]) {
      const request = held('Hi', { sandbox: { first_token_ms: 600_000 } });
      const response = await post(url, request, { 'x-stainless-timeout': '1' });
      assert.equal(response.status, 504);
    }
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });
});

describe('an api with a clock two years ahead', () => {
  test('an api with a clock far ahead removes no answer, no file and no session that others still keep', async () => {
    const gateway = await TestGateway.start();
    const db = await openDatabase(gateway);
    try {
      const respond = async () =>
        (await gateway.client().responses.create({ model: 'sandbox-chat', input: 'Hello' })).id;
      const [kept, expired] = [await respond(), await respond()];
      const isStored = (id: string) =>
        eventually(async () => {
          const body = db.selectFrom('job_bodies').select('answer').where('job_id', '=', id.replace('resp_', ''));
          assert.ok((await body.executeTakeFirst())?.answer, `the answer of ${id} is not in the database`);
        });
      await Promise.all([isStored(kept), isStored(expired)]);
      await db.updateTable('job_bodies').set({ expires_at: 1 }).where('job_id', '=', expired.slice(5)).execute();
      const [user, old] = [new ConsoleClient(gateway.url), new ConsoleClient(gateway.url)];
      await user.signUp('kept@example.com');
      await old.signUp('old@example.com');
      const ofOld = db.selectFrom('users').select('id').where('email', '=', 'old@example.com');
      await db
        .updateTable('sessions')
        .set({ expires_at: '2020-01-01T00:00:00.000Z' })
        .where('user_id', '=', ofOld)
        .execute();
      const hours = join(gateway.dataDir, 'blobs');
      const hour = (ms: number) => new Date(ms).toISOString().slice(0, 13).replace(/[-T]/g, '');
      const [now, before] = [hour(Date.now()), '2020010100'];
      for (const name of [now, before]) await mkdir(join(hours, name), { recursive: true });

      const ahead = skewedClock(2 * 365 * 86_400_000);
      await gateway.startApi({ NODE_OPTIONS: `${ahead.NODE_OPTIONS} ${frequentHousekeeping}` });
      await eventually(async () => {
        const [bodies, sessions] = await Promise.all([
          db.selectFrom('job_bodies').select('job_id').where('job_id', '=', expired.slice(5)).execute(),
          db.selectFrom('sessions').select('id').where('user_id', '=', ofOld).execute(),
        ]);
        assert.deepEqual([bodies, sessions, (await readdir(hours)).includes(before)], [[], [], false]);
      });
      await isStored(kept);
      assert.equal((await user.call('GET', '/console/api/session')).status, 200);
      assert.ok((await readdir(hours)).includes(now), 'the files of this hour are there');
    } finally {
      await db.destroy();
      await gateway.stop();
    }
  });
});

describe('an api with a clock two hours ahead', () => {
  test('a wrong link to choose a password, tried at an api whose clock is ahead, leaves those of others as they are', async () => {
    const gateway = await TestGateway.start({ workers: 0 });
    const db = await openDatabase(gateway);
    try {
      const ahead = await gateway.startApi(skewedClock(2 * 3_600_000));
      const email = 'linked@example.com';
      await new ConsoleClient(gateway.url).signUp(email);
      const user = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirstOrThrow();
      const link = new URL(await makeResetLink(db, gateway.url, user.id));
      const choose = async (url: string, token: string | null) => {
        const fields = { token, newPassword: 'another long phrase' };
        return (await new ConsoleClient(url).call('POST', '/console/api/auth/reset-password', fields)).status;
      };
      assert.equal(await choose(ahead.url, 'a-token-of-nobody'), 400);
      assert.equal(await choose(gateway.url, link.searchParams.get('token')), 200);
    } finally {
      await db.destroy();
      await gateway.stop();
    }
  });
});

describe('an api with a clock three hours late', () => {
  test('usage reports that name no end reach to now at an api with a late clock', async () => {
    const gateway = await TestGateway.start();
    try {
      const { url } = await gateway.startApi(skewedClock(-3 * 3_600_000));
      await gateway.client({ url }).chat.completions.create(held('Hi'));
      const admin = await AdminKeys.open(gateway);
      await eventually(async () => {
        const answer = await admin.ask('GET', '/usage?group_by=hour', undefined, url);
        const { total } = (await answer.json()) as { total: { requests: number } };
        assert.equal(total.requests, 1);
        const file = await (await admin.ask('GET', '/usage.csv?group_by=hour', undefined, url)).text();
        assert.equal(file.trim().split('\n').length, 2, file);
        const own = await gateway.fetch('/v1/usage?bucket_width=1h', { url });
        const { data } = (await own.json()) as { data: { results: object[] }[] };
        assert.equal(data.flatMap(({ results }) => results).length, 1);
      });
    } finally {
      await gateway.stop();
    }
  });
});

describe('processes with clocks three days late', () => {
  test('what an api and a worker with late clocks have stored is kept as long as what others have', async () => {
    const gateway = await TestGateway.start({ apis: 0, workers: 0 });
    const db = await openDatabase(gateway);
    try {
      const late = skewedClock(-3 * 86_400_000);
      // This one alone writes the ledger; the right one alone removes files often.
      const [{ url }] = await Promise.all([gateway.startApi(late), gateway.startWorker(late)]);
      await gateway.startApi({ SLUICE_LEDGER: 'off', NODE_OPTIONS: frequentHousekeeping });
      const client = gateway.client({ url });
      const image = await client.images.generate({ model: 'sandbox-image', prompt: 'A boat', response_format: 'url' });
      const input = `Reply with exactly: kept ${'word '.repeat(230_000)}`;
      const { id } = await client.responses.create({ model: 'sandbox-chat', input });
      const body = await eventually(async () => {
        const rows = db.selectFrom('job_bodies').select(['request_blob', 'expires_at']);
        const row = await rows.where('job_id', '=', id.replace('resp_', '')).executeTakeFirst();
        assert.ok(row?.request_blob, 'the request is not among the files');
        return row;
      });
      assert.ok(body.expires_at > Date.now(), 'the response has expired');
      const before = join(gateway.dataDir, 'blobs', '2020010100');
      // The second round has begun after all files were there.
      for (let round = 0; round < 2; round++) {
        await mkdir(before, { recursive: true });
        await eventually(async () => assert.deepEqual(await readdir(before).catch(() => 'removed'), 'removed'));
      }
      assert.equal((await fetch(image.data?.[0]?.url as string)).status, 200);
      assert.equal((await gateway.fetch(`/v1/responses/${id}/input_items`, { url })).status, 200);
    } finally {
      await db.destroy();
      await gateway.stop();
    }
  });
});

describe('workers with clocks eleven minutes off', () => {
  for (const skewMs of [elevenMinutes, -elevenMinutes]) {
    test(`a worker with a clock skewed by ${skewMs} ms hands a video over without delay`, async () => {
      const gateway = await TestGateway.start({ workers: 0 });
      try {
        const wrong = await gateway.startWorker(skewedClock(skewMs), 'video');
        const client = gateway.client();
        const sandbox = { video: { duration_ms: 5000, queued_ms: 100 } };
        const { id } = await createVideo(client, { sandbox });
        await eventually(async () => assert.equal((await client.videos.retrieve(id)).status, 'in_progress'));
        await wrong.stop();
        await gateway.startWorker({}, 'video');
        await eventually(async () => {
          const { status, error } = await client.videos.retrieve(id);
          assert.equal(status, 'completed', JSON.stringify(error));
        }, 20_000);
        await client.videos.delete(id);
        assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
      } finally {
        await gateway.stop();
      }
    });
  }
});
