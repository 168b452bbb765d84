import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { held, streamed } from '../../support/chat-requests.ts';
import { TestGateway } from '../../support/gateway.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { sseEvents, textOf } from '../../support/sse-events.ts';

const mebibyte = 1024 * 1024;
/** Frames of half a mebibyte; with a mebibyte a second, after a burst of one, the last of them takes 3 s. */
const deltas = Array.from({ length: 8 }, (_, index) => String(index).repeat(mebibyte / 2));

let vendor: Server;
let gateway: TestGateway;

before(async () => {
  vendor = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const content of deltas) {
      const choices = [{ index: 0, delta: { content }, finish_reason: null }];
      response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, choices })}\n\n`);
    }
    const choices = [{ index: 0, delta: {}, finish_reason: 'stop' }];
    response.end(
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, choices })}\n\ndata: [DONE]\n\n`,
    );
  }).listen(0, '127.0.0.1');
  await once(vendor, 'listening');
  const { port } = vendor.address() as AddressInfo;
  gateway = await TestGateway.start({
    settings: { WORKER_STREAM_MIB: '1' },
    configuration: {
      vendors: { fast: { like: 'openai', base_url: `http://127.0.0.1:${port}/v1`, api_keys: ['any'] } },
      models: { fast: { capability: 'chat', routes: [{ vendor: 'fast', model: 'fast' }] } },
    },
  });
});

after(async () => {
  await gateway?.stop();
  vendor?.closeAllConnections();
  vendor?.close();
});

test('POST /v1/chat/completions: large frames come whole, and at the rate of their account while another one is served', async () => {
  const ask = async (key: string, body: object): Promise<Response> =>
    await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
  const other = await makeApiKey(gateway, { accountId: 'other' });
  const fast = await makeApiKey(gateway, { accountId: 'fast' });
  assert.equal((await ask(other, held('Hi'))).status, 200);
  const startedAt = performance.now();
  const stream = (await ask(fast, streamed('Hi', { model: 'fast' }))).text();
  let isOver = false;
  const text = stream.finally(() => {
    isOver = true;
  });
  while (!isOver) assert.equal((await ask(other, held('Hi'))).status, 200);
  const events = sseEvents(await text);
  assert.equal(textOf(events), deltas.join(''));
  assert.equal(events.at(-1)?.data, '[DONE]');
  // A rate is a lower bound of the time, on any machine: the last frame waits until those before it are paid for.
  assert.ok(performance.now() - startedAt > 2000);
});
