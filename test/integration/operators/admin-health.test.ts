import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { type GatewayProcess, TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../../vendors/recorded/recorded-openai.ts';

interface Route {
  readonly route: string;
  readonly state: string;
  readonly failed_in_a_row: number;
  readonly last_error: { readonly code: string; readonly status: number | null; readonly at: number } | null;
}

interface Worker {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly started_at: number;
  readonly seen_at: number;
  readonly capabilities: readonly string[];
  readonly running: Readonly<Record<string, number>>;
  readonly concurrency: Readonly<Record<string, number>>;
  readonly event_loop_lag_ms: number;
  readonly cpu: number;
  readonly memory: number;
  readonly vendors: readonly { readonly vendor: string; readonly keys: number; readonly cooling_keys: number }[];
  readonly routes: readonly Route[];
}

interface VendorView {
  readonly name: string;
  readonly on: boolean;
  readonly keys: number;
  readonly base_url: string;
  readonly routes: readonly { readonly model: string; readonly route: string }[];
  readonly workers: readonly {
    readonly id: string;
    readonly keys: number;
    readonly cooling_keys: number;
    readonly routes: readonly Route[];
  }[];
}

interface QueueView {
  readonly capability: string;
  readonly waiting: number;
  readonly prioritized: number;
  readonly active: number;
  readonly delayed: number;
  readonly oldest_wait_seconds: number;
}

/** Longer than a worker that is killed is remembered. */
const forgottenMs = 25_000;
const secretWords = 'the words of a prompt that nobody may see';

describe('operator view of workers, vendors, models and queues', () => {
  let gateway: TestGateway;
  let vendor: FixtureVendor;
  let operatorKey: string;
  before(async () => {
    vendor = await startFixtureVendor();
    const made = { like: 'openai', base_url: vendor.baseUrl, api_key: 'sk-vendor-one,sk-vendor-two' } as const;
    const routing = { attempts: 1, breaker: { calls: 4, threshold_percent: 50, pause_seconds: 600 } };
    gateway = await TestGateway.start({
      workers: 0,
      configuration: {
        vendors: { made },
        models: { chats: { capability: 'chat', routes: [{ vendor: 'made', model: 'broken' }] } },
        routing,
      },
    });
    operatorKey = await makeApiKey(gateway, { kind: 'operator' });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  async function read<Item>(path: string): Promise<Item[]> {
    const response = await gateway.fetch(path, { headers: { authorization: `Bearer ${operatorKey}` } });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    for (const secret of ['sk-vendor', secretWords, gateway.apiKey]) assert.ok(!text.includes(secret), secret);
    const { object, data, has_more: hasMore, next } = JSON.parse(text);
    assert.deepEqual([object, hasMore, next], ['list', false, null]);
    return data;
  }

  const workerOf = async ({ pid }: GatewayProcess): Promise<Worker> => {
    const worker = (await read<Worker>('/admin/v1/workers')).find((each) => each.pid === pid);
    assert.ok(worker !== undefined, 'it is not seen');
    return worker;
  };
  const queueOf = async (capability: string): Promise<QueueView> => {
    const queues = await read<QueueView>('/admin/v1/queues');
    return queues.find((queue) => queue.capability === capability) as QueueView;
  };
  const ask = (body: object): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(body) });

  it('GET /admin/v1/{workers,vendors,models,queues} return 403 to a standard key and 401 without a key', async () => {
    for (const path of ['workers', 'vendors', 'models', 'queues']) {
      await assertErrorAnswer(await gateway.fetch(`/admin/v1/${path}`), 403, 'permission_denied');
      await assertErrorAnswer(await fetch(`${gateway.url}/admin/v1/${path}`), 401, 'invalid_api_key');
    }
  });

  it('GET /admin/v1/queues shows the backlog while no worker runs', async () => {
    assert.deepEqual(await read('/admin/v1/workers'), []);
    for (let job = 0; job < 3; job++) {
      const later = { method: 'POST', headers: { prefer: 'respond-async' }, body: JSON.stringify(held('Hi')) };
      assert.equal((await gateway.fetch('/v1/chat/completions', later)).status, 202);
    }
    const { oldest_wait_seconds: seconds, prioritized, ...chat } = await queueOf('chat');
    assert.deepEqual(chat, { capability: 'chat', waiting: 3, active: 0, delayed: 0 });
    assert.ok(seconds >= 0 && prioritized <= 3);
    await eventually(async () => assert.ok((await queueOf('chat')).oldest_wait_seconds > 0, 'nothing has waited'));
    assert.equal((await queueOf('video')).waiting, 0);
  });

  it('GET /admin/v1/workers shows a worker with its load, until it stops', async () => {
    const started = await gateway.startWorker({ WORKER_CONCURRENCY_CHAT: '7' }, 'chat', 'image');
    const worker = await eventually(() => workerOf(started));
    assert.equal(worker.host, hostname());
    assert.match(worker.version, /^\d+\.\d+\.\d+/);
    assert.deepEqual(worker.capabilities, ['chat', 'image']);
    assert.deepEqual(worker.concurrency, { chat: 7, image: 50 });
    assert.ok(worker.memory > 10_000_000 && worker.event_loop_lag_ms >= 0 && worker.cpu >= 0);
    assert.ok(worker.started_at <= worker.seen_at && worker.seen_at <= Date.now());
    await eventually(async () => assert.equal((await queueOf('chat')).waiting, 0));
    const running = ask(held('WORDS:300@40', { user: 'running' }));
    await eventually(async () => assert.equal((await vendorCalls(gateway, 'running')).length, 1));
    await eventually(async () => assert.deepEqual((await workerOf(started)).running, { chat: 1, image: 0 }));
    assert.equal((await queueOf('chat')).active, 1);
    assert.equal((await running).status, 200);
    assert.equal(await started.stop(), 0);
    assert.deepEqual(await read('/admin/v1/workers'), []);
  });

  it('GET /admin/v1/workers drops a killed worker after its heartbeat expires', async () => {
    const [killed, other] = await Promise.all([gateway.startWorker(), gateway.startWorker()]);
    await eventually(() => Promise.all([workerOf(killed), workerOf(other)]));
    await killed.kill();
    assert.equal((await read<Worker>('/admin/v1/workers')).length, 2);
    await eventually(async () => {
      const seen = (await read<Worker>('/admin/v1/workers')).map(({ pid }) => pid);
      assert.deepEqual(seen, [other.pid]);
    }, forgottenMs);
    await other.stop();
  });

  it('GET /admin/v1/vendors shows a failing route as open, with its error code and no error message', async () => {
    const worker = await gateway.startWorker();
    vendor.answer((response) => sendJson(response, 401, errorBody('no such key', 'invalid_api_key')));
    await ask({ ...held('Hi'), model: 'chats' });
    vendor.answer((response) => sendJson(response, 500, errorBody(`no: ${secretWords}`, 'server_error')));
    for (let call = 0; call < 4; call++) assert.ok((await ask({ ...held(secretWords), model: 'chats' })).status >= 500);
    const vendorOf = async (name: string): Promise<VendorView> =>
      (await read<VendorView>('/admin/v1/vendors')).find((each) => each.name === name) as VendorView;
    const made = await eventually(async () => {
      const seen = await vendorOf('made');
      assert.equal(seen.workers[0]?.routes[0]?.state, 'open');
      return seen;
    });
    const { at, ...error } = made.workers[0]?.routes[0]?.last_error ?? { at: 0 };
    assert.deepEqual(error, { code: 'server_error', status: 500 });
    assert.ok(Math.abs(at - Date.now()) < 60_000);
    assert.equal(made.workers[0]?.cooling_keys, 1);
    assert.deepEqual([made.on, made.keys, made.base_url], [true, 2, vendor.baseUrl]);
    assert.deepEqual(made.routes, [{ model: 'chats', route: 'made/broken' }]);
    assert.equal(made.workers[0]?.id, (await workerOf(worker)).id);
  });

  it('GET /admin/v1/vendors shows a refused key with the redacted message of its vendor, logged once per key', async () => {
    await gateway.workers.at(-1)?.stop();
    const worker = await gateway.startWorker();
    const key = 'sk-proj-0123456789abcdefghijKLMN';
    const words = `Incorrect API key provided: ${key}. You said: ${secretWords}`;
    const health = async () => {
      const seen = (await read<VendorView>('/admin/v1/vendors')).find(({ name }) => name === 'made');
      return seen?.workers.find(({ id }) => id.length > 0) as
        | { refused_keys: number; key_state: string; refusal: { status: number; message: string } | null }
        | undefined;
    };
    vendor.answer((response) => sendJson(response, 401, errorBody(words, 'invalid_api_key')));
    for (let call = 0; call < 3; call++)
      assert.equal((await ask({ ...held(secretWords), model: 'chats' })).status, 503);
    const refused = await eventually(async () => {
      const seen = await health();
      assert.equal(seen?.key_state, 'key_refused');
      assert.equal(seen.refused_keys, 2);
      return seen;
    });
    assert.deepEqual(
      [refused.refusal?.status, refused.refusal?.message],
      [401, 'Incorrect API key provided: [key]. You said: […]'],
    );
    await eventually(() => assert.match(worker.output(), /vendor rejected the API key/));
    vendor.answer((response) => sendJson(response, 400, errorBody(`no: ${secretWords}`, 'invalid_request_error')));
    assert.equal((await ask({ ...held(secretWords), model: 'chats' })).status, 400);
    await eventually(() => assert.match(worker.output(), /"level":30[^\n]*vendor rejected the request/));
    const lines = worker
      .output()
      .split('\n')
      .filter((line) => /vendor (rejected|call failed)/.test(line));
    // One of each key, and that of the caller's mistake.
    assert.equal(lines.filter((line) => line.includes('rejected the API key')).length, 2, lines.join('\n'));
    assert.equal(lines.length, 3, lines.join('\n'));
    for (const line of lines) assert.doesNotMatch(line, /stack|sk-proj/);
    assert.ok(!worker.output().includes(secretWords));
  });

  it('a starting worker checks each key of a vendor once, and reports the result to operators', async () => {
    await Promise.all(gateway.workers.map((each) => each.stop()));
    const asked: string[] = [];
    vendor.answer((response, { url, headers }) => {
      asked.push(`${url} ${headers.authorization}`);
      if (headers.authorization === 'Bearer sk-vendor-one') sendJson(response, 200, '{"object":"list","data":[]}');
      else sendJson(response, 401, errorBody('Incorrect API key provided: sk-vend****-two.', 'invalid_api_key'));
    });
    const settings = { SLUICE_CHECK_KEYS: 'on' };
    const workers = await Promise.all([gateway.startWorker(settings), gateway.startWorker(settings)]);
    await eventually(async () => {
      const made = (await read<VendorView>('/admin/v1/vendors')).find(({ name }) => name === 'made');
      const seen = made?.workers as readonly unknown[] as { key_check: unknown; key_state: string; refusal: unknown }[];
      const checks = seen.flatMap(({ key_check: check }) => Object.entries(check ?? {}));
      assert.deepEqual(checks.sort(), [
        ['accepted', 1],
        ['refused', 1],
      ]);
      const refused = seen.find(({ key_state: state }) => state === 'key_refused');
      assert.match(JSON.stringify(refused?.refusal), /"message":"Incorrect API key provided: \[key\]"/);
    });
    const path = new URL(vendor.baseUrl).pathname;
    assert.deepEqual(asked.sort(), [`${path}/models Bearer sk-vendor-one`, `${path}/models Bearer sk-vendor-two`]);
    const output = () => workers.map((each) => each.output()).join('');
    await eventually(() => {
      assert.equal(output().split('vendor accepted the API key').length, 2);
      assert.equal(output().split('vendor rejected the API key').length, 2);
    });
    assert.doesNotMatch(output(), /sk-vendor|"stack"/);
  });

  it('GET /admin/v1/vendors and models show a vendor without a key, and the models only it serves, as off', async () => {
    const vendors = await read<VendorView>('/admin/v1/vendors');
    const openAi = vendors.find(({ name }) => name === 'openai') as VendorView;
    assert.deepEqual([openAi.on, openAi.keys, openAi.workers], [false, 0, []]);
    assert.ok(openAi.routes.length > 20);
    const sandbox = vendors.find(({ name }) => name === 'sandbox') as VendorView;
    assert.deepEqual([sandbox.on, sandbox.keys], [true, 0]);
    type RouteFacts = { vendor: string; on: boolean; prices: object | null };
    const models = await read<{ id: string; available: boolean; prices: object | null; routes: RouteFacts[] }>(
      '/admin/v1/models',
    );
    assert.ok(models.length > 400);
    for (const { id, available, prices, routes } of models) {
      assert.deepEqual(routes[0]?.prices, prices, id);
      assert.equal(
        available,
        routes.some(({ vendor: name }) => ['sandbox', 'made'].includes(name)),
        id,
      );
    }
  });
});
