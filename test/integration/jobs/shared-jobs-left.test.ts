import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { accountKeys, jobKeys } from '../../../shared/redis/keys.ts';
import { held, streamed } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { gatedText } from '../../support/gated-vendor.ts';
import { jobIdOf } from '../../support/job-records.ts';
import { leftovers } from '../../support/leftovers.ts';
import { flightOf, heldText, SharedRequests, textOfStream } from '../../support/shared-requests.ts';

const model = 'gated';

describe('callers that leave a shared job', () => {
  let shared: SharedRequests;
  before(async () => {
    shared = await SharedRequests.start();
  });
  after(() => shared?.stop());

  it('whoever leaves ends only itself: the call goes on for the others, and is cancelled when the last one has left', async () => {
    const body = streamed('Hi', { model, user: 'leaving' });
    const first = await shared.open(body);
    const second = await shared.open(body, { api: 1 });
    const third = await shared.open(body, { api: 1 });
    first.leave();
    second.leave();
    const { response } = await shared.open(body);
    assert.equal(flightOf(response), 'joined');
    shared.release('leaving');
    assert.deepEqual([await textOfStream(third.response), await textOfStream(response)], [gatedText, gatedText]);
    await shared.untilEnded('leaving', 'answered');

    const gone = streamed('Hi', { model, user: 'gone' });
    const all = [];
    for (const api of [0, 1, 0, 1]) all.push(await shared.open(gone, { api }));
    for (const one of all) one.leave();
    await shared.untilEnded('gone', 'aborted');
    const again = await shared.open(gone);
    assert.equal(flightOf(again.response), 'first');
    again.leave();
    assert.deepEqual(await leftovers(shared.gateway.redisUrl), []);
  });

  it('held requests that leave are waited for as other held requests are, by an SDK that may retry, and cancelled then', async () => {
    const body = held('Hi', { model, user: 'retried' });
    const headers = { 'x-stainless-retry-count': '0' };
    const controller = new AbortController();
    const first = shared.ask(body, { headers, signal: controller.signal });
    await shared.untilCalled('retried');
    controller.abort();
    await assert.rejects(first);
    const [retry] = await shared.join(body, 1, { headers: { 'x-stainless-retry-count': '1' }, api: 1 });
    shared.release('retried');
    assert.equal(await heldText(await (retry as Promise<Response>)), gatedText);
    assert.equal(shared.vendor.callsOf('retried').length, 1);

    const left = held('Hi', { model, user: 'unretried' });
    const other = new AbortController();
    const lost = shared.ask(left, { headers, signal: other.signal });
    await shared.untilCalled('unretried');
    other.abort();
    await assert.rejects(lost);
    await shared.untilEnded('unretried', 'aborted');
  });

  it('a short timeout of one caller is its own, whether it made the job or joined it, and ends no stream that has begun', async () => {
    const body = streamed('Hi', { model, user: 'hurried' });
    const hurry = { 'x-stainless-timeout': '3' };
    const first = await shared.open(body, { headers: hurry });
    const patient = await shared.open(body, { api: 1 });
    const joined = await shared.open(body, { headers: hurry, api: 1 });
    assert.deepEqual(
      [first, patient, joined].map(({ response }) => flightOf(response)),
      ['first', 'joined', 'joined'],
    );
    const late = await shared.ask(held('Hi', { model, user: 'hurried' }), { headers: hurry });
    await assertErrorAnswer(late, 504, 'timeout');
    shared.release('hurried');
    for (const { response } of [first, patient, joined]) assert.equal(await textOfStream(response), gatedText);
    await shared.untilEnded('hurried', 'answered');
    const alone = shared.ask(held('Hi', { model, user: 'alone' }), { headers: { 'x-stainless-timeout': '1' } });
    await assertErrorAnswer(await alone, 504, 'timeout');
    await eventually(() =>
      assert.ok(
        shared.vendor.callsOf('alone').every(({ ended }) => ended === 'aborted'),
        'it goes on',
      ),
    );
  });

  it('a request that goes on without its caller keeps the job, whoever else leaves', async () => {
    const body = streamed('Hi', { model, user: 'kept' });
    const first = await shared.open(body);
    const keeping = await shared.open(body, { headers: { 'x-sluice-on-disconnect': 'continue' }, api: 1 });
    const id = jobIdOf(first.response);
    keeping.leave();
    first.leave();
    const state = jobKeys.state(id);
    await eventually(async () => {
      const sharers = (await shared.records.redis.hkeys(state)).filter((field) => field.startsWith('sharer:'));
      assert.deepEqual(sharers, []);
    });
    shared.release('kept');
    assert.equal((await shared.records.ended(id)).outcome, 'completed');
    await shared.untilEnded('kept', 'answered');
  });

  it('the answer of a shared job is not removed once one of its readers has it', async () => {
    const body = streamed('Hi', { model, user: 'delivered' });
    const open = [await shared.open(body), await shared.open(body)];
    shared.release('delivered');
    for (const { response } of open) assert.equal(await textOfStream(response), gatedText);
    // A plain one that is delivered later is removed.
    const plain = held('Hi', { model, user: 'plain' });
    const answer = shared.ask(plain, { headers: { 'x-sluice-single-flight': '0' } });
    await shared.untilCalled('plain');
    shared.release('plain');
    const id = jobIdOf(await answer);
    const { redis } = shared.records;
    await eventually(async () => assert.equal(await redis.exists(jobKeys.log(id)), 0));
    const log = jobKeys.log(jobIdOf((open[0] as { response: Response }).response));
    assert.equal(await redis.exists(log), 1);
    assert.ok((await redis.pttl(log)) <= 60_000);
  });

  it('requests that come and leave at any moment disturb none that stays, and leave nothing behind', async () => {
    const user = 'churn';
    const body = streamed('Hi', { model, user });
    const { id } = { id: 'churn-account' };
    const headers = await shared.bearer({ accountId: id });
    const steady = await shared.open(body, { headers });
    const leaving = Array.from({ length: 60 }, async (_, index) => {
      const signal = AbortSignal.timeout(1 + 3 * index);
      const asked = shared.ask(index % 3 === 0 ? held('Hi', { model, user }) : body, {
        headers,
        api: index % 2,
        signal,
      });
      await asked.then((response) => response.text()).catch(() => undefined);
    });
    await Promise.all(leaving);
    assert.equal(shared.vendor.callsOf(user).length, 1);
    const late = await shared.open(body, { headers, api: 1 });
    assert.equal(flightOf(late.response), 'joined');
    shared.release(user);
    for (const { response } of [steady, late]) assert.equal(await textOfStream(response), gatedText);
    const [row, ...more] = await eventually(async () => {
      const jobs = shared.records.db.selectFrom('jobs').selectAll().where('account_id', '=', id);
      const rows = await jobs.execute();
      assert.equal(rows.length, 1);
      return rows;
    });
    assert.equal(more.length, 0);
    const charged = await shared.records.redis.hget(accountKeys.account(id), 'charged');
    assert.deepEqual([row?.outcome, Number(row?.cost) > 0, Number(charged)], ['completed', true, Number(row?.cost)]);

    // The same without one that stays: whoever is last ends the job, at any stage of its making.
    for (let round = 0; round < 10; round++) {
      const rounds = Array.from({ length: 6 }, async (_, index) => {
        const signal = AbortSignal.timeout(1 + 2 * round + index);
        const asked = shared.ask(streamed('Hi', { model, user: 'churned' }), { headers, api: index % 2, signal });
        await asked.then((response) => response.text()).catch(() => undefined);
      });
      await Promise.all(rounds);
    }
    await eventually(() => {
      for (const call of shared.vendor.callsOf('churned')) assert.equal(call.ended, 'aborted');
    });
    assert.deepEqual(await leftovers(shared.gateway.redisUrl), []);
  });
});
