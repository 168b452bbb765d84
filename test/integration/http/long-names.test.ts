import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TestGateway } from '../../support/gateway.ts';
import { RawRequest } from '../../support/raw-request.ts';

/** A busy machine takes seconds; what is looked through once for each of its characters takes minutes. */
const patienceMs = 60_000;
const maxShown = 10_000;

const messages = [{ role: 'user', content: 'Hi' }];
/** Of words and dashes, which keys consist of, too. */
const longKey = 'a-'.repeat(150_000);

describe('names of a request that are too long for an error', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ workers: 0 });
  });
  after(() => gateway?.stop());

  async function post(field: object): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox-chat', messages, [longKey]: field }),
      signal: AbortSignal.timeout(patienceMs),
    });
    return { status: response.status, text: await response.text() };
  }

  /** Whether others are served: what a refusal is kept for is done before it is sent, or right behind. */
  async function assertServes(): Promise<void> {
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    const response = await fetch(`${gateway.url}/v1/models`, { headers, signal: AbortSignal.timeout(patienceMs) });
    assert.equal(response.status, 200);
    await response.arrayBuffer();
  }

  it('a wrong link below a key of 300 KB gets a short 400, whatever number of links is beside it', async () => {
    const links = Array.from({ length: 8000 }, () => 'http://a');
    const { status, text } = await post({ image_urls: [...links, 'file:///etc/passwd'] });
    assert.equal(status, 400);
    assert.ok(text.length < maxShown, `${text.length} characters`);
    await assertServes();
  });

  it('thousands of ids at a vendor below a key of 300 KB get a short 403', async () => {
    const { status, text } = await post({ file_ids: Array.from({ length: 8000 }, () => 'a') });
    assert.equal(status, 403);
    assert.ok(text.length < maxShown, `${text.length} characters`);
    await assertServes();
  });

  it('an unknown path of 15 KB gets a short 404, without an API key, too', async () => {
    for (const path of [`/v1${'/'.repeat(15_000)}x`, `/v1/${'a'.repeat(15_000)}`, `/v1/${'a-'.repeat(7500)}`]) {
      for (let times = 0; times < 5; times++) {
        const { status, body } = await (await RawRequest.open(gateway.url, { method: 'GET', path })).answer(patienceMs);
        assert.equal(status, 404);
        assert.ok(body.length < maxShown, `${body.length} characters`);
      }
    }
    await assertServes();
  });
});
