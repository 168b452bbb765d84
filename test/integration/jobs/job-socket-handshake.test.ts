import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type OpenAI from 'openai';
import { WebSocket as BrowserWebSocket } from 'undici';
import { WebSocket } from 'ws';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { openJobSocket, refusedHandshake } from '../../support/job-socket-client.ts';
import { makeApiKey, revokeKey } from '../../support/make-api-key.ts';

const keyProtocol = 'openai-insecure-api-key.';

describe('handshake of GET /v1/jobs/{id}/ws', () => {
  let gateway: TestGateway;
  let id: string;
  let path: string;
  before(async () => {
    gateway = await TestGateway.start({ settings: { LOG_LEVEL: 'trace' } });
    id = await postLater(held('Hi'));
    path = `/v1/jobs/${id}/ws`;
  });
  after(() => gateway.stop());

  async function postLater(body: object): Promise<string> {
    const init = { method: 'POST', body: JSON.stringify(body), headers: { prefer: 'respond-async' } };
    return ((await (await gateway.fetch('/v1/chat/completions', init)).json()) as { id: string }).id;
  }

  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

  /** Writes bytes to the gateway, and answers what comes until it closes the connection. */
  async function raw(...lines: string[]): Promise<string> {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    return await text(socket);
  }

  const handshake = (target: string, ...more: string[]): string[] => [
    `GET ${target} HTTP/1.1`,
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...more,
  ];

  it('GET /v1/jobs/{id}/ws returns 101 with a request id', async () => {
    const webSocket = new WebSocket(`${gateway.url.replace(/^http/, 'ws')}${path}`, bearer(gateway.apiKey));
    const [response] = await once(webSocket, 'upgrade');
    assert.match(response.headers['x-request-id'], /^req_[0-9a-f]{32}$/);
    await once(webSocket, 'close');
    assert.equal(webSocket.protocol, '');
  });

  it('GET /v1/jobs/{id} shows the URL of its job socket', async () => {
    const job = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as { urls: { ws: string } };
    assert.equal(job.urls.ws, `${gateway.apis[0]?.url.replace('http', 'ws')}${path}`);
    const client = await openJobSocket(job.urls.ws, '', { key: gateway.apiKey });
    assert.equal(await client.closed, 1000);
  });

  it('GET /v1/jobs/{id}/ws accepts the key of a browser as a subprotocol, and sends JSON events', async () => {
    const running = await postLater(streamed('Count from 1 to 5'));
    const webSocket = new BrowserWebSocket(`${gateway.url.replace(/^http/, 'ws')}/v1/jobs/${running}/ws`, [
      'sluice',
      `${keyProtocol}${gateway.apiKey}`,
    ]);
    let answer = '';
    webSocket.onmessage = (event) => {
      const { data } = JSON.parse(event.data);
      if (data !== '[DONE]') answer += data.choices[0]?.delta.content ?? '';
    };
    const closed = new Promise<{ code: number; wasClean: boolean }>((resolve) => {
      webSocket.onclose = resolve;
    });
    const { code, wasClean } = await closed;
    assert.deepEqual([code, wasClean, webSocket.protocol], [1000, true, 'sluice']);
    assert.match(answer, /1.*2.*3.*4.*5/);
  });

  it('GET /v1/jobs/{id}/ws returns 401 for a missing, wrong or revoked key, in the header or a subprotocol', async () => {
    const revoked = await makeApiKey(gateway);
    await openJobSocket(gateway.url, path, { key: revoked });
    await revokeKey(gateway, revoked);
    const url = `${gateway.url}${path}`;
    await assertErrorAnswer(await refusedHandshake(url), 401, 'invalid_api_key');
    await assertErrorAnswer(await refusedHandshake(url, { protocols: ['sluice'] }), 401, 'invalid_api_key');
    for (const key of ['sk-wrong', revoked]) {
      await assertErrorAnswer(await refusedHandshake(url, bearer(key)), 401, 'invalid_api_key');
      const protocols = ['sluice', `${keyProtocol}${key}`];
      await assertErrorAnswer(await refusedHandshake(url, { protocols }), 401, 'invalid_api_key');
    }
    for (const query of ['key', 'api_key', 'token', 'authorization']) {
      const answer = await refusedHandshake(`${url}?${query}=${gateway.apiKey}`);
      await assertErrorAnswer(answer, 401, 'invalid_api_key');
    }
  });

  it('GET /v1/jobs/{id}/ws returns the same 404 for a job of another account as for an unknown one', async () => {
    const another = bearer(await makeApiKey(gateway, { accountId: 'another' }));
    const foreign = await assertErrorAnswer(await refusedHandshake(`${gateway.url}${path}`, another), 404, 'not_found');
    const unknown = `${gateway.url}/v1/jobs/job_${'0'.repeat(32)}/ws`;
    assert.deepEqual(await assertErrorAnswer(await refusedHandshake(unknown, another), 404, 'not_found'), foreign);
    const malformed = await refusedHandshake(`${gateway.url}/v1/jobs/x/ws`, another);
    assert.deepEqual(await assertErrorAnswer(malformed, 404, 'not_found'), foreign);
  });

  it('GET /v1/jobs/{id}/ws returns 400 naming the source of a malformed cursor', async () => {
    const query = await refusedHandshake(`${gateway.url}${path}?starting_after=-1`, bearer(gateway.apiKey));
    assert.equal((await assertErrorAnswer(query, 400, 'invalid_request_error')).param, 'starting_after');
    const headers = { ...bearer(gateway.apiKey).headers, 'last-event-id': 'x' };
    const header = await refusedHandshake(`${gateway.url}${path}`, { headers });
    assert.equal((await assertErrorAnswer(header, 400, 'invalid_request_error')).param, 'Last-Event-ID');
  });

  it('GET /v1/jobs/{id}/ws returns 426 without the upgrade headers', async () => {
    const plain = await gateway.fetch(path);
    assert.equal(plain.headers.get('upgrade'), 'websocket');
    assert.equal(plain.headers.get('sec-websocket-version'), '13');
    await assertErrorAnswer(plain, 426, 'upgrade_required');
    const options = { ...bearer(gateway.apiKey), protocolVersion: 8 };
    await assertErrorAnswer(await refusedHandshake(`${gateway.url}${path}`, options), 426, 'upgrade_required');
    await assertErrorAnswer(await gateway.fetch(path, { method: 'POST', body: '{}' }), 405, 'method_not_allowed');
  });

  it('GET /v1/jobs/{id}/ws returns 400 for unknown subprotocols and a malformed handshake', async () => {
    const options = { ...bearer(gateway.apiKey), protocols: ['realtime', 'v2'] };
    const refused = await refusedHandshake(`${gateway.url}${path}`, options);
    assert.equal((await assertErrorAnswer(refused, 400, 'invalid_request_error')).param, 'Sec-WebSocket-Protocol');
    const key = `Authorization: Bearer ${gateway.apiKey}`;
    const lines = handshake(path, key).map((line) => (line.startsWith('Sec-WebSocket-Key') ? `${line}x` : line));
    const answer = await raw(...lines);
    assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*"code":"invalid_request_error"/);
    assert.match(await raw(...handshake(path, key, 'Sec-WebSocket-Protocol: sluice, sluice')), /^HTTP\/1\.1 400 /);
  });

  it('GET /v1/jobs/{id}/ws closes the connection of a refused handshake', async () => {
    assert.match(await raw(...handshake(path)), /^HTTP\/1\.1 401 [\s\S]*connection: close/i);
  });

  it('upgrade headers have no effect on other paths', async () => {
    const key = `Authorization: Bearer ${gateway.apiKey}`;
    const answers = await Promise.all(
      ['/v1/nothing', '/v1/realtime?model=x', '/v1/jobs/x/events', '/v1/chat/completions', '/v1/models'].map((target) =>
        raw(...handshake(target, key, 'Connection: close')),
      ),
    );
    assert.deepEqual(
      answers.map((answer) => answer.split(' ')[1]),
      ['404', '404', '404', '405', '200'],
    );
    assert.match(answers[1] ?? '', /The Realtime API is not offered/);
  });

  it('a chat with Upgrade: h2c is answered over HTTP/1.1 on a connection that is kept alive', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    for (let count = 0; count < 15; count++) {
      const body = JSON.stringify(held(`Reply with exactly: ${'h2c '.repeat(count * 500)}`));
      const sent = request(`${gateway.url}/v1/chat/completions`, {
        agent,
        method: 'POST',
        headers: {
          authorization: `Bearer ${gateway.apiKey}`,
          'content-type': 'application/json',
          connection: 'Upgrade, HTTP2-Settings, keep-alive',
          upgrade: 'h2c',
          'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
        },
      });
      // The head alone first, as a slow client sends it.
      sent.flushHeaders();
      sent.end(body);
      const [response] = await once(sent, 'response');
      sockets.add(response.socket);
      assert.equal(response.statusCode, 200);
      const answer = JSON.parse(await text(response)) as OpenAI.Chat.ChatCompletion;
      assert.equal(answer.object, 'chat.completion');
    }
    assert.equal(sockets.size, 1);
    agent.destroy();
  });

  it('a client that disconnects at any moment of the handshake disturbs no other socket', async () => {
    const running = await postLater(streamed('WORDS:40@40'));
    const accepted = handshake(`/v1/jobs/${running}/ws`, `Authorization: Bearer ${gateway.apiKey}`);
    const refused = handshake(`/v1/jobs/${running}/ws`);
    await Promise.all(
      Array.from({ length: 80 }, async (_, index) => {
        const lines = index < 40 ? accepted : refused;
        const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
        socket.on('error', () => undefined);
        socket.write(`${lines.join('\r\n')}\r\n\r\n`);
        await new Promise((resolve) => setTimeout(resolve, index % 40));
        if (index % 2 === 0) socket.destroy();
        else socket.resetAndDestroy();
      }),
    );
    const client = await openJobSocket(gateway.url, `/v1/jobs/${running}/ws`, { key: gateway.apiKey });
    assert.equal(await client.closed, 1000);
    await eventually(async () => {
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(metrics, /sluice_requests_running\{[^}]*\} 0\n/);
    });
  });

  it('the logs never contain the key of a handshake', async () => {
    const [api] = gateway.apis;
    await eventually(() => assert.ok(api?.output().includes(`"path":"${path}"`), 'its lines are written'));
    assert.ok(!api?.output().includes(gateway.apiKey));
    assert.ok(!api?.output().includes(keyProtocol));
  });
});
