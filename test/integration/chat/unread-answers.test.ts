import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { megabytes, peakWhile } from '../../support/faults/resident-memory.ts';
import { TestGateway } from '../../support/gateway.ts';
import { openJobSocket } from '../../support/job-socket-client.ts';
import { leftovers, withLostReadersMs } from '../../support/leftovers.ts';
import { RawRequest } from '../../support/raw-request.ts';

/** More than the system keeps for a client that does not read. */
const content = 'word '.repeat(3_000_000);

describe('answers that their client does not read', () => {
  let vendor: Server;
  let gateway: TestGateway;
  before(async () => {
    vendor = createServer((_request, response) => {
      const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }];
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ id: 'a', object: 'chat.completion', created: 1, model: 'm', choices, usage }));
    }).listen(0, '127.0.0.1');
    await once(vendor, 'listening');
    const base = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
    gateway = await TestGateway.start({
      settings: { VLLM_BASE_URL: base, SLUICE_UNREAD_SECONDS: '1' },
    });
  });
  after(async () => {
    await gateway.stop();
    vendor.closeAllConnections();
    vendor.close();
  });

  const body = JSON.stringify({ model: 'vllm/m', messages: [{ role: 'user', content: 'Hi' }] });
  const ask = (headers: Record<string, string> = {}): Promise<RawRequest> =>
    RawRequest.open(gateway.url, {
      key: gateway.apiKey,
      headers: { 'content-length': String(body.length), ...headers },
    });

  /** Whether the connection is ended before all has come, without that anything was read. */
  async function isCut(request: RawRequest): Promise<boolean> {
    await once(request.socket, 'readable').catch(() => undefined);
    request.socket.pause();
    await eventually(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(text, /^sluice_connections_cut_total\{[^}]*reason="unread"[^}]*\} [1-9]/m);
    }, 30_000);
    request.socket.resume();
    await request.closed;
    return request.text.length < content.length;
  }

  it('a held answer is interrupted when its client reads nothing of it', { timeout: 60_000 }, async () => {
    const request = await ask();
    request.socket.pause();
    await request.send(body);
    assert.ok(await isCut(request));
    assert.deepEqual(await leftovers(gateway.redisUrl, { withinMs: withLostReadersMs }), []);
  });

  it('a job socket closes if its client reads nothing, and the job keeps its answer', { timeout: 60_000 }, async () => {
    const made = await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body,
      headers: { prefer: 'respond-async' },
    });
    const { id } = (await made.json()) as { id: string };
    const read = async () =>
      (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as { status: string; result: unknown };
    await eventually(async () => assert.equal((await read()).status, 'completed'));
    const client = await openJobSocket(gateway.url, `/v1/jobs/${id}/ws`, { key: gateway.apiKey });
    client.webSocket.pause();
    await eventually(async () => {
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      assert.match(text, /^sluice_connections_cut_total\{[^}]*reason="unread"[^}]*\} 2$/m);
    }, 30_000);
    client.webSocket.resume();
    assert.equal(await client.closed, 1006);
    assert.ok(JSON.stringify((await read()).result).includes(content));
  });

  it('large answers are not read for more requests at a time than bodies may be sent, but from their files', {
    timeout: 180_000,
  }, async () => {
    const api = await gateway.startApi({ SLUICE_BODIES_MIB: '200', SLUICE_UNREAD_SECONDS: '60' });
    const keyed = async (): Promise<Response> => {
      const headers = { 'idempotency-key': 'large' };
      for (;;) {
        const answer = await gateway.fetch('/v1/chat/completions', { method: 'POST', body, url: api.url, headers });
        // A process whose processor has more to do than it can refuses some requests for jobs, whatever they are answered with.
        if (answer.status !== 503 || !(await answer.clone().text()).includes('overloaded')) return answer;
        await delay(Number(answer.headers.get('retry-after')) * 1000);
      }
    };
    assert.equal((await keyed()).status, 200);
    const made = await gateway.fetch('/v1/responses', { method: 'POST', body: '{"model":"vllm/m","input":"Hi"}' });
    const { id } = (await made.json()) as { id: string };
    const before = await peakWhile(api, Promise.resolve());
    const asks: Record<string, () => Promise<Response>> = {
      job: () => gateway.fetch(`/v1/jobs/${id}`, { url: api.url }),
      response: () => gateway.fetch(`/v1/responses/${id}`, { url: api.url }),
      events: () => gateway.fetch(`/v1/jobs/${id}/events`, { url: api.url }),
      repeat: keyed,
    };
    for (const [name, ask] of Object.entries(asks)) {
      const statuses = Promise.all(
        Array.from({ length: 30 }, async () => {
          const answer = await ask();
          await answer.arrayBuffer();
          return answer.status;
        }),
      );
      const peak = await peakWhile(api, statuses);
      // A repeat gets what the first one got, which is sent as it lies in its file.
      assert.deepEqual(new Set(await statuses), new Set(name === 'repeat' ? [200] : [200, 429]), name);
      assert.ok(peak - before < 700 * 1024 * 1024, `${name}: it grew by ${megabytes(peak - before)} MB`);
      const again = await ask();
      await again.arrayBuffer();
      assert.equal(again.status, 200, 'what was read is released');
    }
    const sockets = Array.from({ length: 30 }, async () => {
      const client = await openJobSocket(api.url, `/v1/jobs/${id}/ws`, { key: gateway.apiKey }).catch(() => undefined);
      await client?.closed;
      return client === undefined ? 'refused' : 'sent';
    });
    assert.deepEqual(new Set(await Promise.all(sockets)), new Set(['sent', 'refused']));
    await api.stop();
  });

  it('a large held answer arrives at a client that reads it', { timeout: 60_000 }, async () => {
    const answer = await gateway.fetch('/v1/chat/completions', { method: 'POST', body });
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    assert.equal(choices[0]?.message.content, content);
  });
});
