import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { type ApiProcess, TestGateway } from '../../support/gateway.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const path = '/v1/chat/completions';

/** The samples of a Prometheus page by name and labels; `role` is left out. */
async function samples(url: string): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/);
  const found = new Map<string, number>();
  for (const line of (await response.text()).split('\n')) {
    const match = /^(sluice_\w+)(?:\{([^}]*)\})? (\S+)$/.exec(line);
    if (match === null) continue;
    const labels = (match[2] ?? '').split(',').filter((label) => !label.startsWith('role=') && label !== '');
    found.set(`${match[1]}{${labels.sort().join(',')}}`, Number(match[3]));
  }
  return found;
}

describe('health and metrics', () => {
  let gateway: TestGateway;
  let workerUrl: string;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
    const port = await freePort();
    workerUrl = `http://127.0.0.1:${port}`;
    await gateway.startWorker({ WORKER_PORT: String(port) });
  });
  after(() => gateway.stop());

  it('GET /healthz and /readyz return 200 without a key on api and worker', async () => {
    for (const url of [gateway.url, workerUrl]) {
      assert.equal((await fetch(`${url}/healthz`)).status, 200);
      assert.equal((await fetch(`${url}/readyz`)).status, 200);
    }
  });

  it('GET /health and the health paths of other gateways return 200 with status ok', async () => {
    for (const path of ['/health', '/health/liveliness', '/health/liveness', '/health/readiness']) {
      const answer = await fetch(`${gateway.url}${path}`);
      assert.deepEqual([answer.status, ((await answer.json()) as { status: string }).status], [200, 'ok'], path);
    }
  });

  it('GET /metrics counts requests, errors and frames, and shows the queue, lags and jobs', async () => {
    const client = gateway.client();
    const before = await samples(gateway.url);
    const since = (after: Map<string, number>, name: string): number =>
      (after.get(name) ?? 0) - (before.get(name) ?? 0);
    await client.chat.completions.create(held('Hi'));
    for await (const _ of await client.chat.completions.create(streamed('WORDS:10')));
    await assert.rejects(client.chat.completions.create(held('Hi', { model: 'none' })));
    const fault = { kind: 'reset', after_tokens: 2 };
    const broken = await gateway.fetch(path, {
      method: 'POST',
      body: JSON.stringify(streamed('WORDS:5', { sandbox: { fault } })),
    });
    await broken.text();
    await eventually(async () => {
      const now = await samples(gateway.url);
      assert.equal(since(now, 'sluice_requests_total{endpoint="chat",status="200"}'), 3);
      assert.equal(since(now, 'sluice_requests_total{endpoint="chat",status="404"}'), 1);
      assert.equal(since(now, 'sluice_errors_total{code="model_not_found",endpoint="chat"}'), 1);
      assert.equal(since(now, 'sluice_errors_total{code="stream_interrupted",endpoint="chat"}'), 1);
      assert.equal(since(now, 'sluice_time_to_first_frame_seconds_count{endpoint="chat",stream="no"}'), 1);
      assert.equal(since(now, 'sluice_time_to_first_frame_seconds_count{endpoint="chat",stream="yes"}'), 2);
      assert.equal(since(now, 'sluice_request_duration_seconds_count{endpoint="chat"}'), 4);
      assert.ok(since(now, 'sluice_frames_delivered_total{}') >= 15, 'frames');
    });
    const now = await samples(gateway.url);
    assert.equal(now.get('sluice_queue_waiting{capability="chat"}'), 0);
    assert.equal(now.get('sluice_queue_oldest_wait_seconds{capability="chat"}'), 0);
    const redisLag = now.get('sluice_redis_lag_seconds{}') ?? -1;
    assert.ok(redisLag > 0 && redisLag < 5, `Redis lag ${redisLag}`);
    // Of two scrapes one right after the other the second has nothing to tell.
    const eventLoopLag = now.get('sluice_event_loop_lag_seconds{}') ?? -1;
    assert.ok(eventLoopLag >= 0 && eventLoopLag < 5, `event loop lag ${eventLoopLag}`);
    const worker = await samples(workerUrl);
    assert.equal(worker.get('sluice_jobs_total{capability="chat",outcome="completed",vendor="sandbox"}'), 2);
    assert.equal(
      worker.get('sluice_job_errors_total{capability="chat",code="stream_interrupted",vendor="sandbox"}'),
      1,
    );
    // What a broken answer has taken is counted after its end, before its worker is done with it.
    await eventually(async () => {
      assert.ok(((await samples(workerUrl)).get('sluice_frames_total{}') ?? 0) >= 15, 'frames of the worker');
    });
  });

  it('GET /metrics shows running requests and jobs', async () => {
    const answered = gateway.client().chat.completions.create(held('WORDS:120@40', { user: 'runs' }));
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'runs')).length, 1));
    assert.equal((await samples(gateway.url)).get('sluice_requests_running{}'), 1);
    assert.equal((await samples(workerUrl)).get('sluice_jobs_running{capability="chat"}'), 1);
    await answered;
    assert.equal((await samples(gateway.url)).get('sluice_requests_running{}'), 0);
  });

  it('GET /metrics shows the wait of the oldest job', async () => {
    const idle = await TestGateway.start({ workers: 0 });
    try {
      const headers = { prefer: 'respond-async' };
      await idle.fetch(path, { method: 'POST', body: JSON.stringify(held('Hi')), headers });
      await eventually(async () => {
        const now = await samples(idle.url);
        assert.equal(now.get('sluice_queue_waiting{capability="chat"}'), 1);
        assert.ok((now.get('sluice_queue_oldest_wait_seconds{capability="chat"}') ?? 0) >= 0.3, 'it has waited');
      });
    } finally {
      await idle.stop();
    }
  });

  it('GET /readyz returns 503 while Redis is down and 200 again afterwards, and /healthz stays 200', async () => {
    const ready = async (): Promise<number> => (await fetch(`${gateway.url}/readyz`)).status;
    await gateway.redis?.kill();
    await eventually(async () => assert.equal(await ready(), 503));
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200);
    assert.equal((await fetch(`${gateway.url}/metrics`)).status, 200);
    await gateway.redis?.restart();
    await eventually(async () => assert.equal(await ready(), 200), 15_000);
    await gateway.client().chat.completions.create(held('Hi'));
  });
});

describe('access log', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start();
  });
  after(() => gateway.stop());

  interface Line {
    job: string;
    method: string;
    path: string;
    status: number;
    ms: number;
    endpoint: string;
    account?: string;
    key?: string;
    model?: string;
    stream?: boolean;
    error?: string;
    client_request?: string;
    worker?: string;
    vendor?: string;
    attempts?: number;
    outcome?: string;
  }

  const linesOf = (output: string, message: string): Line[] =>
    output
      .split('\n')
      .filter((line) => line.includes(`"msg":"${message}"`))
      .map((line) => JSON.parse(line) as Line);

  it("a caller's own id of a request is logged and sent back, unless it is long, strange or an API key", async () => {
    const own = await TestGateway.start({ workers: 0 });
    try {
      const ask = async (headers: Record<string, string>): Promise<string | null> =>
        (await own.fetch('/v1/models', { headers })).headers.get('x-client-request-id');
      assert.equal(await ask({ 'x-request-id': 'trace:1/a.b-c=' }), 'trace:1/a.b-c=');
      assert.equal(await ask({ 'x-request-id': 'proxy', 'x-client-request-id': 'caller' }), 'caller');
      for (const id of [own.apiKey, 'a'.repeat(129), 'a b', '{"a":1}', '<b>', 'a;b', '']) {
        assert.equal(await ask({ 'x-request-id': id }), null, id);
      }
      await own.apis[0]?.stop();
      const output = own.apis[0]?.output() ?? '';
      const logged = linesOf(output, 'request').flatMap(({ client_request: id }) => id ?? []);
      assert.deepEqual(logged, ['trace:1/a.b-c=', 'caller']);
      assert.ok(!output.includes(own.apiKey));
    } finally {
      await own.stop();
    }
  });

  it('the access log has one line per request and the workers’ log one per job with their facts, and never a key, a prompt or a body', async () => {
    const secret = 'prompt-that-nobody-may-log';
    const post = (body: object | string, init: RequestInit = {}): Promise<Response> =>
      gateway.fetch(path, { ...init, method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
    const ids: string[] = [];
    const done = async (response: Response): Promise<void> => {
      await response.text();
      ids.push(response.headers.get('x-request-id')?.slice('job_'.length) as string);
    };
    await done(await post(held(`Reply with exactly: ${secret}`)));
    await done(await post(streamed(`Reply with exactly: ${secret}`)));
    await done(await post(held(secret, { temperature: secret })));
    await done(await post(`{"${secret}`));
    await done(
      await post(
        held(secret, { sandbox: { fault: { kind: 'error', status: 400, message: `vendor says ${secret}` } } }),
      ),
    );
    await done(await gateway.fetch(`/v1/models?q=${secret}`));
    await done(await gateway.fetch('/v1/models', { headers: { authorization: `Bearer ${secret}` } }));
    const controller = new AbortController();
    const left = post(held(secret, { user: 'left', sandbox: { first_token_ms: 60_000 } }), {
      signal: controller.signal,
    });
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'left')).length, 1));
    controller.abort();
    await assert.rejects(left);
    await eventually(async () => assert.notEqual((await vendorCalls(gateway, 'left'))[0]?.ended, null));

    await Promise.all([gateway.apis[0]?.stop(), gateway.workers[0]?.stop()]);
    const output = (gateway.apis[0] as ApiProcess).output();
    const all = output + gateway.workers[0]?.output();
    assert.ok(!all.includes(secret), 'a prompt was logged');
    assert.ok(!all.includes(gateway.apiKey), 'a key was logged');
    const lines = linesOf(output, 'request');
    assert.equal(lines.length, 8);
    assert.deepEqual(
      ids.map((id) => lines.filter(({ job }) => job === id).length),
      ids.map(() => 1),
    );
    assert.deepEqual(
      lines.map(({ status }) => status),
      [200, 200, 400, 400, 400, 200, 401, 499],
    );
    for (const line of lines) {
      assert.ok(line.ms >= 0 && typeof line.method === 'string' && typeof line.endpoint === 'string');
      assert.ok(line.path === path || line.path === '/v1/models');
      if (line.status !== 401) assert.ok(line.account === 'default' && /^key_/.test(line.key ?? ''), 'whose it was');
    }
    assert.deepEqual([lines[0]?.model, lines[0]?.stream, lines[1]?.stream], ['sandbox-chat', false, true]);
    assert.equal(lines[7]?.error, 'cancelled');
    const jobs = linesOf(gateway.workers[0]?.output() ?? '', 'job');
    // Those two that were answered, the one that its vendor refused, and the one that its caller left.
    assert.deepEqual(
      [ids[0], ids[1], ids[4], lines[7]?.job].map((id) => jobs.filter(({ job }) => job === id).length),
      [1, 1, 1, 1],
    );
    assert.deepEqual(
      jobs.map(({ outcome }) => outcome),
      ['completed', 'completed', 'failed', 'ended'],
    );
    for (const job of jobs) {
      assert.match(job.worker ?? '', /^worker-/);
      assert.deepEqual([job.vendor, job.model, job.attempts], ['sandbox', 'sandbox-chat', 1]);
      assert.ok((job.ms ?? -1) >= 0);
    }
    assert.equal(jobs[2]?.error, 'invalid_request_error');
  });
});
