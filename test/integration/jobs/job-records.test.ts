import assert from 'node:assert/strict';
import { mkdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import type OpenAI from 'openai';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { JobRecords, jobIdOf, later, type ReadJob } from '../../support/job-records.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { sseEvents } from '../../support/sse-events.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/chat/completions';

describe('job records', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start({ apis: 2 });
  });
  after(() => records.stop());

  it('a plain chat is in the ledger once, with its usage, vendor, key and times', async () => {
    const before = await records.metric('sluice_job_records_total');
    const sentAt = Date.now();
    const response = await records.post(held('Reply with exactly: one two three'));
    const { usage } = (await response.json()) as OpenAI.Chat.ChatCompletion;
    const row = await records.ended(jobIdOf(response));
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

  it('failed and cancelled jobs are recorded with their outcome, error code and times', async () => {
    const failed = await records.post(held('Hi', { sandbox: { fault: { kind: 'error', status: 400 } } }));
    const failedRow = await records.ended(jobIdOf(failed));
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

  it('an asynchronous job reads the same from the database as from Redis: object, events and DELETE', async () => {
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
    assert.equal(((await unchanged.json()) as ReadJob).status, 'completed');
    const body = await records.db.selectFrom('job_bodies').selectAll().where('job_id', '=', id).executeTakeFirst();
    assert.deepEqual(JSON.parse(body?.request ?? ''), { messages: held('Reply with exactly: kept').messages });
    assert.ok(Math.abs((body?.expires_at ?? 0) - Date.now() - 30 * 86_400_000) < 60_000, 'it is kept for 30 days');
  });

  it('a streamed asynchronous job has the same result from the database, and equivalent chunks', async () => {
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

  it('a failed asynchronous job shows its error from the database', async () => {
    const fault = { kind: 'error', status: 400, code: 'context_length_exceeded', message: 'Too long.' };
    const id = await records.postLater(held('Hi', { sandbox: { fault } }));
    await records.ended(id);
    const live = await records.read(id);
    await records.forget(id);
    assert.deepEqual(await records.read(id), live);
    assert.equal(live.error?.message, 'Too long.');
    await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}/events`), 400, 'context_length_exceeded');
  });

  it('the error of a failed job is stored bounded, without prompt and keys, and read from its row', async () => {
    const prompt = 'My neighbour, Jörg Müller of 12 Acacia Road, owes me money.';
    const said = "Invalid value: 'nobody'. Supported values are: 'alloy', 'ash'.";
    const key = 'sk-proj-4fT9vAbQ0123456789abcdefXYZ';
    const failing = (message: string, status = 400) =>
      records.post(held(prompt, { sandbox: { fault: { kind: 'error', status, code: 'invalid_voice', message } } }));
    const plain = await failing(said);
    const id = jobIdOf(plain);
    const { message, code } = await assertErrorAnswer(plain, 400, 'invalid_voice');
    assert.equal(message, said);
    const row = await records.ended(id);
    assert.deepEqual(JSON.parse(row.error_details ?? ''), { message, code, vendorStatus: 400 });
    await records.redis.del(jobKeys.state(id), jobKeys.log(id));
    const { error } = await records.read(id);
    assert.deepEqual([error?.message, error?.code], [message, code]);
    const quoting = await records.ended(jobIdOf(await failing(`${said} It was ${prompt.slice(3)} by ${key}`)));
    const kept = JSON.parse(quoting.error_details ?? '') as { message: string };
    assert.equal(kept.message, `${said} It was[…] by [key]`);
    const long = await records.ended(jobIdOf(await failing('It is wrong. '.repeat(200))));
    assert.equal((JSON.parse(long.error_details ?? '') as { message: string }).message.length, 1000);
    const own = await records.ended(jobIdOf(await failing(`It is ${prompt}`, 500)));
    assert.doesNotMatch(own.error_details ?? '', /Acacia/);
    assert.match(own.error_details ?? '', /"vendorStatus":500/);
    const well = await records.ended(jobIdOf(await records.post(held('Hi'))));
    assert.equal(well.error_details, null);
  });

  it('the reason of a job cancelled by DELETE is stored in its row', async () => {
    const id = await records.postLater(held('WORDS:400@5'));
    const cancelled = await records.gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    assert.equal(((await cancelled.json()) as ReadJob).status, 'cancelled');
    const row = await records.ended(id);
    assert.deepEqual(JSON.parse(row.error_details ?? ''), { message: 'The job was cancelled by its owner.' });
  });

  it('a job of another account returns the same 404 as an unknown one, also from the database', async () => {
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

  it('a repeat of an idempotency key finds its answer in the database, held and streamed', async () => {
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
      const id = jobIdOf(await records.post(body, { 'idempotency-key': key }));
      await records.forget(id);
      const again = await records.post(body, { 'idempotency-key': key });
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(jobIdOf(again), id);
      await again.text();
      assert.equal(await ask(), first);
      const asynchronous = await records.post(body, { 'idempotency-key': key, ...later });
      assert.equal(((await asynchronous.json()) as ReadJob).status, 'completed');
      assert.equal((await vendorCalls(records.gateway, key)).length, 1);
      await assertErrorAnswer(
        await records.post({ ...body, n: 2 }, { 'idempotency-key': key }),
        422,
        'idempotency_key_reused',
      );
    }
  });

  it('a streamed image is stored without its partial images, and replays its end', async () => {
    const fields = { model: 'sandbox-image', prompt: 'A lighthouse', size: '1024x1024', n: 2 };
    const image = { ...fields, stream: true, partial_images: 3, user: 'kept-image' };
    const ask = () => records.post(image, { 'idempotency-key': 'kept-image' }, { path: '/v1/images/generations' });
    const events = async (response: Response): Promise<[id: string | undefined, type: string, data: string][]> => {
      const blocks = (await response.text()).split('\n\n').filter((block) => !block.startsWith(':') && block !== '');
      return blocks.map((block) => {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        return [field('id'), field('event') ?? '', field('data') ?? ''];
      });
    };
    const first = await ask();
    const id = jobIdOf(first);
    const live = await events(first);
    const ends = live.filter(([, type]) => type === 'image_generation.completed');
    assert.deepEqual([live.length - ends.length > 0, ends.length], [true, 2], 'partial images, then two whole ones');
    await records.forget(id);
    const { answer, answer_blob: blob } = await records.db
      .selectFrom('job_bodies')
      .selectAll()
      .where('job_id', '=', id)
      .executeTakeFirstOrThrow();
    assert.ok(answer !== null && blob === null, 'small enough for its row');
    assert.equal(answer.trimEnd().split('\n').length, 2, 'a head, and one frame');
    const again = await ask();
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await events(again), ends);
    const watch = (after: string | undefined) =>
      records.gateway.fetch(`/v1/jobs/${id}/events`, { headers: { 'last-event-id': after ?? '' } });
    assert.deepEqual(await events(await watch(live[0]?.[0])), ends, 'from the middle');
    assert.deepEqual(await events(await watch(ends[0]?.[0])), ends.slice(1), 'between the two');
    const { data } = (await records.read<OpenAI.ImagesResponse>(id)).result ?? assert.fail('no result');
    assert.deepEqual(
      data?.map(({ b64_json }) => b64_json),
      ends.map(([, , text]) => JSON.parse(text).b64_json),
    );
    assert.equal((await vendorCalls(records.gateway, 'kept-image')).length, 1);
  });

  it('speech is stored as its file, which its repeat and its events show', async () => {
    const speech = { model: 'sandbox-speech', voice: 'alloy', input: 'A lighthouse.', user: 'kept-speech' };
    const ask = () => records.post(speech, { 'idempotency-key': 'kept-speech' }, { path: '/v1/audio/speech' });
    const first = await ask();
    const id = jobIdOf(first);
    const audio = Buffer.from(await first.arrayBuffer());
    await records.forget(id);
    const kept = records.db.selectFrom('job_bodies').select('answer').where('job_id', '=', id);
    const { answer } = await kept.executeTakeFirstOrThrow();
    assert.ok(answer !== null && answer.length < 500, `it is stored in ${answer?.length} characters`);
    assert.ok(Buffer.from(await (await ask()).arrayBuffer()).equals(audio), 'the bytes are not the same');
    const events = sseEvents(await (await records.gateway.fetch(`/v1/jobs/${id}/events`)).text());
    const done = events.map(({ data }) => JSON.parse(data) as { type: string; url: string });
    assert.deepEqual(
      done.map(({ type }) => type),
      ['speech.audio.done'],
    );
    const file = await fetch(done[0]?.url as string);
    assert.ok(Buffer.from(await file.arrayBuffer()).equals(audio), 'its link leads elsewhere');
    assert.equal((await vendorCalls(records.gateway, 'kept-speech')).length, 1);
  });

  it('a large answer is stored as a blob, and an unreadable blob returns 503 without a failure of its job', async () => {
    const text = 'x'.repeat(1_100_000);
    const id = await records.postLater(held(`Reply with exactly: ${text}`));
    await records.forget(id);
    const job = await records.read(id);
    assert.equal(job.result?.choices[0]?.message.content, text);
    const kept = records.db.selectFrom('job_bodies').select('answer_blob').where('job_id', '=', id);
    const { answer_blob: blob } = await kept.executeTakeFirstOrThrow();
    const file = join(records.gateway.dataDir, 'blobs', blob as string);
    await rename(file, `${file}.away`);
    await mkdir(file);
    await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}`), 503, 'service_unavailable');
    await assertErrorAnswer(await records.gateway.fetch(`/v1/jobs/${id}/events`), 503, 'service_unavailable');
    await rmdir(file);
    await rename(`${file}.away`, file);
    assert.deepEqual(await records.read(id), job);
  });

  it('an expired or unstored answer returns 410, while its job can be read', async () => {
    const kept = await records.postLater(held('Hi'));
    const plain = jobIdOf(await records.post(held('Hi')));
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

  it('a refused or replayed request leaves no row', async () => {
    const count = async (): Promise<number> =>
      (await records.db.selectFrom('jobs').select('id').where('model', '=', 'sandbox-embedding').execute()).length;
    const authorization = `Bearer ${await makeApiKey(records.gateway, { concurrency: 1 })}`;
    const first = await records.post(held('WORDS:20@20', { user: 'first' }), { authorization, ...later });
    assert.equal(first.status, 202);
    const refused = await records.post(held('Hi'), { authorization, ...later });
    await assertErrorAnswer(refused, 429, 'rate_limit_exceeded');
    assert.equal(await records.row(jobIdOf(refused)), undefined);
    const body = held('Hi', { user: 'replayed' });
    const original = jobIdOf(await records.post(body, { 'idempotency-key': 'rows' }));
    const before = await records.db.selectFrom('jobs').select('id').execute();
    await records.post(body, { 'idempotency-key': 'rows' });
    const rows = await records.db.selectFrom('jobs').select('id').execute();
    assert.equal(rows.length, before.length);
    assert.ok(await records.row(original), 'the original has its row');
    assert.equal(await count(), 0);
  });
});

describe('jobs recorded before they are accepted', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start({ workers: 0, settings: { SLUICE_RETENTION_DAYS: '2' } });
  });
  after(() => records.stop());

  const unfinished = () =>
    records.db.selectFrom('jobs').select(['id', 'endpoint']).where('outcome', 'is', null).orderBy('id').execute();

  it('asynchronous, keyed and media jobs are recorded before they are queued, and plain chats are not', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const send = async (to: string, body: object, headers: Record<string, string> = {}): Promise<unknown> => {
      const fetching = records.gateway.fetch(to, { method: 'POST', body: JSON.stringify(body), headers, signal });
      const answer = fetching.then(async (response) => assert.fail(`${response.status} ${await response.text()}`));
      return assert.rejects(answer, { name: 'AbortError' });
    };
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
    const bodies = await records.db
      .selectFrom('job_bodies')
      .innerJoin('jobs', 'jobs.id', 'job_bodies.job_id')
      .select(({ ref }) => sql<number>`${ref('expires_at')} - ${ref('created_at')}`.as('kept'))
      .execute();
    const days = 86_400_000;
    assert.deepEqual(
      bodies.map(({ kept }) => kept),
      [2 * days, 2 * days],
      'a media job whose caller waits keeps no bodies, the others theirs for the retention time',
    );
    controller.abort();
    await Promise.all(sent);
    // Leaving cancels the image, and the plain chat; keyed and asynchronous jobs go on.
    await eventually(async () => assert.equal((await unfinished()).length, 2));
  });
});

describe('job records when an api process is killed', () => {
  it('an api process takes over the outbox entries of a killed one and writes each of them once', async () => {
    const records = await JobRecords.start({ apis: 1 });
    const proxy = await startTcpProxy(records.gateway.redis?.port as number);
    try {
      const doomed = await records.gateway.startApi({ REDIS_URL: proxy.url });
      const stopped = proxy.stopAt({ matches: ([name]) => name?.toLowerCase() === 'xdel', stop: 'before' });
      const ids = new Set<string>();
      let isStopped = false;
      void stopped.then(() => {
        isStopped = true;
      });
      while (!isStopped) ids.add(jobIdOf(await records.post(held('Hi'))));
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

describe('jobs that cannot be queued', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records.stop());

  for (const kind of ['asynchronous', 'keyed'] as const) {
    it(`a ${kind} job that cannot be queued returns 503 and reads as failed, without its prompt in the api log`, async () => {
      const headers: Record<string, string> = kind === 'keyed' ? { 'idempotency-key': 'unqueued' } : later;
      // A Redis that takes admissions, and refuses what belongs to a queue.
      await records.redis.acl('SETUSER', 'default', 'resetkeys', '~sluice:{[am]*', '~sluice:blob-storage');
      const refused = await records.post(held('A secret', { user: kind }), headers);
      await records.redis.acl('SETUSER', 'default', 'allkeys');
      const id = jobIdOf(refused);
      assert.ok(Number(refused.headers.get('retry-after')) >= 1, 'it says when to come back');
      const { message } = await assertErrorAnswer(refused, 503, 'service_unavailable');
      const row = await records.ended(id);
      assert.deepEqual([row.outcome, row.error_code, row.attempts], ['failed', 'service_unavailable', 0]);
      const job = await records.read(id);
      assert.deepEqual([job.status, job.error?.code, job.error?.message], ['failed', 'service_unavailable', message]);
      await records.forget(id);
      assert.deepEqual(await records.read(id), job);
      assert.deepEqual(await vendorCalls(records.gateway, kind), []);
      const again = await records.post(held('A secret', { user: kind }), headers);
      assert.ok(again.ok, await again.text());
      assert.notEqual(jobIdOf(again), id, 'sent again it is a new job');
      const logged = () => records.gateway.apis[0]?.output() ?? '';
      await eventually(() => assert.match(logged(), new RegExp(`NOPERM[^\\n]*${id}`)));
      assert.doesNotMatch(logged(), /A secret/);
    });
  }
});
