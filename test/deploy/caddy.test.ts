import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Agent, FormData, fetch, type RequestInit, type Response } from 'undici';
import { Caddy, caddyEnvironment, caddyfile } from '../support/caddy.ts';
import { streamed } from '../support/chat-requests.ts';
import { eventually } from '../support/eventually.ts';
import { TestGateway } from '../support/gateway.ts';
import { ResponseSocketClient } from '../support/response-socket-client.ts';
import { readSse } from '../support/sse-events.ts';
import { vendorCalls } from '../support/vendor-journal.ts';
import { wav } from '../support/wav.ts';

const run = promisify(execFile);
const password = 'a long password';

describe("the compose set-up's proxy, Caddy, with a gateway behind it", () => {
  let caddy: Caddy;
  let gateway: TestGateway;
  const agents: Agent[] = [];

  before(async () => {
    caddy = await Caddy.prepare();
    // As deploy/compose/tls.yml sets them.
    const settings = { PUBLIC_URL: caddy.url, TRUST_PROXY: '1', METRICS_PORT: '0', SLUICE_SIGN_UP: 'open' };
    gateway = await TestGateway.start({ settings });
    await caddy.start(gateway.url);
  });
  after(async () => {
    await Promise.all(agents.map((agent) => agent.destroy()));
    await caddy.stop();
    await gateway.stop();
  });

  /** A client that trusts the proxy's certificate. */
  const agent = (options: { allowH2?: boolean; localAddress?: string } = {}): Agent => {
    const { allowH2 = false, localAddress } = options;
    const from = localAddress === undefined ? {} : { localAddress };
    agents.push(new Agent({ allowH2, ...from, connect: { ca: caddy.ca, family: 4 } }));
    return agents.at(-1) as Agent;
  };

  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${caddy.url}${path}`, {
      dispatcher: agent(),
      ...init,
      headers: { authorization: `Bearer ${gateway.apiKey}`, ...(init.headers as Record<string, string>) },
    });

  test("the compose set-up's proxy, Caddy, with a gateway behind it takes its file, which is written as Caddy formats it", async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-caddy-'));
    try {
      const env = caddyEnvironment(folder, { SLUICE_DOMAIN: 'ai.example' });
      await run('caddy', ['validate', '--config', caddyfile, '--adapter', 'caddyfile'], { env });
      assert.equal(
        (await run('caddy', ['fmt', caddyfile], { env })).stdout.trimEnd(),
        (await readFile(caddyfile, 'utf8')).trimEnd(),
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  for (const allowH2 of [false, true]) {
    test(`the compose set-up's proxy, Caddy, with a gateway behind it passes on a stream as it comes over HTTP/${allowH2 ? 2 : 1.1}, and a hang-up cancels the vendor's call`, async () => {
      const user = `stream-${allowH2}`;
      const controller = new AbortController();
      const response = await ask('/v1/chat/completions', {
        method: 'POST',
        dispatcher: agent({ allowH2 }),
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(streamed('WORDS:1000@50', { user })),
        signal: controller.signal,
      });
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
      let seen = 0;
      await assert.rejects(async () => {
        for await (const _ of readSse(response as never)) if (++seen === 5) controller.abort();
      });
      const call = await eventually(async () => {
        const [call] = await vendorCalls(gateway, user);
        assert.ok(call !== undefined && call.ended !== null, 'the call has not ended');
        return call;
      });
      assert.equal(call.ended, 'client_closed');
      assert.ok(call.tokens < 500, `${call.tokens} tokens were made before the hang-up was heard of`);
    });
  }

  test("the compose set-up's proxy, Caddy, with a gateway behind it passes on a WebSocket, both ways, more than once", async () => {
    const socket = await ResponseSocketClient.open(caddy.url, { key: gateway.apiKey, ca: caddy.ca });
    const first = await socket.turn({ input: 'reply with exactly: one' });
    assert.equal(first.text, 'one');
    const second = await socket.turn({ input: 'reply with exactly: two', previous_response_id: first.response.id });
    assert.equal(second.text, 'two');
    socket.webSocket.close();
    await socket.closed;
  });

  test("the compose set-up's proxy, Caddy, with a gateway behind it passes on an upload of 20 MB", async () => {
    const form = new FormData();
    form.append('model', 'sandbox-transcribe');
    form.append('file', new File([new Uint8Array(wav(625))], 'long.wav', { type: 'audio/wav' }));
    const response = await ask('/v1/audio/transcriptions', { method: 'POST', body: form });
    const answer = (await response.json()) as { text: string };
    assert.equal(response.status, 200, JSON.stringify(answer));
    assert.ok(answer.text.length > 0);
  });

  test("the compose set-up's proxy, Caddy, with a gateway behind it leaves the refusal of a body that is too large to the gateway, in its own words", async () => {
    const response = await ask('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"model":"sandbox-chat","messages":[],"pad":"${'x'.repeat(21 * 1024 * 1024)}"}`,
    });
    assert.equal(response.status, 413);
    assert.equal(((await response.json()) as { error: { code: string } }).error.code, 'request_too_large');
  });

  test("the compose set-up's proxy, Caddy, with a gateway behind it tells the gateway the client's own address, whatever the client says, and its cookies are Secure", async () => {
    const headers = { 'content-type': 'application/json', origin: caddy.url, 'x-forwarded-for': '203.0.113.7' };
    const dispatcher = agent({ localAddress: '127.0.0.2' });
    const post = (path: string, body: object) =>
      fetch(`${caddy.url}${path}`, { method: 'POST', dispatcher, body: JSON.stringify(body), headers });
    const who = { name: 'A', email: 'a@example.com', password };
    assert.equal((await post('/console/api/auth/sign-up/email', who)).status, 200);
    const signedIn = await post('/console/api/auth/sign-in/email', who);
    assert.equal(signedIn.status, 200, await signedIn.text());
    const cookies = signedIn.headers.getSetCookie();
    assert.ok(cookies.some((cookie) => cookie.startsWith('__Secure-')));
    for (const cookie of cookies) assert.match(cookie, /; ?Secure\b/i, cookie.replace(/=.*/, ''));
    assert.match(signedIn.headers.get('strict-transport-security') ?? '', /max-age=/);
    const cookie = cookies.map((each) => each.slice(0, each.indexOf(';'))).join('; ');
    const listed = await ask('/console/api/auth/list-sessions', { headers: { cookie } });
    const sessions = (await listed.json()) as { ipAddress: string }[];
    assert.deepEqual(new Set(sessions.map(({ ipAddress }) => ipAddress)), new Set(['127.0.0.2']));
  });

  test('leads nobody to the metrics, and plain HTTP to HTTPS', async () => {
    for (const path of ['/metrics', '//metrics', '/v1/metrics', '/api/v1/metrics', '/metrics/']) {
      assert.equal((await ask(path)).status, 404, path);
    }
    const plain = await fetch(`${caddy.plainUrl}/v1/models`, { redirect: 'manual' });
    assert.equal(plain.status, 308);
    assert.match(plain.headers.get('location') ?? '', /^https:\/\/localhost/);
  });

  test('links to results lead through it', async () => {
    const response = await ask('/v1/images/generations', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox-image', prompt: 'An otter', size: '256x256', response_format: 'url' }),
    });
    const { data } = (await response.json()) as { data: { url: string }[] };
    const link = data[0]?.url ?? '';
    assert.ok(link.startsWith(`${caddy.url}/`), link);
    const file = await fetch(link, { dispatcher: agent() });
    assert.equal(file.headers.get('content-type'), 'image/png');
    assert.equal((await file.arrayBuffer()).byteLength, Number(file.headers.get('content-length')));
  });
});
