import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import Libsql from 'libsql';
import type OpenAI from 'openai';
import { type Database, databaseFile, openDatabase } from '../../shared/database/database.ts';
import { accountKeys, jobKeys } from '../../shared/keys.ts';
import { held, streamed, streamedText } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { type ApiProcess, TestGateway } from '../support/gateway.ts';
import { makeApiKey } from '../support/make-api-key.ts';
import { sseEvents } from '../support/sse-events.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { vendorCalls } from '../support/vendor-journal.ts';

interface JobObject {
  id: string;
  status: string;
  error: { code: string; message: string } | null;
  result: OpenAI.Chat.ChatCompletion | null;
}

const path = '/v1/chat/completions';
const async = { prefer: 'respond-async' };

/** What a suite needs of one gateway: its database and Redis beside it. */
class Records {
  readonly gateway: TestGateway;
  readonly db: Database;
  readonly redis: Redis;

  private constructor(gateway: TestGateway, db: Database) {
    this.gateway = gateway;
    this.db = db;
    this.redis = new Redis(gateway.redisUrl);
  }

  static async start(...options: Parameters<typeof TestGateway.start>): Promise<Records> {
    const gateway = await TestGateway.start(...options);
    return new Records(gateway, await openDatabase(gateway.dataDir));
  }

  async stop(): Promise<void> {
    this.redis.disconnect();
    await this.db.destroy();
    await this.gateway.stop();
  }

  post(body: object, headers: Record<string, string> = {}, more: { url?: string } = {}): Promise<Response> {
    return this.gateway.fetch(path, { method: 'POST', body: JSON.stringify(body), headers, ...more });
  }

  async postLater(body: object, headers: Record<string, string> = {}): Promise<string> {
    const response = await this.post(body, { ...async, ...headers });
    assert.equal(response.status, 202, 'it was not accepted');
    return ((await response.json()) as JobObject).id.slice('job_'.length);
  }

  async read(id: string): Promise<JobObject> {
    const response = await this.gateway.fetch(`/v1/jobs/${id}`);
    assert.equal(response.status, 200);
    return (await response.json()) as JobObject;
  }

  row(id: string) {
    return this.db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** The row of a job, once it has its end. */
  async ended(id: string) {
    return await eventually(async () => {
      const row = await this.row(id);
      assert.ok(row?.outcome, `${id} has no end in the database`);
      return row;
    });
  }

  /** Makes a job known to the database only. */
  async forget(id: string): Promise<void> {
    await this.ended(id);
    assert.equal(await this.redis.del(jobKeys.state(id), jobKeys.log(id)), 2);
  }

  async outboxes(): Promise<number> {
    const lengths = await Promise.all(accountKeys.allOutboxes().map((key) => this.redis.xlen(key)));
    return lengths.reduce((sum, length) => sum + length, 0);
  }

  async metric(name: string): Promise<number> {
    const pages = await Promise.all(
      this.gateway.apis
        .filter(({ child }) => child.exitCode === null && child.signalCode === null)
        .map(async ({ url }) => (await fetch(`${url}/metrics`)).text()),
    );
    return pages.reduce((sum, page) => sum + Number(new RegExp(`^${name}\\S* (\\S+)$`, 'm').exec(page)?.[1] ?? 0), 0);
  }
}

const idOf = (response: Response): string => response.headers.get('x-request-id')?.slice('job_'.length) as string;

describe('job records', () => {
  let records: Records;
  before(async () => {
    records = await Records.start({ apis: 2 });
  });
  after(() => records.stop());

  it('a plain chat job is in the ledger once, with its usage, vendor, key and times', async () => {
    const before = await records.metric('sluice_job_records_total');
    const sentAt = Date.now();
    const response = await records.post(held('Reply with exactly: one two three'));
    const { usage } = (await response.json()) as OpenAI.Chat.ChatCompletion;
    const row = await records.ended(idOf(response));
    assert.deepEqual(
      [row.account_id, row.endpoint, row.capability, row.model, row.vendor, row.stream, row.retention_ms],
      ['default', 'chat', 'chat', 'sandbox-chat', 'sandbox', 0, 0],
    );
    assert.match(row.api_key_id, /^key_/);
    assert.deepEqual([row.outcome, row.error_code, row.attempts], ['completed', null, 1]);
    assert.deepEqual([row.input_tokens, row.output_tokens], [usage?.prompt_tokens, usage?.completion_tokens]);
    assert.deepEqual(JSON.parse(row.usage ?? ''), usage);
    const times = [sentAt, row.created_at, row.began_at ?? 0, row.ended_at ?? 0, Date.now()];
    assert.deepEqual(
      times,
      [...times].sort((one, other) => one - other),
    );
    assert.equal(await records.db.selectFrom('job_bodies').selectAll().executeTakeFirst(), undefined);
    await eventually(async () => assert.equal(await records.outboxes(), 0));
    assert.equal((await records.metric('sluice_job_records_total')) - before, 1);
    assert.equal(await records.metric('sluice_outbox_records'), 0);
  });

  it('failed and cancelled jobs are recorded as such', async () => {
    const failed = await records.post(held('Hi', { sandbox: { fault: { kind: 'error', status: 400 } } }));
    const failedRow = await records.ended(idOf(failed));
    assert.deepEqual(
      [failedRow.outcome, failedRow.error_code, failedRow.vendor],
      ['failed', 'invalid_request_error', 'sandbox'],
    );
    const controller = new AbortController();
    const left = records.gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(
        held('Hi', { model: 'sandbox-reasoning', user: 'left', sandbox: { first_token_ms: 60_000 } }),
      ),
      signal: controller.signal,
    });
    await eventually(async () => assert.equal((await vendorCalls(records.gateway, 'left')).length, 1));
    controller.abort();
    await assert.rejects(left);
    const row = await eventually(async () => {
      const query = records.db.selectFrom('jobs').selectAll().where('model', '=', 'sandbox-reasoning');
      return await query.executeTakeFirstOrThrow();
    });
    assert.deepEqual([row.outcome, row.error_code, row.attempts], ['cancelled', 'cancelled', 1]);
    assert.ok(row.began_at !== null && row.ended_at !== null, 'its times are known');
  });

  it('an asynchronous job reads the same after Redis has forgotten it: object, events, and DELETE', async () => {
    const id = await records.postLater(held('Reply with exactly: kept'));
    await records.ended(id);
    const live = await records.read(id);
    const events = sseEvents(await (await records.gateway.fetch(`/v1/jobs/${id}/events`)).text());
    await records.forget(id);
    assert.deepEqual(await records.read(id), live);
    assert.equal(live.result?.choices[0]?.message.content, 'kept');
    const replayed = await records.gateway.fetch(`/v1/jobs/${id}/events`);
    assert.deepEqual(sseEvents(await replayed.text()), events);
    const unchanged = await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    assert.equal(((await unchanged.json()) as JobObject).status, 'completed');
    const body = await records.db.selectFrom('job_bodies').selectAll().where('job_id', '=', id).executeTakeFirst();
    assert.deepEqual(JSON.parse(body?.request ?? ''), { messages: held('Reply with exactly: kept').messages });
    assert.ok(Math.abs((body?.expires_at ?? 0) - Date.now() - 30 * 86_400_000) < 60_000, 'it is kept for 30 days');
  });

  it('a streamed asynchronous job is kept as what it says: the same result, and chunks that say the same', async () => {
    const tools = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }];
    const texts: [string, object][] = [
      ['WORDS:30', { logprobs: true, stream_options: { include_usage: true } }],
      ['Hello', { n: 2, model: 'sandbox-reasoning' }],
      ['TOOL:look_up {"a":[1,2,{"b":"c"}]}', { tools }],
    ];
    for (const [text, more] of texts) {
      const id = await records.postLater(streamed(text, more));
      await records.ended(id);
      const live = await records.read(id);
      const all = sseEvents(await (await records.gateway.fetch(`/v1/jobs/${id}/events`)).text());
      await records.forget(id);
      assert.deepEqual(await records.read(id), live);
      const response = await records.gateway.fetch(`/v1/jobs/${id}/events`);
      const kept = sseEvents(await response.text());
      assert.deepEqual(kept.slice(1), all.slice(-(kept.length - 1)), 'the end is not the same');
      const chunk = JSON.parse(kept[0]?.data ?? '') as OpenAI.Chat.ChatCompletionChunk;
      assert.equal(chunk.object, 'chat.completion.chunk');
      const choices = live.result?.choices ?? [];
      for (const { index, delta, finish_reason: reason } of chunk.choices) {
        const choice = choices.find((one) => one.index === index);
        assert.deepEqual([delta.content, reason], [choice?.message.content, choice?.finish_reason]);
        const calls = delta.tool_calls?.map(({ index: _, ...call }) => call);
        assert.deepEqual(calls, choice?.message.tool_calls);
      }
      // Who has a part of the stream cannot be given the rest of it any more; who has all but the end can.
      const middle = { headers: { 'last-event-id': all[1]?.id as string } };
      if (all.length > 3) {
        const gone = await records.gateway.fetch(`/v1/jobs/${id}/events`, middle);
        await assertErrorAnswer(gone, 410, 'resume_expired');
      }
      const rest = await records.gateway.fetch(`/v1/jobs/${id}/events`, {
        headers: { 'last-event-id': kept[0]?.id ?? '' },
      });
      assert.deepEqual(sseEvents(await rest.text()), kept.slice(1));
    }
  });

  it('a failed asynchronous job tells its error from the database', async () => {
    const fault = { kind: 'error', status: 400, code: 'context_length_exceeded', message: 'Too long.' };
    const id = await records.postLater(held('Hi', { sandbox: { fault } }));
    await records.ended(id);
    const live = await records.read(id);
    await records.forget(id);
    assert.deepEqual(await records.read(id), live);
    assert.equal(live.error?.message, 'Too long.');
    await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}/events`), 400, 'context_length_exceeded');
  });

  it("another account's job is the same 404 as an unknown one, also from the database", async () => {
    const id = await records.postLater(held('Hi'));
    await records.forget(id);
    const authorization = `Bearer ${await makeApiKey(records.gateway, { accountId: 'another' })}`;
    for (const [method, more] of [
      ['GET', ''],
      ['GET', '/events'],
      ['DELETE', ''],
    ] as const) {
      const [foreign, unknown] = await Promise.all(
        [id, '0'.repeat(32)].map(async (job) => {
          const init = { method, headers: { authorization } };
          return assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${job}${more}`, init), 404, 'not_found');
        }),
      );
      assert.deepEqual(foreign, unknown);
    }
    assert.equal((await records.read(id)).status, 'completed');
  });

  it('a repeat with the same Idempotency-Key finds its answer in the database, held and streamed', async () => {
    for (const [key, body] of [
      ['kept-held', held('WORDS:9', { user: 'kept-held' })],
      ['kept-streamed', streamed('WORDS:9', { user: 'kept-streamed' })],
    ] as const) {
      const options = { headers: { 'idempotency-key': key } };
      const ask = async (): Promise<string> => {
        const { completions } = records.gateway.client().chat;
        if (body.stream) return await streamedText(await completions.create(body, options));
        return (await completions.create(body, options)).choices[0]?.message.content ?? '';
      };
      const first = await ask();
      assert.equal(first.split(' ').length, 9);
      const id = idOf(await records.post(body, { 'idempotency-key': key }));
      await records.forget(id);
      const again = await records.post(body, { 'idempotency-key': key });
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(idOf(again), id);
      await again.text();
      assert.equal(await ask(), first);
      const later = await records.post(body, { 'idempotency-key': key, ...async });
      assert.equal(((await later.json()) as JobObject).status, 'completed');
      assert.equal((await vendorCalls(records.gateway, key)).length, 1);
      await assertErrorAnswer(
        await records.post({ ...body, n: 2 }, { 'idempotency-key': key }),
        422,
        'idempotency_key_reused',
      );
    }
  });

  it('an answer whose time is over, or that was never kept, is 410; its job can still be read', async () => {
    const kept = await records.postLater(held('Hi'));
    const plain = idOf(await records.post(held('Hi')));
    await records.forget(kept);
    await records.ended(plain);
    await records.redis.del(jobKeys.state(plain), jobKeys.log(plain));
    await records.db.updateTable('job_bodies').set({ expires_at: Date.now() }).where('job_id', '=', kept).execute();
    for (const id of [kept, plain]) {
      await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}/events`), 410, 'resume_expired');
      const { status, result } = await records.read(id);
      assert.deepEqual([status, result], ['completed', null]);
    }
  });

  it('a refused request leaves no row', async () => {
    const count = async (): Promise<number> =>
      (await records.db.selectFrom('jobs').select('id').where('model', '=', 'sandbox-embedding').execute()).length;
    const authorization = `Bearer ${await makeApiKey(records.gateway, { concurrency: 1 })}`;
    const first = await records.post(held('WORDS:20@20', { user: 'first' }), { authorization, ...async });
    assert.equal(first.status, 202);
    const refused = await records.post(held('Hi'), { authorization, ...async });
    await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
    assert.equal(await records.row(idOf(refused)), undefined);
    const body = held('Hi', { user: 'replayed' });
    const original = idOf(await records.post(body, { 'idempotency-key': 'rows' }));
    const before = await records.db.selectFrom('jobs').select('id').execute();
    await records.post(body, { 'idempotency-key': 'rows' });
    const rows = await records.db.selectFrom('jobs').select('id').execute();
    assert.equal(rows.length, before.length);
    assert.ok(await records.row(original), 'the original has its row');
    assert.equal(await count(), 0);
  });
});

describe('jobs that are recorded before they are accepted', () => {
  let records: Records;
  before(async () => {
    records = await Records.start({ workers: 0 });
  });
  after(() => records.stop());

  const unfinished = () =>
    records.db.selectFrom('jobs').select(['id', 'endpoint']).where('outcome', 'is', null).orderBy('id').execute();

  it('are asynchronous, keyed and media ones, and no plain chats', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const send = (to: string, body: object, headers: Record<string, string> = {}): Promise<unknown> =>
      assert.rejects(records.gateway.fetch(to, { method: 'POST', body: JSON.stringify(body), headers, signal }), {
        name: 'AbortError',
      });
    const id = await records.postLater(held('Hi'));
    const sent = [
      send(path, held('Hi'), { 'idempotency-key': 'first' }),
      send('/v1/images/generations', { model: 'sandbox-image', prompt: 'A cat' }),
      send(path, held('Hi')),
    ];
    const waiting = () => records.gateway.fetch('/metrics').then((response) => response.text());
    await eventually(async () => {
      assert.match(await waiting(), /sluice_queue_waiting\{capability="chat"[^}]*\} 3/);
      assert.match(await waiting(), /sluice_queue_waiting\{capability="image"[^}]*\} 1/);
    });
    const rows = await unfinished();
    assert.deepEqual(rows.map(({ endpoint }) => endpoint).sort(), ['chat', 'chat', 'images.generations']);
    assert.equal(rows[0]?.id, id);
    const bodies = await records.db.selectFrom('job_bodies').select('job_id').execute();
    assert.equal(bodies.length, 2, 'a media job whose caller waits keeps no bodies');
    controller.abort();
    await Promise.all(sent);
    // Leaving cancels the image, and the plain chat; keyed and asynchronous jobs go on.
    await eventually(async () => assert.equal((await unfinished()).length, 2));
  });
});

describe('job records when an api is killed', () => {
  it('between the write and its acknowledgement: another one takes the entry over and writes it once', async () => {
    const records = await Records.start({ apis: 1 });
    const proxy = await startTcpProxy(records.gateway.redis?.port as number);
    try {
      const doomed = await records.gateway.startApi({ REDIS_URL: proxy.url });
      const stopped = proxy.stopAt({ matches: ([name]) => name?.toLowerCase() === 'xdel', stop: 'before' });
      const ids = new Set<string>();
      let isStopped = false;
      stopped.then(() => {
        isStopped = true;
      });
      while (!isStopped) ids.add(idOf(await records.post(held('Hi'))));
      await doomed.kill();
      assert.ok((await records.outboxes()) > 0, 'the entry is still there');
      const stranded = await records.db.selectFrom('jobs').select('id').execute();
      assert.ok(stranded.length > 0, 'it was written');
      await eventually(async () => assert.equal(await records.outboxes(), 0), 60_000);
      const rows = await records.db.selectFrom('jobs').select(['id', 'outcome']).execute();
      assert.deepEqual(new Set(rows.map(({ id }) => id)), ids);
      assert.ok(
        rows.every(({ outcome }) => outcome === 'completed'),
        'every row has its end',
      );
    } finally {
      await records.stop();
      await proxy.close();
    }
  });
});

describe('job records while the database cannot be written', () => {
  const lockedMs = process.env.SLUICE_SOAK ? 120_000 : 8000;

  it('chat goes on, asynchronous work is 503 with Retry-After, and afterwards every job is there once', async () => {
    const records = await Records.start({ apis: 2 });
    const file = new Libsql(join(records.gateway.dataDir, databaseFile), { timeout: 5000 });
    try {
      // From here on the key is known to both.
      for (const { url } of records.gateway.apis) await records.post(held('Hi'), {}, { url });
      file.exec('BEGIN EXCLUSIVE');
      const unlockAt = Date.now() + lockedMs;
      const ids: string[] = [];
      const refused: string[] = [];
      const chat = async (api: ApiProcess): Promise<void> => {
        while (Date.now() < unlockAt) {
          const response = await records.post(held('Hi'), {}, { url: api.url });
          assert.equal(response.status, 200);
          await response.text();
          ids.push(idOf(response));
          await delay(20);
        }
      };
      const later = async (api: ApiProcess): Promise<void> => {
        while (Date.now() < unlockAt - 2500) {
          const response = await records.post(held('Hi', { user: 'refused' }), async, { url: api.url });
          assert.ok(Number(response.headers.get('retry-after')) >= 1, 'it says when to come back');
          refused.push(idOf(response));
          await assertErrorAnswer(response, 503, 'service_unavailable');
          await delay(100);
        }
      };
      await Promise.all(records.gateway.apis.flatMap((api) => [chat(api), later(api)]));
      file.exec('ROLLBACK');
      assert.ok(ids.length > 20 && refused.length > 0, `${ids.length} chats, ${refused.length} refused`);
      await eventually(async () => assert.equal(await records.outboxes(), 0), 30_000);
      const rows = await records.db.selectFrom('jobs').select(['id', 'outcome']).execute();
      const found = new Map(rows.map(({ id, outcome }) => [id, outcome]));
      assert.equal(found.size, rows.length);
      assert.deepEqual(
        ids.filter((id) => found.get(id) !== 'completed'),
        [],
      );
      assert.deepEqual(
        refused.filter((id) => found.has(id)),
        [],
        'a refused one left a row',
      );
      assert.deepEqual(await vendorCalls(records.gateway, 'refused'), [], 'a refused one was run');
      assert.equal(await records.metric('sluice_job_records_total'), rows.length);
      const id = await records.postLater(held('Reply with exactly: back'));
      await records.ended(id);
      assert.equal((await records.read(id)).result?.choices[0]?.message.content, 'back');
    } finally {
      file.close();
      await records.stop();
    }
  });
});

describe('job records when Redis is emptied', () => {
  it('every asynchronous job that waited or ran has an end within 60 s, and GET shows it', async () => {
    const records = await Records.start({ settings: { WORKER_CONCURRENCY_CHAT: '2' } });
    try {
      const ids: string[] = [];
      for (let index = 0; index < 6; index++) {
        ids.push(await records.postLater(streamed('WORDS:2000@20', { user: 'emptied' })));
      }
      await eventually(async () => assert.equal((await vendorCalls(records.gateway, 'emptied')).length, 2));
      await records.redis.flushall();
      for (const id of ids) assert.ok(['queued', 'in_progress'].includes((await records.read(id)).status));
      const ended = await eventually(async () => {
        const rows = await records.db.selectFrom('jobs').selectAll().where('id', 'in', ids).execute();
        assert.ok(
          rows.every(({ outcome }) => outcome !== null),
          'some have no end',
        );
        return rows;
      }, 60_000);
      assert.equal(ended.length, 6);
      for (const id of ids) {
        const job = await records.read(id);
        assert.deepEqual([job.status, job.error?.code], ['failed', 'outcome_unknown']);
        await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}/events`), 500, 'outcome_unknown');
      }
      const id = await records.postLater(held('Reply with exactly: again'));
      assert.equal((await records.ended(id)).outcome, 'completed');
    } finally {
      await records.stop();
    }
  });
});
