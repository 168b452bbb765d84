import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';

/** Together more than the system keeps for a client that does not read. */
const pieces = 200;
const piece = 'word '.repeat(10_000);
/** How long a job may take: on a busy machine 10 MB take several seconds. */
const seconds = 15;

function chunk(delta: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}

describe('answers that their client reads slowly', () => {
  let vendor: Server;
  let gateway: TestGateway;
  before(async () => {
    vendor = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let number = 0; number < pieces; number++) response.write(chunk({ content: piece }));
      response.write(chunk({}, 'stop'));
      response.end('data: [DONE]\n\n');
    }).listen(0, '127.0.0.1');
    await once(vendor, 'listening');
    const base = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`;
    const settings = { VLLM_BASE_URL: base, SLUICE_DEADLINE_SECONDS: String(seconds) };
    gateway = await TestGateway.start({ settings });
  });
  after(async () => {
    await gateway.stop();
    vendor.closeAllConnections();
    vendor.close();
  });

  let asked = 0;

  /** Waits for the end of the job that was asked for last. Returns its id. */
  async function untilCompleted(): Promise<string> {
    return await eventually(async () => {
      const { data } = (await (await gateway.fetch('/v1/jobs')).json()) as { data: { id: string; status: string }[] };
      assert.equal(data.length, asked, 'it is not known yet');
      assert.equal(data[0]?.status, 'completed', 'it has not ended');
      return data[0]?.id.slice('job_'.length) as string;
    }, 1000 * seconds);
  }

  /** Waits for that, and then until after its deadline and the time to end it. */
  async function untilAfterDeadline(): Promise<void> {
    await untilCompleted();
    await delay((seconds + 4) * 1000);
  }

  for (const [kind, headers] of Object.entries({
    'a stream': {},
    'a shared stream': { 'x-sluice-single-flight': '1' },
  })) {
    it(`${kind} that was complete in time is read to its end after the deadline`, { timeout: 60_000 }, async () => {
      const body = JSON.stringify({ model: 'vllm/m', stream: true, messages: [{ role: 'user', content: kind }] });
      const request = await RawRequest.open(gateway.url, {
        key: gateway.apiKey,
        headers: {
          'content-length': String(body.length),
          connection: 'close',
          ...headers,
        },
      });
      request.socket.pause();
      await request.send(body);
      asked += 1;
      await untilAfterDeadline();
      request.socket.resume();
      await request.closed;
      assert.doesNotMatch(request.text, /"code":"timeout"/);
      assert.match(request.text, /data: \[DONE\]/);
    });
  }

  it('the log of an ended answer stays while its client is slow to read it', { timeout: 90_000 }, async (t) => {
    const redis = new Redis(gateway.redisUrl);
    t.after(() => redis.disconnect());
    const content = 'It is read slowly.';
    const body = JSON.stringify({ model: 'vllm/m', stream: true, messages: [{ role: 'user', content }] });
    const headers = { 'content-length': String(body.length), connection: 'close' };
    const request = await RawRequest.open(gateway.url, { key: gateway.apiKey, headers });
    request.socket.pause();
    await request.send(body);
    asked += 1;
    const log = jobKeys.log(await untilCompleted());
    // Time goes by: as if most of its minute were over.
    assert.equal(await redis.pexpire(log, 35_000), 1);
    await eventually(async () => assert.ok((await redis.pttl(log)) > 40_000, 'it is not kept'), 30_000);
    request.socket.resume();
    await request.closed;
    assert.match(request.text, /data: \[DONE\]/);
  });

  it('a response socket gets a response that was complete in time to its end after the deadline', {
    timeout: 60_000,
  }, async () => {
    const client = await ResponseSocketClient.open(gateway.url, {
      key: gateway.apiKey,
    });
    client.webSocket.pause();
    client.create({ model: 'vllm/m', input: 'Hi' });
    asked += 1;
    await untilAfterDeadline();
    client.webSocket.resume();
    const { last } = await client.turn();
    assert.equal(last.type, 'response.completed');
    client.webSocket.close();
  });
});
