import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { TestGateway } from '../support/gateway.ts';
import { leftovers } from '../support/leftovers.ts';
import { startBucket } from '../support/s3.ts';

/** Longer than what is kept within a job. */
const long = 'word '.repeat(20_000);

describe('a bucket that is away', () => {
  let gateway: TestGateway;
  before(async () => {
    const bucket = await startBucket();
    gateway = await TestGateway.start({ settings: { BLOBS_URL: bucket.url() } });
    await bucket.stop();
  });
  after(() => gateway?.stop());

  const post = (path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) });

  async function transcribe(): Promise<Response> {
    const form = new FormData();
    form.set('model', 'sandbox-transcribe');
    form.set('file', new Blob([Buffer.alloc(100_000)]), 'sound.wav');
    const headers = { authorization: `Bearer ${gateway.apiKey}` };
    return fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
  }

  const model = 'sandbox-chat';
  const requests: Readonly<Record<string, () => Promise<Response>>> = {
    'a long chat': () => post('/v1/chat/completions', held(long)),
    'a long response that is stored': () => post('/v1/responses', { model, input: long }),
    'a response with long instructions': () => post('/v1/responses', { model, input: 'Hi', instructions: long }),
    'a file of a form': transcribe,
  };
  for (const [name, send] of Object.entries(requests)) {
    it(`${name} gets 503 and a time to try again while the bucket is away, and leaves nothing`, async () => {
      const refused = await send();
      assert.ok(Number(refused.headers.get('retry-after')) >= 1, 'it says when to come again');
      await assertErrorAnswer(refused, 503, 'service_unavailable');
      assert.deepEqual(await leftovers(gateway.redisUrl), []);
    });
  }

  it('short requests are answered while the bucket is away, and refusals of others are counted as of the storage of files', async () => {
    assert.equal((await post('/v1/chat/completions', held('Hi'))).status, 200);
    assert.equal((await post('/v1/responses', { model, input: 'Hi' })).status, 200);
    const metrics = await (await gateway.fetch('/metrics')).text();
    for (const endpoint of ['chat', 'responses', 'audio.transcriptions']) {
      assert.match(
        metrics,
        new RegExp(`^sluice_refusals_total\\{endpoint="${endpoint}",reason="disk".*\\} [1-9]`, 'm'),
      );
    }
  });
});
