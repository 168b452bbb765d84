import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { storedBlobs } from '../../support/stored-blobs.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';

/** More than the system keeps for a client that does not read. */
const content = 'word '.repeat(2_400_000);

/** Together they are several times the room for unsent bytes. */
const readers = 6;

describe('large held messages of clients that read slowly', () => {
  let vendor: FixtureVendor;
  let gateway: TestGateway;
  before(async () => {
    vendor = await startFixtureVendor();
    const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }];
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const answer = JSON.stringify({ id: 'a', object: 'chat.completion', created: 1, model: 'm', choices, usage });
    vendor.answer((response) => sendJson(response, 200, answer));
    // On a busy machine the last answer begins a minute after the first.
    const settings = { VLLM_BASE_URL: vendor.baseUrl, SLUICE_UNSENT_MIB: '16', SLUICE_UNREAD_SECONDS: '600' };
    gateway = await TestGateway.start({ settings });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  async function ask(path: string, body: object): Promise<RawRequest> {
    const text = JSON.stringify({ model: 'vllm/m', ...body });
    const headers = { 'content-length': String(text.length) };
    const request = await RawRequest.open(gateway.url, { key: gateway.apiKey, path, headers });
    await request.send(text);
    await once(request.socket, 'data');
    request.socket.pause();
    return request;
  }

  for (const [path, body] of [
    ['/v1/messages', { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }],
    ['/v1/responses', { input: 'Hi', store: false }],
  ] as const) {
    it(`${path} arrive whole, however many are unread at once, and leave no file`, { timeout: 120_000 }, async () => {
      const before = await storedBlobs(gateway.dataDir);
      const all = await Promise.all(Array.from({ length: readers }, () => ask(path, body)));
      const stored = await storedBlobs(gateway.dataDir);
      for (const request of all) {
        request.socket.resume();
        const { status, body: text } = await request.answer(60_000);
        assert.equal(status, 200);
        assert.ok(text.length > content.length && text.endsWith('}'));
        request.socket.destroy();
      }
      assert.ok(stored.length > before.length);
      await eventually(async () => assert.deepEqual(await storedBlobs(gateway.dataDir), []), 30_000);
    });
  }
});
