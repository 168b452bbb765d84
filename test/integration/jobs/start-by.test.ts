import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { jobIdFromWire } from '../../../shared/ids.ts';
import { jobKeys } from '../../../shared/redis/keys.ts';
import { readVersions } from '../../../shared/runtime/wire-version.ts';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { TestGateway } from '../../support/gateway.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

describe('X-Sluice-Start-By', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await TestGateway.start({ settings: { WORKER_CONCURRENCY_CHAT: '1' } });
  });
  after(() => gateway.stop());

  const ask = (text: string, user: string, headers: Record<string, string> = {}): Promise<Response> =>
    gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(held(text, { user })), headers });
  const calls = async (user: string): Promise<number> => (await vendorCalls(gateway, user)).length;

  /** Takes the only slot for some seconds. Resolves once the vendor is called, with the status to come. */
  async function occupy(user: string): Promise<{ status: Promise<number> }> {
    const status = ask('WORDS:30@10', user).then((answer) => answer.status);
    await eventually(async () => assert.equal(await calls(user), 1));
    return { status };
  }

  async function askAsync(user: string, seconds: string): Promise<() => Promise<{ status: string; code?: string }>> {
    const accepted = await ask('Hi', user, { prefer: 'respond-async', 'x-sluice-start-by': seconds });
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
      const accepted = await ask('Hi', 'version', { prefer: 'respond-async', ...headers });
      const { id } = (await accepted.json()) as { id: string };
      const job = await redis.hget(jobKeys.state(jobIdFromWire(id) ?? id), 'job');
      assert.equal(JSON.parse(job ?? '').v, version);
    }
    redis.disconnect();
  });

  it('a request that no worker has begun by then gets 504, and its vendor is never called', async () => {
    const occupant = await occupy('first');
    const late = await ask('Hi', 'late', { 'x-sluice-start-by': '0.5' });
    await assertErrorAnswer(late, 504, 'timeout');
    assert.equal(await occupant.status, 200);
    assert.equal((await ask('Hi', 'next')).status, 200);
    assert.equal(await calls('late'), 0);
  });

  it('a request that began in time is answered, however long that takes', async () => {
    assert.equal((await ask('WORDS:20@10', 'long', { 'x-sluice-start-by': '1' })).status, 200);
  });

  it('an asynchronous request that is claimed too late fails without a call of its vendor', async () => {
    const occupant = await occupy('second');
    const job = await askAsync('claimed-late', '0.5');
    assert.equal(await occupant.status, 200);
    assert.equal((await ask('Hi', 'behind')).status, 200);
    assert.deepEqual(await job(), { status: 'failed', code: 'timeout' });
    assert.equal(await calls('claimed-late'), 0);
  });

  it('400 for anything but a positive number of seconds up to a day', async () => {
    for (const seconds of ['0', '-1', '1e3', 'soon', '86401', '1.2345']) {
      const refused = await ask('Hi', 'invalid', { 'x-sluice-start-by': seconds });
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
