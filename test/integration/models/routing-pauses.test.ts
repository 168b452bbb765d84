import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { withResolvers } from '../../support/with-resolvers.ts';
import { type FixtureVendor, sendJson, startFixtureVendor } from '../../vendors/contracts/fixture-vendor.ts';
import { errorBody } from '../../vendors/recorded/recorded-openai.ts';

const retryAfterMs = 1000;
const messages = [{ role: 'user', content: 'hi' }];
const message = { role: 'assistant', content: 'fine' };
const fine = JSON.stringify({ choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }] });

describe('jobs between two vendor calls', () => {
  let vendor: FixtureVendor;
  let records: JobRecords;

  before(async () => {
    vendor = await startFixtureVendor();
    const made = { like: 'openai', base_url: vendor.baseUrl, api_key: 'a-key' } as const;
    records = await JobRecords.start({
      settings: { SLUICE_SHUTDOWN_SECONDS: '0' },
      configuration: {
        vendors: { made, other: made },
        models: {
          chats: { capability: 'chat', routes: [{ vendor: 'made', model: 'c' }] },
          films: {
            capability: 'video',
            video: { sizes: ['1280x720'], seconds: [4] },
            routes: [
              { vendor: 'made', model: 'v', order: 0 },
              { vendor: 'other', model: 'v', order: 1 },
            ],
          },
        },
        routing: { breaker: { calls: 1000 } },
      },
    });
  });

  after(async () => {
    await records?.stop();
    await vendor?.close();
  });

  /** Refuses the first call, and answers those after it. Answers when the first has come. */
  const refuseOnce = (answer: string, waitMs = retryAfterMs): Promise<unknown> => {
    let calls = 0;
    const { promise, resolve } = withResolvers();
    vendor.answer((response) => {
      if (calls++ > 0) return sendJson(response, 200, answer);
      sendJson(response, 429, errorBody('slow', 'rate_limit_exceeded'), { 'retry-after-ms': String(waitMs) });
      resolve();
    });
    return promise;
  };

  it('a job between two vendor calls is not retried after its client disconnects', async () => {
    for (const stream of [false, true]) {
      const leaving = new AbortController();
      const refused = refuseOnce(fine);
      const before = vendor.requests.length;
      const asked = records.post({ model: 'chats', messages, stream }, {}, { signal: leaving.signal });
      await refused;
      leaving.abort();
      await assert.rejects(asked, { name: 'AbortError' });
      await delay(retryAfterMs * 1.5);
      assert.equal(vendor.requests.length, before + 1);
    }
  });

  it('a job between two vendor calls moves to another worker when its worker stops, and counts both calls', async () => {
    const refused = refuseOnce(fine, 9000);
    const asked = records.post({ model: 'chats', messages });
    await refused;
    const [worker] = records.gateway.workers;
    const [code] = await Promise.all([worker?.stop(), records.gateway.startWorker()]);
    assert.equal(code, 0);
    const response = await asked;
    assert.deepEqual([response.status, response.headers.get('x-sluice-attempts')], [200, '2']);
    assert.equal((await records.ended(jobIdOf(response))).attempts, 2);
  });

  it('a video job counts the vendor calls that it took to start', async () => {
    void refuseOnce(
      JSON.stringify({ id: 'video_1', object: 'video', status: 'failed', error: { code: 'moderation_blocked' } }),
    );
    const response = await records.post({ model: 'films', prompt: 'an otter' }, {}, { path: '/v1/videos' });
    assert.equal(response.status, 200, await response.text());
    const { attempts, vendor: name } = await records.ended(jobIdOf(response));
    assert.deepEqual([attempts, name], [2, 'other']);
  });

  it('jobs between two vendor calls leave no unhandled error in the logs', () => {
    for (const { output } of [...records.gateway.workers, ...records.gateway.apis]) {
      assert.doesNotMatch(output(), /nhandled|"level":(50|60)/);
    }
  });
});
