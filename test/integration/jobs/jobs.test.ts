import assert from 'node:assert/strict';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type OpenAI from 'openai';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { saidWhole } from '../../support/fold-chunks.ts';
import { TestGateway } from '../../support/gateway.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { readSse, sseEvents, textOf, type WireEvent } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

interface JobObject {
  id: string;
  object: string;
  status: string;
  model: string;
  created_at: number;
  started_at: number | null;
  finished_at: number | null;
  queue_position: number | null;
  urls: { self: string; events: string; cancel: string };
  usage: OpenAI.CompletionUsage | null;
  error: { code: string; message: string; type: string } | null;
  result: OpenAI.Chat.ChatCompletion | null;
}

/** `<hour>/<name>`. */
const isBlobName = (path: string): boolean => /^\d{10}\/./.test(path);

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

describe('jobs', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  function post(body: object, headers: Record<string, string> = {}): Promise<Response> {
    return gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(body), headers });
  }

  async function postLater(body: object): Promise<JobObject> {
    const response = await post(body, { prefer: 'respond-async' });
    assert.equal(response.status, 202);
    const job = (await response.json()) as JobObject;
    assert.equal(response.headers.get('x-request-id'), job.id);
    assert.equal(response.headers.get('preference-applied'), 'respond-async');
    assert.equal(response.headers.get('location'), `/v1/jobs/${job.id}`);
    return job;
  }

  async function read(id: string): Promise<JobObject> {
    const response = await gateway.fetch(`/v1/jobs/${id}`);
    assert.equal(response.status, 200);
    return (await response.json()) as JobObject;
  }

  async function ended(id: string): Promise<JobObject> {
    return await eventually(async () => {
      const job = await read(id);
      assert.ok(!['queued', 'in_progress'].includes(job.status), 'it has not ended');
      return job;
    });
  }

  async function events(id: string, more = '', headers: Record<string, string> = {}): Promise<WireEvent[]> {
    const response = await gateway.fetch(`/v1/jobs/${id}/events${more}`, { headers });
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
    return sseEvents(await response.text());
  }

  it('HEAD of the events of a job has their head, and is no failure', async () => {
    const { id } = await postLater(streamed('WORDS:3@200'));
    await ended(id);
    const head = await gateway.fetch(`/v1/jobs/${id}/events`, { method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.match(head.headers.get('content-type') ?? '', /^text\/event-stream/);
    const lines = () => (gateway.apis[0]?.output() ?? '').split('\n');
    const line = await eventually(() => {
      const found = lines().find((each) => each.includes('"method":"HEAD"') && each.includes('"job.events"'));
      assert.ok(found, 'it has no line yet');
      return found;
    });
    assert.equal((JSON.parse(line) as { error?: string }).error, undefined);
  });

  it('HEAD of the events of a running job is answered at once, and holds up nothing on its connection', async () => {
    const { id } = await postLater(streamed('WORDS:400@4'));
    await eventually(async () => assert.equal((await read(id)).status, 'in_progress'));
    const path = `/v1/jobs/${id}`;
    const connection = await RawRequest.open(gateway.url, {
      method: 'HEAD',
      path: `${path}/events`,
      key: gateway.apiKey,
    });
    assert.match((await connection.answer()).head, /^HTTP\/1.1 200 [\s\S]*content-type: text\/event-stream/i);
    connection.text = '';
    await connection.send(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${gateway.apiKey}\r\n\r\n`);
    const { body } = await connection.answer(4000);
    assert.equal((JSON.parse(body) as JobObject).status, 'in_progress');
    connection.socket.destroy();
    await gateway.fetch(path, { method: 'DELETE' });
  });

  it('a refused request has an id with its own prefix, and GET /v1/jobs/{id} returns 404 for it', async () => {
    const refused = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: '{"model":"none"}' });
    const id = refused.headers.get('x-request-id') ?? '';
    assert.match(id, /^req_[0-9a-f]{32}$/);
    assert.ok(refused.status >= 400 && refused.status < 500, await refused.text());
    for (const path of [`/v1/jobs/${id}`, `/v1/jobs/${id}/events`]) {
      const { message } = await assertErrorAnswer(await gateway.fetch(path), 404, 'not_found');
      assert.match(message, /a request that has no job/);
    }
    const anthropic = await gateway.fetch('/v1/messages', { method: 'POST', body: '{"model":"none"}' });
    assert.match(anthropic.headers.get('request-id') ?? '', /^req_/);
    assert.equal(anthropic.headers.get('request-id'), anthropic.headers.get('x-request-id'));
    assert.equal(((await anthropic.json()) as { request_id: string }).request_id, anthropic.headers.get('request-id'));
    const failed = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(held('Hi', { sandbox: { fault: { kind: 'error', status: 400 } } })),
    });
    assert.equal(failed.status, 400);
    const job = failed.headers.get('x-request-id') ?? '';
    assert.match(job, /^job_/);
    assert.equal((await gateway.fetch(`/v1/jobs/${job}`)).status, 200);
  });

  it('POST /v1/chat/completions with Prefer: respond-async returns 202 with a job that gets the result', async () => {
    const job = await postLater(held('Reply with exactly: later', { sandbox: { first_token_ms: 200 } }));
    assert.match(job.id, /^job_[0-9a-f]{32}$/);
    assert.equal(job.object, 'job');
    assert.ok(['queued', 'in_progress'].includes(job.status), job.status);
    assert.equal(job.model, 'sandbox-chat');
    assert.equal(job.result, null);
    assert.ok(job.urls.self.endsWith(`/v1/jobs/${job.id}`) && job.urls.events.endsWith(`/v1/jobs/${job.id}/events`));
    const whole = await ended(job.id);
    assert.equal(whole.status, 'completed');
    assert.equal(whole.result?.object, 'chat.completion');
    assert.equal(whole.result?.id, job.id.replace('job_', 'chatcmpl-'));
    assert.equal(whole.result?.choices[0]?.message.content, 'later');
    assert.equal(whole.usage?.completion_tokens, 1);
    assert.equal(whole.error, null);
    assert.ok((whole.started_at ?? 0) >= job.created_at && (whole.finished_at ?? 0) >= (whole.started_at ?? 0));
  });

  it('POST /v1/chat/completions with Prefer: wait=N returns 200 within N seconds, and 202 afterwards', async () => {
    const soon = await post(held('Reply with exactly: soon'), { prefer: 'respond-async, wait=5' });
    assert.equal(soon.status, 200);
    assert.equal(((await soon.json()) as OpenAI.Chat.ChatCompletion).choices[0]?.message.content, 'soon');
    const body = held('Reply with exactly: late', { sandbox: { first_token_ms: 1500 } });
    const late = await post(body, { prefer: 'wait=1, respond-async' });
    assert.equal(late.status, 202);
    const { id } = (await late.json()) as JobObject;
    assert.equal((await ended(id)).result?.choices[0]?.message.content, 'late');
  });

  it('POST /v1/chat/completions with stream and Prefer: wait=N streams what begins within N seconds, and returns 202 afterwards', async () => {
    for (const prefer of ['wait=20', 'respond-async, wait=20', 'wait=20; strict, respond-async; a=b']) {
      const soon = await post(streamed('Reply with exactly: soon'), { prefer });
      assert.equal(soon.status, 200, prefer);
      assert.equal(textOf(sseEvents(await soon.text())), 'soon');
    }
    const body = streamed('Reply with exactly: late', { sandbox: { first_token_ms: 1500 } });
    const late = await post(body, { prefer: 'wait=1' });
    assert.equal(late.status, 202);
    const { id } = (await late.json()) as JobObject;
    assert.equal((await ended(id)).result?.choices[0]?.message.content, 'late');
    assert.equal((await post(streamed('Hi'), { prefer: 'respond-async; a=b' })).status, 202);
  });

  it('GET /v1/jobs/{id} shows the error of a failed job, also by the ids of other prefixes', async () => {
    const fault = { kind: 'error', status: 400, code: 'context_length_exceeded', message: 'Too long.' };
    const job = await postLater(held('Hi', { sandbox: { fault } }));
    const failed = await ended(job.id);
    assert.equal(failed.status, 'failed');
    assert.deepEqual(failed.error, {
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      message: 'Too long.',
    });
    const suffix = job.id.slice('job_'.length);
    for (const id of [suffix, `chatcmpl-${suffix}`, `resp_${suffix}`, `video_${suffix}`]) {
      assert.deepEqual(await read(id), failed);
    }
  });

  it('GET /v1/jobs/{id} shows the same result for a streamed job as for a held request', async () => {
    const tools = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }];
    const texts: [string, object][] = [
      ['WORDS:30', { logprobs: true }],
      ['Hello', { n: 2, model: 'sandbox-reasoning' }],
      ['TOOL:look_up {"a":[1,2,{"b":"c"}]}', { tools }],
    ];
    for (const [text, more] of texts) {
      const { result } = await ended((await postLater(streamed(text, more))).id);
      const whole = await gateway.client().chat.completions.create(held(text, more));
      assert.ok(result, 'there is a result');
      const ids = (said: ReturnType<typeof saidWhole>) =>
        said.map((one) => ({ ...one, tools: one.tools.map((tool) => ({ ...tool, id: '' })) }));
      assert.deepEqual(ids(saidWhole(result)), ids(saidWhole(whole)));
      assert.deepEqual(
        Object.keys(result).sort(),
        Object.keys(whole)
          .filter((key) => !key.startsWith('_'))
          .sort(),
      );
    }
  });

  it('GET /v1/jobs/{id}/events sends exactly the rest after any cursor', async () => {
    const job = await postLater(streamed('WORDS:12@100', { stream_options: { include_usage: true } }));
    // Followed live from the start.
    const all = await events(job.id);
    assert.equal(textOf(all), words(12));
    assert.equal(all.at(-1)?.data, '[DONE]');
    // Nothing comes after the mark of the end, which has no id therefore.
    for (let index = 0; index < all.length - 1; index++) {
      const id = all[index]?.id as string;
      assert.deepEqual(await events(job.id, '', { 'last-event-id': id }), all.slice(index + 1), id);
      assert.deepEqual(await events(job.id, `?starting_after=${id}`), all.slice(index + 1), id);
    }
    assert.deepEqual(await events(job.id), all);
    // A frame's number alone means all events of that frame.
    const [seq] = (all[3] as { id: string }).id.split('.');
    assert.deepEqual(
      await events(job.id, `?starting_after=${seq}`),
      all.filter(({ id }) => id === undefined || Number(id.split('.')[0]) > Number(seq)),
    );
  });

  it('GET /v1/jobs/{id}/events resumes in the middle of a running stream', async () => {
    const response = await post(streamed('WORDS:40@60'), { 'x-sluice-on-disconnect': 'continue' });
    const jobId = response.headers.get('x-request-id') as string;
    const first: WireEvent[] = [];
    for await (const event of readSse(response)) if (first.push(event) === 8) break;
    const rest = await events(jobId, '', { 'last-event-id': first.at(-1)?.id as string });
    assert.equal(textOf([...first, ...rest]), words(40));
    assert.equal(rest.at(-1)?.data, '[DONE]');
  });

  it('GET /v1/jobs/{id}/events returns 400 naming the source of a malformed cursor', async () => {
    const { id } = await postLater(held('Hi'));
    const wrong = await gateway.fetch(`/v1/jobs/${id}/events`, { headers: { 'last-event-id': 'x' } });
    assert.equal((await assertErrorAnswer(wrong, 400, 'invalid_request_error')).param, 'Last-Event-ID');
    const query = await gateway.fetch(`/v1/jobs/${id}/events?starting_after=-1`);
    assert.equal((await assertErrorAnswer(query, 400, 'invalid_request_error')).param, 'starting_after');
  });

  it('GET /v1/jobs/{id}/events returns 400 for a cursor beyond the last frame, during and after the job', async () => {
    const ended = await postLater(streamed('Hi'));
    const [last, mark] = (await events(ended.id)).slice(-2);
    // The last frame is the one that became the mark of the end.
    const seq = Number(last?.id?.split('.')[0]) + 1;
    const running = await post(streamed('WORDS:1000@20', { user: 'beyond' }));
    const reading = readSse(running);
    await reading.next();
    const jobs = [ended.id, running.headers.get('x-request-id')];
    for (const id of jobs) {
      const header = await gateway.fetch(`/v1/jobs/${id}/events`, { headers: { 'last-event-id': '999999.0' } });
      assert.equal((await assertErrorAnswer(header, 400, 'invalid_request_error')).param, 'Last-Event-ID');
      const query = await gateway.fetch(`/v1/jobs/${id}/events?starting_after=999999`);
      assert.equal((await assertErrorAnswer(query, 400, 'invalid_request_error')).param, 'starting_after');
    }
    await reading.return(undefined);
    // The last frame is there, but not so many events of it.
    const beyond = await events(ended.id, `?starting_after=${seq}.99`);
    const [error] = beyond.map(({ data }) => JSON.parse(data).error);
    assert.deepEqual([beyond.length, error?.code], [1, 'invalid_request_error']);
    assert.deepEqual(await events(ended.id, `?starting_after=${last?.id}`), [mark]);
  });

  it('DELETE /v1/jobs/{id} closes the connection to the vendor of a running job, and leaves an ended one unchanged', async () => {
    const job = await postLater(streamed('WORDS:1000@20', { user: 'deleted' }));
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'deleted')).length, 1));
    // Its status is out once it follows.
    const follower = await gateway.fetch(`/v1/jobs/${job.id}/events`);
    const cancelled = (await (await gateway.fetch(`/v1/jobs/${job.id}`, { method: 'DELETE' })).json()) as JobObject;
    assert.equal(cancelled.status, 'cancelled');
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'deleted'))[0]?.ended, 'client_closed'));
    assert.equal(JSON.parse(sseEvents(await follower.text()).at(-1)?.data ?? '').error.code, 'cancelled');
    const { id } = await postLater(held('Hi'));
    const done = await ended(id);
    const unchanged = (await (await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' })).json()) as JobObject;
    assert.equal(unchanged.status, 'completed');
    assert.deepEqual(await read(id), done);
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('every job route returns the same 404 for a job of another account as for an unknown one', async () => {
    const job = await postLater(held('Hi'));
    const authorization = `Bearer ${await makeApiKey(gateway, { accountId: 'another' })}`;
    const unknown = `job_${'0'.repeat(32)}`;
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/events'],
      ['DELETE', ''],
    ] as const) {
      const [foreign, none] = await Promise.all(
        [job.id, unknown].map(async (id) =>
          assertErrorAnswer(
            await gateway.fetch(`/v1/jobs/${id}${path}`, { method, headers: { authorization } }),
            404,
            'not_found',
          ),
        ),
      );
      assert.deepEqual(foreign, none);
    }
    for (const id of ['x', 'job_', `job_${'g'.repeat(32)}`, '..%2f..']) {
      await assertErrorAnswer(await gateway.fetch(`/v1/jobs/${id}`), 404, 'not_found');
    }
    assert.equal((await ended(job.id)).status, 'completed');
  });

  it('GET /v1/jobs/{id}/events returns 410 when the log of a delivered job is gone, while the job can be read', async () => {
    const response = await post(streamed('WORDS:5'));
    const jobId = response.headers.get('x-request-id') as string;
    const all = sseEvents(await response.text());
    // Just delivered, it can still be resumed: its client may not have got the last bytes.
    assert.deepEqual(await events(jobId, '', { 'last-event-id': all[1]?.id as string }), all.slice(2));
    await eventually(async () => {
      const again = await gateway.fetch(`/v1/jobs/${jobId}/events`);
      await assertErrorAnswer(again, 410, 'resume_expired');
    }, 15_000);
    const job = await read(jobId);
    assert.equal(job.status, 'completed');
    assert.equal(job.result, null);
    const redis = new Redis(gateway.redisUrl);
    const state = jobKeys.state(jobId.slice('job_'.length));
    const expiresIn = await redis.pttl(state);
    assert.ok(expiresIn > 0 && expiresIn <= 120_000, `the state stays ${expiresIn} ms`);
    await redis.del(state);
    redis.disconnect();
    // From here on the database alone knows it.
    await assertErrorAnswer(await gateway.fetch(`/v1/jobs/${jobId}/events`), 410, 'resume_expired');
    assert.equal((await read(jobId)).status, 'completed');
  });

  it('the files of a large answer, and of its tools, are deleted with the log of a delivered job, and those of a kept one stay', async () => {
    const files = async () => (await readdir(join(gateway.dataDir, 'blobs'), { recursive: true })).filter(isBlobName);
    const before = new Set(await files());
    const added = async () => (await files()).filter((name) => !before.has(name));
    const long = held('WORDS:20000');
    const kept = await post(long, { 'idempotency-key': 'kept' });
    assert.equal(kept.status, 200);
    await kept.text();
    const ofKept = await added();
    assert.ok(ofKept.length > 0);
    const plain = await post(long);
    assert.ok((await plain.text()).length > 64 * 1024);
    const ofBoth = await added();
    assert.equal(ofBoth.length, ofKept.length + 1, 'it can still be resumed');
    const description = 'x'.repeat(70_000);
    const tool = { type: 'function', name: 'tool', description, parameters: { type: 'object', properties: {} } };
    const withTools = { model: 'sandbox-chat', input: 'WORDS:5', store: false, tools: [tool] };
    const response = await gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(withTools) });
    assert.equal(response.status, 200);
    await response.text();
    assert.ok((await added()).some((name) => !ofBoth.includes(name)));
    await eventually(async () => assert.deepEqual((await added()).sort(), ofKept.sort()), 15_000);
    const job = await read(response.headers.get('x-request-id') as string);
    assert.deepEqual([job.status, job.result], ['completed', null]);
    await assertErrorAnswer(await gateway.fetch(`/v1/jobs/${job.id}/events`), 410, 'resume_expired');
    const again = await post(long, { 'idempotency-key': 'kept' });
    assert.ok((await again.text()).length > 64 * 1024);
  });
});

describe('a queued job, without a worker', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  it('DELETE /v1/jobs/{id} of a queued job returns the job while the storage of files cannot delete its request', async () => {
    const body = JSON.stringify(held('x'.repeat(100_000)));
    const headers = { prefer: 'respond-async' };
    const made = await gateway.fetch('/v1/chat/completions', { method: 'POST', body, headers });
    assert.equal(made.status, 202, await made.clone().text());
    const { id } = (await made.json()) as JobObject;
    const folder = join(gateway.dataDir, 'blobs');
    const hours = (await readdir(folder)).filter((name) => /^\d{10}$/.test(name));
    assert.ok(hours.length > 0, 'the request is not in a file');
    for (const hour of hours) {
      await rename(join(folder, hour), join(folder, `${hour}-away`));
      await writeFile(join(folder, hour), '');
    }
    const cancelled = await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    for (const hour of hours) {
      await rm(join(folder, hour));
      await rename(join(folder, `${hour}-away`), join(folder, hour));
    }
    assert.equal(cancelled.status, 200);
    assert.equal(((await cancelled.json()) as JobObject).status, 'cancelled');
  });
});

describe('jobs across processes', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ apis: 2, workers: 0 });
  });
  after(() => gateway.stop());

  it('a queued job shows its position in the queue, and once cancelled never reaches the vendor', async () => {
    const jobs: JobObject[] = [];
    for (let index = 0; index < 3; index++) {
      const body = JSON.stringify(held('Hi', { user: `queued-${index}` }));
      const response = await gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        body,
        headers: { prefer: 'respond-async' },
      });
      jobs.push((await response.json()) as JobObject);
    }
    assert.deepEqual(
      jobs.map(({ status, queue_position: position }) => [status, position]),
      [0, 1, 2].map((position) => ['queued', position]),
    );
    const second = jobs[1] as JobObject;
    const cancelled = (await (await gateway.fetch(`/v1/jobs/${second.id}`, { method: 'DELETE' })).json()) as JobObject;
    assert.equal(cancelled.status, 'cancelled');
    const third = (await (await gateway.fetch(`/v1/jobs/${jobs[2]?.id}`)).json()) as JobObject;
    assert.equal(third.queue_position, 1);
    await gateway.startWorker();
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'queued-2')).length, 1));
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
    assert.deepEqual(await vendorCalls(gateway, 'queued-1'), []);
  });

  it('a stream resumes on another api process after the first one was killed', async () => {
    const [first, second] = gateway.apis;
    const response = await gateway.fetch('/v1/chat/completions', {
      url: first?.url as string,
      method: 'POST',
      body: JSON.stringify(streamed('WORDS:60@60', { user: 'moved' })),
    });
    const jobId = response.headers.get('x-request-id') as string;
    const before: WireEvent[] = [];
    await assert.rejects(async () => {
      for await (const event of readSse(response)) if (before.push(event) === 10) await first?.kill();
    });
    const resumed = await gateway.fetch(`/v1/jobs/${jobId}/events`, {
      url: second?.url as string,
      headers: { 'last-event-id': before.at(-1)?.id as string },
    });
    const rest = sseEvents(await resumed.text());
    assert.equal(textOf([...before, ...rest]), words(60));
    assert.equal(rest.at(-1)?.data, '[DONE]');
    assert.equal((await vendorCalls(gateway, 'moved')).length, 1);
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });
});
