import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { streamed } from '../support/chat-requests.ts';
import { assertErrorAnswer } from '../support/error-answers.ts';
import { eventually } from '../support/eventually.ts';
import { gatedText } from '../support/gated-vendor.ts';
import type { ApiProcess } from '../support/gateway.ts';
import { jobIdOf } from '../support/job-records.ts';
import { leftovers } from '../support/leftovers.ts';
import type { TestRedis } from '../support/redis.ts';
import { timesAnswered, wantingReplicas } from '../support/redis-refusals.ts';
import { flightOf, SharedRequests, textOfStream } from '../support/shared-requests.ts';

const model = 'gated';
/** A dead process is silent for 15 s before it counts as dead. */
const knownDeadMs = 40_000;

describe('shared jobs', () => {
  let shared: SharedRequests;
  before(async () => {
    shared = await SharedRequests.start();
  });
  after(() => shared?.stop());

  const bodyOf = (user: string) => streamed('Hi', { model, user });

  /** Starts an api, and returns it with its number. */
  async function another(): Promise<{ doomed: ApiProcess; api: number }> {
    const doomed = await shared.gateway.startApi();
    return { doomed, api: shared.gateway.apis.indexOf(doomed) };
  }

  function forget(api: ApiProcess): void {
    shared.gateway.apis.splice(shared.gateway.apis.indexOf(api), 1);
  }

  test('requests that share a job get it whole after the api process of the first one was killed', async () => {
    const { doomed, api } = await another();
    const body = bodyOf('survives');
    const lost = await shared.open(body, { api });
    const joined = await shared.open(body);
    await doomed.kill();
    forget(doomed);
    await assert.rejects(lost.response.text());
    const late = await shared.open(body, { api: 1 });
    assert.deepEqual([flightOf(joined.response), flightOf(late.response)], ['joined', 'joined']);
    shared.release('survives');
    for (const { response } of [joined, late]) assert.equal(await textOfStream(response), gatedText);
    await shared.untilEnded('survives', 'answered');
  });

  test('requests of a killed api process do not keep a job that all others have left', async () => {
    const { doomed, api } = await another();
    const body = bodyOf('deserted');
    const all = await Promise.all([api, 0, 1, api].map((each) => shared.open(body, { api: each })));
    await doomed.kill();
    forget(doomed);
    all[1]?.leave();
    all[2]?.leave();
    await Promise.allSettled(all.map(({ response }) => response.text()));
    await shared.untilEnded('deserted', 'aborted', knownDeadMs);
    assert.deepEqual(await leftovers(shared.gateway.redisUrl), []);
  });

  test('a job whose readers of another process stay is not cancelled by those that leave and look again later', async () => {
    const body = bodyOf('stays');
    const [leaving, staying] = [await shared.open(body), await shared.open(body, { api: 1 })];
    leaving.leave();
    // Longer than until the process that was left looks whether the other one still runs.
    await delay(18_000);
    assert.equal(shared.vendor.callsOf('stays')[0]?.ended, undefined);
    shared.release('stays');
    assert.equal(await textOfStream(staying.response), gatedText);
  });

  test('a stream that an api process hands over when it stops can be resumed, though all others leave', async () => {
    const { doomed, api } = await another();
    const body = bodyOf('handed-over');
    const other = await shared.open(body);
    const handed = await shared.open(body, { api });
    const id = jobIdOf(handed.response);
    const stopping = doomed.stop();
    assert.match(await handed.response.text(), /The job continues/);
    await stopping;
    forget(doomed);
    other.leave();
    // Whether it was cancelled shows in what the next one gets.
    const next = await shared.open(body, { api: 1 });
    assert.equal(flightOf(next.response), 'joined');
    next.leave();
    const resumed = await shared.gateway.fetch(`/v1/jobs/job_${id}/events`);
    shared.release('handed-over');
    assert.equal(await textOfStream(resumed), gatedText);
    await shared.untilEnded('handed-over', 'answered');
  });

  test('a request that joins while Redis refuses waits for it, or gets 503, and the job goes on', async () => {
    const { begin, end, code } = wantingReplicas;
    const { redis } = shared.records;
    const body = bodyOf('refused');
    const first = await shared.open(body);
    await begin(redis, shared.gateway.redis as TestRedis);
    try {
      const before = await timesAnswered(redis, code);
      const joining = shared.open(body, { api: 1 });
      await eventually(async () => assert.ok((await timesAnswered(redis, code)) > before, 'nothing was refused'));
      await end(redis);
      const joined = await joining;
      assert.equal(flightOf(joined.response), 'joined');

      await begin(redis, shared.gateway.redis as TestRedis);
      await assertErrorAnswer(await shared.ask(body, { api: 1 }), 503, 'service_unavailable');
      await end(redis);
      shared.release('refused');
      for (const { response } of [first, joined]) assert.equal(await textOfStream(response), gatedText);
      assert.equal(shared.vendor.callsOf('refused').length, 1);
    } finally {
      await end(redis);
    }
    assert.deepEqual(await leftovers(shared.gateway.redisUrl), []);
  });
});
