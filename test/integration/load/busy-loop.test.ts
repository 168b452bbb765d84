import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { held, streamed, streamedText } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { MetricsPage } from '../../support/metrics-page.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { ResponseSocketClient } from '../../support/response-socket-client.ts';

const path = '/v1/chat/completions';
const busyMs = 60_000;

let gateway: TestGateway;
before(async () => {
  gateway = await TestGateway.start({ apis: 0 });
});
after(() => gateway?.stop());

test('an api whose event loop is overloaded refuses a share of new requests before their bodies are read, ends what it has begun, and recovers', {
  timeout: 180_000,
}, async () => {
  const module = new URL('../../support/busy-loop.mjs', import.meta.url).href;
  const { child, url } = await gateway.startApi({ NODE_OPTIONS: `--import ${module}` });
  const ask = (): Promise<Response> => gateway.fetch(path, { url, method: 'POST', body: JSON.stringify(held('Hi')) });
  assert.equal((await ask()).status, 200);
  const stream = await gateway.client({ url }).chat.completions.create(streamed('WORDS:20@10'));
  const socket = await ResponseSocketClient.open(url, { key: gateway.apiKey });
  child.send({ type: 'busy' });
  try {
    await eventually(async () => {
      const refused = await ask();
      assert.ok(Number(refused.headers.get('retry-after')) >= 2, 'the delay is too short');
      await assertErrorAnswer(refused, 503, 'service_unavailable');
    }, busyMs);
    // Its length is told and nothing of it sent: whoever waits for the body never answers.
    await eventually(async () => {
      const request = await RawRequest.open(url, { key: gateway.apiKey, path, headers: { 'content-length': '1000' } });
      try {
        const { status } = await request.answer(5000);
        assert.equal(status, 503);
      } finally {
        request.socket.destroy();
      }
    }, busyMs);
    await eventually(async () => {
      const { last } = await socket.turn({ input: 'Hi', generate: false });
      assert.deepEqual([last.type, last.status, last.error?.code], ['error', 503, 'service_unavailable']);
    }, busyMs);
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    assert.match(await streamedText(stream), /word20$/);
  } finally {
    child.send({ type: 'idle' });
  }
  socket.webSocket.close();
  const page = await MetricsPage.read(url);
  assert.ok(page.sum('sluice_refusals_total', 'reason="cpu"') >= 2);
  await eventually(async () => {
    const statuses = await Promise.all(Array.from({ length: 10 }, async () => (await ask()).status));
    assert.deepEqual(new Set(statuses), new Set([200]));
  }, busyMs);
});
