import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { held } from '../../support/chat-requests.ts';
import { assertErrorAnswer } from '../../support/error-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { oneAttempt } from '../../support/gateway.ts';
import { JobRecords, jobIdOf } from '../../support/job-records.ts';
import { makeApiKey } from '../../support/make-api-key.ts';
import { vendorCalls } from '../../support/vendor-journal.ts';

describe('what X-Sluice-Cache keeps', () => {
  let records: JobRecords;
  before(async () => {
    const settings = { SLUICE_SANDBOX: 'priced', WORKER_CONCURRENCY_CHAT: '1' };
    records = await JobRecords.start({ settings, configuration: oneAttempt });
  });
  after(() => records?.stop());

  const ask = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
    records.post(body, { 'x-sluice-cache': '60', ...headers });
  const calls = async (user: string): Promise<number> => (await vendorCalls(records.gateway, user)).length;
  const resultOf = ({ headers }: Response): string | null => headers.get('x-sluice-cache');
  const bearer = async (amount: number): Promise<Record<string, string>> => ({
    authorization: `Bearer ${await makeApiKey(records.gateway, { budget: { amount, period: 'month' } })}`,
  });

  it('an answer that is shortened for its key’s budget is not cached: others get all of it', async () => {
    const body = held('WORDS:200@5000', { user: 'shortened' });
    // Enough for the prompt and less than a hundred tokens.
    const poor = await bearer(4000);
    const lengthOf = async (headers: Record<string, string>): Promise<[string | null, number, string]> => {
      const response = await ask(body, headers);
      const { choices } = (await response.json()) as {
        choices: { finish_reason: string; message: { content: string } }[];
      };
      const [choice] = choices;
      return [resultOf(response), choice?.message.content.split(' ').length ?? 0, choice?.finish_reason ?? ''];
    };
    const [missed, words, finish] = await lengthOf(poor);
    assert.equal(missed, 'miss');
    assert.equal(finish, 'length');
    assert.ok(words < 200, `${words} words`);
    assert.deepEqual(await lengthOf({}), ['miss', 200, 'stop']);
    assert.deepEqual(await lengthOf({}), ['hit', 200, 'stop']);
    assert.deepEqual(await lengthOf(poor), ['hit', 200, 'stop']);
    assert.equal(await calls('shortened'), 2);
  });

  it('a request that is refused removes no cached answer, however new it wants one', async () => {
    const body = held('WORDS:3@200', { user: 'kept' });
    assert.equal(resultOf(await ask(body)), 'miss');
    const broke = await bearer(0);
    let refused = await ask(body, { ...broke, 'x-sluice-cache': '1' });
    while (refused.status === 200) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      refused = await ask(body, { ...broke, 'x-sluice-cache': '1' });
    }
    await assertErrorAnswer(refused, 429, 'insufficient_quota');
    assert.equal(resultOf(await ask(body)), 'hit');
    assert.equal(await calls('kept'), 1);
  });

  it('an answer that is no longer stored is asked for again, rather than shown as expired', async () => {
    const body = held('WORDS:3@200', { user: 'expired' });
    const missed = await ask(body);
    assert.equal(resultOf(missed), 'miss');
    const answer = await missed.json();
    await records.forget(jobIdOf(missed));
    const stored = await ask(body);
    assert.equal(resultOf(stored), 'hit');
    assert.deepEqual(await stored.json(), answer);
    // Large ones go when files do, which may be long before the age that a caller allows.
    await records.db.deleteFrom('job_bodies').where('job_id', '=', jobIdOf(missed)).execute();
    const again = await ask(body);
    assert.deepEqual([again.status, resultOf(again)], [200, 'miss']);
    assert.equal(resultOf(await ask(body)), 'hit');
    assert.equal(await calls('expired'), 2);
  });

  it('a caller that stops waiting ends only itself: others get the answer that it has asked for', async () => {
    const body = held('WORDS:60@20', { user: 'impatient' });
    const first = ask(body, { 'x-stainless-timeout': '1' });
    await eventually(async () => assert.equal(await calls('impatient'), 1));
    const other = await ask(body);
    await assertErrorAnswer(await first, 504, 'timeout');
    assert.deepEqual([other.status, resultOf(other)], [200, 'hit']);
    const { choices } = (await other.json()) as { choices: { message: { content: string } }[] };
    assert.equal(choices[0]?.message.content.split(' ').length, 60);
    assert.equal(resultOf(await ask(body, { 'x-stainless-timeout': '1' })), 'hit');
    assert.equal(await calls('impatient'), 1);
  });

  it('a hit on an answer that is still being made waits as long as its own caller allows', async () => {
    const body = held('WORDS:60@20', { user: 'hurried-hit' });
    const first = ask(body);
    await eventually(async () => assert.equal(await calls('hurried-hit'), 1));
    const hit = await ask(body, { 'x-stainless-timeout': '1' });
    assert.equal(resultOf(hit), 'hit');
    await assertErrorAnswer(hit, 504, 'timeout');
    assert.equal((await first).status, 200);
    assert.equal(await calls('hurried-hit'), 1);
  });

  it('a caller that wants its request to start soon ends only itself, too', async () => {
    const running = ask(held('WORDS:40@20', { user: 'running' }));
    await eventually(async () => assert.equal(await calls('running'), 1));
    const body = held('WORDS:3@200', { user: 'waiting' });
    const hurried = ask(body, { 'x-sluice-start-by': '0.5' });
    const refused = hurried.then((response) => assertErrorAnswer(response, 504, 'timeout'));
    const patient = await ask(body);
    assert.equal(patient.status, 200, patient.ok ? '' : await patient.text());
    await refused;
    assert.equal((await running).status, 200);
  });
});
