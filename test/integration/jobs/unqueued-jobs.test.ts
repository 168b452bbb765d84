import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { eventually } from '../../support/eventually.ts';
import { scripts } from '../../support/faults/doomed-worker.ts';
import { JobRecords, jobIdOf, later } from '../../support/job-records.ts';
import { leftovers } from '../../support/leftovers.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

const chatPath = '/v1/chat/completions';
/** More than is queued in the step of its admission. */
const long = held(`Reply with exactly: kept\n${'word '.repeat(20_000)}`);

interface Request {
  readonly path: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  /** What a retry has besides. */
  readonly retried?: Readonly<Record<string, string>>;
  readonly status: number;
}

const requests: Readonly<Record<string, Request>> = {
  'an asynchronous chat': {
    ...{ path: chatPath, body: held('Reply with exactly: kept'), status: 202 },
    headers: { ...later, 'idempotency-key': 'asynchronous' },
  },
  'a held chat with an idempotency key': {
    ...{ path: chatPath, body: held('Reply with exactly: kept'), status: 200 },
    headers: { 'idempotency-key': 'held' },
  },
  'a video': {
    ...{ path: '/v1/videos', body: { model: 'sandbox-video', prompt: 'A sea otter' }, status: 200 },
    headers: { 'idempotency-key': 'video' },
  },
  'a long chat whose client library retries on its own': {
    ...{ path: chatPath, body: long, headers: { 'x-stainless-retry-count': '0' }, status: 200 },
    retried: { 'x-stainless-retry-count': '1' },
  },
  'a long chat that shares its job': {
    ...{ path: chatPath, body: long, headers: { 'x-sluice-single-flight': '1' }, status: 200 },
  },
};

describe('requests whose api is killed after their admission, before they are queued', () => {
  let records: JobRecords;
  before(async () => {
    records = await JobRecords.start();
  });
  after(() => records?.stop());

  /** Sends a request to an api that dies on the way; returns the job that it has admitted. */
  async function loseJob({ path, body, headers }: Request, user: string): Promise<string> {
    const { gateway } = records;
    const proxy = await startTcpProxy(gateway.redis?.port as number);
    try {
      const doomed = await gateway.startApi({ REDIS_URL: proxy.url });
      const stopped = proxy.stopAt({ stop: 'before', matches: (command) => scripts.nameOf(command) === 'enqueue' });
      const asked = records.post({ ...body, user }, headers, { path, url: doomed.url });
      const broken = assert.rejects(asked);
      const entry = /:job_([0-9a-f]{32})$/m.exec((await stopped).join('\n'));
      await doomed.kill();
      gateway.apis.splice(gateway.apis.indexOf(doomed), 1);
      await broken;
      return entry?.[1] as string;
    } finally {
      await proxy.close();
    }
  }

  describe('each of them', { concurrency: true }, () => {
    for (const [what, request] of Object.entries(requests)) {
      it(`the retry of ${what} is told of a job that runs, and only that is charged`, async () => {
        const { gateway } = records;
        const lost = await loseJob(request, what);
        const { path, body, headers, retried, status } = request;
        const retry = await records.post({ ...body, user: what }, { ...headers, ...retried }, { path });
        assert.equal(retry.status, status, await retry.text());
        const job = await records.ended(jobIdOf(retry));
        assert.equal(job.outcome, 'completed');
        assert.ok(Number(job.cost) > 0, 'the job is free');
        // The sweeper ends it.
        await eventually(async () => {
          const end = await records.row(lost);
          assert.deepEqual([end?.outcome, end?.error_code, end?.cost], ['failed', 'service_unavailable', 0]);
        }, 60_000);
        assert.equal((await vendorCalls(gateway, what)).length, 1);
      });
    }
  });

  it('nothing is left of them', async () => {
    assert.deepEqual(await leftovers(records.gateway.redisUrl), []);
  });
});
