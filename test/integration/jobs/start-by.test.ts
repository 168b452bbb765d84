import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { jobIdFromWire } from '../../../shared/ids.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { readVersions } from '../../../shared/runtime/wire-version.ts';
import { Asking } from '../../support/asking.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';

describe('X-Sluice-Start-By', () => {
  let gateway: TestGateway;
  let asking: Asking;
  before(async () => {
    gateway = await TestGateway.start({ settings: { WORKER_CONCURRENCY_CHAT: '1' } });
    asking = new Asking(gateway);
  });
  after(() => gateway?.stop());

  async function askAsync(user: string, seconds: string): Promise<() => Promise<{ status: string; code?: string }>> {
    const accepted = await asking.ask('Hi', user, { prefer: 'respond-async', 'x-sluice-start-by': seconds });
    assert.equal(accepted.status, 202);
    const { id } = (await accepted.json()) as { id: string };
    return async () => {
      const job = (await (await gateway.fetch(`/v1/jobs/${id}`)).json()) as {
        status: string;
        error?: { code: string };
      };
      return { status: job.status, ...(job.error && { code: job.error.code }) };
    };
  }

  it('only a request with a time to start by is left to processes of the releases that know such times', async () => {
    const redis = new Redis(gateway.redisUrl);
    for (const [headers, version] of [
      [{}, readVersions.oldest],
      [{ 'x-sluice-start-by': '60' }, readVersions.newest],
    ] as const) {
      const accepted = await asking.ask('Hi', 'version', { prefer: 'respond-async', ...headers });
      const { id } = (await accepted.json()) as { id: string };
      const job = await redis.hget(jobKeys.state(jobIdFromWire(id) ?? id), 'job');
      assert.equal(JSON.parse(job ?? '').v, version);
    }
    redis.disconnect();
  });

  it('a request that no worker has begun by then gets 504, and its vendor is never called', async () => {
    const release = await asking.occupy('first');
    const late = await asking.ask('Hi', 'late', { 'x-sluice-start-by': '0.5' });
    await assertErrorAnswer(late, 504, 'timeout');
    await release();
    assert.equal((await asking.ask('Hi', 'next')).status, 200);
    assert.equal(await asking.calls('late'), 0);
  });

  it('a request that began in time is answered, however long that takes', async () => {
    for (let seconds = 1; ; seconds *= 2) {
      // Twice as long as it may wait for its begin.
      const answer = await asking.ask(`WORDS:${20 * seconds}@10`, 'long', { 'x-sluice-start-by': String(seconds) });
      if (answer.status === 200) break;
      // A slow machine did not begin it in time.
      await assertErrorAnswer(answer, 504, 'timeout');
      assert.deepEqual([await asking.calls('long'), seconds < 16], [0, true]);
    }
  });

  it('an asynchronous request that is claimed too late fails without a call of its vendor', async () => {
    const release = await asking.occupy('second');
    const job = await askAsync('claimed-late', '0.5');
    await delay(600);
    await release();
    assert.equal((await asking.ask('Hi', 'behind')).status, 200);
    assert.deepEqual(await job(), { status: 'failed', code: 'timeout' });
    assert.equal(await asking.calls('claimed-late'), 0);
  });

  it('400 for anything but a positive number of seconds up to a day', async () => {
    for (const seconds of ['0', '-1', '1e3', 'soon', '86401', '1.2345']) {
      const refused = await asking.ask('Hi', 'invalid', { 'x-sluice-start-by': seconds });
      const { param } = await assertErrorAnswer(refused, 400, 'invalid_request_error');
      assert.equal(param, 'X-Sluice-Start-By');
    }
  });

  it('an asynchronous request that no worker claims fails, and leaves the queue', async () => {
    await Promise.all(gateway.workers.splice(0).map((worker) => worker.kill()));
    const job = await askAsync('unclaimed', '0.5');
    await eventually(async () => assert.deepEqual(await job(), { status: 'failed', code: 'timeout' }), 30_000);
    const redis = new Redis(gateway.redisUrl);
    try {
      assert.deepEqual(await redis.keys('sluice:{q-chat}:chat:job_*'), []);
    } finally {
      redis.disconnect();
    }
  });
});
