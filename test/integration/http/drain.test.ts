import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { held, streamed } from '../../support/chat-requests.ts';
import { completionErrorDetails } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { type ApiProcess, type GatewayProcess, linesOf, TestGateway } from '../../support/gateway.ts';
import { leftovers } from '../../support/leftovers.ts';
import { readSse, sseEvents, textOf, type WireEvent } from '../../support/sse-events.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/chat/completions';
const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

async function called(gateway: TestGateway, testId: string, times = 1): Promise<void> {
  await eventually(async () => assert.equal((await vendorCalls(gateway, testId)).length, times), 20_000);
}

async function collect(response: Response): Promise<WireEvent[]> {
  const events: WireEvent[] = [];
  for await (const event of readSse(response)) events.push(event);
  return events;
}

describe('SIGTERM to an api process', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  function post(api: ApiProcess, body: object): Promise<Response> {
    return gateway.fetch(path, { url: api.url, method: 'POST', body: JSON.stringify(body) });
  }

  /** One request by an agent that keeps its connections: the answer's head, and the connection it came on. */
  async function ask(
    api: ApiProcess,
    agent: Agent,
    body: object,
  ): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; socket: Socket }> {
    const headers = { authorization: `Bearer ${gateway.apiKey}`, 'content-type': 'application/json' };
    const sent = request(`${api.url}${path}`, { agent, method: 'POST', headers });
    sent.end(JSON.stringify(body));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const { socket } = answer;
    answer.resume();
    await once(answer, 'end');
    return { status: answer.statusCode, headers: answer.headers, socket };
  }

  it('an api process finishes running streams and held requests after SIGTERM, and refuses new connections', async () => {
    const api = await gateway.startApi();
    const stream = await post(api, streamed('WORDS:60@50', { user: 'finishes' }));
    const whole = post(api, held('WORDS:60@50', { user: 'finishes' }));
    await called(gateway, 'finishes', 2);
    const stopped = api.stop();
    await eventually(() => assert.rejects(fetch(`${api.url}/healthz`)));
    assert.equal(textOf(await collect(stream)), words(60));
    const answer = (await (await whole).json()) as OpenAI.Chat.ChatCompletion;
    assert.equal(answer.choices[0]?.message.content, words(60));
    assert.equal(await stopped, 0);
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('an api process still takes requests in its lame duck time while /readyz is 503, and each connection ends with its next answer', async () => {
    const api = await gateway.startApi({ SLUICE_LAME_DUCK_SECONDS: '600' });
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    const idle = new Agent({ keepAlive: true, maxSockets: 1 });
    const stream = await post(api, streamed('WORDS:60@50', { user: 'lame-duck' }));
    const running = ask(api, kept, held('WORDS:60@50', { user: 'lame-duck' }));
    const before = await ask(api, idle, held('Hi'));
    assert.equal(before.headers.connection, 'keep-alive');
    await called(gateway, 'lame-duck', 2);
    const exited = once(api.child, 'exit');
    api.child.kill('SIGTERM');
    await eventually(async () => {
      const ready = await fetch(`${api.url}/readyz`);
      assert.equal(ready.status, 503);
      assert.equal(((await ready.json()) as { checks: { accepting: string } }).checks.accepting, 'closing');
    });
    assert.equal((await fetch(`${api.url}/healthz`)).status, 200);
    // One that ran before, one on a connection from before, one on a new connection.
    const again = await ask(api, idle, held('Hi'));
    assert.equal(again.socket, before.socket);
    const answers = [await running, again, await ask(api, new Agent({ keepAlive: true }), held('Hi'))];
    for (const { status, headers, socket } of answers) {
      assert.deepEqual([status, headers.connection], [200, 'close']);
      await eventually(() => assert.ok(socket.closed, 'the socket is open'));
    }
    assert.equal(textOf(await collect(stream)), words(60));
    assert.equal(textOf(await collect(await post(api, streamed('WORDS:60')))), words(60));
    // A process that is ended at once leaves the records it has read to the takeover of another, half a minute later.
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
    // A second signal says that there is no time.
    await eventually(() => {
      api.child.kill('SIGTERM');
      assert.notEqual(api.child.exitCode, null);
    });
    assert.deepEqual(await exited, [1, null]);
  });

  it('an api process that gets a Ctrl-C has no lame duck time', async () => {
    const api = await gateway.startApi({ SLUICE_LAME_DUCK_SECONDS: '600' });
    const exited = once(api.child, 'exit');
    api.child.kill('SIGINT');
    assert.deepEqual(await exited, [0, null]);
  });

  it('an api process ends a long stream with a resume hint after SIGTERM, and another api process continues it', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '1' });
    const stream = await post(api, streamed('WORDS:120@40', { user: 'moves' }));
    const jobId = stream.headers.get('x-request-id') as string;
    await called(gateway, 'moves');
    const stopped = api.stop();
    const before = await collect(stream);
    assert.equal(await stopped, 0);
    const hint = completionErrorDetails(JSON.parse(before.pop()?.data ?? ''));
    assert.equal(hint.code, 'service_unavailable');
    assert.ok(
      hint.message.includes(`/v1/jobs/${jobId}/events`) && hint.message.includes('Last-Event-ID'),
      hint.message,
    );
    assert.ok(before.length > 10, 'it had begun');
    const headers = { 'last-event-id': before.at(-1)?.id as string };
    const rest = sseEvents(await (await gateway.fetch(`/v1/jobs/${jobId}/events`, { headers })).text());
    assert.equal(textOf([...before, ...rest]), words(120));
    assert.equal(rest.at(-1)?.data, '[DONE]');
    assert.equal((await vendorCalls(gateway, 'moves')).length, 1);
  });

  it('an api process returns 503 with Retry-After for a long held request after SIGTERM, and cancels its job', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '1' });
    const answered = post(api, held('Hi', { user: 'sent-again', sandbox: { first_token_ms: 60_000 } }));
    await called(gateway, 'sent-again');
    const [response] = await Promise.all([answered, api.stop()]);
    // Longer than its tokens may be counted; the sweeper of another process looks later, 10 s after the admission.
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: 7000 }), []);
    assert.equal(response.status, 503);
    assert.ok(Number(response.headers.get('retry-after')) >= 1);
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'sent-again'))[0]?.ended, 'client_closed'));
  });

  it('an idle api process exits at once after SIGTERM, whatever connections are open', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '60' });
    await fetch(`${api.url}/healthz`);
    const silent = connect({ host: '127.0.0.1', port: Number(new URL(api.url).port) });
    await once(silent, 'connect');
    // The far end has it too once a later connection has been answered.
    await fetch(`${api.url}/healthz`);
    const closed = once(silent, 'close');
    silent.on('error', () => undefined).resume();
    assert.equal(await api.stop(), 0);
    await closed;
  });
});

describe('SIGTERM to a worker', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0, settings: { SLUICE_SHUTDOWN_SECONDS: '1' } });
  });
  after(() => gateway.stop());

  function post(body: object): Promise<Response> {
    return gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) });
  }

  async function stops(worker: GatewayProcess): Promise<void> {
    assert.equal(await worker.stop(), 0, worker.output());
  }

  /** What a worker with one job says that it waited for, and what became of the job. */
  function assertDrained(worker: GatewayProcess, drained: Record<string, number>): void {
    const [begun, over] = ['waiting for running jobs', 'running jobs are over'].map((text) => linesOf(worker, text));
    assert.deepEqual([begun?.[0]?.running, begun?.[0]?.requeued], [1, 0]);
    const { finished, requeued, interrupted } = over?.[0] ?? {};
    assert.deepEqual({ finished, requeued, interrupted }, drained);
  }

  it('a worker finishes its running job after SIGTERM', async () => {
    const worker = await gateway.startWorker({ SLUICE_SHUTDOWN_SECONDS: '10' });
    const stream = await post(streamed('WORDS:60@50', { user: 'finishes' }));
    await called(gateway, 'finishes');
    const stopped = stops(worker);
    assert.equal(textOf(await collect(stream)), words(60));
    await stopped;
    assert.equal((await vendorCalls(gateway, 'finishes'))[0]?.ended, 'completed');
    assertDrained(worker, { finished: 1, requeued: 0, interrupted: 0 });
  });

  it('a worker requeues a job without output after the drain time, and another worker runs it', async () => {
    const worker = await gateway.startWorker();
    const sandbox = { fault: { kind: 'silence', times: 1, key: 'given-back' } };
    const answered = post(held('Reply with exactly: by another', { user: 'given-back', sandbox }));
    await called(gateway, 'given-back');
    await stops(worker);
    assertDrained(worker, { finished: 0, requeued: 1, interrupted: 0 });
    const next = await gateway.startWorker();
    const answer = (await (await answered).json()) as OpenAI.Chat.ChatCompletion;
    assert.equal(answer.choices[0]?.message.content, 'by another');
    assert.deepEqual(
      (await vendorCalls(gateway, 'given-back')).map(({ ended }) => ended),
      ['client_closed', 'completed'],
    );
    await stops(next);
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('a worker ends a long job with output as stream_interrupted after SIGTERM, and it is not run again', async () => {
    const worker = await gateway.startWorker();
    const stream = await post(streamed('WORDS:1000@20', { user: 'interrupted' }));
    await called(gateway, 'interrupted');
    const [events] = await Promise.all([collect(stream), stops(worker)]);
    const error = completionErrorDetails(JSON.parse(events.pop()?.data ?? ''));
    assert.equal(error.code, 'stream_interrupted');
    assertDrained(worker, { finished: 0, requeued: 0, interrupted: 1 });
    const text = textOf(events);
    assert.equal(text, words(text.split(' ').length));
    const next = await gateway.startWorker();
    await (await post(held('Hi'))).text();
    await stops(next);
    assert.equal((await vendorCalls(gateway, 'interrupted')).length, 1);
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('a worker exits at once after a second SIGTERM', async () => {
    const worker = await gateway.startWorker({ SLUICE_SHUTDOWN_SECONDS: '60' });
    const controller = new AbortController();
    const body = JSON.stringify(held('Hi', { user: 'at-once', sandbox: { first_token_ms: 60_000 } }));
    gateway.fetch(path, { method: 'POST', body, signal: controller.signal }).catch(() => undefined);
    await called(gateway, 'at-once');
    const exited = once(worker.child, 'exit');
    worker.child.kill('SIGTERM');
    await eventually(() => {
      if (worker.child.exitCode === null) worker.child.kill('SIGTERM');
      assert.notEqual(worker.child.exitCode, null);
    });
    assert.deepEqual(await exited, [1, null]);
    controller.abort();
  });
});
