import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeLimitedAccount } from '../../support/limited-account.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { MetricsPage } from '../../support/metrics-page.ts';

const path = '/v1/chat/completions';
const post = (body: object): RequestInit => ({ method: 'POST', body: JSON.stringify(body) });

describe('metrics of refused requests', () => {
  let gateway: TestGateway;
  before(async () => {
    // So long a wait that the first request still waits when the others are refused, however busy the machine is.
    const settings = { SLUICE_QUEUE_LIMIT: '2', SLUICE_QUEUE_WAIT_SECONDS: '6', SLUICE_ACCOUNT_QUEUE_SHARE: '1' };
    gateway = await TestGateway.start({ workers: 0, settings });
  });
  after(() => gateway.stop());

  const refusals = async (reason: string): Promise<number> =>
    (await MetricsPage.read(gateway.url)).sum('sluice_refusals_total', 'endpoint="chat"', `reason="${reason}"`);

  it('a 401 is counted under the endpoint that was called, and probes and scrapes are no requests', async () => {
    const headers = { authorization: 'Bearer sk-sluice-not-a-key-of-this-gateway' };
    assert.equal((await gateway.fetch(path, { ...post(held('Hi')), headers })).status, 401);
    for (const probe of ['/healthz', '/readyz', '/health', '/metrics', '/metrics']) {
      assert.equal((await gateway.fetch(probe)).status, 200);
    }
    await eventually(async () => {
      const page = await MetricsPage.read(gateway.url);
      assert.equal(page.sum('sluice_requests_total', 'endpoint="chat"', 'status="401"'), 1);
    });
    const page = await MetricsPage.read(gateway.url);
    assert.deepEqual(page.values('sluice_requests_total', 'endpoint'), ['chat']);
    assert.deepEqual(page.values('sluice_request_duration_seconds_count', 'endpoint'), ['chat']);
  });

  it('each reason of a 429 or 503 is counted apart', async () => {
    const limited = await makeApiKey(gateway, { concurrency: 1 });
    const poor = await makeLimitedAccount(gateway);
    const ask = (key: string, more: Record<string, string> = {}): Promise<Response> =>
      gateway.fetch(path, { ...post(held('Hi')), headers: { authorization: `Bearer ${key}`, ...more } });
    assert.equal((await ask(poor.key)).status, 429);
    // Nobody works here: this one waits, and the next is one more than its key may have.
    const waiting = ask(limited);
    await eventually(async () => {
      const page = await MetricsPage.read(gateway.url);
      assert.equal(page.sum('sluice_admissions_total', 'verdict="admitted"'), 1);
    });
    assert.equal((await ask(limited)).status, 429);
    const later = { prefer: 'respond-async' };
    assert.equal((await ask(gateway.apiKey, later)).status, 202);
    await eventually(async () => assert.equal((await ask(gateway.apiKey, later)).status, 503));
    assert.equal((await waiting).status, 503);
    await eventually(async () => {
      for (const reason of ['balance', 'concurrency', 'no_worker']) assert.equal(await refusals(reason), 1, reason);
      assert.ok((await refusals('queue_full')) >= 1, 'no refusal is counted');
    });
    const page = await MetricsPage.read(gateway.url);
    for (const verdict of ['balance', 'concurrency', 'queue_full']) {
      assert.ok(page.sum('sluice_admissions_total', 'capability="chat"', `verdict="${verdict}"`) >= 1, verdict);
    }
    assert.equal(page.sum('sluice_refusals_total', 'reason="other"'), 0);
  });
});

/** A vendor that has every model: it answers each chat alike. */
async function startVendorOfAnyModel(): Promise<Server> {
  const message = { role: 'assistant', content: 'Hi' };
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const answer = {
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'any', usage },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
  };
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

describe('metrics of jobs', () => {
  let gateway: TestGateway;
  let vendor: Server;
  let workerUrl: string;
  before(async () => {
    vendor = await startVendorOfAnyModel();
    const baseUrl = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
    gateway = await TestGateway.start({
      workers: 0,
      configuration: { vendors: { mine: { like: 'openai', base_url: baseUrl, api_keys: ['a-key'], open: true } } },
    });
    const port = await freePort();
    workerUrl = `http://127.0.0.1:${port}`;
    await gateway.startWorker({ WORKER_PORT: String(port), WORKER_CONCURRENCY_CHAT: '7' }, 'chat');
  });
  after(async () => {
    await gateway.stop();
    vendor.closeAllConnections();
    vendor.close();
  });

  it('a worker counts slots, waits in the queue, tokens and cost by model', async () => {
    const { usage } = await gateway.client().chat.completions.create(held('Hi'));
    await eventually(async () => {
      const page = await MetricsPage.read(workerUrl);
      const model = ['vendor="sandbox"', 'model="sandbox-chat"'];
      assert.equal(page.sum('sluice_tokens_total', ...model, 'kind="input"'), usage?.prompt_tokens);
      assert.equal(page.sum('sluice_tokens_total', ...model, 'kind="output"'), usage?.completion_tokens);
      assert.ok(page.sum('sluice_cost_dollars_total', ...model) > 0, 'no cost is counted');
      assert.equal(page.sum('sluice_queue_wait_seconds_count', 'capability="chat"'), 1);
    });
    const page = await MetricsPage.read(workerUrl);
    assert.deepEqual(page.values('sluice_worker_slots', 'capability'), ['chat']);
    assert.equal(page.sum('sluice_worker_slots'), 7);
    const buckets = page.values('sluice_queue_wait_seconds_bucket', 'le');
    assert.equal(buckets.at(-2), '7200');
  });

  it('an answer that is streamed is an open stream until it ends', async () => {
    const answer = await gateway.fetch(path, post(streamed('WORDS:200@20')));
    const reader = answer.body?.getReader();
    await reader?.read();
    assert.equal((await MetricsPage.read(gateway.url)).sum('sluice_streams_open'), 1);
    await reader?.cancel();
    await eventually(async () => assert.equal((await MetricsPage.read(gateway.url)).sum('sluice_streams_open'), 0));
  });

  it('what callers make up (models, paths, headers) grows no series', async () => {
    const series = async (): Promise<Set<string>> => {
      const pages = await Promise.all([gateway.url, workerUrl].map((url) => MetricsPage.read(url)));
      const lines = pages.flatMap(({ text }) => text.match(/^sluice_[^ ]+/gm) ?? []);
      return new Set(lines);
    };
    const strange = async (index: number): Promise<void> => {
      const more = { model: `mine/made-up-${index}`, user: `u${index}` };
      const answers = await Promise.all([
        gateway.fetch(path, post(held('Hi', more))),
        gateway.fetch(path, post(held('Hi', { model: `unknown-${index}` }))),
        gateway.fetch(`/v1/unknown-${index}`),
        gateway.fetch(`/v1/models/none-${index}`),
        gateway.fetch(`/v1/jobs/job_${String(index).padStart(32, '0')}`),
        gateway.fetch(path, { ...post(held('Hi')), headers: { 'x-client-request-id': `id-${index}` } }),
      ]);
      await Promise.all(answers.map((answer) => answer.text()));
      const [made, unknown] = answers;
      assert.equal(made?.status, 200);
      assert.equal(unknown?.status, 404);
    };
    await strange(0);
    await eventually(async () => {
      const page = await MetricsPage.read(workerUrl);
      assert.ok(page.sum('sluice_tokens_total', 'vendor="mine"', 'model="other"') >= 5, 'the tokens are not counted');
    });
    const known = await series();
    for (let index = 1; index <= 12; index++) await strange(index);
    await eventually(async () => {
      const page = await MetricsPage.read(workerUrl);
      assert.ok(page.sum('sluice_tokens_total', 'vendor="mine"') >= 13 * 5, 'the tokens are not counted');
    });
    const grown = [...(await series())].filter((name) => !known.has(name) && !/_bucket/.test(name));
    assert.deepEqual(grown, []);
    assert.doesNotMatch([...(await series())].join('\n'), /made-up|unknown-\d|none-\d|id-\d/);
  });
});

describe('metrics of jobs whose worker is lost', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway.stop());

  it('the worker that ends the answer of a killed one counts the job and its error under the vendor that was called', async () => {
    const killed = await gateway.startWorker();
    const answer = await gateway.fetch(path, post(streamed('WORDS:900@20')));
    const reader = answer.body?.getReader();
    await reader?.read();
    await killed.kill();
    const port = await freePort();
    await gateway.startWorker({ WORKER_PORT: String(port) });
    while (!(await reader?.read())?.done);
    await eventually(async () => {
      const page = await MetricsPage.read(`http://127.0.0.1:${port}`);
      const labels = ['capability="chat"', 'vendor="sandbox"'];
      assert.equal(page.sum('sluice_job_errors_total', ...labels, 'code="stream_interrupted"'), 1);
      assert.equal(page.sum('sluice_jobs_total', ...labels, 'outcome="failed"'), 1);
      assert.equal(page.sum('sluice_jobs_total'), 1);
    });
  });
});
