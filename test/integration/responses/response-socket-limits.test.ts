import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket as BrowserWebSocket } from 'undici';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { isMainNode } from '../../support/faults/load.ts';
import { megabytes, peakWhile } from '../../support/faults/resident-memory.ts';
import { type ApiProcess, TestGateway } from '../../support/gateway.ts';
import { refusedHandshake } from '../../support/job-socket-client.ts';
import { leftovers } from '../../support/leftovers.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index + 1}`).join(' ');

describe('response socket limits', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ settings: { CORS_ORIGINS: 'https://app.example, http://localhost:3000/' } });
  });
  after(() => gateway.stop());

  const bearer = (): { authorization: string } => ({ authorization: `Bearer ${gateway.apiKey}` });
  const open = (api: ApiProcess = gateway.apis[0] as ApiProcess, headers = {}): Promise<ResponseSocketClient> =>
    ResponseSocketClient.open(api.url, { key: gateway.apiKey, headers });

  async function ended(name: string, end: 'completed' | 'client_closed'): Promise<void> {
    await eventually(async () => assert.equal((await vendorCalls(gateway, name))[0]?.ended, end), 60_000);
  }

  it('a response socket and a job socket require a key and a listed origin', async () => {
    for (const path of ['/v1/responses', `/v1/jobs/job_${'0'.repeat(32)}/ws`]) {
      const url = `${gateway.url}${path}`;
      await assertErrorAnswer(await refusedHandshake(url), 401, 'invalid_api_key');
      for (const origin of ['https://evil.example', 'https://app.example.evil', 'http://app.example', 'null', 'x']) {
        const answer = await refusedHandshake(url, { headers: { ...bearer(), origin } });
        await assertErrorAnswer(answer, 403, 'permission_denied');
      }
    }
    for (const origin of ['https://app.example', 'http://localhost:3000', gateway.url, gateway.apis[0]?.url]) {
      const client = await open(undefined, { origin });
      client.webSocket.close();
      await client.closed;
    }
  });

  it('a response socket refuses null as a content part as POST does, without effect on others', async () => {
    const input = [{ type: 'web_search_call', content: [null] }];
    const model = 'sandbox-chat';
    const other = gateway.client().responses.create({ model, input: `Reply with exactly: ${words(20)}` });
    const client = await open();
    const { error } = await client.refusal({ model, input });
    assert.deepEqual([error.code, error.param], ['invalid_request_error', 'input[0].content[0]']);
    const posted = await gateway.fetch('/v1/responses', { method: 'POST', body: JSON.stringify({ model, input }) });
    assert.equal((await assertErrorAnswer(posted, 400, 'invalid_request_error')).param, 'input[0].content[0]');
    assert.equal((await client.turn({ input: 'Reply with exactly: still here' })).text, 'still here');
    assert.equal((await other).output_text, words(20));
    client.webSocket.close();
  });

  it('a response socket opens for a browser with its key in a subprotocol', async () => {
    const url = `${gateway.url.replace(/^http/, 'ws')}/v1/responses`;
    const webSocket = new BrowserWebSocket(url, ['sluice', `openai-insecure-api-key.${gateway.apiKey}`]);
    const text = new Promise<string>((resolve) => {
      let said = '';
      webSocket.onmessage = ({ data }) => {
        const event = JSON.parse(data);
        said += event.delta ?? '';
        if (event.type === 'response.completed') resolve(said);
      };
    });
    webSocket.onopen = () =>
      webSocket.send('{"type":"response.create","model":"sandbox-chat","input":"Reply with exactly: page"}');
    assert.equal(await text, 'page');
    webSocket.close();
  });

  it('GET /v1/responses returns 426 without an upgrade, and 400 for headers of a single request', async () => {
    await assertErrorAnswer(await gateway.fetch('/v1/responses'), 426, 'upgrade_required');
    for (const [name, value] of [
      ['Idempotency-Key', 'a'],
      ['Prefer', 'respond-async'],
      ['Prefer', 'quote'],
    ] as const) {
      const answer = await refusedHandshake(`${gateway.url}/v1/responses`, { headers: { ...bearer(), [name]: value } });
      assert.equal((await assertErrorAnswer(answer, 400, 'invalid_request_error')).param, name);
    }
  });

  it('a response socket cancels running requests and drops waiting ones when its client disconnects', async () => {
    for (const vanish of ['close', 'terminate'] as const) {
      const client = await open();
      client.create({ input: 'WORDS:1000@40', user: vanish });
      client.create({ input: 'Hi', user: `${vanish}-waits` });
      await client.until('response.output_text.delta');
      client.webSocket[vanish]();
      await ended(vanish, 'client_closed');
      assert.deepEqual(await vendorCalls(gateway, `${vanish}-waits`), []);
    }
    assert.deepEqual(await leftovers(gateway.redisUrl), []);
  });

  it('a response socket with X-Sluice-On-Disconnect: continue completes its request without its client', async () => {
    const client = await open(undefined, { 'x-sluice-on-disconnect': 'continue' });
    client.create({ input: 'WORDS:40@40', user: 'continues' });
    await client.until('response.output_text.delta');
    client.webSocket.terminate();
    await ended('continues', 'completed');
  });

  it('a response socket closes with 1000 when idle, but not during a request', async () => {
    const api = await gateway.startApi({ SLUICE_SOCKET_IDLE_SECONDS: '1' });
    const client = await open(api);
    const { text } = await client.turn({ input: 'WORDS:80@40' });
    assert.equal(text, words(80), 'it ran for two seconds');
    const before = performance.now();
    assert.equal(await client.closed, 1000);
    const idle = performance.now() - before;
    assert.ok(idle > 900 && idle < 5000, `closed after ${idle} ms`);
    await api.stop();
  });

  it('an idle response socket closes at once after SIGTERM, and a busy one after its running request', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '60' });
    const [idle, busy] = await Promise.all([open(api), open(api)]);
    busy.create({ input: 'WORDS:60@50' });
    busy.create({ input: 'Hi', user: 'not-begun' });
    await busy.until('response.output_text.delta');
    const stopped = api.stop();
    for (const client of [idle, busy]) {
      if (client === busy)
        assert.equal((await busy.until('response.completed')).response.output[0].content[0].text, words(60));
      const { type, status, error } = await client.next();
      assert.deepEqual([type, status, error.code], ['error', 503, 'service_unavailable']);
      assert.equal(await client.closed, 1001);
    }
    assert.equal(await stopped, 0);
    assert.deepEqual(await vendorCalls(gateway, 'not-begun'), []);
  });

  it('a response socket hands a long request over after SIGTERM, with an error that names where to resume', async () => {
    const api = await gateway.startApi({ SLUICE_SHUTDOWN_SECONDS: '1' });
    const client = await open(api);
    client.create({ input: 'WORDS:160@40', user: 'moves' });
    const { response } = await client.until('response.created');
    await client.until('response.output_text.delta');
    const stopped = api.stop();
    const { last } = await client.turn();
    assert.deepEqual([last.type, last.status], ['error', 503]);
    assert.ok(last.error.message.includes(`/v1/jobs/${response.id.replace('resp_', 'job_')}/events`));
    assert.equal(await client.closed, 1001);
    assert.equal(await stopped, 0);
    const rest = await (await gateway.fetch(`/v1/jobs/${response.id}/events`)).text();
    assert.match(rest, /event: response\.completed/);
    assert.equal((await vendorCalls(gateway, 'moves')).length, 1);
  });

  it('unfinished messages in fragments of a byte take no more memory of a process than the share of their key', async () => {
    const api = await gateway.startApi({ SLUICE_BODIES_MIB: '8' });
    const clients = await Promise.all(Array.from({ length: 6 }, () => open(api)));
    const refused = clients.map(async (client) => {
      client.webSocket.send('{', { fin: false });
      for (let sent = 0; sent < 8000; sent++) client.webSocket.send(' ', { fin: false });
      const { error } = await client.next();
      return error.code as string;
    });
    // Each takes a megabyte, and two are the share of a key.
    assert.equal(await Promise.race(refused), 'rate_limit_exceeded');
    const rest = Promise.allSettled(refused);
    for (const client of clients) client.webSocket.terminate();
    await rest;
    const client = await open(api);
    const message = JSON.stringify({
      type: 'response.create',
      model: 'sandbox-chat',
      input: 'Reply with exactly: whole',
    });
    for (const character of message.slice(0, -1)) client.webSocket.send(character, { fin: false });
    client.webSocket.send('}');
    assert.equal((await client.turn()).text, 'whole');
    client.webSocket.close();
  });

  it('messages that are refused for what their key sends at a time are not run', async () => {
    const api = await gateway.startApi({ SLUICE_BODIES_MIB: '8' });
    const clients = await Promise.all(Array.from({ length: 40 }, () => open(api)));
    // Read by turns, 64 KiB at a time, they are three times the share of a key, and many are refused with the last of their bytes.
    const asked = { input: 'Reply with exactly: together', instructions: 'x'.repeat(150_000), user: 'together' };
    api.child.kill('SIGSTOP');
    for (const client of clients) client.create(asked);
    api.child.kill('SIGCONT');
    const turns = await Promise.all(clients.map((client) => client.turn()));
    const refused = turns.filter(({ last }) => last.type === 'error').map(({ last }) => last.error.code);
    assert.ok(refused.includes('rate_limit_exceeded'), `refused: ${refused}`);
    for (const client of clients) client.webSocket.close();
    await Promise.all(clients.map(({ closed }) => closed));
    const next = await open(api);
    assert.equal((await next.turn({ input: 'Reply with exactly: next' })).text, 'next');
    next.webSocket.close();
    assert.equal((await vendorCalls(gateway, 'together')).length, clients.length - refused.length);
  });

  it('response sockets of one key cache no more conversations than its share of memory, and free it when they close', async () => {
    const api = await gateway.startApi({ SLUICE_BODIES_MIB: '8' });
    const input = `Reply with exactly: cached. ${'x'.repeat(200_000)}`;
    const warmUp = { input, store: false, generate: false };
    const clients = await Promise.all(Array.from({ length: 20 }, () => open(api)));
    const ids: string[] = [];
    for (const client of clients) ids.push((await client.turn(warmUp)).response.id);
    const isCached = async (index: number, client = clients[index] as ResponseSocketClient): Promise<boolean> => {
      const { last } = await client.turn({ ...warmUp, input: 'On', previous_response_id: ids[index] as string });
      if (last.type === 'error') assert.equal(last.error.code, 'previous_response_not_found');
      return last.type === 'response.completed';
    };
    assert.equal(await isCached(0), true);
    assert.equal(await isCached(clients.length - 1), false);
    for (const client of clients) client.webSocket.close();
    await Promise.all(clients.map(({ closed }) => closed));
    const next = await open(api);
    ids.push((await next.turn(warmUp)).response.id);
    assert.equal(await isCached(ids.length - 1, next), true);
    next.webSocket.close();
  });

  it('running requests of response sockets keep no more to be continued than the share of their key', async () => {
    const api = await gateway.startApi({ SLUICE_BODIES_MIB: '8' });
    const input = `Reply with exactly: kept. ${'x'.repeat(200_000)}`;
    const running = await Promise.all(Array.from({ length: 12 }, () => open(api)));
    for (const [index, client] of running.entries()) {
      client.create({ input, user: 'keeps', sandbox: { first_token_ms: 600_000 } });
      // One after the other: together, unread, they are more than a key may send at a time.
      await eventually(async () => assert.equal((await vendorCalls(gateway, 'keeps')).length, index + 1));
    }
    const isContinued = async (): Promise<boolean> => {
      const client = await open(api);
      const { response } = await client.turn({ input, store: false, generate: false });
      const { last } = await client.turn({
        input: 'On',
        store: false,
        generate: false,
        previous_response_id: response.id,
      });
      client.webSocket.close();
      if (last.type === 'error') assert.equal(last.error.code, 'previous_response_not_found');
      return last.type === 'response.completed';
    };
    assert.equal(await isContinued(), false, 'what runs has taken all of it');
    for (const client of running) client.webSocket.close();
    await Promise.all(running.map(({ closed }) => closed));
    await eventually(async () => assert.ok(await isContinued(), 'what has ended still counts'));
  });

  it('response sockets that read nothing neither delay a job nor grow the api process, and get all later', async (t) => {
    const count = isMainNode ? 20_000 : 4000;
    const [more, long] = [40, `Reply with exactly: ${'x'.repeat(100_000)}`];
    // A small young generation, so that the figure shows what is held.
    const api = await gateway.startApi({ NODE_OPTIONS: '--max-semi-space-size=1', SLUICE_UNREAD_SECONDS: '600' });
    const clients = await Promise.all(Array.from({ length: 2 }, () => open(api)));
    const before = await peakWhile(api, Promise.resolve());
    for (const [index, client] of clients.entries()) {
      client.webSocket.pause();
      client.create({
        input: `WORDS:${count}@4000`,
        user: `slow-${index}`,
        top_logprobs: 20,
        include: ['message.output_text.logprobs'],
      });
      // What it asks for beyond what it takes stays with it.
      for (let sent = 0; sent < more; sent++) client.create({ input: long });
    }
    const all = Promise.all(clients.map((_, index) => ended(`slow-${index}`, 'completed')));
    const peak = await peakWhile(api, all);
    await all;
    t.diagnostic(`${megabytes(before)} MB, at most ${megabytes(peak)} MB resident`);
    assert.ok(peak - before < 150 * 1024 * 1024, `it grew by ${megabytes(peak - before)} MB`);
    for (const client of clients) {
      client.webSocket.resume();
      assert.equal((await client.turn()).text, words(count));
      for (let left = more; left > 0; ) {
        const { text, last } = await client.turn();
        // What it sends to two clients at once may keep the api busy: it refuses a share of new requests then, to be sent again.
        if (last.type === 'error' && last.error.message.startsWith('The server is overloaded.')) {
          await delay(Number(last.headers['retry-after-ms']));
          client.create({ input: long });
          continue;
        }
        assert.equal(text.length, 100_000, JSON.stringify(last).slice(0, 500));
        left--;
      }
      client.webSocket.close();
    }
  });
});
