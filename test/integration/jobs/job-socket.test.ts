import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { openDatabase } from '../../../shared/database/database.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { held, streamed } from '../../support/chat-requests.ts';
import { completionErrorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import {
  asEvent,
  type JobSocketClient,
  messagesOfSse,
  openJobSocket,
  type SocketMessage,
} from '../../support/job-socket-client.ts';
import { leftovers } from '../../support/leftovers.ts';
import { textOf } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

const said = (messages: readonly SocketMessage[]): string => textOf(messages.map(asEvent));

describe('GET /v1/jobs/{id}/ws', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  async function postLater(body: object, path = '/v1/chat/completions'): Promise<{ id: string }> {
    const response = await gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { prefer: 'respond-async' },
    });
    assert.equal(response.status, 202);
    return (await response.json()) as { id: string };
  }

  function open(id: string, query = ''): Promise<JobSocketClient> {
    return openJobSocket(gateway.url, `/v1/jobs/${id}/ws${query}`, { key: gateway.apiKey });
  }

  async function sse(id: string): Promise<SocketMessage[]> {
    return messagesOfSse(await (await gateway.fetch(`/v1/jobs/${id}/events`)).text());
  }

  async function finished(id: string, query = ''): Promise<SocketMessage[]> {
    const client = await open(id, query);
    assert.equal(await client.closed, 1000);
    return client.messages;
  }

  it('GET /v1/jobs/{id}/ws sends the events of a running stream live from the start, and closes with 1000', async () => {
    const { id } = await postLater(streamed('WORDS:100@25', { user: 'live' }));
    const client = await open(id);
    await once(client.webSocket, 'message');
    assert.equal((await vendorCalls(gateway, 'live'))[0]?.ended ?? null, null, 'it came while the vendor went on');
    assert.equal(await client.closed, 1000);
    assert.equal(said(client.messages), words(100));
    assert.equal(client.messages.at(-1)?.data, '[DONE]');
  });

  it('GET /v1/jobs/{id}/ws sends the same events as SSE, during and after the job', async () => {
    const tools = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object' } } }];
    const requests = [
      streamed('WORDS:12@100', { stream_options: { include_usage: true } }),
      streamed('TOOL:look_up {"a":[1,2,{"b":"c"}]}', { tools }),
      streamed('Hello "äöü" \u2028', { n: 2, model: 'sandbox-reasoning' }),
      held('Reply with exactly: held'),
    ];
    for (const request of requests) {
      const { id } = await postLater(request);
      const [live, events] = await Promise.all([finished(id), sse(id)]);
      assert.deepEqual(live, events);
      assert.ok(events.length > 1);
      assert.deepEqual(await finished(id), events);
    }
  });

  it('GET /v1/jobs/{id}/ws sends the events of image and speech jobs as SSE does, with their names', async () => {
    const image = { model: 'sandbox-image', prompt: 'An otter', size: '1024x1024' };
    const speech = { model: 'sandbox-speech', input: 'Hello there, otter.', voice: 'alloy' };
    const jobs: [path: string, body: object, names: (string | null)[]][] = [
      [
        '/v1/images/generations',
        { ...image, stream: true, partial_images: 2 },
        ['image_generation.partial_image', 'image_generation.completed'],
      ],
      ['/v1/images/generations', image, ['image_generation.completed']],
      ['/v1/audio/speech', { ...speech, stream_format: 'sse' }, [null]],
      ['/v1/audio/speech', speech, [null]],
    ];
    for (const [path, body, names] of jobs) {
      const { id } = await postLater(body, path);
      const messages = await finished(id);
      assert.deepEqual([...new Set(messages.map(({ event }) => event))], names);
      assert.deepEqual(messages, await sse(id));
    }
  });

  it('GET /v1/jobs/{id}/ws sends the events of a job from the database, as SSE does', async () => {
    const { id } = await postLater(streamed('WORDS:8', { stream_options: { include_usage: true } }));
    assert.equal(said(await finished(id)), words(8));
    const jobId = id.slice('job_'.length);
    const [redis, db] = [new Redis(gateway.redisUrl), await openDatabase(gateway)];
    try {
      await eventually(async () => {
        const row = await db.selectFrom('jobs').select('outcome').where('id', '=', jobId).executeTakeFirst();
        assert.equal(row?.outcome, 'completed');
      });
      assert.equal(await redis.del(jobKeys.state(jobId), jobKeys.log(jobId)), 2);
    } finally {
      redis.disconnect();
      await db.destroy();
    }
    const messages = await finished(id);
    assert.equal(said(messages), words(8));
    assert.equal(messages.at(-1)?.data, '[DONE]');
    assert.deepEqual(messages, await sse(id));
  });

  it('GET /v1/jobs/{id}/ws sends exactly the rest after any cursor', async () => {
    const { id } = await postLater(streamed('WORDS:12@100', { stream_options: { include_usage: true } }));
    const all = await finished(id);
    assert.equal(all.at(-1)?.id, null, 'nothing comes after [DONE]');
    for (const [index, message] of all.slice(0, -1).entries()) {
      assert.deepEqual(await finished(id, `?starting_after=${message.id}`), all.slice(index + 1), String(message.id));
    }
    const headers = { 'last-event-id': String(all[3]?.id) };
    const client = await openJobSocket(gateway.url, `/v1/jobs/${id}/ws`, { key: gateway.apiKey, headers });
    assert.equal(await client.closed, 1000);
    assert.deepEqual(client.messages, all.slice(4));
  });

  it('GET /v1/jobs/{id}/ws leaves the job running when its client disconnects, and resumes', async () => {
    const { id } = await postLater(streamed('WORDS:60@60', { user: 'cut' }));
    const first = await open(id);
    while (first.messages.length < 10) await once(first.webSocket, 'message');
    first.webSocket.terminate();
    const rest = await finished(id, `?starting_after=${first.messages.at(-1)?.id}`);
    assert.equal(said([...first.messages, ...rest]), words(60));
    const calls = await vendorCalls(gateway, 'cut');
    assert.deepEqual(
      calls.map(({ ended }) => ended),
      ['completed'],
    );
  });

  it('GET /v1/jobs/{id}/ws ends a failed job with its error, and closes with 1000', async () => {
    const fault = { kind: 'error', status: 400, code: 'context_length_exceeded', message: 'Too long.' };
    const { id } = await postLater(held('Hi', { sandbox: { fault } }));
    const [message, ...more] = await finished(id);
    assert.deepEqual(more, []);
    const { code, message: text } = completionErrorDetails(message?.data);
    assert.deepEqual([code, text], ['context_length_exceeded', 'Too long.']);
    const cut = await postLater(streamed('WORDS:20@100', { sandbox: { fault: { kind: 'reset', after_tokens: 5 } } }));
    const messages = await finished(cut.id);
    assert.deepEqual(messages, await sse(cut.id));
    const last = messages.at(-1);
    assert.equal(completionErrorDetails(last?.data).code, 'stream_interrupted');
    assert.deepEqual(await finished(cut.id, `?starting_after=${last?.id}`), [last], 'nobody is left without the error');
  });

  it('GET /v1/jobs/{id}/ws ends with the error cancelled when its job is deleted', async () => {
    const { id } = await postLater(streamed('WORDS:1000@20', { user: 'cancelled' }));
    const client = await open(id);
    await once(client.webSocket, 'message');
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    assert.equal(await client.closed, 1000);
    assert.equal(completionErrorDetails(client.messages.at(-1)?.data).code, 'cancelled');
  });

  it('GET /v1/jobs/{id}/ws sends every event to each of twenty sockets on one job', async () => {
    const { id } = await postLater(streamed('WORDS:40@100'));
    const clients = await Promise.all(Array.from({ length: 20 }, () => open(id)));
    assert.deepEqual(new Set(await Promise.all(clients.map(({ closed }) => closed))), new Set([1000]));
    for (const { messages } of clients) assert.equal(said(messages), words(40));
  });

  it('GET /v1/jobs/{id}/ws closes with 1008 for a client message and 1009 for a large one, and the job continues', async () => {
    const { id } = await postLater(streamed('WORDS:40@40', { user: 'talked-to' }));
    const client = await open(id);
    client.webSocket.send('{"type":"cancel"}');
    assert.equal(await client.closed, 1008);
    const { code, message } = completionErrorDetails(client.messages.at(-1)?.data);
    assert.equal(code, 'invalid_request_error');
    assert.match(message, /DELETE/);
    const large = await open(id);
    large.webSocket.send('x'.repeat(100_000));
    assert.equal(await large.closed, 1009);
    assert.equal(said(await finished(id)), words(40));
    assert.equal((await vendorCalls(gateway, 'talked-to'))[0]?.ended, 'completed');
  });

  it('GET /v1/jobs/{id}/ws disconnects a client that floods it with pings and reads nothing', async () => {
    const { id } = await postLater(held('Hi', { sandbox: { first_token_ms: 20_000 } }));
    const client = await open(id);
    client.webSocket.pause();
    const timer = setInterval(() => {
      for (let count = 0; count < 5000; count++) client.webSocket.ping('x'.repeat(125));
    }, 5);
    try {
      assert.equal(await client.closed, 1006);
    } finally {
      clearInterval(timer);
    }
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
  });

  it('GET /v1/jobs/{id}/ws is one line in the access log, a running request and a count in the metrics', async () => {
    const { id } = await postLater(streamed('WORDS:1000@20'));
    const client = await open(id);
    await once(client.webSocket, 'message');
    const figure = async (name: string): Promise<number> => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(name))
          ?.split(' ')
          .at(-1) ?? 0,
      );
    };
    const counted = 'sluice_requests_total{endpoint="job.ws",status="101"';
    const sockets = await figure(counted);
    assert.equal(await figure('sluice_requests_running'), 1);
    client.webSocket.close();
    await client.closed;
    await eventually(async () => assert.equal(await figure('sluice_requests_running'), 0));
    assert.equal(await figure(counted), sockets + 1);
    await gateway.fetch(`/v1/jobs/${id}`, { method: 'DELETE' });
    await eventually(() => {
      const lines = gateway.apis[0]?.output().split('\n') ?? [];
      const line = lines.filter((text) => text.includes(`"path":"/v1/jobs/${id}/ws"`)).map((text) => JSON.parse(text));
      assert.deepEqual(
        line.map(({ endpoint, status, method }) => [endpoint, status, method]),
        [['job.ws', 101, 'GET']],
      );
    });
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('GET /v1/jobs/{id}/ws returns 410 before the upgrade when the answer log is gone', async () => {
    const response = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(streamed('WORDS:5')),
    });
    await response.text();
    const id = response.headers.get('x-request-id') as string;
    assert.equal(said(await finished(id)), words(5));
    await eventually(async () => {
      await assert.rejects(open(id), /Unexpected server response: 410/);
    }, 15_000);
  });
});
